import { whereJobs } from '../../../clients/htcondor/classad.ts';
import { isHTCondorError } from '../../../clients/htcondor/errors.ts';
import { toReason } from '../../../worker/errors.ts';
import { isFinal } from '../../../worker/status.ts';
import type { Worker, WorkerError } from '../../../worker/worker.ts';
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
/** Jobs whose output is fetched by one command: few, so that what came before time was over has come for good. */
const atOnce = 50;
/** Failures of single jobs after which the files of all jobs are the matter, such as a full disk. */
const mostAlone = 5;

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

interface SpooledParts extends SpoolParts {
  readonly daemon: Pick<HTCondorDaemon, 'clock' | 'log'>;
}

/** The output of spooled jobs that are about to be removed. */
export class SpooledOutputs {
  readonly #parts: SpooledParts;
  /** Workers whose output could not be fetched by a command of its own: their turn is last. */
  readonly #unfetchable = new Set<number>();

  constructor(parts: SpooledParts) {
    this.#parts = parts;
  }

  /** The worker is no more. */
  forget(workerId: number): void {
    this.#unfetchable.delete(workerId);
  }

  /** The output of spooled jobs goes with them. @returns workers whose output could not be fetched, and why */
  async fetch(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, WorkerError>> {
    const { schedd, daemon } = this.#parts;
    const unfetched = new Map<number, WorkerError>();
    let alone = 0;
    const late = ({ workerId }: Worker) => Number(this.#unfetchable.has(workerId));
    const all = workers.toSorted((a, b) => late(a) - late(b));
    const left = Array.from({ length: Math.ceil(all.length / atOnce) }, (_, at) =>
      all.slice(at * atOnce, (at + 1) * atOnce),
    );
    for (let some = left.shift(); some !== undefined; some = left.shift()) {
      try {
        signal.throwIfAborted();
        await fetchSpooled(this.#parts, some, signal);
      } catch (error) {
        const reason = toReason(error);
        if (some.length > 1 && isOfFiles(error) && alone < mostAlone) {
          // The command ends at the first file that it cannot write: the others must not wait for that one.
          const half = Math.ceil(some.length / 2);
          left.unshift(some.slice(0, half), some.slice(half));
          continue;
        }
        if (some.length === 1) alone++;
        for (const { workerId } of some) {
          unfetched.set(workerId, reason);
          if (some.length === 1) this.#unfetchable.add(workerId);
        }
      }
    }
    for (const { workerId } of all) if (!unfetched.has(workerId)) this.#unfetchable.delete(workerId);
    // A log that cannot be had must not keep its job for ever: only what a source awaits does.
    for (const [code, some] of Map.groupBy(unfetched, ([, reason]) => reason.code)) {
      const workerIds = some.slice(0, 10).map(([workerId]) => workerId);
      daemon.log.warn('output of spooled jobs could not be fetched', {
        schedd: schedd.submissionHost,
        workers: some.length,
        workerIds,
        code,
        message: some[0]?.[1].message,
      });
    }
    return unfetched;
  }
}

/** Whether the schedd answered, and the files of some job were the matter. */
function isOfFiles(error: unknown): boolean {
  return isHTCondorError(error, 'condor-failed', 'condor-disk-full');
}
