import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../dialect.ts';
import type { Orphan, OrphanStore } from '../orphans.ts';
import type { Tables } from '../tables.ts';
import type { FactoryRows } from './open-database.ts';
import { inTransaction } from './transaction.ts';

export class SqlOrphanStore implements OrphanStore {
  readonly #db: Kysely<Tables>;
  readonly #dialect: Dialect;
  readonly #instance: string;

  constructor({ db, dialect, instance }: FactoryRows) {
    this.#db = db;
    this.#dialect = dialect;
    this.#instance = instance;
  }

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

  async keepOnly(connections: readonly string[]): Promise<void> {
    await this.#db
      .deleteFrom('orphans')
      .where('instance', '=', this.#instance)
      .where('connection', 'not in', sql<string>`(${this.#dialect.values(connections, 'text')})`)
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
