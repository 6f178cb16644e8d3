import type { AnyDefinition } from '../plugins/contracts/index.ts';
import type { Limits } from './limits.ts';
import type { QueueOptions } from './queue-schema.ts';

/** What asks for workers of a queue, and who said so. */
export interface ChosenDemand {
  readonly demand: 'fill' | 'none';
  readonly why: string;
}

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
): string | undefined {
  const { queueStatus, mapType, runMode } = options;
  if (queueStatus !== 'online' && queueStatus !== 'test') return `queueStatus is ${queueStatus}`;
  if (demand === 'none') return 'demand is none: nothing asks for workers';
  if (mapType !== 'NoJob') return `mapType is ${mapType}: its workers need jobs from the PanDA server`;
  if (runMode === 'slave') return 'runMode is slave: the PanDA server sets the number';
  if (limits.maxWorkers === 0) return 'maxWorkers is 0 (unset counts as 0)';
  if (limits.nQueueLimitWorker === 0) return 'nQueueLimitWorker is 0';
  return undefined;
}
