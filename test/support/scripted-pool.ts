import type { AdText } from '../../src/clients/htcondor/ad-text.ts';
import type { AdQuestion, Pool } from '../../src/clients/htcondor/pool-client.ts';

/** Parts of a pool that can fail by themselves. */
export const poolParts = [
  ...['status schedd', 'status negotiator', 'status collector', 'status slots', 'text slots'],
  ...['queue s1', 'queue s2', 'limits', 'match'],
] as const;
export type PoolPart = (typeof poolParts)[number];

/** Of an idle job of user ana; each `autoclusterid` is a group. */
export const idleJob = (attributes: Readonly<Record<string, string>>): AdText =>
  new Map([
    ...[
      ['clusterid', '1'],
      ['procid', '0'],
      ['autoclusterid', '1'],
      ['owner', '"ana"'],
    ],
    ...[
      ['requirements', 'true'],
      ['requestmemory', '100'],
      ['concurrencylimits', '"db"'],
    ],
    ...Object.entries(attributes),
  ] as [string, string][]);

const alike = (count: number, requestcpus: string) =>
  Array.from({ length: count }, (_, proc) => idleJob({ procid: `${proc}`, requestcpus }));

/** Idle jobs by schedd. */
export type IdleJobs = Readonly<Record<string, readonly AdText[]>>;

/** One free slot of two cores takes the jobs of the first schedd; the jobs of the second need machines of their own. */
const usualJobs: IdleJobs = { s1: alike(2, '1'), s2: alike(3, '4') };

/** Seconds. */
const cycle = 1000;

type Ads = Readonly<Record<string, readonly Record<string, unknown>[]>>;

const daemons: Ads = {
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
export function scriptedPool(
  failing: PoolPart | undefined,
  failed: Failing,
  jobs: IdleJobs = usualJobs,
): Pool {
  const all: Ads = { ...daemons, schedd: Object.keys(jobs).map((Name) => ({ Name, DaemonStartTime: 1 })) };
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
    const own = jobs[name] ?? [];
    const part = `queue ${name}` as PoolPart;
    return {
      queueLines: async (_where: string, _names: unknown, onJob: (values: readonly string[]) => void) => {
        for (const ad of answer(part, [], () => own)) {
          const [cluster = '', proc = '', group = '', owner = ''] = [
            ...['clusterid', 'procid', 'autoclusterid', 'owner'],
          ].map((attribute) => ad.get(attribute));
          onJob([cluster, proc, group, `${cycle - 1}`, 'undefined', owner]);
        }
      },
      queueAds: async <T>(_where: string, _signal: unknown, read: (ad: AdText) => T | undefined) =>
        own.map(read).filter((one) => one !== undefined),
    };
  };
  return {
    ads: async <T>(kind: string, _question: AdQuestion, read: (ad: Record<string, unknown>) => T) =>
      answer(`status ${kind}` as PoolPart, [], () => all[kind] ?? []).flatMap((ad) => read(ad) ?? []),
    adTexts: async <T>(kind: string, _question: AdQuestion, read: (ad: AdText) => T) =>
      answer(`text ${kind}` as PoolPart, [], () => [freeSlot]).map((ad) => read(ad)),
    configuration: async () =>
      answer('limits', new Map<string, string>(), () => new Map([['DB_LIMIT', '100']])),
    limitsInUse: async () => new Map<string, number>(),
    schedd,
    matchmaker,
  } as unknown as Pool;
}
