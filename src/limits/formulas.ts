import { isQueued, type WorkerStatus } from '../worker/status.ts';
import type { Limits } from './limits.ts';

/** Workers, their cores and their memory (MB). */
export interface Load {
  readonly workers: number;
  readonly cores: number;
  readonly memory: number;
}

/** Living workers of one kind. */
interface KindLoad extends Load {
  readonly status: WorkerStatus;
}

export interface QueueLoad {
  /** pending, submitted, idle: intents in flight count. */
  readonly queued: Load;
  readonly running: Load;
  /** All of them, ready ones included. */
  readonly alive: Load;
}

export const noLoad: Load = { workers: 0, cores: 0, memory: 0 };

export function queueLoad(counts: readonly KindLoad[]): QueueLoad {
  return {
    queued: sum(counts.filter(({ status }) => isQueued(status))),
    running: sum(counts.filter(({ status }) => status === 'running')),
    alive: sum(counts),
  };
}

function sum(counts: readonly KindLoad[]): Load {
  return counts.reduce(
    (load, { workers, cores, memory }) => ({
      workers: load.workers + workers,
      cores: load.cores + cores,
      memory: load.memory + memory,
    }),
    noLoad,
  );
}

/** The number that may be queued now, and the limit that decides it. */
export interface Bound {
  readonly atMost: number;
  /** The option. */
  readonly name: string;
  /** How its number came about, where it is not the option's own. */
  readonly from?: string;
  /** A share of the running workers is 0 while none run: this option lets the first one start. */
  readonly startsWith?: string;
}

/**
 * `nQueueLimitWorker`, cut to `Ratio` per cent of the running workers; where that is less than `Min`, to `Min`.
 * Source: Harvester's get_worker_limits.
 */
export function workerBound(limits: Limits, running: Load): Bound {
  const { nQueueLimitWorker: most, nQueueLimitWorkerRatio: ratio, nQueueLimitWorkerMin: min } = limits;
  const whole = { atMost: most, name: 'nQueueLimitWorker' };
  if (ratio === undefined) return whole;
  const share = percent(ratio, running.workers);
  if (min !== undefined && share < min) return { atMost: Math.min(most, min), name: 'nQueueLimitWorkerMin' };
  if (share >= most) return whole;
  return {
    atMost: share,
    name: 'nQueueLimitWorkerRatio',
    from: `${ratio} % of ${running.workers} running`,
    startsWith: 'nQueueLimitWorkerMin',
  };
}

/** Why a share lets no first worker start; undefined where the bound is no share. Waiting changes nothing about it. */
export function whyNoneStarts({ atMost, name, from, startsWith }: Bound): string | undefined {
  if (startsWith === undefined) return undefined;
  return `${name} gives ${atMost} (${from ?? ''}): nothing starts from none unless ${startsWith} is above 0`;
}

function percent(ratio: number, of: number): number {
  return Math.floor((of * ratio) / 100);
}

/**
 * If there are several resource types, each gets its part of `Min`; without `Min` each may take the whole. Source: as
 * above.
 */
export function perResourceType(limits: Limits, running: Load, resourceTypes: number): number {
  const all = workerBound(limits, running).atMost;
  const { nQueueLimitWorker: most, nQueueLimitWorkerRatio: ratio, nQueueLimitWorkerMin: min } = limits;
  if (ratio === undefined || min === undefined) return all;
  return percent(ratio, running.workers) < min
    ? Math.min(most, Math.ceil(min / Math.max(1, resourceTypes)))
    : all;
}

export function coresBound(limits: Limits, running: Load, nCore: number): Bound | undefined {
  return resourceBound(running.cores, nCore, {
    name: 'nQueueLimitWorkerCores',
    most: limits.nQueueLimitWorkerCores,
    ratio: limits.nQueueLimitWorkerCoresRatio,
    min: limits.nQueueLimitWorkerCoresMin ?? 0,
    // At least one core for each of the workers that are to be queued at least.
    workersMin: limits.nQueueLimitWorkerMin ?? 0,
    each: '1 core each',
  });
}

/** MB. */
export function memoryBound(limits: Limits, running: Load, minRamCount: number): Bound | undefined {
  return resourceBound(running.memory, minRamCount, {
    name: 'nQueueLimitWorkerMemory',
    most: limits.nQueueLimitWorkerMemory,
    ratio: limits.nQueueLimitWorkerMemoryRatio,
    min: limits.nQueueLimitWorkerMemoryMin ?? 0,
    workersMin: (limits.nQueueLimitWorkerMin ?? 0) * 1000,
    each: '1000 MB each',
  });
}

interface Resource {
  readonly name: string;
  readonly most: number | undefined;
  readonly ratio: number | undefined;
  readonly min: number;
  /** The amount that `nQueueLimitWorkerMin` comes to, and how it was counted. */
  readonly workersMin: number;
  readonly each: string;
}

/** `perWorker` is what one worker takes: a minimum that is there to get a queue started must have room for one. */
function resourceBound(running: number, perWorker: number, resource: Resource): Bound | undefined {
  const { name, most, ratio } = resource;
  const whole = most === undefined ? undefined : { atMost: most, name };
  if (ratio === undefined) return whole;
  const share = percent(ratio, running);
  const floor = floorOf(resource);
  const bound =
    share >= floor.atMost
      ? {
          atMost: share,
          name: `${name}Ratio`,
          from: `${ratio} % of ${running} running`,
          startsWith: `${name}Min`,
        }
      : floor.atMost < perWorker
        ? { atMost: perWorker, name: floor.name, from: 'raised to the size of one worker' }
        : floor;
  return whole !== undefined && whole.atMost <= bound.atMost ? whole : bound;
}

/** The greater of both minima, under the name of the option that the operator wrote. */
function floorOf({ name, min, workersMin, each }: Resource): Bound {
  return workersMin > min
    ? { atMost: workersMin, name: 'nQueueLimitWorkerMin', from: each }
    : { atMost: min, name: `${name}Min` };
}
