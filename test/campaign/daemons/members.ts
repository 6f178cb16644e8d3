import { Acts } from './acts.ts';
import type { Bed } from './bed.ts';
import type { Division } from './division.ts';
import { memberNotes } from './member-notes.ts';
import { memberStrikes } from './member-strikes.ts';

/** The two queues of it stay together, since they have a limit together. Each of the others may be with any member. */
const family = { name: 'PAIR', queues: ['pair-1', 'pair-2'], maxWorkers: 3 };
const inFamily = {
  siteFamily: family.name,
  throttler: {
    name: 'TinyThrottler',
    module: 'pandaharvester.harvesterthrottler.tiny_throttler',
    rulesForSiteFamilySubmittedRunning: [{ level: 'workers', maxWorkers: family.maxWorkers }],
  },
};
const queues = {
  'pair-1': { maxWorkers: 2, nQueueLimitWorker: 2 },
  'pair-2': { maxWorkers: 2, nQueueLimitWorker: 1 },
  'short-1': { maxWorkers: 2, nQueueLimitWorker: 2 },
  'short-2': { maxWorkers: 1, nQueueLimitWorker: 1 },
  long: { maxWorkers: 2, nQueueLimitWorker: 1 },
};
const names = Object.keys(queues);

/** Three daemons share queues out. Workers of `long` live through a take-over, all others end within two seconds. */
export const members: Division = {
  daemons: 3,
  caps: { queues, families: [family] },
  lives: { 'pair-1': '1200ms', 'pair-2': '1500ms', 'short-1': '1s', 'short-2': '1500ms', long: '5s' },
  options: { 'pair-1': inFamily, 'pair-2': inFamily },
  sharesFiles: true,
  database: (index) => ({ shareQueues: true, member: `m${index + 1}` }),
  beginActs: (server, database) => Acts.begin(server, database, memberNotes),
  moves: 'moves of queues',
  strikes: memberStrikes,
  awaited: 0.5,
  worksAgain: (some) => names.every((queue) => some.has(queue)),
  isSettled: async (bed) => {
    const parts = await partsOf(bed);
    const had = [...parts.values()].flat().toSorted();
    return parts.size === members.daemons && had.join() === names.toSorted().join();
  },
};

/** Names of queues by the member whose lease holds and who has them. */
export async function partsOf(bed: Bed): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await bed.ask<{ queue: string; member: string }>(
    `SELECT substr(item, ${'queue '.length + 1}) AS queue, member FROM shares
      JOIN leases ON shard = 'member ' || member AND leases.instance = shares.instance
      WHERE starts_with(item, 'queue ') AND expires_at > clock_timestamp()`,
  );
  const byMember = Map.groupBy(rows, ({ member }) => member);
  return new Map([...byMember].map(([member, own]) => [member, own.map(({ queue }) => queue)]));
}
