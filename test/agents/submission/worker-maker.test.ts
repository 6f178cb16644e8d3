import { expect } from 'chai';
import fc from 'fast-check';
import {
  coreFactor,
  drawPilotType,
  makeWorker,
  requirementsOf,
  scaleDemand,
} from '../../../src/agents/submission/worker-maker.ts';
import { QueueOptions, type WorkerOptions } from '../../../src/config/queues/queue-schema.ts';
import type { QueueConfig } from '../../../src/config/queues/queues.ts';
import { computingSiteOf } from '../../../src/worker/identity.ts';
import { check } from '../../../src/util/schema.ts';
import { requirements } from '../../support/samples.ts';

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
      nCore: 1,
      minRamCount: 0,
      maxDiskCount: 0,
      maxWalltime: 0,
      resourceType: 'SCORE',
      jobType: 'managed',
      pilotType: 'PR',
      prodSourceLabel: 'managed',
    });
  });

  it('comes from the options of its submitter', () => {
    const submitter = { nCore: 8, minRamCount: 16_000, maxWalltime: 3600 };
    expect(requirementsOf(configOf(submitter, 'Q', { prodSourceLabel: 'user' }))).to.include({
      nCore: 8,
      minRamCount: 16_000,
      maxWalltime: 3600,
      maxDiskCount: 0,
      resourceType: 'MCORE',
      prodSourceLabel: 'user',
    });
  });

  for (const [what, worker, nCore] of [
    ['nCore', { nCore: 4, nCorePerNode: 16 }, 4],
    ['nCorePerNode where nCore is -1, as in production files', { nCore: -1, nCorePerNode: 16 }, 16],
    ['nCorePerNode where nCore is 0', { nCore: 0, nCorePerNode: 16 }, 16],
    ['nCorePerNode where nothing else is said', { nCorePerNode: 2 }, 2],
    ['1 where both say nothing', { nCore: -1, nCorePerNode: 0 }, 1],
  ] as const) {
    it(`has as many cores as ${what} says`, () => {
      expect(requirementsOf(configOf(worker))).to.include({
        nCore,
        resourceType: nCore === 1 ? 'SCORE' : 'MCORE',
      });
    });
  }

  for (const [worker, written, maxWalltime] of [
    [{ maxWalltime: 3600 }, { walltimeLimit: 7200 }, 3600],
    [{ maxWalltime: 0 }, { walltimeLimit: 7200 }, 0],
    [{}, { walltimeLimit: 7200 }, 0],
    [{}, {}, 0],
  ] as const) {
    it(`has ${maxWalltime} s where its submitter says ${JSON.stringify(worker)} and the queue ${JSON.stringify(written)}`, () => {
      expect(requirementsOf(configOf(worker, 'Q', written)).maxWalltime).to.equal(maxWalltime);
    });
  }
});

describe('how many jobs one worker takes', () => {
  const byType = { managed: { SCORE: 2, Undefined: 3 }, Any: { SCORE: 4, Undefined: 5 } };
  for (const [what, nCoreFactor, jobType, resourceType, factor] of [
    ['1 where nothing is said', undefined, 'managed', 'SCORE', 1],
    ['the number', 8, 'managed', 'MCORE', 8],
    ['that of its job and resource type', byType, 'managed', 'SCORE', 2],
    ['that of Undefined for a resource type that is not named', byType, 'managed', 'MCORE', 3],
    ['that of Any for a job type that is not named', byType, 'user', 'SCORE', 4],
    ['that of Any and Undefined', byType, 'user', 'MCORE', 5],
    ['1 for a job type that is not named, without Any', { managed: { SCORE: 2 } }, 'user', 'SCORE', 1],
    ['1 for a resource type that is not named, without Undefined', { Any: { SCORE: 2 } }, 'user', 'MCORE', 1],
  ] as const) {
    it(`is ${what}`, () => {
      const worker = nCoreFactor === undefined ? {} : { nCoreFactor };
      expect(coreFactor(worker, { jobType, resourceType })).to.equal(factor);
    });
  }

  it('divides the demand, which never vanishes by that and never grows', () => {
    const counts = fc.oneof(fc.nat({ max: 1000 }), fc.constant(Infinity));
    fc.assert(
      fc.property(counts, fc.integer({ min: 1, max: 64 }), (count, nCoreFactor) => {
        const [group] = scaleDemand([{ requirements, count }], { nCoreFactor });
        const scaled = group!.count;
        if (count === 0 || count === Infinity) expect(scaled).to.equal(count);
        else expect(scaled).to.equal(Math.max(1, Math.trunc(count / nCoreFactor)));
        expect(group!.requirements).to.equal(requirements);
      }),
    );
  });
});

