import type { Log } from '../plugins/contracts/index.ts';
import type { Store } from '../store/store.ts';
import type { WorkerChange } from '../store/worker-changes.ts';
import type { WorkerFilter } from '../store/workers.ts';
import type { Clock } from '../util/clock.ts';
import { type FinalStatus, isFinal, isQueued, mayBecome, type WorkerStatus } from '../worker/status.ts';
import type { Worker } from '../worker/worker.ts';
import { LiveTable } from './live-table.ts';

/** What the ledger tells those who wait for something to happen. */
export interface LedgerEvents {
  /** Workers of this queue ended or began to run: there may be room for others. */
  roomMade(queue: string): void;
  /** Somebody asked for the end of workers of this queue. */
  killRequested(queue: string): void;
  /** The end of a worker is in the database. */
  ended?(queue: string, status: FinalStatus, code: string | undefined): void;
}

export type Change = Omit<WorkerChange, 'from' | 'at'>;

/**
 * The one way in which agents change workers: the transition table is asked, then the database, and only then the live
 * table and whoever waits.
 */
export class Ledger {
  readonly live = new LiveTable();
  /** Workers in a submission under way: nobody else may touch them until its outcome is written. */
  readonly inFlight = new Set<number>();
  readonly store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #events: LedgerEvents;
  /** The end of the last change that was asked for. */
  #queue: Promise<void> = Promise.resolve();

  constructor(store: Store, clock: Clock, log: Log, events: LedgerEvents) {
    this.store = store;
    this.#clock = clock;
    this.#log = log;
    this.#events = events;
  }

  async load(): Promise<void> {
    this.live.load(await this.store.workers.liveRows());
  }

  /** Records intents: what is not written here may not be submitted. */
  async intend(workers: readonly Worker[]): Promise<void> {
    await this.#add(workers, 'pending', 'submitter');
  }

  /** Records workers that were found without a row; `pending` where it is not known whether they ever began. */
  async adopt(workers: readonly Worker[], status: 'pending' | 'submitted'): Promise<void> {
    if (workers.length > 0) await this.#add(workers, status, 'adoption');
  }

  /**
   * Applies what the transition table allows; the rest is refused and logged. One call after the other: each is judged by
   * what the one before it left.
   * @returns the ids that were changed
   */
  change(changes: readonly Change[]): Promise<ReadonlySet<number>> {
    const result = this.#queue.then(() => this.#apply(changes));
    this.#queue = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }

  async #apply(changes: readonly Change[]): Promise<ReadonlySet<number>> {
    const at = this.#clock.now();
    const allowed = new Map<number, WorkerChange>();
    for (const change of changes) {
      const worker = this.live.get(change.workerId);
      if (worker === undefined) {
        this.#log.debug('change of a worker that is not alive', { workerId: change.workerId, to: change.to });
      } else if (worker.status !== change.to && !mayBecome(worker.status, change.to)) {
        const { workerId, to, source } = change;
        this.#log.warn('transition refused', { workerId, from: worker.status, to, source });
      } else if (allowed.has(change.workerId)) {
        this.#log.error('two changes of one worker at once', { workerId: change.workerId, to: change.to });
      } else allowed.set(change.workerId, { ...change, from: worker.status, at });
    }
    if (allowed.size === 0) return new Set();
    const refused = await this.#guard(this.store.workers.apply([...allowed.values()]));
    if (refused.length > 0) this.#log.error('database and memory disagree', { workerIds: refused });
    for (const workerId of refused) allowed.delete(workerId);
    const roomier = new Set<string>();
    for (const change of allowed.values()) {
      const queue = this.live.get(change.workerId)?.queue;
      this.live.update(change.workerId, change.to, change.handle !== undefined);
      const leftQueue = isQueued(change.from) && !isQueued(change.to);
      if ((isFinal(change.to) || leftQueue) && queue !== undefined) roomier.add(queue);
      if (isFinal(change.to) && queue !== undefined)
        this.#events.ended?.(queue, change.to, change.error?.code);
    }
    for (const queue of roomier) this.#events.roomMade(queue);
    return new Set(allowed.keys());
  }

  /** Asks for ends; @returns for how many nobody had asked yet. */
  async requestKill(
    filter: WorkerFilter & { readonly ids?: readonly number[] },
    reason: string,
  ): Promise<number> {
    const asked = await this.#guard(this.store.workers.requestKill(filter, reason, this.#clock.now()));
    for (const { workerId } of asked) {
      const worker = this.live.get(workerId);
      if (worker !== undefined) worker.killed = true;
    }
    for (const queue of new Set(asked.map(({ queue }) => queue))) this.#events.killRequested(queue);
    return asked.length;
  }

  async #add(workers: readonly Worker[], status: WorkerStatus, source: string): Promise<void> {
    await this.#guard(this.store.workers.insert(workers, status, this.#clock.now(), source));
    for (const { workerId, queue, placement, configId } of workers) {
      const worker = {
        workerId,
        queue,
        placement,
        configId,
        status,
        killed: false,
        fingerprint: 0,
        seenIn: 0,
      };
      this.live.add(worker, status !== 'pending');
    }
  }

  async #guard<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.store.errorOf(error);
    }
  }
}
