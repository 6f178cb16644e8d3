import { expect } from 'chai';
import fc from 'fast-check';
import { applyLimits, caps, total } from '../../../src/limits/limiters.ts';
import { requirementsOf } from '../../../src/agents/submission/worker-maker.ts';
import { demandOf, whyStanding } from '../../../src/config/queues/demand.ts';
import type { PandaServer } from '../../../src/plugins/contracts/index.ts';
import { builtInSources, defineSource, noOptions } from '../../../src/plugins/contracts/source.ts';
import { noLoad } from '../../../src/limits/formulas.ts';
import { clampLimits } from '../../../src/config/queues/limits.ts';
import { QueueOptions, type WorkerOptions } from '../../../src/config/queues/queue-schema.ts';
import { FillSource } from '../../../src/sources/fill/index.ts';
import { NoneSource } from '../../../src/sources/none/index.ts';
import { PandaSource } from '../../../src/sources/panda/index.ts';
import { check } from '../../../src/util/schema.ts';

const choice = { module: 'thresher/sources', config: {} };
const sources = { fill: { definition: FillSource, choice }, none: { definition: NoneSource, choice } };

type Written = Partial<Record<string, number>>;

function read(written: Written) {
  const checked = check(QueueOptions, { mapType: 'NoJob', ...written });
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return { options: checked.value, limits: clampLimits(checked.value) };
}

function why(written: Written, worker: WorkerOptions = {}): string | undefined {
  const { options, limits } = read(written);
  return whyStanding(options, limits, sources.fill, worker)[0];
}

/** How many the daemon would submit at first, when it asks its limiters. */
function first(written: Written, worker: WorkerOptions): number {
  const { options, limits } = read(written);
  const config = { name: 'Q', options, limits, worker, workerMaker: {}, demand: 'fill' };
  const requirements = requirementsOf({ ...config, configDir: '/', plugins: {} });
  const state = {
    limits,
    requirements,
    queueStatus: 'online',
    control: undefined,
    closed: undefined,
    credential: undefined,
    maxNewWorkers: 1000,
    madeInCycle: 0,
    queuedByType: new Map<string, number>(),
    load: { queued: noLoad, running: noLoad, alive: noLoad },
    wantedTypes: [requirements.resourceType],
  };
  const groups = [{ count: Infinity, requirements }];
  return total(
    applyLimits(
      groups,
      caps.map((cap) => cap(state)),
    ).groups,
  );
}

