import { type Kysely, type Selectable, sql, type Transaction } from 'kysely';
import { isQueued, type WorkerStatus } from '../worker/status.ts';
import type { Worker } from '../worker/worker.ts';
import { toNewRow, toRecord, type WorkerRecord } from './rows.ts';
import type { Tables, TransitionsTable } from './tables.ts';

/** Rows per INSERT: below SQLite's limit of bound values. */
const insertChunk = 500;

/** The living, in SQL. Written out, since SQLite uses a partial index only for the very words of its condition. */
const alive = sql.raw(`status IN ('pending', 'submitted', 'idle', 'ready', 'running')`);
const ended = sql.raw(`status NOT IN ('pending', 'submitted', 'idle', 'ready', 'running')`);

/** One change of one worker. What is absent stays as it is. */
export interface WorkerChange {
  readonly workerId: number;
  /** The status it must still have; otherwise the change is refused. */
  readonly from: WorkerStatus;
  readonly to: WorkerStatus;
  readonly at: number;
  readonly source: string;
  readonly nativeStatus?: string;
  readonly exitCode?: number;
  /** null forgets an error of an earlier attempt. */
  readonly error?: { readonly code: string; readonly message: string } | null;
  readonly node?: string;
  readonly submitTime?: number;
  readonly startTime?: number;
  readonly endTime?: number;
  /** JSON texts. */
  readonly handle?: string;
  readonly batchId?: string;
  readonly detail?: string;
}

/** What a running daemon keeps in memory of each living worker. */
export interface LiveRow {
  readonly workerId: number;
  readonly queue: string;
  readonly placement: string;
  readonly configId: number;
  readonly status: WorkerStatus;
  readonly attempt: number;
  readonly killed: boolean;
  /** Whether the backend's handle is known. */
  readonly confirmed: boolean;
  readonly nativeStatus: string | null;
  readonly node: string | null;
  readonly startTime: number | null;
}

export interface StatusCount {
  readonly status: WorkerStatus;
  readonly workers: number;
  readonly cores: number;
  readonly memory: number;
}

export interface WorkerFilter {
  readonly queue?: string | undefined;
  readonly statuses?: readonly WorkerStatus[] | undefined;
  /** The newest so many. */
  readonly limit?: number | undefined;
}

/** How long ended workers of each final status are kept before they are swept, as the time they must have ended before. */
export type SweepBefore = Readonly<Record<'finished' | 'failed' | 'cancelled' | 'missed', number>>;

/** Workers and their history. */
export class WorkerStore {
  readonly #db: Kysely<Tables>;
  readonly #instance: string;

  constructor(db: Kysely<Tables>, instance: string) {
    this.#db = db;
    this.#instance = instance;
  }

  /** Records these intents, all or none: when this returns they survive a power cut. */
  async insert(workers: readonly Worker[], status: WorkerStatus, at: number, source: string): Promise<void> {
    await this.#db.transaction().execute(async (tx) => {
      for (let start = 0; start < workers.length; start += insertChunk) {
        const chunk = workers.slice(start, start + insertChunk);
        const rows = chunk.map((worker) => toNewRow(worker, this.#instance, status, at));
        await tx.insertInto('workers').values(rows).execute();
        const history = chunk.map((worker) => ({
          ...{ worker_id: worker.workerId, at, from_status: null, to_status: status, source },
          ...{ native_status: null, message: null },
        }));
        await tx.insertInto('transitions').values(history).execute();
      }
    });
  }

