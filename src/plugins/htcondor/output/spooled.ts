import { whereJobs } from '../../../clients/htcondor/classad.ts';
import { isFinal } from '../../../worker/status.ts';
import type { Worker } from '../../../worker/worker.ts';
import { queuedOf } from '../look-up.ts';
import type { HTCondorSchedd } from '../schedd.ts';
import type { HTCondorDaemon, HTCondorMonitorConfig } from '../schema.ts';
import { stateOf } from '../state/job-state.ts';

export interface SpoolParts {
  readonly schedd: HTCondorSchedd;
  readonly daemon: Pick<HTCondorDaemon, 'clock'>;
  /** The monitor options of a job's queue. */
  readonly options: (
    queue: string | undefined,
    configId: number | undefined,
  ) => Pick<HTCondorMonitorConfig, 'heldTimeout'>;
}

const completed = 4;

/**
 * Brings the output of spooled jobs that have ended to where it was submitted from. Others are left alone.
 * @param workers few: what came before the time is over has come for good
 * @throws HTCondorError
 */
export async function fetchSpooled(
  { schedd, daemon, options }: SpoolParts,
  workers: readonly Pick<Worker, 'workerId' | 'handle'>[],
  signal: AbortSignal,
): Promise<void> {
  const which = `JobStatus == ${completed} && StageInFinish > 0`;
  const { ours: spooled } = await queuedOf(schedd, workers, which, signal);
  const over = spooled.filter(({ ad, workerId = 0, queue, configId }) => {
    const { heldTimeout } = options(queue, configId);
    return isFinal(
      stateOf(workerId, ad, daemon.clock.now(), { heldTimeout, queued: true })?.observation.status ?? 'idle',
    );
  });
  if (over.length === 0) return;
  const these = whereJobs(over.map(({ id }) => id));
  const workerIds = over.flatMap(({ workerId }) => workerId ?? []);
  const fetch = () => schedd.client.transferData(`${schedd.mine} && (${these})`, signal);
  await schedd.outputs.bring(workerIds, fetch, signal);
}
