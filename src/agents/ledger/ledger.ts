import type { Log } from '../../plugins/contracts/index.ts';
import type { ConfigPlace } from '../../store/config-places.ts';
import type { Store } from '../../store/store.ts';
import type { WorkerChange } from '../../store/worker-changes.ts';
import type { WorkerFilter } from '../../store/workers.ts';
import type { Clock } from '../../util/clock.ts';
import { mayBecome, type WorkerStatus } from '../../worker/status.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Emit, WorkerChanged } from '../events.ts';
import { InFlight } from './in-flight.ts';
import { LiveTable } from './live-table.ts';

export type Change = Omit<WorkerChange, 'from' | 'at'>;

/**
 * Every write to a worker's row goes through here. A change of status asks the transition table, then writes the database, and
 * only then the live table, and tells those who listen. Four rules keep the three in step:
 *
 * 1. Changes of status run one after the other: each is judged by the status that the one before it left.
 * 2. New rows (`intend`, `adopt`) need no turn: no change can name a worker before its row is there.
 * 3. Further attempts, requests to end and moves to another configuration need none either: the database checks their
 *    condition in the statement itself. A sweep's mark is for ended workers, whose status changes no more.
 * 4. Nothing else writes these rows, except that the pruner and `thresher db prune` delete those of swept workers.
 */
export class Ledger {
  readonly live = new LiveTable();
  readonly inFlight = new InFlight();
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #events: Emit;
  /** The end of the last change that was asked for. */
  #queue: Promise<void> = Promise.resolve();

  constructor(store: Store, clock: Clock, log: Log, events: Emit) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#events = events;
  }

  async load(): Promise<void> {
    this.live.load(await this.#store.workers.liveRows());
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
    const refused = await this.#guard(this.#store.workers.apply([...allowed.values()]));
    if (refused.length > 0) this.#log.error('database and memory disagree', { workerIds: refused });
    for (const workerId of refused) allowed.delete(workerId);
    const changed: WorkerChanged[] = [];
    for (const { workerId, from, to, handle, error } of allowed.values()) {
      const queue = this.live.get(workerId)?.queue;
      this.live.update(workerId, to, handle !== undefined);
      if (from !== to && queue !== undefined) changed.push({ workerId, queue, from, to, code: error?.code });
    }
    if (changed.length > 0) this.#events.emit('workersChanged', { workers: changed });
    return new Set(allowed.keys());
  }

  /** Counts a further attempt of each, before it is made; @returns those that may have one: still pending, no end asked for. */
  attemptAgain(workerIds: readonly number[]): Promise<ReadonlySet<number>> {
    return this.#guard(this.#store.workers.nextAttempt(workerIds, this.#clock.now()));
  }

  /** Notes that nothing of these ended workers is left on a backend. */
  markSwept(workerIds: readonly number[]): Promise<void> {
    return this.#guard(this.#store.workers.markSwept(workerIds, this.#clock.now()));
  }

  /** Gives the workers of one place another configuration, by which they are followed; @returns how many. */
  async moveConfig(place: ConfigPlace, configId: number): Promise<number> {
    const moved = await this.#guard(this.#store.workers.moveConfig(place, configId));
    for (const workerId of moved) {
      const worker = this.live.get(workerId);
      if (worker !== undefined) worker.configId = configId;
    }
    return moved.length;
  }

  /** Asks for the end of workers; @returns how many of them had not been asked to end before. */
  async requestKill(
    filter: WorkerFilter & { readonly ids?: readonly number[] },
    reason: string,
  ): Promise<number> {
    const asked = await this.#guard(this.#store.workers.requestKill(filter, reason, this.#clock.now()));
    for (const { workerId } of asked) {
      const worker = this.live.get(workerId);
      if (worker !== undefined) worker.killed = true;
    }
    if (asked.length > 0) this.#events.emit('killRequested', { workers: asked });
    return asked.length;
  }

  async #add(workers: readonly Worker[], status: WorkerStatus, source: string): Promise<void> {
    await this.#guard(this.#store.workers.insert(workers, status, this.#clock.now(), source));
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
    const added = { from: undefined, to: status, code: undefined };
    this.#events.emit('workersChanged', {
      workers: workers.map(({ workerId, queue }) => ({ workerId, queue, ...added })),
    });
  }

  async #guard<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.#store.errorOf(error);
    }
  }
}
