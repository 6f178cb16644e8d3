import { isConfigured, type QueueReport } from '../store/queues.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { isoTime } from '../util/clock.ts';
import type { Reason } from '../worker/reason.ts';
import { queueItem } from './sharing/item-names.ts';
import { isFinal, type WorkerStatus, workerStatuses } from '../worker/status.ts';
import type { Holder } from './lock.ts';

/** A worker as it is shown, under Harvester's field names. Times are ISO 8601 UTC. */
export interface WorkerView {
  readonly workerID: number;
  readonly batchID: string | null;
  readonly queueName: string;
  readonly computingSite: string;
  readonly status: WorkerStatus;
  readonly nativeStatus: string | null;
  readonly nativeExitCode: number | null;
  readonly errorCode: string | null;
  readonly diagMessage: string | null;
  readonly submitTime: string | null;
  readonly startTime: string | null;
  readonly endTime: string | null;
  readonly nodeID: string | null;
  /** Endpoint of the computing element that it was sent to. */
  readonly computingElement: string | null;
  readonly nCore: number;
  readonly resourceType: string;
}

export function workerView(record: WorkerRecord): WorkerView {
  return {
    workerID: record.workerId,
    batchID: record.handle?.batchID ?? null,
    queueName: record.queue,
    computingSite: record.computingSite,
    status: record.status,
    nativeStatus: record.nativeStatus,
    nativeExitCode: record.exitCode,
    errorCode: record.errorCode,
    diagMessage: record.diagMessage,
    submitTime: time(record.submitTime),
    startTime: time(record.startTime),
    endTime: time(record.endTime),
    nodeID: record.node,
    computingElement: record.computingElement,
    nCore: record.requirements.nCore,
    resourceType: record.requirements.resourceType,
  };
}

/** All facts of a worker and its history. */
export async function workerDetails(store: Store, record: WorkerRecord) {
  const history = await store.workers.history(record.workerId);
  const { requirements, origin } = record;
  return {
    ...workerView(record),
    name: record.name,
    origin,
    placement: record.placement,
    configID: record.configId,
    attempt: record.attempt,
    accessPoint: record.accessPoint ?? null,
    handle: record.handle ?? null,
    minRamCount: requirements.minRamCount,
    maxDiskCount: requirements.maxDiskCount,
    maxWalltime: requirements.maxWalltime,
    jobType: requirements.jobType,
    pilotType: requirements.pilotType,
    prodSourceLabel: requirements.prodSourceLabel,
    detail: record.detail,
    creationTime: time(record.creationTime),
    modificationTime: time(record.modificationTime),
    killTime: time(record.killTime),
    killReason: record.killReason,
    sweptTime: time(record.sweptTime),
    history: history.map((step) => ({
      time: isoTime(step.at),
      from: step.from_status,
      to: step.to_status,
      source: step.source,
      nativeStatus: step.native_status,
      message: step.message,
    })),
  };
}

/** A queue as it is shown. */
export interface QueueView {
  readonly name: string;
  readonly queueStatus: string;
  /** The daemon that has the queue, where several share the factory; absent where none has it, or none shares. */
  readonly member?: string;
  /** running, stopped (no daemon), paused, draining, drained, incomplete, refused, removed, or a `queueStatus` that is not online. */
  readonly state: string;
  readonly counts: Readonly<Partial<Record<WorkerStatus, number>>>;
  readonly limits: QueueReport['limits'];
  /** Why no more workers are submitted; the weightiest first. */
  readonly reasons: readonly Reason[];
}

export const daemonDown: Reason = {
  code: 'daemon-not-running',
  message: 'no daemon runs on this state directory',
};

export async function queueViews(store: Store, holder: Holder | 'unknown' | undefined): Promise<QueueView[]> {
  const counts = new Map<string, Partial<Record<WorkerStatus, number>>>();
  for (const { queue, status, workers } of await store.workers.countAll()) {
    counts.set(queue, { ...counts.get(queue), [status]: workers });
  }
  const { shares = [] } = (await store.sharedOut?.()) ?? {};
  const members = new Map(shares.map(({ item, member }) => [item, member]));
  return (await store.queues.all()).map((report) => {
    const member = members.get(queueItem(report.queue));
    const own = counts.get(report.queue) ?? {};
    const running = holder !== undefined;
    return {
      name: report.queue,
      queueStatus: report.queueStatus,
      ...(member !== undefined && { member }),
      state: stateOf(report, own, running),
      counts: Object.fromEntries(
        workerStatuses.flatMap((status) => (own[status] ? [[status, own[status]]] : [])),
      ),
      limits: report.limits,
      reasons: running ? report.reasons : [daemonDown, ...report.reasons],
    };
  });
}

function stateOf(
  report: QueueReport,
  counts: Partial<Record<WorkerStatus, number>>,
  running: boolean,
): string {
  if (!isConfigured(report)) return report.queueStatus;
  if (!running) return 'stopped';
  if (report.control?.mode === 'paused') return 'paused';
  if (report.control?.mode === 'draining') {
    const alive = workerStatuses.some((status) => !isFinal(status) && (counts[status] ?? 0) > 0);
    return alive ? 'draining' : 'drained';
  }
  if (report.reasons.some(({ code }) => code === 'queue-removed')) return 'removed';
  return report.queueStatus === 'online' ? 'running' : report.queueStatus;
}

function time(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
