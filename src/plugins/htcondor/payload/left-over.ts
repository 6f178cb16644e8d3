import { toReason } from '../../../worker/errors.ts';
import type { Log } from '../../contracts/context.ts';
import type { Job } from '../marks.ts';
import type { HTCondorSchedd } from '../schedd.ts';
import type { Attempt } from './bundles.ts';

const completed = 4;

/**
 * Attempts with a bundle whose submission has ended: each has its job in the queue, or needs its bundle no more. To be asked
 * before the queue is: a submission that is under way has no job yet.
 */
export async function bundledBefore(
  { bundles, submits }: Pick<HTCondorSchedd, 'bundles' | 'submits'>,
  log: Log,
): Promise<readonly Attempt[]> {
  try {
    const found = await bundles.unsubmitted();
    if (found.length === 0) return [];
    const unfinished = await submits.unfinished(new Set(found.map(({ workerId }) => workerId)));
    return found.filter(({ workerId }) => !unfinished.has(workerId));
  } catch (error) {
    log.warn('payloads of jobs cannot be listed', { ...toReason(error) });
    return [];
  }
}

/**
 * Removes the bundles of workers without a job that may still start: of those that ended, and those that a crash left.
 * @param bundled as they were before the queue was asked
 * @param queued all jobs in the queue that have our marks, whosever they are
 */
export async function dropLeftOver(
  bundled: readonly Attempt[],
  queued: readonly Pick<Job, 'workerId' | 'ad'>[],
  { bundles }: Pick<HTCondorSchedd, 'bundles'>,
  log: Log,
): Promise<void> {
  if (bundled.length === 0) return;
  const living = new Set(
    queued.filter(({ ad }) => ad.JobStatus !== completed).map(({ workerId }) => workerId),
  );
  try {
    await bundles.drop(bundled.filter(({ workerId }) => !living.has(workerId)));
  } catch (error) {
    log.warn('payloads of ended jobs cannot be removed', { ...toReason(error) });
  }
}