  /**
   * Writes all changes in one transaction and one statement, with their history.
   * @returns the ids whose status was not `from` any more; these are unchanged.
   */
  async apply(changes: readonly WorkerChange[]): Promise<number[]> {
    if (changes.length === 0) return [];
    return this.#db.transaction().execute(async (tx) => {
      const rows = JSON.stringify(changes.map(toTuple));
      const updated = await sql<{ worker_id: number }>`
        UPDATE workers SET
          status = o.value ->> 2,
          modification_time = o.value ->> 3,
          native_status = coalesce(o.value ->> 4, native_status),
          native_exit_code = coalesce(o.value ->> 5, native_exit_code),
          error_code = CASE o.value ->> 6 WHEN 1 THEN o.value ->> 7 ELSE error_code END,
          diag_message = CASE o.value ->> 6 WHEN 1 THEN o.value ->> 8 ELSE diag_message END,
          node_id = coalesce(o.value ->> 9, node_id),
          submit_time = coalesce(o.value ->> 10, submit_time),
          start_time = coalesce(o.value ->> 11, start_time),
          end_time = coalesce(o.value ->> 12, end_time),
          handle = coalesce(o.value ->> 13, handle),
          batch_id = coalesce(o.value ->> 14, batch_id),
          detail = coalesce(o.value ->> 15, detail)
        FROM json_each(${rows}) AS o
        WHERE workers.worker_id = o.value ->> 0 AND workers.status = o.value ->> 1
        RETURNING workers.worker_id`.execute(tx);
      const done = new Set(updated.rows.map((row) => row.worker_id));
      await writeHistory(
        tx,
        changes.filter((change) => done.has(change.workerId) && change.from !== change.to),
      );
      return changes.map((change) => change.workerId).filter((id) => !done.has(id));
    });
  }

  /** Counts a further attempt, before it is made. */
  async nextAttempt(workerIds: readonly number[], at: number): Promise<void> {
    await this.#db
      .updateTable('workers')
      .set((eb) => ({ attempt: eb('attempt', '+', 1), modification_time: at }))
      .where(sql<boolean>`worker_id IN (SELECT value FROM json_each(${JSON.stringify(workerIds)}))`)
      .where('status', '=', 'pending')
      .execute();
  }

  /** Asks for the end of these living workers; @returns those for which nobody had asked yet. */
  async requestKill(
    filter: WorkerFilter & { readonly ids?: readonly number[] },
    reason: string,
    at: number,
  ): Promise<{ workerId: number; queue: string }[]> {
    let query = this.#db
      .updateTable('workers')
      .set({ kill_time: at, kill_reason: reason })
      .where('instance', '=', this.#instance)
      .where(sql<boolean>`${alive}`)
      .where('kill_time', 'is', null);
    if (filter.ids !== undefined) query = query.where('worker_id', 'in', filter.ids);
    if (filter.queue !== undefined) query = query.where('queue', '=', filter.queue);
    if (filter.statuses !== undefined) query = query.where('status', 'in', filter.statuses);
    const rows = await query.returning(['worker_id', 'queue']).execute();
    return rows.map((row) => ({ workerId: row.worker_id, queue: row.queue }));
  }

  async markSwept(workerIds: readonly number[], at: number): Promise<void> {
    await this.#db
      .updateTable('workers')
      .set({ swept_time: at })
      .where(sql<boolean>`worker_id IN (SELECT value FROM json_each(${JSON.stringify(workerIds)}))`)
      .execute();
  }

  /** The living of one queue by status. */
  async countAlive(queue: string): Promise<StatusCount[]> {
    const result = await sql<StatusCount>`
      SELECT status, count(*) AS workers, sum(n_core) AS cores, sum(min_ram_count) AS memory
      FROM workers WHERE instance = ${this.#instance} AND queue = ${queue} AND ${alive} GROUP BY status`.execute(
      this.#db,
    );
    return result.rows;
  }

  /** All workers of all queues by status, ended ones included. */
  async countAll(): Promise<{ queue: string; status: WorkerStatus; workers: number }[]> {
    const rows = await this.#db
      .selectFrom('workers')
      .select(['queue', 'status', (eb) => eb.fn.countAll<number>().as('workers')])
      .where('instance', '=', this.#instance)
      .groupBy(['queue', 'status'])
      .execute();
    return rows;
  }

  async liveRows(): Promise<LiveRow[]> {
    const rows = await this.#db
      .selectFrom('workers')
      .select(['worker_id', 'queue', 'placement', 'config_id', 'status', 'attempt', 'kill_time', 'batch_id'])
      .select(['native_status', 'node_id', 'start_time'])
      .where('instance', '=', this.#instance)
      .where(sql<boolean>`${alive}`)
      .execute();
    return rows.map((row) => ({
      workerId: row.worker_id,
      queue: row.queue,
      placement: row.placement,
      configId: row.config_id,
      status: row.status,
      attempt: row.attempt,
      killed: row.kill_time !== null,
      confirmed: row.batch_id !== null && row.status !== 'pending',
      nativeStatus: row.native_status,
      node: row.node_id,
      startTime: row.start_time,
    }));
  }

  async byId(workerId: number): Promise<WorkerRecord | undefined> {
    return (await this.byIds([workerId]))[0];
  }

  async byIds(workerIds: readonly number[]): Promise<WorkerRecord[]> {
    const rows = await this.#db
      .selectFrom('workers')
      .selectAll()
      .where('instance', '=', this.#instance)
      .where(sql<boolean>`worker_id IN (SELECT value FROM json_each(${JSON.stringify(workerIds)}))`)
      .execute();
    return rows.map(toRecord);
  }

  async list(filter: WorkerFilter): Promise<WorkerRecord[]> {
    let query = this.#db.selectFrom('workers').selectAll().where('instance', '=', this.#instance);
    if (filter.queue !== undefined) query = query.where('queue', '=', filter.queue);
    if (filter.statuses !== undefined) query = query.where('status', 'in', filter.statuses);
    query = query.orderBy('worker_id', 'desc');
    if (filter.limit !== undefined) query = query.limit(filter.limit);
    return (await query.execute()).map(toRecord);
  }

  /** Living workers of these configurations for which an end was asked. */
  async toKill(queue: string, configId: number, limit: number): Promise<WorkerRecord[]> {
    const rows = await this.#db
      .selectFrom('workers')
      .selectAll()
      .where('instance', '=', this.#instance)
      .where('queue', '=', queue)
      .where('config_id', '=', configId)
      .where('kill_time', 'is not', null)
      .where(sql<boolean>`${alive}`)
      .limit(limit)
      .execute();
    return rows.map(toRecord);
  }

  /** Ended workers whose keep time is over and of which something may be left. */
  async toSweep(
    queue: string,
    configId: number,
    before: SweepBefore,
    limit: number,
  ): Promise<WorkerRecord[]> {
    const rows = await this.#db
      .selectFrom('workers')
      .selectAll()
      .where('instance', '=', this.#instance)
      .where('queue', '=', queue)
      .where('config_id', '=', configId)
      .where('swept_time', 'is', null)
      .where(sql<boolean>`${ended}`)
      .where((eb) =>
        eb.or(
          (['finished', 'failed', 'cancelled', 'missed'] as const).map((status) =>
            eb.and([
              eb('status', '=', status),
              eb(eb.fn.coalesce('end_time', 'modification_time'), '<', before[status]),
            ]),
          ),
        ),
      )
      .limit(limit)
      .execute();
    return rows.map(toRecord);
  }

  /** Every (queue, configuration) that still has living or unswept workers. */
  async configsInUse(): Promise<{ queue: string; configId: number }[]> {
    const rows = await sql<{ queue: string; config_id: number }>`
      SELECT queue, config_id FROM workers WHERE instance = ${this.#instance} AND ${alive}
      UNION
      SELECT queue, config_id FROM workers WHERE instance = ${this.#instance} AND swept_time IS NULL AND ${ended}`.execute(
      this.#db,
    );
    return rows.rows.map((row) => ({ queue: row.queue, configId: row.config_id }));
  }

  async history(workerId: number): Promise<Omit<TransitionsTable, 'id'>[]> {
    return this.#db
      .selectFrom('transitions')
      .select(['worker_id', 'at', 'from_status', 'to_status', 'source', 'native_status', 'message'])
      .where('worker_id', '=', workerId)
      .orderBy('id')
      .execute();
  }

  /** The newest transitions after that with id `after`, oldest first, with their queues. */
  async transitionsSince(
    after: number,
    limit: number,
  ): Promise<(Selectable<TransitionsTable> & { queue: string })[]> {
    const rows = await this.#db
      .selectFrom('transitions')
      .innerJoin('workers', 'workers.worker_id', 'transitions.worker_id')
      .selectAll('transitions')
      .select('workers.queue')
      .where('workers.instance', '=', this.#instance)
      .where('transitions.id', '>', after)
      .orderBy('transitions.id', 'desc')
      .limit(limit)
      .execute();
    return rows.reverse();
  }

  /** Takes `count` worker ids that nobody had before; @returns the first. */
  async takeIds(count: number): Promise<number> {
    const row = await this.#db
      .updateTable('counters')
      .set((eb) => ({ value: eb('value', '+', count) }))
      .where('instance', '=', this.#instance)
      .where('name', '=', 'nextWorkerId')
      .returning('value')
      .executeTakeFirstOrThrow();
    return row.value - count;
  }

  /** Makes sure that ids below `floor` are not given out any more. */
  async raiseIds(floor: number): Promise<void> {
    await this.#db
      .insertInto('counters')
      .values({ instance: this.#instance, name: 'nextWorkerId', value: floor })
      .onConflict((conflict) =>
        conflict.columns(['instance', 'name']).doUpdateSet({ value: sql`max(value, excluded.value)` }),
      )
      .execute();
  }

  /** Whether this instance ever gave out an id. */
  async hasIds(): Promise<boolean> {
    const row = await this.#db
      .selectFrom('counters')
      .select('value')
      .where('instance', '=', this.#instance)
      .where('name', '=', 'nextWorkerId')
      .executeTakeFirst();
    return row !== undefined;
  }
}

/** The queued among a queue's counts. */
export function queuedWorkers(counts: readonly StatusCount[]): number {
  return counts.filter((count) => isQueued(count.status)).reduce((sum, count) => sum + count.workers, 0);
}

function toTuple(change: WorkerChange): unknown[] {
  return [
    change.workerId,
    change.from,
    change.to,
    change.at,
    change.nativeStatus ?? null,
    change.exitCode ?? null,
    change.error === undefined ? 0 : 1,
    change.error?.code ?? null,
    change.error?.message ?? null,
    change.node ?? null,
    change.submitTime ?? null,
    change.startTime ?? null,
    change.endTime ?? null,
    change.handle ?? null,
    change.batchId ?? null,
    change.detail ?? null,
  ];
}

async function writeHistory(tx: Transaction<Tables>, changes: readonly WorkerChange[]): Promise<void> {
  if (changes.length === 0) return;
  const rows = JSON.stringify(
    changes.map((change) => [
      ...[change.workerId, change.at, change.from, change.to, change.source],
      ...[change.nativeStatus ?? null, change.error?.message ?? null],
    ]),
  );
  await sql`
    INSERT INTO transitions (worker_id, at, from_status, to_status, source, native_status, message)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
    FROM json_each(${rows})`.execute(tx);
}
