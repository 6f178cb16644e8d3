import type { Reason } from '../../worker/reason.ts';
import type { Matching, Need, Shape, Space } from './model.ts';

/** Workers of one shape, as recorded now. */
export interface ShapeWorkers {
  /** All that have not ended, whatever they do. */
  readonly living: number;
  /** Those among them that do not run yet. */
  readonly starting: number;
  /** Missing: none of them is late to join the pool. */
  readonly lateness?: Lateness;
}

/** Workers of a shape of which some are late to join the pool. */
export interface Lateness {
  readonly late: number;
  readonly joined: number;
  /** Those that may still join in time. */
  readonly onItsWay: number;
}

/** All that one decision rests on, as one look found it. */
export interface DemandFacts {
  readonly needs: readonly Need[];
  readonly shapes: readonly Shape[];
  /** A reason in place of spaces: the collector did not say them, so that nothing may grow. */
  readonly spaces: readonly Space[] | Reason;
  readonly matching: Matching;
  /** Why parts of the pool are unknown, as a schedd that gave no answer: nothing grows because of them, and the chains say so. */
  readonly unknown: readonly Reason[];
  /** By key of the shape; a missing shape has none. */
  readonly workers: ReadonlyMap<string, ShapeWorkers>;
  /** How much of each concurrency limit is free, by its whole lower-case name; a missing name is without limit. */
  readonly free: ReadonlyMap<string, number>;
}

/** At most `least` workers, or `share` of the demand if that is more, of a queue do not run yet. Source: arXiv 2205.01004. */
export interface Pressure {
  /** Workers. */
  readonly least: number;
  /** Of the workers that the queue would need for all jobs that wait for it, those on their way among them. 0 to 1. */
  readonly share: number;
}

/** The terms of a queue on which its shapes grow. */
export interface QueueTerms {
  /** Living workers at most, of all its shapes; Infinity = as many as the limits of the queue let through. */
  readonly most: number;
  /** New workers of one decision at most; Infinity = no such limit. */
  readonly perCycle: number;
  readonly pressure: Pressure | undefined;
  /** No new worker while one of its workers does not run yet. */
  readonly nonePending: boolean;
  /** Why the queue gets no worker now, whatever is asked for; its jobs go to the shapes of other queues. */
  readonly closed: Reason | undefined;
}

/** One link of the chain `n -> (n, why)`: the number that is left, and why it is no longer the one before. */
export interface Step {
  readonly n: number;
  readonly unit: 'jobs' | 'workers';
  readonly reason: Reason;
}

/** What was decided of one shape. */
export interface ShapeDecision {
  readonly shape: Shape;
  /** New workers to ask for. */
  readonly workers: number;
  /** Workers that the jobs need, had there been no cap. */
  readonly wanted: number;
  /** Jobs that these new workers take at once. */
  readonly jobs: number;
}

/** What became of the waiting jobs in one decision. Each job is in one of these. */
export interface JobCounts {
  readonly idle: number;
  /** They wait for a concurrency limit. */
  readonly limited: number;
  /** Free slots and workers on their way take them. */
  readonly fitting: number;
  /** New workers take them. */
  readonly served: number;
  /** A cap keeps the worker back that would take them. */
  readonly capped: number;
  /** No shape takes them; a slot of the pool does, once it is free. */
  readonly waiting: number;
  /** Neither shape nor slot takes them. */
  readonly unservable: number;
  /** HTCondor, or the collector, did not say what takes them. */
  readonly unknown: number;
}

/** What to do, and why. */
export interface Decision {
  /** One for each shape, by their keys. */
  readonly shapes: readonly ShapeDecision[];
  readonly jobs: JobCounts;
  /** Jobs that no shape and no slot of the pool takes. */
  readonly unservable: readonly Need[];
  /** By queue, for each queue with a shape: the chain from the waiting jobs to the workers that are asked for. */
  readonly reasons: ReadonlyMap<string, readonly Step[]>;
}

/** The terms of a queue that sets none. */
export const noTerms: QueueTerms = {
  most: Infinity,
  perCycle: Infinity,
  pressure: undefined,
  nonePending: false,
  closed: undefined,
};
