import type { QueueOptions } from './queue-schema.ts';

/** A queue's limits after clamping. */
export interface Limits {
  /** Alive at most. */
  readonly maxWorkers: number;
  /** Queued at most. */
  readonly nQueueLimitWorker: number;
  /** New per pass at most; 0 = no such limit. */
  readonly maxNewWorkersPerCycle: number;
}

/**
 * Source: Harvester's queue_config_mapper. Below 0 counts as 0; `maxWorkers` unset is 0; `nQueueLimitWorker` and its
 * `Max` both become the least of the two and `maxWorkers`, and `Max` alone sets `nQueueLimitWorker`.
 */
export function clampLimits(options: QueueOptions): Limits {
  const atLeast0 = (value: number | undefined) => (value === undefined ? undefined : Math.max(0, value));
  const maxWorkers = atLeast0(options.maxWorkers) ?? 0;
  const queued = [atLeast0(options.nQueueLimitWorker), atLeast0(options.nQueueLimitWorkerMax)];
  return {
    maxWorkers,
    nQueueLimitWorker: Math.min(maxWorkers, ...queued.filter((value) => value !== undefined)),
    maxNewWorkersPerCycle: atLeast0(options.maxNewWorkersPerCycle) ?? 0,
  };
}
