import type { AdText } from '../../src/clients/htcondor/ad-text.ts';
import type { AdQuestion, Pool } from '../../src/clients/htcondor/pool-client.ts';

/** Parts of a pool that can fail by themselves. */
export const poolParts = [
  ...['status schedd', 'status negotiator', 'status collector', 'status slots', 'text slots'],
  ...['queue s1', 'queue s2', 'limits', 'match'],
] as const;
export type PoolPart = (typeof poolParts)[number];

/** Idle jobs of one schedd, all alike. */
interface Jobs {
  readonly count: number;
  readonly cpus: number;
}

/** One free slot of two cores takes the jobs of the first schedd; the jobs of the second need machines of their own. */
const jobsOf: Readonly<Record<string, Jobs>> = { s1: { count: 2, cpus: 1 }, s2: { count: 3, cpus: 4 } };

/** Seconds. */
const cycle = 1000;

const daemons: Readonly<Record<string, readonly Record<string, unknown>[]>> = {
  schedd: Object.keys(jobsOf).map((Name) => ({ Name, DaemonStartTime: 1 })),
  negotiator: [{ Name: 'n', MyAddress: '<n>', LastNegotiationCycleTime0: cycle }],
  collector: [{ StatsLastUpdateTime: 90_000, StatsLifetime: 80_000 }],
  slots: [],
};

const freeSlot: AdText = new Map([
  ...[
    ['name', '"slot1@pool"'],
    ['state', '"Unclaimed"'],
    ['partitionableslot', 'true'],
    ['start', 'true'],
  ],
  ...[
    ['requirements', 'START'],
    ['cpus', '2'],
    ['memory', '8000'],
    ['disk', '1000000'],
  ],
] as [string, string][]);

/** What becomes of a call to a part that fails. */
export type Failing = <T>(part: PoolPart, zero: T) => T;

/** A part that fails gives no answer. */
export const silent: Failing = (part) => {
  throw new Error(`${part} gives no answer`);
};

/** The violation that thresher must not commit: a part that fails is taken for one that has nothing. */
export const takenForNone: Failing = (_part, zero) => zero;

/** A pool in memory that always looks the same, but for one part that fails. */
export function scriptedPool(failing: PoolPart | undefined, failed: Failing): Pool {
  const answer = <T>(part: PoolPart, zero: T, whole: () => T): T =>
    part === failing ? failed(part, zero) : whole();
  const matchmaker = {
    withJobs: async <T>(ads: readonly AdText[], use: (laid: unknown) => Promise<T>): Promise<T> =>
      use({
        analysis: async () => undefined,
        slotAnalyses: async () => [],
        values: async <T>(names: readonly string[], read: (values: readonly string[]) => T) =>
          ads.map((ad) => read(names.map((name) => ad.get(name.toLowerCase()) ?? 'undefined'))),
        matches: async (slot: AdText) =>
          answer(
            'match',
            ads.map(() => false),
            () => ads.map((ad) => Number(ad.get('requestcpus')) <= Number(slot.get('cpus'))),
          ),
      }),
  };
  const schedd = (name: string) => {
    const { count, cpus } = jobsOf[name] ?? { count: 0, cpus: 0 };
    const part = `queue ${name}` as PoolPart;
    return {
      queueLines: async (_where: string, _names: unknown, onJob: (values: readonly string[]) => void) => {
        const jobs = answer(part, 0, () => count);
        for (let proc = 0; proc < jobs; proc++)
          onJob(['1', `${proc}`, '1', `${cycle - 1}`, 'undefined', '"ana"']);
      },
      queueAds: async <T>(_where: string, _signal: unknown, read: (ad: AdText) => T | undefined) =>
        Array.from({ length: count }, (_, proc) =>
          read(
            new Map([
              ['clusterid', '1'],
              ['procid', `${proc}`],
              ['requirements', 'true'],
              ['requestcpus', `${cpus}`],
              ['requestmemory', '100'],
              ['concurrencylimits', '"db"'],
            ]),
          ),
        ).filter((one) => one !== undefined),
    };
  };
  return {
    ads: async <T>(kind: string, _question: AdQuestion, read: (ad: Record<string, unknown>) => T) =>
      answer(`status ${kind}` as PoolPart, [], () => daemons[kind] ?? []).flatMap((ad) => read(ad) ?? []),
    adTexts: async <T>(kind: string, _question: AdQuestion, read: (ad: AdText) => T) =>
      answer(`text ${kind}` as PoolPart, [], () => [freeSlot]).map((ad) => read(ad)),
    configuration: async () =>
      answer('limits', new Map<string, string>(), () => new Map([['DB_LIMIT', '100']])),
    limitsInUse: async () => new Map<string, number>(),
    schedd,
    matchmaker,
  } as unknown as Pool;
}
