import type { DefinitionProblem } from './definition-problem.ts';
import type { Reason } from '../../worker/reason.ts';
import type { PayloadPart } from '../../worker/payload.ts';
import type { Rendered } from './rendered.ts';
import type { Handle, Worker, WorkerError, WorkerToStart } from '../../worker/worker.ts';

/** A submitter's answer whether it could submit now. */
export interface Preflight {
  /** Each alone is enough to submit nothing; they are shown to the operator as they are. */
  readonly problems: readonly Reason[];
  /** How many more of the queue's workers the backend would take now, and the limit; absent = as many as wanted. */
  readonly room?: { readonly workers: number; readonly reason: Reason };
  /** They stop nothing and are shown to the operator beside the reasons. */
  readonly notes?: readonly Reason[];
}

export type SubmitOutcome =
  /** The backend has it and will run it; `computingElement`: the endpoint it went to, if the backend has several. */
  | { readonly kind: 'accepted'; readonly handle: Handle; readonly computingElement?: string }
  /** The backend certainly does not have it. `permanent`: no use in trying this worker again. */
  | { readonly kind: 'rejected'; readonly error: WorkerError; readonly permanent: boolean }
  /** The outcome is unknown: a time-out, a lost answer. `find` settles it before anything is tried again. */
  | { readonly kind: 'unknown'; readonly error: WorkerError };

export type FindOutcome =
  | { readonly kind: 'found'; readonly handle: Handle; readonly computingElement?: string }
  /** It is not there, and no earlier attempt at it can bring it about any more. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown'; readonly error: WorkerError };

/** The name of a credential, or names of which one is enough. */
export type NeededCredential = string | readonly string[];

/**
 * Brings workers to a backend. Called with workers whose intents are committed.
 *
 * A submitter never throws for one worker's sake: each gets an outcome. It throws only when nothing was sent at all;
 * then all outcomes count as unknown. It does not retry beyond one call's time, and stops when `signal` aborts; what it
 * could not stop is for `find` to fence.
 */
export interface Submitter {
  /** Looks at template, rights, reachability and room, without side effects that outlive it. */
  preflight(signal: AbortSignal): Promise<Preflight>;

  /**
   * Which of its placements each of so many new workers gets, in order, before their intents are written. Absent: one
   * after the other.
   * @param open those that can be reached now
   * @param groupIds `Worker.groupId` of each, in order; absent where no worker has one
   */
  place?(
    count: number,
    open: readonly string[],
    groupIds?: readonly (string | undefined)[],
  ): readonly string[];

  /** One outcome per worker, by worker id. A missing one counts as unknown. */
  submit(workers: readonly WorkerToStart[], signal: AbortSignal): Promise<ReadonlyMap<number, SubmitOutcome>>;

  /**
   * Settles intents that may or may not have reached the backend: after a crash, a time-out, a lost answer,
   * and before every retry. First *fences* each: from now on no attempt up to `worker.attempt`, however late it wakes,
   * may start this worker. Then asks the backend. `absent` may be said only after both.
   */
  find(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, FindOutcome>>;

  /**
   * Names of the credentials without which its workers are of no use, as credential managers name them: submission
   * stops while one of them is bad or ends soon. Of an inner list one is enough: each is for a part of the workers' places, and the
   * submitter leaves out the places whose own is bad.
   */
  credentials?(): readonly NeededCredential[] | Promise<readonly NeededCredential[]>;

  /**
   * Asks the backend about such a worker, and keeps nothing of it: for `check-config --server`. Places are in the
   * submitter's section. Empty: the backend would take it.
   * @param given the parts of a payload that the queue's source may give to workers; the worker itself has none
   * @param beside the parts that other sources may give, such as operators: a right that these alone need is a notice
   */
  rehearse?(
    worker: WorkerToStart,
    signal: AbortSignal,
    given?: readonly PayloadPart[],
    beside?: readonly PayloadPart[],
  ): Promise<readonly DefinitionProblem[]>;

  /**
   * The worker as `submit` would send it, made by the same code; nothing is asked, written or sent. For
   * `thresher render`.
   * @throws ThresherError where it cannot be made, as `submit` would reject it
   */
  render?(worker: WorkerToStart): Promise<Rendered>;
}
