import type { AnyDefinition } from '../../plugins/contracts/index.ts';
import type { Reason } from '../../worker/reason.ts';
import {
  type Bound,
  coresBound,
  memoryBound,
  noLoad,
  whyNoneStarts,
  workerBound,
} from '../../limits/formulas.ts';
import { whyClosed } from '../../limits/limiters.ts';
import type { Limits } from '../../limits/limits.ts';
import { type ChosenDemand, coresOf } from './queue-config.ts';
import type { QueueOptions, WorkerOptions } from './queue-schema.ts';

/** The queue's own value comes first, then the daemon's, then the default of its backend. */
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
 * Why nothing asks for workers of this queue, the daemon's limits aside; empty where something does. Push and slave come
 * first: setting `demand` would change nothing there.
 */
export function whyNoDemand(
  { mapType, runMode }: Pick<QueueOptions, 'mapType' | 'runMode'>,
  demand: ChosenDemand['demand'] | undefined,
): Reason[] {
  const reasons: Reason[] = [];
  if (mapType !== 'NoJob') {
    const message = `mapType is ${mapType}: its workers need jobs from the PanDA server, which thresher does not take yet; set it to "NoJob" where pilots fetch their own`;
    reasons.push({ code: 'demand-push', message });
  }
  if (runMode === 'slave') {
    const message =
      'runMode is slave: the PanDA server sets the number, for which thresher does not ask yet; set it to "self" to fill the queue without';
    reasons.push({ code: 'demand-slave', message });
  }
  // Elsewhere setting `demand` alone changes nothing.
  if (demand === 'none' && reasons.length === 0) {
    const message =
      'demand is none: nothing asks for workers; set demand to "fill" in the queue, or submitter.defaultDemand to "fill" in the settings';
    reasons.push({ code: 'demand-none', message });
  }
  return reasons;
}

/**
 * Why a queue with these options submits nothing however long one waits, all of it, what is to be changed first at the
 * front; empty where it would submit. For those who read a file without the daemon, which asks its limiters besides.
 */
export function whyStanding(
  options: QueueOptions,
  limits: Limits,
  demand: ChosenDemand['demand'] | undefined,
  worker: WorkerOptions,
): string[] {
  const closed = whyClosed(options.queueStatus);
  const reasons = [...(closed === undefined ? [] : [closed]), ...whyNoDemand(options, demand)];
  const limit = whyLimited(options, limits, worker);
  return [...reasons.map(({ message }) => message), ...(limit === undefined ? [] : [limit])];
}

/** Which limit lets not even the first worker through. */
function whyLimited(options: QueueOptions, limits: Limits, worker: WorkerOptions): string | undefined {
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
  if (written === undefined)
    return 'maxWorkers is not set, which counts as 0: set it to how many may be alive';
  return `maxWorkers is ${written}${written < 0 ? ', which counts as 0' : ''}: set it above 0`;
}

/**
 * The reason for which a bound keeps even the first worker out of the queue while none runs. `each` is the share of one
 * worker.
 */
function tooLittle(
  bound: Bound | undefined,
  each: number,
  unit: string,
  options: QueueOptions,
): string | undefined {
  // Workers without this cost are stopped only by a limit of 0.
  if (bound === undefined || bound.atMost >= Math.max(1, each)) return undefined;
  const noneStarts = whyNoneStarts(bound);
  if (noneStarts !== undefined) return noneStarts;
  const { name, atMost } = bound;
  const counts =
    atMost === 0
      ? atMost
      : `${atMost}, and one worker takes ${each} ${unit}${unit === 'core' && each > 1 ? 's' : ''}`;
  const key = saying(name, atMost, options);
  const written = options[key];
  const is =
    typeof written === 'number' && written !== atMost ? `${written}, which counts as ${counts}` : counts;
  return `${key} is ${is}: set it ${each > 1 ? `to ${each} or more` : 'above 0'}`;
}

/** The option to change: `nQueueLimitWorker` is the least of two. */
function saying(name: string, atMost: number, options: QueueOptions): keyof QueueOptions {
  const { nQueueLimitWorker: own, nQueueLimitWorkerMax: most } = options;
  const byMax = name === 'nQueueLimitWorker' && most !== undefined && most <= atMost;
  return byMax && (own === undefined || own > most) ? 'nQueueLimitWorkerMax' : (name as keyof QueueOptions);
}
