import type { ReportedWorker } from '../../clients/panda/api.ts';
import type { KnownWorker } from '../../worker/news.ts';
import type { WorkerStatus } from '../../worker/status.ts';

/** Words of the server for our statuses: it has no word for an intent. */
const words: Readonly<Record<WorkerStatus, string>> = {
  pending: 'submitted',
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
  readonly host: string;
  readonly queue: string;
  /** Addresses that show the worker's logs; absent where the daemon serves none. */
  readonly logs?: { readonly stdout: string; readonly stderr: string; readonly page: string };
}

/** A worker as the server hears of it. Undefined where there is none: the origin was withdrawn. */
export function reportOf(
  worker: KnownWorker,
  { host, queue, logs }: ReportFacts,
): ReportedWorker | undefined {
  const { workerId, status } = worker;
  if (workerId === null || status === 'withdrawn') return undefined;
  const known = {
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
    diagMessage:
      worker.errorCode === null ? worker.diagMessage : `${worker.errorCode}: ${worker.diagMessage ?? ''}`,
    stdOut: logs?.stdout,
    stdErr: logs?.stderr,
    batchLog: logs?.page,
  };
  return {
    workerID: workerId,
    status: words[status],
    queueName: queue,
    harvesterHost: host,
    submissionHost: host,
    ...(Object.fromEntries(
      Object.entries(known).filter(([, value]) => value !== null && value !== undefined),
    ) as Partial<ReportedWorker>),
  };
}
