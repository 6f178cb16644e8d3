import type { Desk } from '../../plugins/contracts/index.ts';

export type OwnQueue = ReturnType<Desk['ownQueues']>[number];

/** The site of a queue, as the server knows it: Harvester's `site/resourceType` queues are of the site before the slash. */
export function siteOf(queue: string): string {
  return queue.split('/')[0] ?? queue;
}

/**
 * The queue of a site that makes workers of a resource type: the one of that very type (`site/MCORE`), else the one that has the
 * site's name, else the first.
 */
export function queueFor(type: string, site: string, queues: readonly string[]): string | undefined {
  const own = queues.filter((queue) => siteOf(queue) === site);
  return [`${site}/${type}`, site].find((name) => own.includes(name)) ?? own[0];
}

/** Whether the server orders the workers of a queue. */
export function isOrdered({ runMode }: Pick<OwnQueue, 'runMode'>): boolean {
  return runMode === 'slave';
}

/** Names and their sites, each site once. */
export function sitesOf(queues: readonly Pick<OwnQueue, 'name'>[]): string[] {
  return [...new Set(queues.map(({ name }) => siteOf(name)))];
}
