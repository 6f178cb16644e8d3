import type { WorkerNews } from '../../../worker/news.ts';
import { isFinal, type WorkerStatus } from '../../../worker/status.ts';
import type { PodRecord } from './pod-record.ts';

/** The facts of a Pod's job, as news told them. Times are ms UTC. */
export type PodFacts = Omit<NonNullable<PodRecord['end']>, 'status'> & {
  readonly status: WorkerStatus | 'withdrawn';
};

export function hasEnded(facts: Pick<PodFacts, 'status'> | undefined): boolean {
  return facts !== undefined && (facts.status === 'withdrawn' || isFinal(facts.status));
}

/** Whether the job has a machine. HTCondor stops a suspended one for a while, with all that it has done. */
export function isAtWork({ status, native }: PodFacts): boolean {
  return status === 'running' || status === 'ready' || (status === 'idle' && native === 'suspended');
}

/** Whether the job waits until an operator or its backend releases it. */
export function isHeld(facts: PodFacts | undefined): boolean {
  return facts !== undefined && !hasEnded(facts) && /^held/i.test(facts.native ?? '');
}

/** Whether the job has no machine any more, and would start all containers anew on another one. A held job waits for its release first. */
export function hasLostItsMachine(before: PodFacts | undefined, after: PodFacts): boolean {
  if (isAtWork(after) || hasEnded(after) || isHeld(after) || after.native === 'removing') return false;
  // HTCondor's job that waits and has a start: it was evicted or released, perhaps while the daemon was down.
  if (after.status === 'idle' && after.native === 'idle' && after.startTime !== null) return true;
  return before !== undefined && isAtWork(before);
}

/** The facts after some news. An answer to a question may overtake news, so an end is never taken back. */
export function factsAfter(before: PodFacts | undefined, { worker }: Pick<WorkerNews, 'worker'>): PodFacts {
  const { workerId, status, nativeStatus, exitCode, diagMessage, batchId, startTime, endTime } = worker;
  const after: PodFacts = {
    workerId: workerId ?? before?.workerId ?? null,
    status,
    native: nativeStatus,
    exitCode: exitCode ?? before?.exitCode ?? null,
    message: diagMessage ?? null,
    batchId: batchId ?? before?.batchId ?? null,
    startTime: startTime ?? before?.startTime ?? null,
    endTime: endTime ?? before?.endTime ?? null,
  };
  return before !== undefined && hasEnded(before) && !hasEnded(after) ? before : after;
}
