/**
 * The smallest worker id of a daemon that starts now: 20 ids for each second since 2020. After another database was lost,
 * or an older one restored, it therefore starts above everything that was ever given out, unless more than 20 workers
 * a second were submitted all the time. Ids have at most 11 digits, PanDA's column width, until the year 2162, and whatever
 * the clock says.
 */
export function workerIdFloor(startedAt: number): number {
  const since2020 = startedAt - Date.UTC(2020, 0, 1);
  return Math.min(highestForeignId, Math.max(1, Math.floor(since2020 / 50)));
}

/**
 * The highest id that somebody else may have given out before ours. PanDA's column has 11 digits, so above
 * it would be no room for ours: such an id is a mistake, and the floor by time is far below it until the year 2162.
 */
export const highestForeignId = 90_000_000_000;

/** Our own ids are below it. Above are those of a counter that an absurd id left without room. */
export const highestOwnId = highestForeignId + 5_000_000_000;

/** Name of the backend's object: the same intent always gives the same name, so a repeated creation is recognised. */
export function workerName(factoryId: string, workerId: number): string {
  return `${factoryId}-${workerId}`;
}

/** The site of a queue, as PanDA knows it: Harvester's `site/resourceType` queues are of the site before the slash. */
export function computingSiteOf(queue: string): string {
  return queue.split('/')[0] ?? queue;
}

/** A factory id is part of labels, names and ClassAds: lower-case letters, digits and inner dashes, at most 30. */
export const factoryIdPattern = '^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$';

export function isFactoryId(text: string): boolean {
  return new RegExp(factoryIdPattern).test(text);
}

export function newFactoryId(random: () => number): string {
  const digits = Array.from({ length: 8 }, () => Math.floor(random() * 36).toString(36)).join('');
  return `thresher-${digits}`;
}
