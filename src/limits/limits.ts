/** A queue's limits after clamping: what agents and reports use. Unset ones are not there. */
export interface Limits {
  /** Alive at most. */
  readonly maxWorkers: number;
  /** Queued at most. */
  readonly nQueueLimitWorker: number;
  /** Queued at most, in per cent of the running. */
  readonly nQueueLimitWorkerRatio?: number;
  /** `nQueueLimitWorkerRatio` counts as at least this. */
  readonly nQueueLimitWorkerMin?: number;
  /** Queued cores at most. */
  readonly nQueueLimitWorkerCores?: number;
  /** Queued cores at most, in per cent of the running ones. */
  readonly nQueueLimitWorkerCoresRatio?: number;
  readonly nQueueLimitWorkerCoresMin?: number;
  /** Queued memory at most, MB. */
  readonly nQueueLimitWorkerMemory?: number;
  /** Queued memory at most, in per cent of the running. */
  readonly nQueueLimitWorkerMemoryRatio?: number;
  readonly nQueueLimitWorkerMemoryMin?: number;
  /** New per pass at most; 0 = no such limit. */
  readonly maxNewWorkersPerCycle: number;
}
