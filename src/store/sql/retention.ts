import { type Kysely, type RawBuilder, sql } from 'kysely';
import { isCounted } from '../../worker/counted.ts';
import { type FinalStatus, finalStatuses } from '../../worker/status.ts';
import type { Dialect } from '../dialect.ts';
import type { Between, Pruned, Retention, RetentionStore } from '../retention.ts';
import type { SpentOriginsTable, Tables } from '../tables.ts';
import { endedAt, isIn } from './conditions.ts';
import { insertion } from './insert-rows.ts';
import type { FactoryRows } from './open-database.ts';
import { inTransaction } from './transaction.ts';

/** Workers in one transaction: short enough that no other writer waits for it noticeably. */
const batch = 500;
/** Transitions that are looked at in one transaction. */
const transitionBatch = 5000;

/** A deleted worker, as its spent origin is kept. */
type DeletedRow = SpentOriginsTable & { readonly worker_id: number };

export class SqlRetentionStore implements RetentionStore {
  readonly #db: Kysely<Tables>;
  readonly #dialect: Dialect;
  readonly #instance: string;
  readonly #vacuum: () => Promise<void>;

  constructor({ db, dialect, instance }: FactoryRows, vacuum: () => Promise<void>) {
    this.#db = db;
    this.#dialect = dialect;
    this.#instance = instance;
    this.#vacuum = vacuum;
  }

  async due(retention: Retention): Promise<Pruned> {
    const count = async (status: FinalStatus): Promise<[FinalStatus, number]> => [
      status,
      await this.#count(sql`workers WHERE ${this.#over(status, retention)}`),
    ];
    const workers = Object.fromEntries(await Promise.all(finalStatuses.map(count)));
    const going = finalStatuses.map(
      (status) => sql`SELECT worker_id FROM workers WHERE ${this.#over(status, retention)}`,
    );
    return {
      workers: workers as Record<FinalStatus, number>,
      // Also those whose last workers would go.
      configs: await this.#count(sql`configs WHERE ${this.#unused(retention)} AND NOT EXISTS (
        SELECT 1 FROM workers WHERE workers.config_id = configs.config_id
          AND worker_id NOT IN (${sql.join(going, sql` UNION ALL `)}))`),
      commands: await this.#count(sql`commands WHERE ${this.#answered(retention)}`),
    };
  }

  async prune(retention: Retention, between: Between): Promise<Pruned> {
    const workers = { finished: 0, failed: 0, cancelled: 0, missed: 0 };
    for (const status of finalStatuses) {
      for (;;) {
        const deleted = await this.#deleteWorkers(status, retention);
        workers[status] += deleted;
        if (!(await between())) return { workers, configs: 0, commands: 0 };
        if (deleted < batch) break;
      }
    }
    const configs = await this.#delete(sql`configs WHERE ${this.#unused(retention)}
      AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.config_id = configs.config_id)`);
    const commands = await this.#delete(sql`commands WHERE ${this.#answered(retention)}`);
    await this.#deleteLostTransitions(between);
    return { workers, configs, commands };
  }

  async vacuum(): Promise<void> {
    await this.#vacuum();
  }

  async #deleteWorkers(status: FinalStatus, retention: Retention): Promise<number> {
    return inTransaction(this.#db, async (tx) => {
      // The first statement writes: after one that reads, SQLite would refuse to write where another process wrote in between.
      const deleted = await sql<DeletedRow>`
        DELETE FROM workers WHERE worker_id IN (
          SELECT worker_id FROM workers WHERE ${this.#over(status, retention)} ORDER BY ${endedAt} LIMIT ${batch}
        ) RETURNING worker_id, instance, queue, origin_kind, origin_uid, origin_index, status,
          ${endedAt} AS end_time, swept_time AS time`.execute(tx);
      const ids = deleted.rows.map((row) => row.worker_id);
      await sql`DELETE FROM transitions WHERE ${isIn(this.#dialect, ids)}`.execute(tx);
      await this.#keepOrigins(tx, deleted.rows);
      return deleted.rows.length;
    });
  }

  /** An origin that a source named outlives its worker's row, for good. */
  async #keepOrigins(tx: Kysely<Tables>, deleted: readonly DeletedRow[]): Promise<void> {
    const named = deleted.filter((row) => {
      const origin = { kind: row.origin_kind, uid: row.origin_uid, index: row.origin_index };
      return !isCounted({ workerId: row.worker_id, queue: row.queue, origin });
    });
    if (named.length === 0) return;
    const spent = sql`WHERE true ON CONFLICT (instance, origin_kind, origin_uid, origin_index) DO NOTHING`;
    await insertion(this.#dialect, 'spent_origins', named, () => spent).execute(tx);
  }

  /** Deletes transitions without a worker. `#deleteWorkers` leaves none, but a damaged or repaired database may have some. */
  async #deleteLostTransitions(between: Between): Promise<void> {
    // Transitions written meanwhile are left out: they may come faster than this loop goes.
    const last = await this.#max(sql`transitions`);
    for (let from = 0; from < last;) {
      const next = sql`SELECT id FROM transitions WHERE id > ${from} AND id <= ${last} ORDER BY id LIMIT ${transitionBatch}`;
      // None are left where another process deleted them meanwhile.
      const to = (await this.#max(sql`(${next}) AS next`)) || last;
      await this.#delete(sql`transitions WHERE id > ${from} AND id <= ${to}
        AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.worker_id = transitions.worker_id)`);
      if (!(await between())) return;
      from = to;
    }
  }

  /**
   * Something that still carries the mark of an orphan's row would be adopted as a new worker without that row. A source that
   * has not taken a worker's news yet may still ask for the worker.
   */
  #over(status: FinalStatus, { endedBefore, sweptBefore }: Retention) {
    return sql`instance = ${this.#instance} AND status = ${status} AND ${endedAt} < ${endedBefore[status]}
      AND swept_time IS NOT NULL AND swept_time < ${sweptBefore} AND worker_id NOT IN (
        SELECT worker_id FROM orphans WHERE instance = ${this.#instance} AND worker_id IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM news WHERE news.worker_id = workers.worker_id)`;
  }

  #unused({ unusedBefore, currentConfigs }: Retention) {
    if (currentConfigs === undefined) return sql`false`;
    return sql`instance = ${this.#instance} AND used_time < ${unusedBefore}
      AND config_id NOT IN (${this.#dialect.values([...currentConfigs], 'integer')})`;
  }

  #answered({ unusedBefore }: Retention) {
    return sql`instance = ${this.#instance} AND result IS NOT NULL
      AND coalesce(taken_time, creation_time) < ${unusedBefore}`;
  }

  async #count(from: RawBuilder<unknown>): Promise<number> {
    const { rows } = await sql<{ count: number }>`SELECT count(*) AS count FROM ${from}`.execute(this.#db);
    return rows[0]?.count ?? 0;
  }

  /** The highest id; 0 where there is none. */
  async #max(from: RawBuilder<unknown>): Promise<number> {
    const { rows } = await sql<{ id: number | null }>`SELECT max(id) AS id FROM ${from}`.execute(this.#db);
    return rows[0]?.id ?? 0;
  }

  async #delete(from: RawBuilder<unknown>): Promise<number> {
    const { numAffectedRows = 0n } = await sql`DELETE FROM ${from}`.execute(this.#db);
    return Number(numAffectedRows);
  }
}
