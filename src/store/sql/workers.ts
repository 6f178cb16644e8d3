import { type Kysely, sql } from 'kysely';
import { nextTurn } from '../../util/clock.ts';
import { type FinalStatus, finalStatuses, type WorkerStatus } from '../../worker/status.ts';
import type { Worker, WorkerToStart } from '../../worker/worker.ts';
import type { ConfigPlace } from '../config-places.ts';
import type { Dialect } from '../dialect.ts';
import { toRecord, type WorkerRecord } from '../rows.ts';
import type { Tables, TransitionRow } from '../tables.ts';
import type { WorkerChange } from '../worker-changes.ts';
import {
  intentSource,
  type Adopted,
  type EndedWorker,
  type Fate,
  type LiveRow,
  type MissedScope,
  type QueueCount,
  type SweepBefore,
  type KillFilter,
  type WorkerFilter,
  type WorkerStore,
} from '../workers.ts';
import { alive, ended, isIn } from './conditions.ts';
import { configsInUse, moveConfig } from './config-places.ts';
import type { FactoryRows } from './open-database.ts';
import { insertAdopted, insertIntents } from './insert-workers.ts';
import type { BesideWorkers, Written } from './news-writer.ts';
import { inTransaction } from './transaction.ts';
import { applyChanges } from './worker-changes.ts';
import { countAll, lastEnded, missedSince } from './worker-counts.ts';

/** Rows per question about fates: other work comes in between. */
const fateChunk = 1000;

export class SqlWorkerStore implements WorkerStore {
  readonly #rows: FactoryRows;
  readonly #db: Kysely<Tables>;
  readonly #dialect: Dialect;
  readonly #instance: string;
  readonly #beside: BesideWorkers;

  constructor(rows: FactoryRows, beside: BesideWorkers) {
    this.#rows = rows;
    this.#beside = beside;
    this.#db = rows.db;
    this.#dialect = rows.dialect;
    this.#instance = rows.instance;
  }

