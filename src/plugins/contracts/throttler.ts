import type { Reason } from '../../worker/reason.ts';

/** Facts that a throttler may know of the queue it is asked about. */
export interface ThrottledQueue {
  readonly name: string;
  readonly computingSite: string;
  readonly siteFamily: string;
  readonly computingElements: readonly string[];
  /** Cores that one worker counts for: the queue's `nCoreFactor`. */
  readonly coresPerWorker: number;
}

/** Workers of a queue's family that are counted: intents in flight are among the queued. */
export type FamilyPart = 'queued' | 'running' | 'alive';

/** Counts that a throttler asks for, from the database. */
export interface ThrottleFacts {
  /** Workers that ended as `missed` in the last `window` ms, at a site, of a queue, or on a computing element. */
  missed(level: 'site' | 'pq' | 'ce', value: string, window: number): Promise<number>;
  /** Living workers of all queues with the same `siteFamily`, and their cores by each queue's `nCoreFactor`. */
  family(part: FamilyPart): Promise<{ readonly workers: number; readonly cores: number }>;
}

export interface Throttle {
  /** New workers at most; Infinity = as many as may be. */
  readonly atMost: number;
  readonly reason: Reason;
}

/** Holds a queue back when the site it works for is in trouble, or has enough. */
export interface Throttler {
  /** Whether it counts workers of other queues, so that these must not be submitted at the same moment. */
  readonly countsFamily: boolean;
  judge(queue: ThrottledQueue, facts: ThrottleFacts): Promise<Throttle | undefined>;
}
