import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { AdText } from '../../../src/clients/htcondor/ad-text.ts';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import type { LaidOutJobs } from '../../../src/clients/htcondor/matchmaker.ts';
import type { Pool } from '../../../src/clients/htcondor/pool-client.ts';
import type { Desk } from '../../../src/plugins/contracts/index.ts';
import { explainDemand } from '../../../src/sources/htcondor-idle/explain.ts';
import { PoolLooker } from '../../../src/sources/htcondor-idle/look/index.ts';
import { IdleSource } from '../../../src/sources/htcondor-idle/source.ts';
import { OperatorFiles } from '../../../src/util/operator-files.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ownQueue, recordingLog, requirements } from '../../support/samples.ts';
import {
  type Failing,
  idleJob,
  type IdleJobs,
  type PoolPart,
  poolParts,
  scriptedPool,
  silent,
  takenForNone,
} from '../../support/scripted-pool.ts';
import { until } from '../../support/until.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** Workers that may be asked for although this part gives no answer: for jobs of which all is known. */
const known: Partial<Record<PoolPart, number>> = { 'queue s1': 3 };
const options = { slotAd: 'q.ad', nonePending: false };

/** What thresher does and says of a pool of which one part fails. */
async function seen(failing: PoolPart | undefined, failed: Failing) {
  const directory = temporaryDirectory();
  const ad = 'MyType = "Machine"\nPartitionableSlot = true\nCpus = 4\nMemory = 4000\nDisk = 1000000\n';
  writeFileSync(join(directory, 'q.ad'), ad);
  const clock = new ManualClock();
  const files = new OperatorFiles({ clock });
  const looker = new PoolLooker({ pool: scriptedPool(failing, failed), clock, factoryId: 'f1' });
  const drainer = { shrink: async () => ({ drained: [], refused: [], failed: [] }) };
  const times = { interval: 60, joinTimeout: 300 };
  const source = new IdleSource({ options: times, looker, drainer, clock, log: recordingLog(), files });
  const queue = ownQueue('Q', { options, configDir: directory });
  const desk = {
    ownQueues: () => [queue],
    queues: () => ['Q'],
    living: async () => [],
    alive: async () => new Set<number>(),
    reasons: () => [],
    wake: () => undefined,
  } satisfies Partial<Desk>;
  const stop = new AbortController();
  const running = source.run(desk as unknown as Desk, stop.signal);
  await until('it has decided', () => source.gauges().length > 0);
  const asked = { name: 'Q', own: true, options, requirements, mapType: 'NoJob', runMode: 'self' };
  const { requests, reasons } = await source.wanted(asked);
  const { signal } = stop;
  const explained = await explainDemand({}, [queue], { clock, files, configDir: directory, looker }, signal);
  stop.abort();
  await running;
  return { requests: requests.length, codes: reasons.map(({ code }) => code), explained };
}

/** The promises that are broken while one part of the pool fails. */
async function broken(failing: PoolPart, failed: Failing): Promise<string[]> {
  const { requests, codes, explained } = await seen(failing, failed);
  const rules: readonly [boolean, string][] = [
    [requests > (known[failing] ?? 0), `asks for ${requests} workers`],
    [!codes.some((code) => unheard.has(code)), 'does not say in the queue what it does not know'],
    [explained.unservable.length > 0, 'calls jobs unservable'],
    [explained.unknown.length === 0, 'does not say beside the unservable jobs what it does not know'],
  ];
  return rules.flatMap(([isBroken, what]) => (isBroken ? [what] : []));
}
const unheard = new Set([
  'htcondor-idle-unknown',
  'htcondor-idle-no-negotiator',
  'htcondor-idle-schedd-missing',
]);

describe('an unknown part of a pool is never counted as zero', () => {
  it('a whole pool gets what its jobs need', async () => {
    const { requests, explained } = await seen(undefined, silent);
    expect(requests).to.equal(3);
    expect(explained).to.deep.include({ idle: 5, unservable: [], unknown: [] });
  });

  for (const part of poolParts)
    it(`${part}: nothing grows because of it, nothing is called unservable, and thresher says so`, async () => {
      expect(await broken(part, silent)).to.deep.equal([]);
    });

  // A pool without a negotiator matches nothing: for thresher it is unknown as well.
  for (const part of poolParts.filter((one) => one !== 'status negotiator'))
    it(`${part}: a planted violation, which takes it for none, is seen`, async () => {
      expect(await broken(part, takenForNone)).not.to.deep.equal([]);
    });
});

