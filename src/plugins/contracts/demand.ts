import type { Reason } from '../../worker/reason.ts';
import type { Requirements } from '../../worker/worker.ts';

/** Workers of one kind that are wanted. */
export interface Group {
  readonly requirements: Requirements;
  /** How many new ones; Infinity = as many as the limits let through. */
  readonly count: number;
}

export interface Demand {
  readonly groups: readonly Group[];
  /** Why there is none, or less than an operator may expect. */
  readonly reasons: readonly Reason[];
}

/** Facts that a demand source may know of the queue it is asked about. */
export interface DemandQueue {
  readonly name: string;
  /** Needs of one worker by the queue's configuration. */
  readonly requirements: Requirements;
}

/** Says how many workers a queue is to get, before any limit. */
export interface DemandSource {
  /** `kind` of the origins of its workers. */
  readonly kind: string;
  groups(queue: DemandQueue, signal: AbortSignal): Promise<Demand>;
}
