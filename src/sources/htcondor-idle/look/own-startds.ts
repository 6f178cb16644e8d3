import { whereIs } from '../../../clients/htcondor/classad.ts';
import type { Ad } from '../../../clients/htcondor/json-objects.ts';
import type { Pool } from '../../../clients/htcondor/pool-client.ts';
import type { Space } from '../model.ts';
import type { OwnStartd } from './result.ts';

/** A slot of one of our workers. */
interface OwnSlot {
  readonly name: string;
  readonly workerId: number;
  readonly ad: Ad;
}

const attributes = [
  ...['Name', 'State', 'Activity', 'Start', 'Draining', 'PartitionableSlot', 'DynamicSlot'],
  ...['DaemonStartTime', 'LastHeardFrom', 'Cpus', 'Memory', 'Disk', 'GPUs'],
  ...['ThresherWorker', 'ThresherQueue', 'ThresherShape'],
];

/**
 * Seconds after which a slot that has sent nothing takes no job: a worker that was killed keeps its ad for 15 minutes. Workers send theirs
 * every 2 minutes.
 */
const silentFor = 400;

/** Slots of the workers of a factory: they name it, their worker, queue and shape in `Thresher...` attributes. An empty one has none. */
export async function askOwnStartds(
  pool: Pool,
  factoryId: string,
  resources: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly startds: readonly OwnStartd[]; readonly spaces: readonly Space[] }> {
  if (factoryId === '') return { startds: [], spaces: [] };
  const custom = resources.filter((name) => !['cpus', 'memory', 'disk', 'gpus'].includes(name));
  const question = {
    constraint: whereIs('ThresherFactory', factoryId),
    attributes: [...attributes, ...custom],
  };
  const slots = await pool.ads('slots', question, ownSlot, signal);
  // By the clock of the collector, which writes it: the clocks of startds and of the daemon may differ from it.
  const now = slots.reduce((latest, { ad }) => Math.max(latest, numberOf(ad, 'LastHeardFrom') ?? 0), 0);
  const startds: OwnStartd[] = [];
  const spaces: Space[] = [];
  for (const ofWorker of Map.groupBy(slots, ({ workerId }) => workerId).values()) {
    const members = latest(ofWorker);
    const startd = startdOf(members);
    startds.push(startd);
    if (startd.leaving) continue;
    const free = members.filter(
      ({ ad }) => isFree(ad) && now - (numberOf(ad, 'LastHeardFrom') ?? now) <= silentFor,
    );
    for (const slot of free) spaces.push(spaceOf(slot, startd.shape, resources));
  }
  return { startds, spaces };
}

/** Slots of the startd that the collector has heard of last: a worker that was made again has one beside the one before it, until that ad expires. */
function latest(slots: readonly OwnSlot[]): readonly OwnSlot[] {
  const heard = (members: readonly OwnSlot[]) =>
    members.reduce((last, { ad }) => Math.max(last, numberOf(ad, 'LastHeardFrom') ?? 0), 0);
  const startds = [...Map.groupBy(slots, ({ ad }) => numberOf(ad, 'DaemonStartTime')).values()];
  return startds.reduce((last, other) => (heard(other) > heard(last) ? other : last));
}

function ownSlot(ad: Ad): OwnSlot | undefined {
  const workerId = Number(ad['ThresherWorker']);
  const name = textOf(ad, 'Name');
  return Number.isInteger(workerId) && workerId > 0 && name !== '' ? { name, workerId, ad } : undefined;
}

function startdOf(members: readonly OwnSlot[]): OwnStartd {
  const ads = members.map(({ ad }) => ad);
  const [first = {}] = ads;
  const queue = textOf(first, 'ThresherQueue');
  const shape = textOf(first, 'ThresherShape');
  const claims = ads.filter((ad) =>
    ['Claimed', 'Preempting', 'Matched'].includes(textOf(ad, 'State')),
  ).length;
  return {
    workerId: members[0]?.workerId ?? 0,
    slot: members[0]?.name ?? '',
    queue,
    shape: keyOf(queue, shape),
    startedAt: (numberOf(first, 'DaemonStartTime') ?? 0) * 1000,
    claims,
    leaving: ads.some(leaves),
  };
}

/** A queue with one shape names it by its own name. */
const keyOf = (queue: string, shape: string) =>
  shape === queue || shape === '' ? queue : `${queue}/${shape}`;

/** A slot in the state Owner has a START that is false. */
const leaves = (ad: Ad) =>
  ad['Draining'] === true || ad['Start'] === false || ['Drained', 'Owner'].includes(textOf(ad, 'State'));

const isFree = (ad: Ad) =>
  ad['DynamicSlot'] !== true && textOf(ad, 'State') === 'Unclaimed' && (numberOf(ad, 'Cpus') ?? 0) > 0;

function spaceOf({ name, workerId, ad }: OwnSlot, shape: string, resources: readonly string[]): Space {
  const byName = new Map(Object.entries(ad).map(([key, value]) => [key.toLowerCase(), value]));
  const free = new Map<string, number>();
  for (const resource of new Set(['cpus', 'memory', 'disk', 'gpus', ...resources])) {
    const amount = byName.get(resource);
    // A resource of which nothing is left is a bound; one that the slot does not count is none.
    if (typeof amount === 'number') free.set(resource, Math.max(0, amount));
  }
  return { name, kind: `shape:${shape}`, free, oneJob: ad['PartitionableSlot'] !== true, shape, workerId };
}

function textOf(ad: Ad, name: string): string {
  const value = ad[name];
  return typeof value === 'string' ? value : '';
}

function numberOf(ad: Ad, name: string): number | undefined {
  const value = ad[name];
  return typeof value === 'number' ? value : undefined;
}
