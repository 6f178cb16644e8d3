import type { WorkerNews } from '../../plugins/contracts/index.ts';

/** A worker that lives, as far as joining goes. */
export interface LivingWorker {
  readonly workerId: number;
  readonly queue: string;
  /** Key of its shape; undefined where its origin does not say. */
  readonly shape: string | undefined;
  readonly origin: WorkerNews['origin'];
  /** ms UTC; undefined while it does not run. */
  readonly startedAt: number | undefined;
}

/** Workers of the source, by how they stand with the pool. */
export interface Joining {
  /** Not started yet, or started and within their time to join: each is a whole machine that will come. */
  readonly onItsWay: readonly LivingWorker[];
  /** Their startd is in the pool. */
  readonly joined: readonly LivingWorker[];
  /** They had joined, and the collector does not know them now: they may be busy all the same. */
  readonly vanished: readonly LivingWorker[];
  /** They run for longer than their time to join and never joined: no capacity. Oldest first. */
  readonly late: readonly LivingWorker[];
  /** Those among the late ones that neither join nor end for so long that the log names them. */
  readonly strays: readonly LivingWorker[];
}

export interface JoinTimes {
  /** ms */
  readonly joinTimeout: number;
  /** ms UTC. */
  readonly now: number;
  /** Monotonic ms. */
  readonly monotonic: number;
  /** Since when the collector itself runs, ms UTC; undefined where it does not say. */
  readonly collectorStartedAt: number | undefined;
}

/**
 * A worker ends itself after its time to join. One that does not, because its entry script hangs or is another one, is a stray after this
 * multiple of that time in which every look missed it: a collector that lost its ads gets them back within a third of that.
 */
const strayAfter = 3;

type Standing = 'on its way' | 'joined' | 'vanished' | 'late' | 'stray';

const byStart = (one: LivingWorker, other: LivingWorker) => (one.startedAt ?? 0) - (other.startedAt ?? 0);

/** Remembers which workers joined, and since when others are missed. */
export class JoinMemory {
  readonly #joined = new Set<number>();
  /** Shapes of which a worker has joined, so that thresher knows their workers by their marks. */
  readonly #shown = new Set<string | undefined>();
  /** By worker: the first whole look that missed it while it ran, monotonic ms. */
  readonly #missedSince = new Map<number, number>();
  /** By worker: the first look that saw it run, monotonic ms. */
  readonly #runsSince = new Map<number, number>();
  /** ms UTC of the first look: a worker that started before it may have joined before it, too. */
  #since: number | undefined;

  /** Takes a whole look at the pool. @param present ids of our workers whose startd the collector knows */
  judge(living: readonly LivingWorker[], present: ReadonlySet<number>, times: JoinTimes): Joining {
    this.#since ??= times.now;
    this.#forget(living);
    for (const { workerId, shape } of living) {
      if (!present.has(workerId)) continue;
      this.#joined.add(workerId);
      this.#missedSince.delete(workerId);
      this.#shown.add(shape);
    }
    const standings = living.map((worker) => ({ worker, standing: this.#standing(worker, present, times) }));
    const those = (...wanted: readonly Standing[]) =>
      standings
        .flatMap(({ worker, standing }) => (wanted.includes(standing) ? [worker] : []))
        .toSorted(byStart);
    return {
      onItsWay: those('on its way'),
      joined: those('joined'),
      vanished: those('vanished'),
      late: those('late', 'stray'),
      strays: those('stray'),
    };
  }

  #standing(worker: LivingWorker, present: ReadonlySet<number>, times: JoinTimes): Standing {
    const { workerId, startedAt, shape } = worker;
    if (present.has(workerId)) return 'joined';
    if (this.#joined.has(workerId)) return 'vanished';
    if (startedAt === undefined) return 'on its way';
    const runsSince = this.#runsSince.get(workerId) ?? times.monotonic;
    this.#runsSince.set(workerId, runsSince);
    // A collector without memory misses everyone.
    if (collectorIsFresh(times)) {
      this.#missedSince.delete(workerId);
      return 'on its way';
    }
    const { now, monotonic, joinTimeout } = times;
    const since = this.#missedSince.get(workerId) ?? monotonic;
    this.#missedSince.set(workerId, since);
    // The wall clock may jump while a worker is on its way: the age of one that started under these looks is counted from them.
    const isSeenStarting = startedAt >= (this.#since ?? now);
    if ((isSeenStarting ? monotonic - runsSince : now - startedAt) < joinTimeout) return 'on its way';
    // Without the marks of its workers in their ads a template would make each busy one a stray.
    const couldBeSeen = isSeenStarting && this.#shown.has(shape);
    return couldBeSeen && monotonic - since >= strayAfter * joinTimeout ? 'stray' : 'late';
  }

  #forget(living: readonly LivingWorker[]): void {
    const ids = new Set(living.map(({ workerId }) => workerId));
    for (const id of this.#joined) if (!ids.has(id)) this.#joined.delete(id);
    for (const kept of [this.#missedSince, this.#runsSince])
      for (const id of kept.keys()) if (!ids.has(id)) kept.delete(id);
  }
}

/** Whether the collector may not have heard of every startd since its own start. */
export function collectorIsFresh({ collectorStartedAt, now, joinTimeout }: JoinTimes): boolean {
  return collectorStartedAt !== undefined && now - collectorStartedAt < joinTimeout;
}
