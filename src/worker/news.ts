import type { WorkerStatus } from './status.ts';
import type { Origin } from './worker.ts';

/** A source's own name for one worker: the origin without its `kind`. */
export type OriginKey = Pick<Origin, 'uid' | 'index'>;

/** Which of a source's workers: one by its name, or all of a `uid`. */
export interface OriginFilter {
  readonly uid: string;
  /** Absent: every index. */
  readonly index?: number;
}

/** One change of a worker, with all that is known of the worker after it. */
export interface WorkerNews {
  /** Grows from news to news of one source. 0 for `known`, which answers a question and stands in no order. */
  readonly sequence: number;
  /** ms UTC. */
  readonly at: number;
  /**
   * `added`: its intent is recorded, or it was adopted. `changed`: its status or its facts. `swept`: nothing of it is left on the
   * backend. `known`: the source asked again for an origin that has had its worker, or was withdrawn; nothing changed.
   */
  readonly what: 'added' | 'changed' | 'swept' | 'known';
  readonly origin: OriginKey;
  /** Empty where the origin was withdrawn before it had a worker. */
  readonly queue: string;
  readonly worker: KnownWorker;
}

/** The facts of a worker that sources hear. Times are ms UTC; null = not known, or not yet. */
export interface KnownWorker {
  /** Null where the origin was withdrawn before it had a worker. */
  readonly workerId: number | null;
  /** `withdrawn`: the source ended the origin before it had a worker, and will never get one for it. */
  readonly status: WorkerStatus | 'withdrawn';
  readonly computingSite: string | null;
  readonly resourceType: string | null;
  readonly jobType: string | null;
  readonly nCore: number | null;
  readonly minRamCount: number | null;
  readonly batchId: string | null;
  readonly nativeStatus: string | null;
  readonly exitCode: number | null;
  readonly errorCode: string | null;
  readonly diagMessage: string | null;
  readonly node: string | null;
  readonly computingElement: string | null;
  /** The connection that the worker was placed on: `htcondor:SCHEDD,POOL`. */
  readonly placement: string | null;
  /** When its intent was recorded, or it was adopted. */
  readonly creationTime: number | null;
  readonly submitTime: number | null;
  readonly startTime: number | null;
  readonly endTime: number | null;
}

/** Living workers of one source that are alike, as its database counts them. */
export interface OriginCount {
  readonly queue: string;
  readonly computingSite: string;
  readonly resourceType: string;
  readonly jobType: string;
  readonly status: WorkerStatus;
  readonly workers: number;
}

/** A count of a source's workers at one moment: none of the workers that are recorded later is in it. */
export interface Census {
  /** When it was taken, ms UTC. */
  readonly at: number;
  /** No worker with a higher id was there. */
  readonly upTo: number;
  readonly living: readonly OriginCount[];
}