describe('the pilot type of a worker', () => {
  /** How often each type comes when chance takes each of `steps` evenly spread values once. */
  function counts(config: QueueConfig, steps = 1000): Record<string, number> {
    const drawn: Record<string, number> = {};
    for (let step = 0; step < steps; step++) {
      const pilotType = drawPilotType(config, () => (step + 0.5) / steps);
      drawn[pilotType] = (drawn[pilotType] ?? 0) + 1;
    }
    return drawn;
  }
  const byLabel = (prodSourceLabelRandomWeightsPermille: Record<string, number>) =>
    configOf({}, 'Q', { prodSourceLabelRandomWeightsPermille });

  it('is PR where no weights are given', () => {
    expect(counts(configOf({}))).to.deep.equal({ PR: 1000 });
    expect(counts(byLabel({}))).to.deep.equal({ PR: 1000 });
  });

  it('comes as often as its weight in 1000, and the rest is PR', () => {
    expect(counts(byLabel({ rc_test: 10, rc_alrb: 25, ptest: 0 }))).to.deep.equal({
      RC: 10,
      ALRB: 25,
      PR: 965,
    });
    expect(counts(byLabel({ rc_test: 1000 }))).to.deep.equal({ RC: 1000 });
  });

  it('comes as often as its part of the sum where that is above 1000', () => {
    expect(counts(byLabel({ rc_test: 3000, ptest: 1000 }))).to.deep.equal({ RC: 750, PT: 250 });
  });

  it('comes by the label of the jobs', () => {
    const labels = { rc_test: 100, rc_test2: 200, rc_alrb: 50, ptest: 30, managed: 20 };
    expect(counts(byLabel(labels))).to.deep.equal({ RC: 300, ALRB: 50, PT: 30, PR: 620 });
  });

  it('does not come from weights of the worker maker, as in Harvester since 2019', () => {
    const workerMaker = { pilotTypeRandomWeightsPermille: { PT: 900 } };
    expect(counts({ ...configOf({}), workerMaker })).to.deep.equal({ PR: 1000 });
  });

  it('is drawn as often as any weights say, to one in a thousand', () => {
    const weights = fc.record({ rc_test2: fc.nat(900), rc_alrb: fc.nat(900), ptest: fc.nat(900) });
    const typeOf = { rc_test2: 'RC', rc_alrb: 'ALRB', ptest: 'PT' };
    fc.assert(
      fc.property(weights, (given) => {
        const all = Math.max(1000, given.rc_test2 + given.rc_alrb + given.ptest);
        const drawn = counts(byLabel(given));
        for (const [label, pilotType] of Object.entries(typeOf)) {
          const weight = given[label as keyof typeof given];
          expect(drawn[pilotType] ?? 0).to.be.closeTo((weight * 1000) / all, 1);
        }
      }),
      { numRuns: 50 },
    );
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
      workerId: 17,
      name: 'thresher-1-17',
      queue: 'CERN_PROD/MCORE',
      computingSite: 'CERN_PROD',
      origin: { kind: 'fill', uid: 'CERN_PROD/MCORE', index: 17 },
      requirements,
      placement: 'local:/pilots',
      configId: 4,
      attempt: 1,
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
      workerID: 17,
      harvesterID: 'cern',
      computingSite: 'CERN_PROD',
      siteName: 'CERN_PROD',
      queueName: 'CERN_PROD/MCORE',
      ...requirements,
    });
  });
});