  insert(
    workers: readonly WorkerToStart[],
    status: WorkerStatus,
    at: number,
    source: string,
  ): Promise<ReadonlySet<number>> {
    return insertIntents(this.#rows, this.#beside, workers, { status, at, source });
  }

  adopt(workers: readonly Worker[], status: WorkerStatus, at: number): Promise<Adopted> {
    return insertAdopted(this.#rows, this.#beside, workers, { status, at, source: 'adoption' });
  }

  apply(changes: readonly WorkerChange[]): Promise<number[]> {
    return applyChanges(this.#rows, this.#beside, changes);
  }

  async nextAttempt(workerIds: readonly number[], at: number): Promise<ReadonlySet<number>> {
    const rows = await this.#db
      .updateTable('workers')
      .set((eb) => ({ attempt: eb('attempt', '+', 1), modification_time: at }))
      .where(isIn(this.#dialect, workerIds))
      .where('status', '=', 'pending')
      .where('kill_time', 'is', null)
      .returning('worker_id')
      .execute();
    return new Set(rows.map((row) => row.worker_id));
  }

  async requestKill(
    filter: KillFilter,
    reason: string,
    at: number,
  ): Promise<{ workerId: number; queue: string }[]> {
    let query = this.#db
      .updateTable('workers')
      .set({ kill_time: at, kill_reason: reason })
      .where('instance', '=', this.#instance)
      .where(sql<boolean>`${alive}`)
      .where('kill_time', 'is', null);
    if (filter.ids !== undefined) query = query.where(isIn(this.#dialect, filter.ids));
    if (filter.queue !== undefined) query = query.where('queue', '=', filter.queue);
    if (filter.statuses !== undefined) query = query.where('status', 'in', filter.statuses);
    if (filter.madeUntil !== undefined) query = query.where('creation_time', '<=', filter.madeUntil);
    const rows = await query.returning(['worker_id', 'queue']).execute();
    return rows.map((row) => ({ workerId: row.worker_id, queue: row.queue }));
  }

  async markSwept(workerIds: readonly number[], at: number): Promise<void> {
    const mark = (db: Kysely<Tables>) =>
      db.updateTable('workers').set({ swept_time: at }).where(isIn(this.#dialect, workerIds));
    const { news } = this.#beside;
    if (!news.isWanted) {
      await mark(this.#db).execute();
      return;
    }
    const kinds = await inTransaction(this.#db, async (tx) => {
      const swept: Written[] = await mark(tx).returning(['worker_id', 'origin_kind']).execute();
      return news.write(tx, 'swept', swept);
    });
    news.committed(kinds);
  }

  countAll(): Promise<QueueCount[]> {
    return countAll(this.#rows);
  }

  lastEnded(
    queue: string,
    limit: number,
    statuses: readonly FinalStatus[] = finalStatuses,
  ): Promise<EndedWorker[]> {
    return lastEnded(this.#rows, queue, limit, statuses);
  }

  missedSince(scope: MissedScope, since: number): Promise<number> {
    return missedSince(this.#rows, scope, since);
  }

  async asked(): Promise<{ workerId: number; queue: string }[]> {
    return this.#db
      .selectFrom('workers')
      .select(['worker_id as workerId', 'queue'])
      .where('instance', '=', this.#instance)
      .where('kill_time', 'is not', null)
      .where(sql<boolean>`${alive}`)
      .execute();
  }

  async liveRows(queues?: ReadonlySet<string>): Promise<LiveRow[]> {
    const rows = await this.#db
      .selectFrom('workers')
      .select(['worker_id', 'queue', 'placement', 'config_id', 'status', 'attempt', 'kill_time', 'batch_id'])
      .select(['native_status', 'node_id', 'computing_element', 'start_time', 'payload_id'])
      .where('instance', '=', this.#instance)
      .where(sql<boolean>`${alive}`)
      .$if(queues !== undefined, (query) =>
        query.where(sql<boolean>`queue IN (${this.#dialect.values([...(queues ?? [])], 'text')})`),
      )
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
      computingElement: row.computing_element,
      startTime: row.start_time,
      payloadId: row.payload_id,
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
      .where(isIn(this.#dialect, workerIds))
      .orderBy('worker_id')
      .execute();
    return rows.map(toRecord);
  }

  async fates(workerIds: readonly number[]): Promise<Map<number, Fate>> {
    const fates = new Map<number, Fate>();
    for (let start = 0; start < workerIds.length; start += fateChunk) {
      const chunk = workerIds.slice(start, start + fateChunk);
      const rows = await this.#db
        .selectFrom('workers')
        .select(['worker_id', 'status', 'swept_time'])
        .where('instance', '=', this.#instance)
        .where(isIn(this.#dialect, chunk))
        .execute();
      for (const row of rows)
        fates.set(row.worker_id, { status: row.status, swept: row.swept_time !== null });
      await nextTurn();
    }
    return fates;
  }

  async intended(workerIds: readonly number[]): Promise<ReadonlySet<number>> {
    if (workerIds.length === 0) return new Set();
    const rows = await this.#db
      .selectFrom('transitions')
      .select('worker_id')
      .where(isIn(this.#dialect, workerIds))
      .where('from_status', 'is', null)
      .where('source', '=', intentSource)
      .execute();
    return new Set(rows.map(({ worker_id }) => worker_id));
  }

  async list(filter: WorkerFilter): Promise<WorkerRecord[]> {
    // Without an index for the instance the newest rows are read first, and nothing has to be sorted.
    let query = this.#db
      .selectFrom('workers')
      .selectAll()
      .where(sql<boolean>`${this.#dialect.unindexed('instance')} = ${this.#instance}`);
    if (filter.queue !== undefined) query = query.where('queue', '=', filter.queue);
    if (filter.statuses !== undefined) query = query.where('status', 'in', filter.statuses);
    query = query.orderBy('worker_id', 'desc');
    if (filter.limit !== undefined) query = query.limit(filter.limit);
    return (await query.execute()).map(toRecord);
  }

  async toKill(
    queue: string,
    configId: number,
    limit: number,
    { after = 0, except = [] }: { readonly after?: number; readonly except?: readonly string[] } = {},
  ): Promise<WorkerRecord[]> {
    const rows = await this.#db
      .selectFrom('workers')
      .selectAll()
      .where('instance', '=', this.#instance)
      .where('queue', '=', queue)
      .where('config_id', '=', configId)
      .where('kill_time', 'is not', null)
      .where(sql<boolean>`${alive}`)
      .where('worker_id', '>', after)
      .where(sql<boolean>`placement NOT IN (${this.#dialect.values(except, 'text')})`)
      .orderBy('worker_id')
      .limit(limit)
      .execute();
    return rows.map(toRecord);
  }

  async toSweep(
    queue: string,
    configId: number,
    before: SweepBefore,
    limit: number,
    except: { readonly workers: readonly number[]; readonly places: readonly string[] } = {
      workers: [],
      places: [],
    },
  ): Promise<WorkerRecord[]> {
    const rows = await this.#db
      .selectFrom('workers')
      .selectAll()
      .where('instance', '=', this.#instance)
      .where('queue', '=', queue)
      // By that index every worker that there ever was would be read.
      .where(sql<boolean>`${this.#dialect.unindexed('config_id')} = ${configId}`)
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
      .where(sql<boolean>`worker_id NOT IN (${this.#dialect.values(except.workers, 'integer')})`)
      .where(sql<boolean>`placement NOT IN (${this.#dialect.values(except.places, 'text')})`)
      .limit(limit)
      .execute();
    return rows.map(toRecord);
  }

  configsInUse(): Promise<ConfigPlace[]> {
    return configsInUse(this.#rows);
  }

  moveConfig(from: ConfigPlace, to: number): Promise<number[]> {
    return moveConfig(this.#rows, from, to);
  }

  async history(workerId: number): Promise<Omit<TransitionRow, 'id'>[]> {
    return this.#db
      .selectFrom('transitions')
      .select(['worker_id', 'at', 'from_status', 'to_status', 'source', 'native_status', 'message'])
      .where('worker_id', '=', workerId)
      .orderBy('id')
      .execute();
  }

  async transitionsSince(after: number, limit: number): Promise<(TransitionRow & { queue: string })[]> {
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
}
