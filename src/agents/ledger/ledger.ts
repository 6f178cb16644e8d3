import type { Log } from '../../plugins/contracts/index.ts';
import type { ConfigPlace } from '../../store/config-places.ts';
import type { Store } from '../../store/store.ts';
import type { WorkerRecord } from '../../store/rows.ts';
import type { WorkerChange } from '../../store/worker-changes.ts';
import { type Adopted, intentSource, type KillFilter } from '../../store/workers.ts';
import type { Clock } from '../../util/clock.ts';
import type { OriginKey } from '../../worker/news.ts';
import type { Reason } from '../../worker/reason.ts';
import { mayBecome, type WorkerStatus } from '../../worker/status.ts';
import type { Worker, WorkerToStart } from '../../worker/worker.ts';
import type { Emit, WorkerChanged } from '../events.ts';
import { InFlight } from './in-flight.ts';
import { LiveTable } from './live-table.ts';

export type Change = Omit<WorkerChange, 'from' | 'at'>;

export type NotedWorker = Pick<WorkerRecord, 'workerId' | 'status' | 'detail' | 'modificationTime'>;

const notSweptYet: Reason = { code: 'sweep-awaited', message: 'no sweep has come to its worker yet' };

/**
 * Every write to a worker's row goes through here. A change of status asks the transition table, then writes the database, and
 * only then the live table, and tells those who listen. Five rules keep the three in step:
 *
 * 1. Changes of status run one after the other: each is judged by the status that the one before it left.
 * 2. New rows (`intend`, `adopt`) need no turn: no change can name a worker before its row is there.
 * 3. Further attempts, requests to end, withdrawn origins and moves to another configuration need none either: the database checks their
 *    condition in the statement itself. A sweep's mark is for ended workers, whose status changes no more.
 * 4. Details of ended workers need none: no status goes with them.
 * 5. Nothing else writes these rows, except that the pruner and `thresher db prune` delete those of swept workers.
 */
export class Ledger {
  readonly live = new LiveTable();
  readonly inFlight = new InFlight();
  /** Ended workers whose traces are to be removed before their keep time is over. A restart forgets them: their sources ask again. */
  readonly discarded = new Set<number>();
  /** Those of them of which nothing is wanted, their outputs neither. */
  readonly unwanted = new Set<number>();
  /** Why some of these are not gone yet. */
  readonly whyLeft = new Map<number, Reason>();
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #events: Emit;
  /** The end of the last change that was asked for. */
  #queue: Promise<void> = Promise.resolve();
  /** New rows that are being written now. */
  readonly #additions = new Set<Promise<unknown>>();

