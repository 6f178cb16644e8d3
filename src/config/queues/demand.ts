import type {
  AnyDefinition,
  PandaServer,
  PayloadPart,
  SourceDefinition,
} from '../../plugins/contracts/index.ts';
import { builtInSources } from '../../plugins/contracts/source.ts';
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
import { type ChosenDemand, type ChosenSource, coresOf, type PluginCatalogue } from './queue-config.ts';
import type { QueueOptions, WorkerOptions } from './queue-schema.ts';

/** Why the queues of the server stand still. */
export const linkOff = 'the link to the PanDA server is off: see the problem of pandacon';

/**
 * The queue's own value comes first, then the daemon's, then the default of its backend, then a source that takes such queues, then
 * the usual one. A backend's default gives way to a source that takes the queue where it would never ask for anything on it, and
 * where the queue is one of the PanDA server: also while the link is off, since a full queue is not what the server would have asked for.
 * @param server `off` where the settings mean a server, and something in them keeps thresher from it
 */
export function demandOf(
  options: Pick<QueueOptions, 'demand' | 'mapType' | 'runMode'>,
  defaultDemand: string | undefined,
  submitter: Pick<AnyDefinition, 'name' | 'defaultDemand'> | undefined,
  catalogue: Pick<PluginCatalogue, 'sources'>,
  server?: PandaServer | 'off',
): Omit<ChosenDemand, 'source'> {
  const { demand, mapType, runMode } = options;
  if (demand !== undefined)
    return { demand: typeof demand === 'string' ? demand : demand.name, why: 'the queue says so' };
  if (defaultDemand !== undefined) return { demand: defaultDemand, why: 'submitter.defaultDemand says so' };
  const ofBackend = submitter?.defaultDemand;
  const own = catalogue.sources.find(({ name, module }) => name === ofBackend && module === builtInSources);
  const isIdle = own !== undefined && own.stands({ mapType, runMode, options: {} }).length > 0;
  // Sources of thresher come first, so that no third party makes itself the one that takes queues, or the usual one.
  const named = server === 'off' ? undefined : server;
  const taking = catalogue.sources.find((source) => source.takes({ mapType, runMode }, named));
  const lacksLink =
    server === 'off' &&
    catalogue.sources.some(
      (source) => source.needsServer && source.stands({ mapType, runMode, options: {} }).length === 0,
    );
  const givesWay = lacksLink || (taking !== undefined && (isIdle || taking.needsServer));
  if (ofBackend !== undefined && !givesWay)
    return { demand: ofBackend, why: `the default of ${submitter?.name ?? 'its backend'}` };
  if (taking !== undefined) {
    const at = named === undefined ? '' : `, and the settings name the PanDA server ${named.url}`;
    return { demand: taking.name, why: `runMode is ${runMode} and mapType ${mapType}${at}` };
  }
  const usual = catalogue.sources.find((source) => source.usual);
  return {
    demand: usual?.name ?? '',
    why: lacksLink ? linkOff : 'neither the queue (demand) nor submitter.defaultDemand says otherwise',
  };
}

/** The parts of a payload that a source may give to the workers of a queue, and that these cannot get. */
export function lackedParts(
  source: Pick<SourceDefinition, 'payload'>,
  submitter: Pick<AnyDefinition, 'payload'>,
): readonly PayloadPart[] {
  return source.payload.filter((part) => !submitter.payload.includes(part));
}

/**
 * Why a queue with these options submits nothing however long one waits, all of it, what is to be changed first at the
 * front; empty where it would submit. For those who read a file without the daemon, which asks its limiters besides.
 * @param isDecided false where a backend that could not be read may bring another source
 */
export function whyStanding(
  options: QueueOptions,
  limits: Limits,
  source: ChosenSource | undefined,
  worker: WorkerOptions,
  isDecided = true,
): string[] {
  const closed = whyClosed(options);
  const { mapType, runMode } = options;
  const stands = source?.definition.stands({ mapType, runMode, options: source.choice.config }) ?? [];
  const unwanted = isDecided ? stands : stands.filter(({ code }) => code !== 'demand-none');
  const reasons = [...(closed === undefined ? [] : [closed]), ...unwanted];
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
