import { type Ad, JsonObjects } from '../../clients/htcondor/json-objects.ts';
import type { CondorTools } from '../../clients/htcondor/tools.ts';
import { factsFromOutside } from '../../util/own-secrets.ts';
import type { WorkerNews } from '../../worker/news.ts';

/** An ad of the collector, with what a person wants to know of it. */
export interface PoolAd {
  readonly type: string;
  readonly targetType: string;
  readonly name: string;
  readonly machine: string;
  readonly state: string;
  readonly activity: string;
  readonly slotType: string;
  /** Of the whole machine where the slot is partitionable. */
  readonly cores: number | undefined;
  readonly freeCores: number | undefined;
  readonly draining: boolean;
  /** Of a startd that a worker of thresher brought. */
  readonly queue: string | undefined;
  readonly shape: string | undefined;
  readonly workerId: number | undefined;
  readonly factory: string | undefined;
}

/** A worker of thresher whose startd is in the pool. */
export interface JoinedWorker {
  readonly workerId: number | undefined;
  readonly queue: string;
  readonly shape: string;
  readonly machine: string;
  readonly cores: number;
  readonly busyCores: number;
  readonly draining: boolean;
}

export interface PoolSummary {
  readonly counts: Readonly<Record<'collector' | 'negotiator' | 'schedd' | 'startd', number>>;
  /** Slots by state: `Claimed`, `Unclaimed`, `Drained` ... */
  readonly slots: ReadonlyMap<string, number>;
  readonly workers: readonly JoinedWorker[];
}

const attributes = [
  ...['MyType', 'TargetType', 'Name', 'Machine', 'State', 'Activity', 'SlotType', 'Cpus', 'TotalSlotCpus'],
  ...['Draining', 'ThresherQueue', 'ThresherShape', 'ThresherWorker', 'ThresherFactory'],
];

/** All that the collector knows, as `condor_status -any` has it; in the order of names. @throws HTCondorError */
export async function poolAds(tools: CondorTools, signal: AbortSignal): Promise<readonly PoolAd[]> {
  const args = ['-any', '-json', '-attributes', attributes.join(',')];
  const outputLimit = 64 * 1024 * 1024;
  const { stdout: text } = await tools.succeed(
    { command: 'condor_status', args, changes: false, timeLimit: 60_000, outputLimit },
    signal,
  );
  return new JsonObjects()
    .push(text)
    .map((ad) => factsFromOutside(poolAd(ad)) as PoolAd)
    .sort((one, other) => one.name.localeCompare(other.name) || one.type.localeCompare(other.type));
}

/** The slots of a partitionable machine are counted one by one, as `condor_status` does. */
export function summaryOf(ads: readonly PoolAd[]): PoolSummary {
  const count = (type: string) => ads.filter((ad) => ad.type === type).length;
  const slots = ads.filter(isSlot);
  const states = new Map<string, number>();
  for (const { state } of slots) states.set(state, (states.get(state) ?? 0) + 1);
  return {
    counts: {
      collector: count('Collector'),
      negotiator: count('Negotiator'),
      schedd: count('Scheduler'),
      startd: new Set(slots.map(({ machine }) => machine)).size,
    },
    slots: states,
    workers: joinedWorkers(slots),
  };
}

/** Daemons that are not there, by what then happens. A pool that grows by its demand has no startd while no job waits. */
export function lackingIn({ counts }: PoolSummary): string[] {
  return [
    ...(counts.negotiator === 0 ? ['there is no negotiator: no job is matched with a worker'] : []),
    ...(counts.schedd === 0 ? ['there is no schedd: no job can be submitted'] : []),
    ...(counts.startd === 0 ? ['there is no startd: jobs wait until a worker joins'] : []),
  ];
}

/** A worker that runs, and whose startd the pool does not know. */
export interface AbsentWorker {
  readonly workerId: number;
  readonly queue: string;
  /** ms since its start; undefined where no start was seen. */
  readonly age: number | undefined;
}

/** Longest first: in its first seconds each worker is on its way. @param now ms UTC */
export function absentWorkers(
  living: readonly Pick<WorkerNews, 'queue' | 'worker'>[],
  joined: readonly Pick<JoinedWorker, 'workerId'>[],
  now: number,
): AbsentWorker[] {
  const ids = new Set(joined.map(({ workerId }) => workerId));
  return living
    .flatMap(({ queue, worker: { workerId, status, startTime } }) => {
      if (workerId === null || status !== 'running' || ids.has(workerId)) return [];
      return [{ workerId, queue, age: startTime === null ? undefined : Math.max(0, now - startTime) }];
    })
    .sort((one, other) => (other.age ?? 0) - (one.age ?? 0) || one.workerId - other.workerId);
}

/** "12 of HTCONDOR (runs for 3m)" */
export function absentText({ workerId, queue, age }: AbsentWorker): string {
  return `${workerId} of ${queue}${age === undefined ? '' : ` (runs for ${ageText(age)})`}`;
}

function ageText(age: number): string {
  const seconds = Math.floor(age / 1000);
  if (seconds < 120) return `${seconds}s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)}m` : `${Math.floor(seconds / 3600)}h`;
}

function joinedWorkers(slots: readonly PoolAd[]): JoinedWorker[] {
  const own = slots.filter(({ queue }) => queue !== undefined);
  const machines = Map.groupBy(
    own,
    ({ factory, workerId, machine }) => `${factory ?? ''} ${workerId ?? ''} ${machine}`,
  );
  return [...machines.values()]
    .map((ads) => {
      const whole = ads.filter(({ slotType }) => slotType !== 'Dynamic');
      const [first] = whole.length > 0 ? whole : ads;
      const cores = sum(whole.map((slot) => slot.cores ?? 0));
      const free = sum(whole.filter(({ state }) => state !== 'Claimed').map((slot) => slot.freeCores ?? 0));
      return {
        workerId: first?.workerId,
        queue: first?.queue ?? '',
        shape: first?.shape ?? '',
        machine: first?.machine ?? '',
        cores,
        busyCores: cores - free,
        draining: ads.some(({ draining }) => draining),
      };
    })
    .sort((one, other) => (one.workerId ?? 0) - (other.workerId ?? 0));
}

const isSlot = ({ type }: PoolAd) => type === 'Machine' || type === 'Slot';
const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);

function poolAd(ad: Ad): PoolAd {
  const text = (name: string) => (typeof ad[name] === 'string' ? ad[name] : '');
  const number = (name: string) => (typeof ad[name] === 'number' ? ad[name] : undefined);
  const filled = (name: string) => (text(name) === '' ? undefined : text(name));
  return {
    type: text('MyType'),
    targetType: filled('TargetType') ?? 'None',
    name: text('Name'),
    machine: text('Machine'),
    state: text('State'),
    activity: text('Activity'),
    slotType: text('SlotType'),
    cores: number('TotalSlotCpus') ?? number('Cpus'),
    freeCores: number('Cpus'),
    draining: ad['Draining'] === true,
    queue: filled('ThresherQueue'),
    shape: filled('ThresherShape'),
    workerId: workerIdOf(ad['ThresherWorker']),
    factory: filled('ThresherFactory'),
  };
}

/** As a number, or as the text of one. */
function workerIdOf(written: unknown): number | undefined {
  const id = typeof written === 'string' && /^\d{1,15}$/.test(written) ? Number(written) : written;
  return typeof id === 'number' && Number.isSafeInteger(id) ? id : undefined;
}