describe('jobs that HTCondor cannot match', () => {
  /** Looks at a pool with these jobs; of those that ask for 4 cores no question has an end. */
  function poolWith(jobs?: IdleJobs) {
    const pool = scriptedPool(undefined, silent, jobs);
    const clock = new ManualClock();
    const asked = { count: 0 };
    const withJobs = async <T>(ads: readonly AdText[], use: (laid: LaidOutJobs) => Promise<T>): Promise<T> =>
      pool.matchmaker.withJobs(ads, (laid) =>
        use({
          values: laid.values.bind(laid),
          matches: async (slot: AdText, signal: AbortSignal) => {
            asked.count++;
            if (!ads.some((ad) => ad.get('requestcpus') === '4')) return laid.matches(slot, signal);
            await clock.advance(15_000);
            throw new HTCondorError({ code: 'condor-timeout', message: 'no end', maybeDone: false });
          },
        } as unknown as LaidOutJobs),
      );
    const matchmaker = { withJobs } as unknown as Pool['matchmaker'];
    const looker = new PoolLooker({ pool: { ...pool, matchmaker }, clock, factoryId: 'f1' });
    const shape = { key: 'Q', queue: 'Q', resources: new Map(), oneJob: false, cost: 1, most: Infinity };
    const look = async () => {
      asked.count = 0;
      const found = await looker.look([{ shape, ad: 'Cpus = 8\n' }], new AbortController().signal);
      return {
        needs: found.needs.map(({ schedd, count }) => [schedd, count]),
        unknown: found.unknown.map(({ name, reason }) => `${name} ${reason.code}: ${reason.message}`),
        asked: asked.count,
      };
    };
    return look;
  }

  const endless = { requestcpus: '4' };
  /** Each a group of its own. */
  const endlessOf = (owner: string, count: number, cluster: number) =>
    Array.from({ length: count }, (_, at) =>
      idleJob({
        ...endless,
        owner,
        clusterid: `${cluster + at}`,
        autoclusterid: `${cluster + at}`,
        requestdisk: `${at}`,
      }),
    );

  it('hole 8: are left out, all others are known, and thresher says so', async () => {
    const look = poolWith();
    for (let at = 0; at < 3; at++) {
      const { needs, unknown, asked } = await look();
      expect(needs).to.deep.equal([['s1', 2]]);
      expect(unknown).to.have.length(1);
      expect(unknown[0]).to.match(/^s2 htcondor-idle-left-out: 3 waiting jobs/);
      if (at > 0) expect(asked, 'another job does not stand for them either').to.equal(0);
    }
  });

  it('hole 8: have another job of their group stand for it at the next look', async () => {
    const look = poolWith({ s1: [idleJob({ requestcpus: '1' }), idleJob({ ...endless, procid: '1' })] });
    expect(await look()).to.deep.include({ needs: [] });
    expect(await look()).to.deep.include({ needs: [['s1', 2]], unknown: [] });
  });

  it('hole 8: hide no job of the same name on another schedd', async () => {
    const plain = Array.from({ length: 5 }, (_, at) =>
      idleJob({
        owner: '"eve"',
        clusterid: `${at}`,
        autoclusterid: `${at}`,
        requestcpus: '2',
        requestdisk: `${at}`,
      }),
    );
    const look = poolWith({ s1: endlessOf('"eve"', 100, 1), s2: plain });
    const { needs, unknown } = await look();
    expect(needs).to.deep.equal(plain.map(() => ['s2', 1]));
    expect(unknown).to.have.length(1);
  });

  it('hole 8: hide no job of others in a group, where their owner has so many that no more of his are asked about', async () => {
    const shared = ['"eve"', '"ana"'].map((owner, at) =>
      idleJob({ owner, clusterid: '900', procid: `${at}`, autoclusterid: '900', requestcpus: '2' }),
    );
    const look = poolWith({ s1: [...endlessOf('"eve"', 60, 1), ...endlessOf('"ana"', 1, 500), ...shared] });
    expect(await look(), 'a job of hers stands for them').to.deep.include({ needs: [] });
    expect(await look()).to.deep.include({ needs: [['s1', 2]] });
  });
});
