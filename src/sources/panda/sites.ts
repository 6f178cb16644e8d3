import type { Desk } from '../../plugins/contracts/index.ts';
import { computingSiteOf } from '../../worker/identity.ts';

export type OwnQueue = ReturnType<Desk['ownQueues']>[number];

/**
 * The queue of a site that makes workers of a resource type: the one of that very type (`site/MCORE`), else the one that has the
 * site's name, else the first.
 */
export function queueFor(type: string, site: string, queues: readonly string[]): string | undefined {
  const own = queues.filter((queue) => computingSiteOf(queue) === site);
  return [`${site}/${type}`, site].find((name) => own.includes(name)) ?? own[0];
}

/** Whether the server orders the workers of a queue. */
export function isOrdered({ runMode }: Pick<OwnQueue, 'runMode'>): boolean {
  return runMode === 'slave';
}

/** Names and their sites, each site once. */
export function sitesOf(queues: readonly Pick<OwnQueue, 'name'>[]): string[] {
  return [...new Set(queues.map(({ name }) => computingSiteOf(name)))];
}