describe('why a queue stands still', () => {
  const some = { maxWorkers: 10 };
  const none = 'nothing starts from none unless';
  for (const [written, worker, expected] of [
    [{}, {}, 'maxWorkers is not set, which counts as 0: set it to how many may be alive'],
    [{ maxWorkers: 0 }, {}, 'maxWorkers is 0: set it above 0'],
    [{ maxWorkers: -5 }, {}, 'maxWorkers is -5, which counts as 0: set it above 0'],
    [{ ...some, nQueueLimitWorker: 0 }, {}, 'nQueueLimitWorker is 0: set it above 0'],
    [{ ...some, nQueueLimitWorker: -1 }, {}, 'nQueueLimitWorker is -1, which counts as 0: set it above 0'],
    [{ ...some, nQueueLimitWorkerMax: 0 }, {}, 'nQueueLimitWorkerMax is 0: set it above 0'],
    [
      { ...some, nQueueLimitWorkerRatio: 50 },
      {},
      `nQueueLimitWorkerRatio gives 0 (50 % of 0 running): ${none} nQueueLimitWorkerMin is above 0`,
    ],
    [
      { ...some, nQueueLimitWorkerRatio: 50, nQueueLimitWorkerMin: 0 },
      {},
      `nQueueLimitWorkerRatio gives 0 (50 % of 0 running): ${none} nQueueLimitWorkerMin is above 0`,
    ],
    [{ ...some, nQueueLimitWorkerRatio: 50, nQueueLimitWorkerMin: 1 }, {}, undefined],
    [
      { ...some, nQueueLimitWorkerCoresRatio: 30 },
      {},
      `nQueueLimitWorkerCoresRatio gives 0 (30 % of 0 running): ${none} nQueueLimitWorkerCoresMin is above 0`,
    ],
    [{ ...some, nQueueLimitWorkerCoresRatio: 30, nQueueLimitWorkerCoresMin: 1 }, { nCore: 8 }, undefined],
    [{ ...some, nQueueLimitWorkerCores: 0 }, {}, 'nQueueLimitWorkerCores is 0: set it above 0'],
    [
      { ...some, nQueueLimitWorkerCores: 4 },
      { nCore: 8 },
      'nQueueLimitWorkerCores is 4, and one worker takes 8 cores: set it to 8 or more',
    ],
    [{ ...some, nQueueLimitWorkerCores: 8 }, { nCore: 8 }, undefined],
    [
      { ...some, nQueueLimitWorkerMemory: 0 },
      { minRamCount: 2000 },
      'nQueueLimitWorkerMemory is 0: set it to 2000 or more',
    ],
    [{ ...some, nQueueLimitWorkerMemory: 500 }, {}, undefined],
    [
      { ...some, nQueueLimitWorkerMemory: 500 },
      { minRamCount: 2000 },
      'nQueueLimitWorkerMemory is 500, and one worker takes 2000 MB: set it to 2000 or more',
    ],
  ] as const) {
    it(`a queue with ${JSON.stringify(written)} and workers of ${JSON.stringify(worker)} says: ${expected ?? 'nothing'}`, () => {
      expect(why(written, worker)).to.equal(expected);
    });
  }

  it('a push queue that is offline, slave and without demand says all but the demand, which setting alone would not help', () => {
    const { options, limits } = read({});
    const queue = { ...options, queueStatus: 'offline', mapType: 'OneToOne', runMode: 'slave' } as const;
    const reasons = whyStanding(queue, limits, sources.none, {});
    expect(reasons.map((reason) => reason.split(':')[0])).to.deep.equal([
      'queueStatus is offline',
      'mapType is OneToOne',
      'runMode is slave',
      'maxWorkers is not set, which counts as 0',
    ]);
  });

  it('each reason names the option to set and its value', () => {
    const { options, limits } = read({});
    const queue = { ...options, queueStatus: 'offline', mapType: 'OneToOne', runMode: 'slave' } as const;
    const remedies = ['set it to "online"', 'set it to "NoJob"', 'set runMode to "self"'];
    for (const [index, reason] of whyStanding(queue, limits, sources.none, {}).slice(0, 3).entries())
      expect(reason).to.contain(remedies[index]);
    expect(whyStanding(options, limits, sources.none, {})[0]).to.contain('set demand to "fill"');
  });

  it('is said where the limits of the daemon would start nothing from none, and nowhere else', () => {
    const number = fc.integer({ min: -1, max: 12 });
    const keys = Object.keys(QueueOptions.properties).filter((key) => /^(maxWorkers$|nQueueLimit)/.test(key));
    const written = fc.record(Object.fromEntries(keys.map((key) => [key, number])), {
      requiredKeys: ['maxWorkers'],
    });
    const worker = fc.record({ nCore: number, minRamCount: fc.nat({ max: 12 }) }, { requiredKeys: [] });
    fc.assert(
      fc.property(written, worker, (limits, each) => {
        expect(why(limits, each) === undefined).to.equal(first(limits, each) > 0);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the source of a queue', () => {
  const server: PandaServer = {
    url: 'https://panda.example.org:25443/api/v1',
    login: { kind: 'x509', certFile: '/proxy', keyFile: '/proxy' },
    timeout: 1000,
  };
  const Linked = defineSource({
    name: 'linked',
    module: builtInSources,
    config: noOptions,
    takes: ({ runMode, mapType }, at) => at !== undefined && (runMode === 'slave' || mapType === 'NoJob'),
    create: () => ({ wanted: async () => ({ requests: [], groups: [], reasons: [] }) }),
  });
  const ofServer = { sources: [FillSource, NoneSource, PandaSource] };
  const catalogue = { sources: [FillSource, NoneSource, Linked] };
  const local = { name: 'LocalSubmitter', defaultDemand: 'fill' };
  const remote = { name: 'K8sSubmitter', defaultDemand: undefined };
  const slave = { mapType: 'NoJob', runMode: 'slave' } as const;
  const self = { mapType: 'NoJob', runMode: 'self' } as const;
  const unsaid = 'neither the queue (demand) nor submitter.defaultDemand says otherwise';
  const taken = `and the settings name the PanDA server ${server.url}`;

  const chosen = (
    options: Parameters<typeof demandOf>[0],
    at: PandaServer | undefined,
    submitter = remote as Parameters<typeof demandOf>[2],
    defaultDemand?: string,
  ) => demandOf(options, defaultDemand, submitter, catalogue, at);

  it('is one that takes it, with a server', () => {
    for (const options of [slave, self])
      expect(chosen(options, server)).to.deep.equal({
        demand: 'linked',
        why: `runMode is ${options.runMode} and mapType NoJob, ${taken}`,
      });
  });

  it('is the usual one without a server', () => {
    expect(chosen(slave, undefined)).to.deep.equal({ demand: 'none', why: unsaid });
  });

  it('is no default of its backend that would never serve it, where another takes it', () => {
    expect(chosen(slave, server, local).demand).to.equal('linked');
    const ofBackend = { demand: 'fill', why: 'the default of LocalSubmitter' };
    expect(chosen(slave, undefined, local)).to.deep.equal(ofBackend);
    expect(chosen(self, server, local)).to.deep.equal(ofBackend);
  });

  it('is that of the server before a default of the backend, with the link and without', () => {
    expect(demandOf(self, undefined, local, ofServer, server).demand).to.equal('panda');
    for (const options of [self, slave])
      for (const submitter of [local, remote])
        expect(demandOf(options, undefined, submitter, ofServer, 'off')).to.deep.equal({
          demand: 'none',
          why: 'the link to the PanDA server is off: see the problem of pandacon',
        });
    const push = { mapType: 'OneToOne', runMode: 'self' } as const;
    for (const at of [server, 'off'] as const)
      expect(demandOf(push, undefined, local, ofServer, at).demand).to.equal('fill');
    expect(demandOf({ ...self, demand: 'fill' }, undefined, local, ofServer, 'off').demand).to.equal('fill');
  });

  it('is first of all the one that a file names', () => {
    expect(chosen({ ...slave, demand: 'none' }, server, remote, 'fill').why).to.equal('the queue says so');
    expect(chosen(slave, server, remote, 'none')).to.deep.equal({
      demand: 'none',
      why: 'submitter.defaultDemand says so',
    });
  });
});
