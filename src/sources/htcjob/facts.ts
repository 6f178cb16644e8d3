import type { KnownWorker, WorkerNews } from '../../worker/news.ts';
import { isFinal, type WorkerStatus } from '../../worker/status.ts';

/** The facts of one attempt, as news told them. */
export interface JobFacts {
  readonly workerId: number | null;
  readonly status: WorkerStatus | 'withdrawn';
  /** The backend's own word for its state. */
  readonly native: string | null;
  readonly exitCode: number | null;
  readonly message: string | null;
  readonly batchId: string | null;
  /** ms UTC. */
  readonly submitTime: number | null;
  readonly endTime: number | null;
  /** Nothing of it is left on the backend. */
  readonly isSwept: boolean;
}

export function hasEnded({ status }: Pick<JobFacts, 'status'>): boolean {
  return status === 'withdrawn' || isFinal(status);
}

/** The facts after some news. An answer to a question may overtake news, so an end is never taken back. */
export function factsAfter(before: JobFacts | undefined, { what, worker }: WorkerNews): JobFacts {
  const isSwept = what === 'swept' || before?.isSwept === true || isWithoutRow(worker);
  if (before !== undefined && hasEnded(before) && !hasEnded(worker)) return { ...before, isSwept };
  const { workerId, status, nativeStatus, exitCode, diagMessage, batchId, submitTime, endTime } = worker;
  return {
    workerId,
    status,
    native: nativeStatus,
    exitCode: exitCode ?? before?.exitCode ?? null,
    message: diagMessage ?? before?.message ?? null,
    batchId: batchId ?? before?.batchId ?? null,
    submitTime: submitTime ?? before?.submitTime ?? null,
    endTime,
    isSwept,
  };
}

/** It was withdrawn before it had a worker, or its worker's row was deleted, which a sweep goes before. */
function isWithoutRow({ workerId, creationTime }: KnownWorker): boolean {
  return workerId === null || creationTime === null;
}
