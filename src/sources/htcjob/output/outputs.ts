import type { HtcJobStatus } from '../../../clients/htcjob/resource.ts';
import type { Judgement } from '../judge.ts';
import type { Tracked } from '../tracked.ts';
import type { Reason } from '../../../worker/reason.ts';

/** Outputs that are not removed yet. */
export interface OutputsLeft {
  /** Why the last try failed; undefined: none has failed. */
  readonly why: Reason | undefined;
}

/** The outputs of jobs, as the steps of a resource see them. A resource without `spec.output` has none. */
export interface Outputs {
  /** Asks for the outputs of the jobs that have ended for good; they are brought beside the steps. */
  want(tracked: Tracked, judgement: Pick<Judgement, 'jobs'>): void;
  /** The status with all that is known of the outputs. */
  inStatus(tracked: Tracked, status: HtcJobStatus): HtcJobStatus;
  /** Whether the status does not yet say of each job what became of its output. */
  isOpen(tracked: Tracked): boolean;
  /** The resource goes: no further output of it is brought. */
  letGo(tracked: Tracked): void;
  /**
   * Has all outputs of a resource that goes removed, beside the steps. It is called again until they are: that tries again after a failure.
   * @returns undefined once they are removed
   */
  remove(tracked: Tracked): OutputsLeft | undefined;
}

/** An operator without a directory for them: it refuses resources with `spec.output`. */
export const noOutputs: Outputs = {
  want: () => undefined,
  inStatus: (_, status) => status,
  isOpen: () => false,
  letGo: () => undefined,
  remove: () => undefined,
};
