import type { QueueOptions } from './queue-schema.ts';

/** A queue's limits after clamping: what agents and reports use. Unset ones are not there. */
export interface Limits {
  /** Alive at most. */
  readonly maxWorkers: number;
  /** Queued at most. */
  readonly nQueueLimitWorker: number;
  /** Queued at most, in per cent of the running. */
  readonly nQueueLimitWorkerRatio?: number;
  /** The minimum for `nQueueLimitWorkerRatio`. */
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

/**
 * Brings limits into a form that does not contradict itself. Below 0 counts as 0; `maxWorkers` unset is 0;
 * `nQueueLimitWorker` and its `Max` both become the least of the two and `maxWorkers`, and `Max` alone sets
 * `nQueueLimitWorker`; a `Min` never exceeds its limit. Source: Harvester's queue_config_mapper.
 */
export function clampLimits(options: QueueOptions): Limits {
  const pull = options.mapType === 'NoJob';
  const maxWorkers = atLeast0(options.maxWorkers) ?? 0;
  const queued = [atLeast0(options.nQueueLimitWorker), atLeast0(options.nQueueLimitWorkerMax)];
  const nQueueLimitWorker = Math.min(maxWorkers, ...queued.filter((value) => value !== undefined));
  const cores = atLeast0(options.nQueueLimitWorkerCores);
  const memory = atLeast0(options.nQueueLimitWorkerMemory);
  return withoutUnset({
    maxWorkers,
    nQueueLimitWorker,
    // Pushed workers have jobs of their own: how many there are is no matter of a ratio.
    nQueueLimitWorkerRatio: pull ? atLeast0(options.nQueueLimitWorkerRatio) : undefined,
    nQueueLimitWorkerMin: pull ? least(options.nQueueLimitWorkerMin, nQueueLimitWorker) : undefined,
    nQueueLimitWorkerCores: cores,
    nQueueLimitWorkerCoresRatio: atLeast0(options.nQueueLimitWorkerCoresRatio),
    nQueueLimitWorkerCoresMin: least(options.nQueueLimitWorkerCoresMin, cores),
    nQueueLimitWorkerMemory: memory,
    nQueueLimitWorkerMemoryRatio: atLeast0(options.nQueueLimitWorkerMemoryRatio),
    nQueueLimitWorkerMemoryMin: least(options.nQueueLimitWorkerMemoryMin, memory),
    maxNewWorkersPerCycle: atLeast0(options.maxNewWorkersPerCycle) ?? 0,
  });
}

function atLeast0(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.max(0, value);
}

function least(value: number | undefined, bound: number | undefined): number | undefined {
  const own = atLeast0(value);
  return own === undefined || bound === undefined ? own : Math.min(own, bound);
}

/** Equal configurations must give equal snapshots: an unset key is no key. */
function withoutUnset(limits: { [Key in keyof Limits]: Limits[Key] | undefined }): Limits {
  return Object.fromEntries(
    Object.entries(limits).filter(([, value]) => value !== undefined),
  ) as unknown as Limits;
}
