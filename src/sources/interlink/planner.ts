import type { RetrievedPodData } from '../../clients/interlink/wire.ts';
import type { Payload } from '../../worker/payload.ts';
import type { Requirements } from '../../worker/worker.ts';

/** The work of one Pod. */
export interface PlannedPod {
  readonly payload: Payload;
  readonly requirements: Partial<Requirements>;
  /** Parts of the Pod that are left out. */
  readonly warnings: readonly string[];
  /** Names of all containers of the job: init containers come first. */
  readonly containers: readonly string[];
}

/** Makes a Pod a job, or says in sentences why it cannot. */
export type Planner = (data: RetrievedPodData) => PlannedPod | readonly string[];
