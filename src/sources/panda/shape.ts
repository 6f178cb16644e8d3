import type { ResourceType } from '../../clients/panda/api.ts';
import type { Requirements } from '../../worker/worker.ts';

/** Sizes of one worker that takes a whole slot of the site. MB, s; 0 = not said. */
export interface SiteSizes {
  readonly coreCount: number;
  readonly maxRss: number;
}

/**
 * Needs of a worker of one of the server's resource types. A type of one core takes one, others take the site's number within the
 * type's bounds; memory is that of a core of the type times the cores, and no more than the site has for as many.
 * Source: Harvester's SimpleWorkerMaker and ResourceTypeMapper.
 */
export function shapeOf(
  name: string,
  types: readonly ResourceType[],
  { coreCount, maxRss }: SiteSizes,
): Pick<Requirements, 'resourceType' | 'nCore' | 'minRamCount'> {
  const type = types.find(({ resource_name: known }) => known === name);
  const whole = Math.max(1, coreCount);
  const isSingle = type === undefined ? name.startsWith('SCORE') : type.maxcore === 1;
  const most = Math.min(whole, Math.floor(type?.maxcore ?? whole));
  const nCore = isSingle ? 1 : Math.max(1, Math.ceil(type?.mincore ?? 1), most);
  const ofSite = Math.floor((maxRss * nCore) / whole);
  const perCore = type?.maxrampercore ?? undefined;
  const ofType = perCore === undefined ? Infinity : Math.max(0, Math.ceil(perCore * nCore));
  const minRamCount = maxRss === 0 ? (perCore === undefined ? 0 : ofType) : Math.min(ofSite, ofType);
  return { resourceType: name, nCore, minRamCount };
}