  constructor(store: Store, clock: Clock, log: Log, events: Emit) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#events = events;
  }

  /** Takes up the living workers; where daemons share a factory, those of these queues. */
  async load(queues?: ReadonlySet<string>): Promise<void> {
    this.live.load(await this.#store.workers.liveRows(queues));
  }

  /** Leaves these queues to another daemon, once everything that was asked for is written. */
  async leave(queues: ReadonlySet<string>): Promise<void> {
    await Promise.allSettled([this.#queue, ...this.#additions]);
    this.live.forget(queues);
  }

  /** Takes up ends of workers that other daemons of the factory asked for. */
  async heedKills(): Promise<void> {
    const asked = await this.#guard(this.#store.workers.asked());
    const fresh = asked.filter(({ workerId }) => this.live.get(workerId)?.killed === false);
    if (fresh.length > 0) await this.#killed(fresh);
  }

  /**
   * Records intents: what is not written here may not be submitted. An origin that has had its worker, or was withdrawn, gets
   * no other one.
   * @returns the ids of the workers that were recorded
   */
  async intend(workers: readonly WorkerToStart[]): Promise<ReadonlySet<number>> {
    const now = this.#clock.now();
    return this.#add(workers, 'pending', async () => {
      const recorded = await this.#store.workers.insert(workers, 'pending', now, intentSource);
      return { recorded, ended: new Set<number>() };
    });
  }

  /**
   * Records workers that were found without a row; `pending` where it is not known whether they ever began.
   * @returns the ids of those that have rows now: the origin of another may have a worker already
   */
  async adopt(workers: readonly Worker[], status: 'pending' | 'submitted'): Promise<ReadonlySet<number>> {
    if (workers.length === 0) return new Set();
    const now = this.#clock.now();
    return this.#add(workers, status, () => this.#store.workers.adopt(workers, status, now));
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
      } else allowed.set(change.workerId, this.#changeOf(change, worker.status, at));
    }
    if (allowed.size === 0) return new Set();
    const refused = await this.#guard(this.#store.workers.apply([...allowed.values()]));
    if (refused.length > 0) this.#log.error('database and memory disagree', { workerIds: refused });
    this.#tellNews();
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

  /** A worker that leaves `pending` needs its payload no more. */
  #changeOf(change: Change, from: WorkerStatus, at: number): WorkerChange {
    const payloadId =
      from === 'pending' && change.to !== 'pending' ? this.live.payloadOf(change.workerId) : undefined;
    return payloadId === undefined ? { ...change, from, at } : { ...change, from, at, payloadId };
  }

  /** Counts a further attempt of each, before it is made; @returns those that may have one: still pending, no end asked for. */
  async attemptAgain(workerIds: readonly number[]): Promise<ReadonlySet<number>> {
    const counted = await this.#guard(this.#store.workers.nextAttempt(workerIds, this.#clock.now()));
    for (const workerId of counted) this.live.noteTriedAgain(workerId);
    return counted;
  }

  /** Notes further facts of these ended workers, for operators. The time of their last change stays: it may be that of their end. */
  async noteDetails(workers: readonly NotedWorker[]): Promise<void> {
    const changes = workers.map(({ workerId, status, detail, modificationTime: at }) => ({
      workerId,
      from: status,
      to: status,
      at,
      source: 'sweeper',
      detail: JSON.stringify(detail),
    }));
    await this.#guard(this.#store.workers.apply(changes));
    this.#tellNews();
  }

  /** Notes that nothing of these ended workers is left on a backend. */
  async markSwept(workerIds: readonly number[]): Promise<void> {
    await this.#guard(this.#store.workers.markSwept(workerIds, this.#clock.now()));
    this.#tellNews();
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
  async requestKill(filter: KillFilter, reason: string): Promise<number> {
    const asked = await this.#guard(this.#store.workers.requestKill(filter, reason, this.#clock.now()));
    await this.#killed(asked);
    return asked.length;
  }

  /**
   * Ends these origins for good: asks for the end of their living workers, and withdraws those that have no worker.
   * @returns how many workers had not been asked to end before
   */
  async endOrigins(kind: string, origins: readonly OriginKey[], reason: string): Promise<number> {
    const asked = await this.#guard(this.#store.origins.end(kind, origins, reason, this.#clock.now()));
    await this.#killed(asked);
    this.#tellNews();
    return asked.length;
  }

  /** Withdraws those of these origins that have no worker; a worker of one lives on, also one that comes to light later. */
  async withdrawOrigins(kind: string, origins: readonly OriginKey[]): Promise<void> {
    await this.#guard(this.#store.origins.withdraw(kind, origins, this.#clock.now()));
    this.#tellNews();
  }

  /** Lets the traces of the ended workers of this `uid` be removed now; @returns how many live, or have left something. */
  async discard(kind: string, uid: string, isUnwanted: boolean): Promise<number> {
    const left = await this.#guard(this.#store.origins.unswept(kind, uid));
    const fresh = left.filter(({ workerId, hasEnded }) => hasEnded && !this.discarded.has(workerId));
    if (isUnwanted) for (const { workerId, hasEnded } of left) if (hasEnded) this.unwanted.add(workerId);
    for (const { workerId } of fresh) {
      this.discarded.add(workerId);
      this.whyLeft.set(workerId, notSweptYet);
    }
    if (fresh.length > 0) this.#events.emit('killRequested', { workers: fresh });
    return left.length;
  }

  async #killed(asked: readonly { readonly workerId: number; readonly queue: string }[]): Promise<void> {
    if (asked.length === 0) return;
    // The row of a new worker is there a moment before the live table has the worker.
    if (asked.some(({ workerId }) => this.live.get(workerId) === undefined)) {
      await Promise.allSettled([...this.#additions]);
    }
    for (const { workerId } of asked) {
      const worker = this.live.get(workerId);
      if (worker !== undefined) worker.killed = true;
    }
    this.#events.emit('killRequested', { workers: asked });
  }

  async #add(
    workers: readonly Worker[],
    status: WorkerStatus,
    insert: () => Promise<Adopted>,
  ): Promise<ReadonlySet<number>> {
    const addition = this.#insert(workers, status, insert);
    this.#additions.add(addition);
    try {
      return await addition;
    } finally {
      this.#additions.delete(addition);
    }
  }

  async #insert(
    workers: readonly Worker[],
    status: WorkerStatus,
    insert: () => Promise<Adopted>,
  ): Promise<ReadonlySet<number>> {
    const { recorded, ended } = await this.#guard(insert());
    const added =
      recorded.size === workers.length ? workers : workers.filter((one) => recorded.has(one.workerId));
    for (const { workerId, queue, placement, configId, payloadId, attempt } of added) {
      const worker = {
        workerId,
        queue,
        placement,
        configId,
        status,
        killed: ended.has(workerId),
        fingerprint: 0,
        seenIn: 0,
      };
      this.live.add(worker, status !== 'pending', payloadId);
      if (attempt > 1) this.live.noteTriedAgain(workerId);
    }
    this.#tellNews();
    if (added.length > 0) {
      this.#events.emit('workersChanged', {
        workers: added.map(({ workerId, queue }) => ({
          workerId,
          queue,
          from: undefined,
          to: status,
          code: undefined,
        })),
      });
    }
    const toEnd = added.filter(({ workerId }) => ended.has(workerId));
    if (toEnd.length > 0) this.#events.emit('killRequested', { workers: toEnd });
    return recorded;
  }

  #tellNews(): void {
    const kinds = this.#store.news.written();
    if (kinds.size > 0) this.#events.emit('newsWritten', { kinds });
  }

  async #guard<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.#store.errorOf(error);
    }
  }
}
