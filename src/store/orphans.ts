import { type Kysely, sql } from 'kysely';
import { inTransaction } from './transaction.ts';
import type { Tables } from './tables.ts';

/** Something on a backend that carries our mark and belongs to no worker we know. */
export interface Orphan {
  readonly connection: string;
  readonly place: string;
  readonly workerId: number | null;
  readonly queue: string | null;
  readonly why: string;
  readonly seenTime: number;
}

export class OrphanStore {
  readonly #db: Kysely<Tables>;
  readonly #instance: string;

  constructor(db: Kysely<Tables>, instance: string) {
    this.#db = db;
    this.#instance = instance;
  }

  /** What the last complete listing of a connection found. */
  async replace(connection: string, orphans: readonly Orphan[]): Promise<void> {
    await inTransaction(this.#db, async (tx) => {
      await tx
        .deleteFrom('orphans')
        .where('instance', '=', this.#instance)
        .where('connection', '=', connection)
        .execute();
      for (const orphan of orphans) {
        const { place, workerId, queue, why, seenTime } = orphan;
        await tx
          .insertInto('orphans')
          .values({
            instance: this.#instance,
            connection,
            place,
            worker_id: workerId,
            queue,
            why,
            seen_time: seenTime,
          })
          .execute();
      }
    });
  }

  /** Forgets those of connections that nobody uses any more, and so nobody lists. */
  async keepOnly(connections: readonly string[]): Promise<void> {
    await this.#db
      .deleteFrom('orphans')
      .where('instance', '=', this.#instance)
      .where(
        'connection',
        'not in',
        sql<string>`(SELECT value FROM json_each(${JSON.stringify(connections)}))`,
      )
      .execute();
  }

  async all(): Promise<Orphan[]> {
    const rows = await this.#db
      .selectFrom('orphans')
      .selectAll()
      .where('instance', '=', this.#instance)
      .orderBy('connection')
      .orderBy('place')
      .execute();
    return rows.map((row) => ({
      connection: row.connection,
      place: row.place,
      workerId: row.worker_id,
      queue: row.queue,
      why: row.why,
      seenTime: row.seen_time,
    }));
  }
}
