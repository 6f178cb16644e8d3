import type { ReportedWorker } from '../../clients/panda/api.ts';
import type { LogUrls } from '../../plugins/contracts/index.ts';
import type { KnownWorker, WorkerNews } from '../../worker/news.ts';
import { isFinal, type WorkerStatus } from '../../worker/status.ts';
import { errorNumberOf } from './error-numbers.ts';

/**
 * Words of the server for our statuses. It hears nothing of an intent: until a backend has the worker there is nothing to show, and
 * `submitted` would be wrong for one that never gets there. Its end is reported as of any worker. The statistics count
 * intents, so that the server does not order them again.
 * Source: Harvester, which reports no `pending` worker either.
 */
const words: Readonly<Record<Exclude<WorkerStatus, 'pending'>, string>> = {
  submitted: 'submitted',
  idle: 'idle',
  ready: 'ready',
  running: 'running',
  finished: 'finished',
  failed: 'failed',
  cancelled: 'cancelled',
  missed: 'missed',
};

export interface ReportFacts {
  /** Name of this machine. */
  readonly host: string;
  readonly queue: string;
  /** Absent where nothing serves the logs to others. */
  readonly logs?: LogUrls | undefined;
}

/**
 * The server fails the jobs that still run according to it when their worker has ended. So Harvester has it for pilots that get their
 * jobs themselves, and all of ours do.
 */
const failJobsOfEnded = 1;

/** Connections of HTCondor are named so, with `SCHEDD,POOL` or `LOCAL` behind it: `submissionHost` in Harvester's words. */
const scheddOf = /^htcondor:(.+)$/;

/** The host from which a worker was submitted, as the server knows it and names it in its commands. */
export function submissionHostOf({ placement }: Pick<KnownWorker, 'placement'>, host: string): string {
  return scheddOf.exec(placement ?? '')?.[1] ?? host;
}

/** A worker as the server hears of it; undefined where it hears nothing: an intent, or an origin withdrawn before it had a worker. */
export function reportOf(
  worker: KnownWorker,
  { host, queue, logs }: ReportFacts,
): ReportedWorker | undefined {
  const { workerId, status } = worker;
  if (workerId === null || status === 'withdrawn' || status === 'pending') return undefined;
  const report: { -readonly [Key in keyof ReportedWorker]: ReportedWorker[Key] | null } = {
    workerID: workerId,
    status: words[status],
    queueName: queue,
    harvesterHost: host,
    submissionHost: submissionHostOf(worker, host),
    syncLevel: failJobsOfEnded,
    batchID: worker.batchId,
    computingSite: worker.computingSite,
    computingElement: worker.computingElement,
    nodeID: worker.node,
    nCore: worker.nCore,
    minRamCount: worker.minRamCount,
    jobType: worker.jobType,
    resourceType: worker.resourceType,
    submitTime: worker.submitTime,
    startTime: worker.startTime,
    endTime: worker.endTime,
    nativeStatus: worker.nativeStatus,
    nativeExitCode: worker.exitCode,
    diagMessage: worker.diagMessage,
    ...logs,
  };
  const { errorCode } = worker;
  if (errorCode !== null) {
    report.diagMessage = `${errorCode}: ${worker.diagMessage ?? ''}`;
    // The server writes it to the jobs of the worker: an attempt that failed is no error of a worker that lives.
    if (isFinal(status)) report.errorCode = errorNumberOf(errorCode);
  }
  return withoutNulls(report);
}

/** A report that says no more than what became of the worker: without texts of backends, which the server may not take. */
export function bareReport({
  workerID,
  status,
  computingSite,
  submitTime,
  startTime,
  endTime,
  errorCode,
}: ReportedWorker): ReportedWorker {
  return withoutNulls({ workerID, status, computingSite, submitTime, startTime, endTime, errorCode });
}

/** Whether the server hears of these news. Nothing of a worker changes when its traces are swept, or by an answer to a question. */
export function isReported({ what }: Pick<WorkerNews, 'what'>): boolean {
  return what === 'added' || what === 'changed';
}

/** Absent keys stay as they are at the server; a null would clear them. */
function withoutNulls(report: {
  readonly [Key in keyof ReportedWorker]: ReportedWorker[Key] | null | undefined;
}): ReportedWorker {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(report))
    if (value !== null && value !== undefined) kept[key] = value;
  return kept as unknown as ReportedWorker;
}
