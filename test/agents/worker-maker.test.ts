import { expect } from 'chai';
import { makeWorker, requirementsOf } from '../../src/agents/worker-maker.ts';
import { QueueOptions, type WorkerOptions } from '../../src/config/queue-schema.ts';
import { computingSiteOf, type QueueConfig } from '../../src/config/queues.ts';
import { check } from '../../src/util/schema.ts';
import { requirements } from '../support/samples.ts';

function configOf(worker: WorkerOptions, name = 'CERN_PROD', written = {}): QueueConfig {
  const options = check(QueueOptions, written);
  if (!options.ok) throw new Error(JSON.stringify(options.problems));
  return {
    name,
    options: options.value,
    limits: { maxWorkers: 1, nQueueLimitWorker: 1, maxNewWorkersPerCycle: 0 },
    demand: 'fill',
    configDir: '/etc',
    worker,
    workerMaker: {},
    plugins: {},
  };
}

describe('what a worker of a queue is like', () => {
  it('is one core and nothing else said, by default', () => {
    expect(requirementsOf(configOf({}))).to.deep.equal({
      ...{ nCore: 1, minRamCount: 0, maxDiskCount: 0, maxWalltime: 0, resourceType: 'SCORE' },
      ...{ jobType: 'managed', pilotType: 'PR', prodSourceLabel: 'managed' },
    });
  });

  it('comes from the options of its submitter', () => {
    const submitter = { nCore: 8, minRamCount: 16_000, maxWalltime: 3600 };
    expect(requirementsOf(configOf(submitter, 'Q', { prodSourceLabel: 'user' }))).to.include({
      ...{ nCore: 8, minRamCount: 16_000, maxWalltime: 3600, maxDiskCount: 0 },
      ...{ resourceType: 'MCORE', prodSourceLabel: 'user' },
    });
  });
});

describe('the site of a queue', () => {
  it('is what stands before the slash', () => {
    expect(computingSiteOf('CERN_PROD/MCORE')).to.equal('CERN_PROD');
    expect(computingSiteOf('CERN_PROD')).to.equal('CERN_PROD');
  });
});

describe('an intent', () => {
  const make = {
    factoryId: 'thresher-1',
    harvesterId: 'cern',
    config: configOf({}, 'CERN_PROD/MCORE'),
    configId: 4,
    placement: 'local:/pilots',
    originKind: 'fill',
    requirements,
    messenger: undefined,
  };

  it('has in it all that the worker will ever need to know of itself', () => {
    expect(makeWorker(17, make)).to.deep.equal({
      ...{ workerId: 17, name: 'thresher-1-17', queue: 'CERN_PROD/MCORE', computingSite: 'CERN_PROD' },
      origin: { kind: 'fill', uid: 'CERN_PROD/MCORE', index: 17 },
      ...{ requirements, placement: 'local:/pilots', configId: 4, attempt: 1 },
    });
  });

  it('has the access point that its messenger makes of its attributes', () => {
    let asked: Readonly<Record<string, string | number>> = {};
    const messenger = {
      accessPointOf: (values: Readonly<Record<string, string | number>>) => {
        asked = values;
        return '/data/17';
      },
      setUp: async () => new Map(),
      remove: async () => undefined,
    };
    expect(makeWorker(17, { ...make, messenger }).accessPoint).to.equal('/data/17');
    expect(asked).to.deep.equal({
      ...{ workerID: 17, harvesterID: 'cern', computingSite: 'CERN_PROD', siteName: 'CERN_PROD' },
      ...{ queueName: 'CERN_PROD/MCORE', ...requirements },
    });
  });
});
