import type { ResourceType } from '../../clients/panda/api.ts';
import type { Requirements } from '../../worker/worker.ts';

/** Sizes of one worker that takes a whole slot of the site. MB, s; 0 = not said. */
export interface SiteSizes {
  readonly coreCount: number;
  readonly maxRss: number;
  /** A worker takes all of it, whatever its type: the queue is not unified. */
  readonly wholeSlots?: boolean | undefined;
}

/** The most memory for one core that a resource type can mean, MB. */
const mostPerCore = 1_000_000;

/** Whether the memory of a resource type is a number that none can mean: no worker could have as much, or would get none. */
export function isWrongMemory({ maxrampercore: memory }: ResourceType): boolean {
  return memory !== null && memory !== 0 && !(memory >= 1 && memory <= mostPerCore);
}

/**
 * Needs of a worker of one of the server's resource types. It takes the cores of the site, or as many as the type has at most; memory is
 * that of a core of the type times the cores, and no more than the site has for as many. Where the site says no memory, the type's counts.
 * Source: Harvester's SimpleWorkerMaker and ResourceTypeMapper (`calculate_worker_requirements`).
 */
export function shapeOf(
  name: string,
  types: readonly ResourceType[],
  { coreCount, maxRss, wholeSlots = false }: SiteSizes,
): Pick<Requirements, 'resourceType' | 'nCore' | 'minRamCount'> {
  const type = types.find(({ resource_name: known }) => known === name);
  const whole = Math.max(1, coreCount);
  const most =
    type === undefined ? (name.startsWith('SCORE') ? 1 : whole) : Math.floor(type.maxcore || whole);
  const nCore = wholeSlots ? whole : Math.max(1, Math.min(whole, most));
  const ofSite = Math.ceil((maxRss * nCore) / whole);
  const perCore = wholeSlots ? undefined : type?.maxrampercore || undefined;
  const ofType = perCore === undefined ? Infinity : Math.max(0, Math.ceil(perCore * nCore));
  const minRamCount = maxRss === 0 ? (perCore === undefined ? 0 : ofType) : Math.min(ofSite, ofType);
  return { resourceType: name, nCore, minRamCount };
}

/**
 * The type of the server that a whole slot is of, on a queue that is not unified; undefined where none fits, or the memory is not said.
 * Source: Harvester's ResourceTypeMapper (`get_rtype_for_queue`): the first that fits counts.
 */
export function typeOfSlot(
  { nCore, minRamCount }: Pick<Requirements, 'nCore' | 'minRamCount'>,
  types: readonly ResourceType[],
): string | undefined {
  if (nCore < 1 || minRamCount <= 0) return undefined;
  const perCore = minRamCount / nCore;
  const isWithin = (value: number, least: number | null, most: number | null) =>
    !(least && value < least) && !(most && value > most);
  return types.find(
    ({ mincore, maxcore, minrampercore, maxrampercore }) =>
      isWithin(nCore, mincore, maxcore) && isWithin(perCore, minrampercore, maxrampercore),
  )?.resource_name;
}
