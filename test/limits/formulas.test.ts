import { expect } from 'chai';
import fc from 'fast-check';
import {
  coresBound,
  type Load,
  memoryBound,
  perResourceType,
  queueLoad,
  workerBound,
} from '../../src/limits/formulas.ts';
import type { Limits } from '../../src/limits/limits.ts';
import { workerStatuses } from '../../src/worker/status.ts';

const limitsOf = (limits: Partial<Limits>): Limits => ({
  maxWorkers: 100,
  nQueueLimitWorker: 50,
  maxNewWorkersPerCycle: 0,
  ...limits,
});
const running = (workers: number, cores = workers, memory = workers * 1000): Load => ({
  workers,
  cores,
  memory,
});

/** What a queue's file says, clamped as at load: minima are no more than what they are the least of. */
const someLimits: fc.Arbitrary<Limits> = fc
  .record({
    most: fc.nat({ max: 60 }),
    ratio: fc.option(fc.nat({ max: 300 }), { nil: undefined }),
    min: fc.option(fc.nat({ max: 60 }), { nil: undefined }),
    cores: fc.option(fc.nat({ max: 200 }), { nil: undefined }),
    coresRatio: fc.option(fc.nat({ max: 300 }), { nil: undefined }),
    coresMin: fc.option(fc.nat({ max: 200 }), { nil: undefined }),
  })
  .map(({ most, ratio, min, cores, coresRatio, coresMin }) => {
    const set = {
      nQueueLimitWorkerRatio: ratio,
      nQueueLimitWorkerMin: min === undefined ? undefined : Math.min(min, most),
      nQueueLimitWorkerCores: cores,
      nQueueLimitWorkerCoresRatio: coresRatio,
      nQueueLimitWorkerCoresMin:
        coresMin === undefined || cores === undefined ? coresMin : Math.min(coresMin, cores),
    };
    const written = Object.entries(set).filter(([, value]) => value !== undefined);
    return {
      ...limitsOf({ maxWorkers: most + 10, nQueueLimitWorker: most }),
      ...Object.fromEntries(written),
    };
  });

/** The same numbers as limits of memory, MB. */
function asMemory(limits: Limits): Limits {
  const renamed = Object.entries(limits).map(([key, value]) => [
    key.replace('WorkerCores', 'WorkerMemory'),
    key.includes('WorkerCores') && !key.endsWith('Ratio') ? Number(value) * 1000 : Number(value),
  ]);
  return Object.fromEntries(renamed) as Limits;
}

/** Harvester's get_worker_limits, statement by statement. */
function harvesterWorkers(limits: Limits, nRunning: number, nTypes: number): [all: number, perType: number] {
  const { nQueueLimitWorkerRatio: ratio, nQueueLimitWorkerMin: min } = limits;
  let all = limits.nQueueLimitWorker;
  let perType = all;
  if (ratio !== undefined) {
    const byRatio = Math.trunc((nRunning * ratio) / 100);
    if (min !== undefined && byRatio < min) {
      all = Math.min(all, min);
      perType = Math.min(perType, Math.ceil(min / nTypes));
    } else {
      all = Math.min(all, byRatio);
      perType = all;
    }
  }
  return [all, perType];
}

interface ResourceLimits {
  readonly limit: number | undefined;
  readonly ratio: number | undefined;
  readonly min: number | undefined;
  readonly workersMin: number | undefined;
  /** One core, or 1000 MB. */
  readonly base: number;
}

/** The same for cores and memory; `raised` is what a minimum counts as here, where it would not hold one worker. */
function harvesterResource(
  { limit, ratio, min, workersMin, base }: ResourceLimits,
  used: number,
  raised: (min: number) => number,
): number | undefined {
  if (ratio === undefined) return limit;
  const byRatio = Math.trunc((used * ratio) / 100);
  let least = min;
  if (workersMin !== undefined) least = Math.max(min ?? workersMin * base, workersMin * base);
  const evaluated = least !== undefined && byRatio < least ? raised(least) : byRatio;
  return limit === undefined ? evaluated : Math.min(limit, evaluated);
}

