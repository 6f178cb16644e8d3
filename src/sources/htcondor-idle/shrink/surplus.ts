import type { LivingWorker } from '../joining.ts';
import type { OwnStartd } from '../look/result.ts';

/** Why a worker leaves the pool. */
export type LeaveReason =
  /** An operator drains its queue. */
  | 'queue-drained'
  /** No queue of the configuration asks for workers of its shape any more. */
  | 'shape-gone'
  /** More workers of its shape have joined than its `most` lets live. */
  | 'over-most'
  /** More workers of its queue, whatever their shapes, than its `most` lets live. */
  | 'over-queue-most';

/** A worker that is to leave. */
export interface Leave {
  readonly startd: OwnStartd;
  readonly why: LeaveReason;
}

/**
 * What a queue is to the source. `asks`: its options are known, and its workers are wanted up to their `most`. `drained`: an operator
 * drains it. `gone`: the configuration has it no more, or it has another demand.
 */
export type QueueState = 'asks' | 'drained' | 'gone';

export interface SurplusFacts {
  /** Our startds by a look that is whole and fresh: a stale one may show idle those that are busy by now. */
  readonly startds: readonly OwnStartd[];
  /** Our workers that live, by our own record. */
  readonly living: readonly Pick<LivingWorker, 'workerId' | 'queue' | 'shape'>[];
  /** A queue without an entry is in doubt, as one whose options are wrong is: its workers stay. */
  readonly queues: ReadonlyMap<string, QueueState>;
  /** `most` of every shape of the queues that ask. */
  readonly most: ReadonlyMap<string, number>;
  /** `most` of queues with several shapes; a missing queue has none of its own. */
  readonly mostOfQueues: ReadonlyMap<string, number>;
}

/**
 * The workers that are to leave, in the order in which thresher asks them to.
 *
 * A worker counts only where the pool and our own record both know it: one that has ended keeps its ad for a while, and one that has
 * not joined yet can be told nothing. Those that leave already count as gone, so that repeating a decision drains no further worker.
 */
export function surplusOf({ startds, living, queues, most, mostOfQueues }: SurplusFacts): Leave[] {
  const byId = new Map(living.map((worker) => [worker.workerId, worker]));
  const staying = startds.flatMap((startd) => {
    const worker = byId.get(startd.workerId);
    // Our record names the shape that was asked for; the ad only repeats what the worker's environment said.
    return worker === undefined || startd.leaving
      ? []
      : [
          {
            startd,
            queue: worker.queue,
            state: queues.get(worker.queue),
            shape: worker.shape ?? startd.shape,
          },
        ];
  });
  const leaves = [...Map.groupBy(staying, ({ shape }) => shape)].flatMap(([shape, members]) => {
    const bound = most.get(shape);
    const asked = members.filter(({ state }) => state === 'asks');
    const over = asked.map(({ startd }) => startd).toSorted(byIdleness);
    return [
      ...members.flatMap(({ startd, state }): Leave[] => {
        if (state === 'drained') return [{ startd, why: 'queue-drained' }];
        return state === 'gone' ? [{ startd, why: 'shape-gone' }] : [];
      }),
      ...over
        .slice(0, Math.max(0, over.length - (bound ?? 0)))
        .map((startd): Leave => ({ startd, why: bound === undefined ? 'shape-gone' : 'over-most' })),
    ];
  });
  const leaving = new Set(leaves.map(({ startd }) => startd));
  const others = staying.filter(({ startd }) => !leaving.has(startd));
  const overQueue = [...mostOfQueues].flatMap(([queue, bound]) => {
    const own = others.filter((one) => one.queue === queue).map(({ startd }) => startd);
    return own
      .toSorted(byIdleness)
      .slice(0, Math.max(0, own.length - bound))
      .map((startd): Leave => ({ startd, why: 'over-queue-most' }));
  });
  return [...leaves, ...overQueue].toSorted((one, other) => byIdleness(one.startd, other.startd));
}

/** Without a claim first, then with the fewest; among equals the youngest, which has the least in its caches. */
function byIdleness(one: OwnStartd, other: OwnStartd): number {
  return one.claims - other.claims || other.startedAt - one.startedAt || other.workerId - one.workerId;
}
