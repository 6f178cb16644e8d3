/** Harvester's worker statuses. `pending`: the intent is recorded, its submission not confirmed. */
export const workerStatuses = [
  'pending',
  'submitted',
  'idle',
  'ready',
  'running',
  'finished',
  'failed',
  'cancelled',
  'missed',
] as const;
export type WorkerStatus = (typeof workerStatuses)[number];

/** Statuses a worker never leaves. `missed` is a worker that never started or was lost. */
export const finalStatuses = ['finished', 'failed', 'cancelled', 'missed'] as const satisfies WorkerStatus[];
export type FinalStatus = (typeof finalStatuses)[number];

/** Statuses that count against `nQueueLimitWorker`: asked for, but not at work yet. */
export const queuedStatuses = ['pending', 'submitted', 'idle'] as const satisfies WorkerStatus[];

/**
 * From where a worker may go where. A step may be skipped, since a monitor sees a worker only now and then, but none
 * is taken back, except `running -> idle`: a batch system evicts a job and starts it again.
 * Source: Harvester's `WorkSpec.set_status`, which refuses running|idle -> submitted.
 */
export const transitions: Readonly<Record<WorkerStatus, readonly WorkerStatus[]>> = {
  pending: ['submitted', 'idle', 'ready', 'running', ...finalStatuses],
  submitted: ['idle', 'ready', 'running', ...finalStatuses],
  idle: ['ready', 'running', ...finalStatuses],
  ready: ['idle', 'running', ...finalStatuses],
  running: ['idle', ...finalStatuses],
  finished: [],
  failed: [],
  cancelled: [],
  missed: [],
};

export function isFinal(status: WorkerStatus): status is FinalStatus {
  return transitions[status].length === 0;
}

export function isQueued(status: WorkerStatus): boolean {
  return (queuedStatuses as readonly WorkerStatus[]).includes(status);
}

export function mayBecome(from: WorkerStatus, to: WorkerStatus): boolean {
  return transitions[from].includes(to);
}

export function isWorkerStatus(text: string): text is WorkerStatus {
  return (workerStatuses as readonly string[]).includes(text);
}

/** "submitted,running" to statuses; undefined when one is none. */
export function parseStatuses(text: string): WorkerStatus[] | undefined {
  const parts = text.split(',').map((part) => part.trim());
  return parts.every(isWorkerStatus) ? parts : undefined;
}
