import { type Kysely, type Selectable, sql } from 'kysely';
import { nextTurn } from '../util/clock.ts';
import { type FinalStatus, finalStatuses, type WorkerStatus } from '../worker/status.ts';
import type { Worker } from '../worker/worker.ts';
import { alive, ended, isIn } from './conditions.ts';
import { type ConfigPlace, configsInUse, moveConfig } from './config-places.ts';
import { toNewRow, toRecord, type WorkerRecord } from './rows.ts';
import { insertRows } from './rows-at-once.ts';
import { inTransaction } from './transaction.ts';
import type { Tables, TransitionsTable } from './tables.ts';
import { applyChanges, type WorkerChange } from './worker-changes.ts';
import {
  countAll,
  type EndedWorker,
  lastEnded,
  type MissedScope,
  missedSince,
  type QueueCount,
} from './worker-counts.ts';

/** Rows per question about fates: other work comes in between. */
const fateChunk = 1000;

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

export interface WorkerFilter {
  readonly queue?: string | undefined;
  readonly statuses?: readonly WorkerStatus[] | undefined;
  /** The newest so many. */
  readonly limit?: number | undefined;
}

/** What a listing is held against. */
export interface Fate {
  readonly status: WorkerStatus;
  readonly swept: boolean;
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
    await inTransaction(this.#db, async (tx) => {
      const rows = workers.map((worker) => toNewRow(worker, this.#instance, status, at));
      await insertRows(tx, 'workers', rows);
      const history = rows.map(({ worker_id }) => ({ worker_id, at, to_status: status, source }));
      await insertRows(tx, 'transitions', history);
    });
  }

  /** Writes all changes at once; @returns the ids whose status was not `from` any more. */
  apply(changes: readonly WorkerChange[]): Promise<number[]> {
    return applyChanges(this.#db, changes);
  }

  /** Counts a further attempt, before it is made; @returns those that may have one: still pending, no end asked for. */
  async nextAttempt(workerIds: readonly number[], at: number): Promise<ReadonlySet<number>> {
    const rows = await this.#db
      .updateTable('workers')
      .set((eb) => ({ attempt: eb('attempt', '+', 1), modification_time: at }))
      .where(isIn(workerIds))
      .where('status', '=', 'pending')
      .where('kill_time', 'is', null)
      .returning('worker_id')
      .execute();
    return new Set(rows.map((row) => row.worker_id));
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
    if (filter.ids !== undefined) query = query.where(isIn(filter.ids));
    if (filter.queue !== undefined) query = query.where('queue', '=', filter.queue);
    if (filter.statuses !== undefined) query = query.where('status', 'in', filter.statuses);
    const rows = await query.returning(['worker_id', 'queue']).execute();
    return rows.map((row) => ({ workerId: row.worker_id, queue: row.queue }));
  }

  async markSwept(workerIds: readonly number[], at: number): Promise<void> {
    await this.#db.updateTable('workers').set({ swept_time: at }).where(isIn(workerIds)).execute();
  }

  /** All workers of all queues by status, ended ones included. */
  countAll(): Promise<QueueCount[]> {
    return countAll(this.#db, this.#instance);
  }

  /** The workers of a queue that ended last in one of these statuses, newest end first. */
  lastEnded(
    queue: string,
    limit: number,
    statuses: readonly FinalStatus[] = finalStatuses,
  ): Promise<EndedWorker[]> {
    return lastEnded(this.#db, this.#instance, queue, limit, statuses);
  }

  /** How many of these were missed at or after `since`, ms UTC. */
  missedSince(scope: MissedScope, since: number): Promise<number> {
    return missedSince(this.#db, this.#instance, scope, since);
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
      .where(isIn(workerIds))
      .execute();
    return rows.map(toRecord);
  }

  /** What became of these, and no more than that: for holding whole listings against the rows. */
  async fates(workerIds: readonly number[]): Promise<Map<number, Fate>> {
    const fates = new Map<number, Fate>();
    for (let start = 0; start < workerIds.length; start += fateChunk) {
      const chunk = workerIds.slice(start, start + fateChunk);
      const rows = await this.#db
        .selectFrom('workers')
        .select(['worker_id', 'status', 'swept_time'])
        .where('instance', '=', this.#instance)
        .where(isIn(chunk))
        .execute();
      for (const row of rows)
        fates.set(row.worker_id, { status: row.status, swept: row.swept_time !== null });
      await nextTurn();
    }
    return fates;
  }

  async list(filter: WorkerFilter): Promise<WorkerRecord[]> {
    // With the `+` no index is used for the instance: the newest rows are read first, and nothing has to be sorted.
    let query = this.#db
      .selectFrom('workers')
      .selectAll()
      .where(sql<boolean>`+instance = ${this.#instance}`);
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

  /** Every (queue, configuration) that still has living or unswept workers, and where these are. */
  configsInUse(): Promise<ConfigPlace[]> {
    return configsInUse(this.#db, this.#instance);
  }

  /** Gives another configuration to the living and unswept workers of one at one place; @returns their ids. */
  moveConfig(from: ConfigPlace, to: number): Promise<number[]> {
    return moveConfig(this.#db, this.#instance, from, to);
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
}
