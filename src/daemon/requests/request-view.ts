import type { RequestRecord } from '../../store/requests.ts';
import { isConfigured } from '../../store/queues.ts';
import { isoTime } from '../../util/clock.ts';
import type { PayloadPart } from '../../worker/payload.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Requirements } from '../../worker/worker.ts';
import { isFinal, type WorkerStatus, workerStatuses } from '../../worker/status.ts';

export const requestStates = ['waiting', 'working', 'ended', 'withdrawn'] as const;
/** `waiting`: not all its workers have rows yet. `working`: they have, and some live. `ended`: none lives. */
export type RequestState = (typeof requestStates)[number];

/** A request of an operator as it is shown. Times are ISO 8601 UTC. */
export interface RequestView {
  readonly id: string;
  readonly queueName: string;
  readonly state: RequestState;
  readonly count: number;
  /** Its workers by status, as far as the database still has them. */
  readonly workers: Readonly<Partial<Record<WorkerStatus, number>>>;
  readonly requirements: Partial<Requirements>;
  /** The parts of its payload. */
  readonly payload: readonly PayloadPart[];
  readonly by: string;
  readonly creationTime: string;
  readonly servedTime: string | null;
  readonly withdrawnTime: string | null;
  readonly withdrawReason: string | null;
}

export function requestView(record: RequestRecord): RequestView {
  return {
    id: record.id,
    queueName: record.queue,
    state: stateOf(record),
    count: record.count,
    workers: record.workers,
    requirements: record.requirements,
    payload: record.parts,
    by: record.by,
    creationTime: isoTime(record.creationTime),
    servedTime: time(record.servedTime),
    withdrawnTime: time(record.withdrawnTime),
    withdrawReason: record.withdrawReason,
  };
}

/** How many of its workers live. */
export function livingOf({ workers }: Pick<RequestRecord, 'workers'>): number {
  return workerStatuses.reduce((sum, status) => sum + (isFinal(status) ? 0 : (workers[status] ?? 0)), 0);
}

/** Whether all its workers have, or had, rows. Rows of served requests may be deleted. */
export function isComplete({
  servedTime,
  workers,
  count,
}: Pick<RequestRecord, 'servedTime' | 'workers' | 'count'>): boolean {
  const known = workerStatuses.reduce((sum, status) => sum + (workers[status] ?? 0), 0);
  return servedTime !== null || known >= count;
}

function stateOf(record: RequestRecord): RequestState {
  if (record.withdrawnTime !== null) return 'withdrawn';
  if (!isComplete(record)) return 'waiting';
  return livingOf(record) > 0 ? 'working' : 'ended';
}

function time(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

/** A queue, as far as it says why a request waits. */
interface AskedQueue {
  readonly queueStatus: string;
  readonly reasons: readonly Reason[];
}

/**
 * Why a request waits: the reasons of its queue where no pass of that looks at requests, and otherwise its own. A queue has other
 * reasons, too: of its own source, and of other requests.
 */
export function whyRequestWaits(
  record: RequestRecord,
  queue: AskedQueue | undefined,
  own: readonly Reason[],
): readonly Reason[] {
  if (stateOf(record) !== 'waiting') return [];
  if (queue === undefined) return [{ code: 'no-such-queue', message: `there is no queue ${record.queue}` }];
  const { reasons } = queue;
  const isRun = isConfigured(queue) && !reasons.some(({ code }) => code === 'queue-removed');
  return isRun ? own : reasons;
}
