import type { AnyDefinition } from '../../plugins/contracts/index.ts';
import { type Bound, coresBound, memoryBound, noLoad, workerBound } from './limit-formulas.ts';
import type { Limits } from './limits.ts';
import { type ChosenDemand, coresOf } from './queue-config.ts';
import type { QueueOptions, WorkerOptions } from './queue-schema.ts';

/** The queue's own word, then the daemon's, then what its backend does by itself. */
export function demandOf(
  options: QueueOptions,
  defaultDemand: 'fill' | 'none' | undefined,
  submitter: AnyDefinition | undefined,
): ChosenDemand {
  if (options.demand !== undefined) return { demand: options.demand, why: 'the queue says so' };
  if (defaultDemand !== undefined) return { demand: defaultDemand, why: 'submitter.defaultDemand says so' };
  if (submitter?.defaultDemand !== undefined)
    return { demand: submitter.defaultDemand, why: `the default of ${submitter.name}` };
  return { demand: 'none', why: 'neither the queue (demand) nor submitter.defaultDemand says otherwise' };
}

/**
 * Why a queue with these options submits nothing however long one waits; undefined where it would. The daemon asks the
 * same of its limiters: this is for those who read a file without it.
 */
export function whyStanding(
  options: QueueOptions,
  limits: Limits,
  demand: ChosenDemand['demand'] | undefined,
  worker: WorkerOptions,
): string | undefined {
  const { queueStatus, mapType, runMode } = options;
  if (queueStatus !== 'online' && queueStatus !== 'test') return `queueStatus is ${queueStatus}`;
  if (demand === 'none') return 'demand is none: nothing asks for workers';
  if (mapType !== 'NoJob') return `mapType is ${mapType}: its workers need jobs from the PanDA server`;
  if (runMode === 'slave') return 'runMode is slave: the PanDA server sets the number';
  if (limits.maxWorkers === 0) return nothingAlive(options.maxWorkers);
  const cores = coresOf(worker);
  const memory = worker.minRamCount ?? 0;
  return (
    tooLittle(workerBound(limits, noLoad), 1, 'worker', options) ??
    tooLittle(coresBound(limits, noLoad, cores), cores, 'core', options) ??
    tooLittle(memoryBound(limits, noLoad, memory), memory, 'MB', options)
  );
}

function nothingAlive(written: number | undefined): string {
  if (written === undefined) return 'maxWorkers is not set, which counts as 0';
  return `maxWorkers is ${written}${written < 0 ? ', which counts as 0' : ''}`;
}

/** Why a bound keeps even the first worker from being queued, where none runs yet. `each` is what it takes. */
function tooLittle(
  bound: Bound | undefined,
  each: number,
  unit: string,
  options: QueueOptions,
): string | undefined {
  // What costs nothing is stopped only by a limit of 0.
  if (bound === undefined || bound.atMost >= Math.max(1, each)) return undefined;
  const { name, atMost, from } = bound;
  if (name.endsWith('Ratio')) {
    const min = name.replace(/Ratio$/, 'Min');
    return `${name} gives ${atMost} (${from ?? ''}): nothing starts from none unless ${min} is above 0`;
  }
  const counts =
    atMost === 0
      ? atMost
      : `${atMost}, and one worker takes ${each} ${unit}${unit === 'core' && each > 1 ? 's' : ''}`;
  const written = options[name as keyof QueueOptions];
  const is =
    typeof written === 'number' && written !== atMost ? `${written}, which counts as ${counts}` : counts;
  return `${name} is ${is}`;
}