describe('how many workers may be queued', () => {
  it("is what Harvester's get_worker_limits says, also for each resource type", () => {
    fc.assert(
      fc.property(someLimits, fc.nat({ max: 200 }), fc.integer({ min: 1, max: 5 }), (limits, n, types) => {
        const [all, perType] = harvesterWorkers(limits, n, types);
        expect(workerBound(limits, running(n)).atMost).to.equal(all);
        expect(perResourceType(limits, running(n), types)).to.equal(perType);
      }),
      { numRuns: 1000 },
    );
  });

  it('is never more than nQueueLimitWorker, so never more than maxWorkers', () => {
    fc.assert(
      fc.property(someLimits, fc.nat({ max: 1000 }), (limits, n) => {
        const { atMost } = workerBound(limits, running(n));
        expect(atMost).to.be.within(0, limits.nQueueLimitWorker);
        expect(atMost).to.be.at.most(limits.maxWorkers);
      }),
    );
  });

  it('a Min allows queued workers while none runs, and a Ratio alone allows none', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.nat({ max: 300 }), (min, ratio) => {
        const withMin = limitsOf({ nQueueLimitWorkerRatio: ratio, nQueueLimitWorkerMin: min });
        expect(workerBound(withMin, running(0)).atMost).to.equal(min);
        expect(perResourceType(withMin, running(0), 3)).to.be.at.least(1);
        expect(workerBound(limitsOf({ nQueueLimitWorkerRatio: ratio }), running(0)).atMost).to.equal(0);
      }),
    );
  });

  for (const [what, limits, n, bound] of [
    ['without a Ratio nQueueLimitWorker', {}, 7, { atMost: 50, name: 'nQueueLimitWorker' }],
    [
      'the share of the running',
      { nQueueLimitWorkerRatio: 30 },
      11,
      {
        atMost: 3,
        name: 'nQueueLimitWorkerRatio',
        from: '30 % of 11 running',
        startsWith: 'nQueueLimitWorkerMin',
      },
    ],
    [
      'the Min where the share is less',
      { nQueueLimitWorkerRatio: 30, nQueueLimitWorkerMin: 4 },
      11,
      { atMost: 4, name: 'nQueueLimitWorkerMin' },
    ],
    [
      'the share where it is just the Min',
      { nQueueLimitWorkerRatio: 50, nQueueLimitWorkerMin: 4 },
      8,
      {
        atMost: 4,
        name: 'nQueueLimitWorkerRatio',
        from: '50 % of 8 running',
        startsWith: 'nQueueLimitWorkerMin',
      },
    ],
    [
      'nQueueLimitWorker where the share is as much or more: then waiting for others to run is no use',
      { nQueueLimitWorkerRatio: 200 },
      25,
      { atMost: 50, name: 'nQueueLimitWorker' },
    ],
  ] as const) {
    it(`is under the name of the option that counts: ${what}`, () => {
      expect(workerBound(limitsOf(limits), running(n))).to.deep.equal(bound);
    });
  }
});

describe('how many cores and how much memory may be queued', () => {
  const perWorker = fc.constantFrom(1, 2, 8, 64);

  it('is what Harvester says, but a minimum has room for one worker', () => {
    fc.assert(
      fc.property(someLimits, fc.nat({ max: 400 }), perWorker, (limits, used, each) => {
        const raised = (min: number) => Math.max(min, each);
        const cores = {
          limit: limits.nQueueLimitWorkerCores,
          ratio: limits.nQueueLimitWorkerCoresRatio,
          min: limits.nQueueLimitWorkerCoresMin,
          workersMin: limits.nQueueLimitWorkerMin,
          base: 1,
        };
        expect(coresBound(limits, running(used), each)?.atMost).to.equal(
          harvesterResource(cores, used, raised),
        );
        const memory = asMemory(limits);
        const inMB = {
          ...cores,
          limit: memory.nQueueLimitWorkerMemory,
          min: memory.nQueueLimitWorkerMemoryMin,
          base: 1000,
        };
        const raisedMB = (min: number) => Math.max(min, each * 1000);
        expect(memoryBound(memory, running(used), each * 1000)?.atMost).to.equal(
          harvesterResource(inMB, used * 1000, raisedMB),
        );
      }),
      { numRuns: 2000 },
    );
  });

  it('is never above the static limit, however large one worker and its minimum are', () => {
    fc.assert(
      fc.property(someLimits, fc.nat({ max: 400 }), perWorker, (limits, used, each) => {
        const most = limits.nQueueLimitWorkerCores ?? Infinity;
        expect(coresBound(limits, running(used), each)?.atMost ?? 0).to.be.at.most(most);
      }),
    );
  });

  it('any Min leaves room for one worker while none runs', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.boolean(), perWorker, (min, ofWorkers, each) => {
        const ratios = { nQueueLimitWorkerCoresRatio: 20, nQueueLimitWorkerMemoryRatio: 20 };
        const mins = ofWorkers
          ? { nQueueLimitWorkerMin: min }
          : { nQueueLimitWorkerCoresMin: min, nQueueLimitWorkerMemoryMin: min };
        const limits = limitsOf({ ...ratios, ...mins });
        expect(coresBound(limits, running(0), each)?.atMost).to.be.at.least(each);
        expect(memoryBound(limits, running(0), each * 2000)?.atMost).to.be.at.least(each * 2000);
      }),
    );
  });

  const cores = { nQueueLimitWorkerCores: 64 };
  const ratio = { nQueueLimitWorkerCoresRatio: 50 };
  for (const [what, limits, used, each, bound] of [
    ['nothing where nothing is said', {}, 100, 8, undefined],
    ['nothing where only a minimum is said', { nQueueLimitWorkerCoresMin: 8 }, 100, 8, undefined],
    ['the limit alone', cores, 100, 8, { atMost: 64, name: 'nQueueLimitWorkerCores' }],
    [
      'the share of the running',
      { ...cores, ...ratio },
      101,
      8,
      {
        atMost: 50,
        name: 'nQueueLimitWorkerCoresRatio',
        from: '50 % of 101 running',
        startsWith: 'nQueueLimitWorkerCoresMin',
      },
    ],
    [
      'the limit where the share is more',
      { ...cores, ...ratio },
      200,
      8,
      { atMost: 64, name: 'nQueueLimitWorkerCores' },
    ],
    [
      'its own minimum',
      { ...ratio, nQueueLimitWorkerCoresMin: 16, nQueueLimitWorkerMin: 4 },
      10,
      8,
      { atMost: 16, name: 'nQueueLimitWorkerCoresMin' },
    ],
    [
      'the minimum of workers where it comes to more: there may be no other in the file',
      { ...ratio, nQueueLimitWorkerMin: 12 },
      10,
      8,
      { atMost: 12, name: 'nQueueLimitWorkerMin', from: '1 core each' },
    ],
    [
      'a minimum that would not hold one worker',
      { ...ratio, nQueueLimitWorkerMin: 4 },
      2,
      8,
      { atMost: 8, name: 'nQueueLimitWorkerMin', from: 'raised to the size of one worker' },
    ],
    [
      'no minimum above the limit, though it would not hold one worker',
      { nQueueLimitWorkerCores: 4, ...ratio, nQueueLimitWorkerCoresMin: 4 },
      0,
      8,
      { atMost: 4, name: 'nQueueLimitWorkerCores' },
    ],
  ] as const) {
    it(`is under the name of the option that counts: ${what}`, () => {
      expect(coresBound(limitsOf(limits), running(0, used), each)).to.deep.equal(bound);
    });
  }

  it('counts 1000 MB for each worker of nQueueLimitWorkerMin', () => {
    const limits = limitsOf({ nQueueLimitWorkerMemoryRatio: 10, nQueueLimitWorkerMin: 3 });
    expect(memoryBound(limits, running(2), 2000)).to.deep.equal({
      atMost: 3000,
      name: 'nQueueLimitWorkerMin',
      from: '1000 MB each',
    });
  });
});

describe('the load of a queue', () => {
  it('counts pending, submitted and idle as queued, running as running, and all of them as alive', () => {
    const statuses = workerStatuses.filter((status) =>
      ['pending', 'submitted', 'idle', 'ready', 'running'].includes(status),
    );
    const counts = statuses.map((status, index) => ({
      status,
      workers: 10 ** index,
      cores: 2 * 10 ** index,
      memory: 3 * 10 ** index,
    }));
    const sum = (...of: string[]) => {
      const workers = counts
        .filter(({ status }) => of.includes(status))
        .reduce((all, one) => all + one.workers, 0);
      return { workers, cores: workers * 2, memory: workers * 3 };
    };
    expect(queueLoad(counts)).to.deep.equal({
      queued: sum('pending', 'submitted', 'idle'),
      running: sum('running'),
      alive: sum('pending', 'submitted', 'idle', 'ready', 'running'),
    });
    expect(queueLoad([]).alive).to.deep.equal({ workers: 0, cores: 0, memory: 0 });
  });
});
