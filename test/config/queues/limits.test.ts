import { expect } from 'chai';
import fc from 'fast-check';
import { clampLimits } from '../../../src/config/queues/limits.ts';
import { QueueOptions } from '../../../src/config/queues/queue-schema.ts';
import { check } from '../../../src/util/schema.ts';

const allLimits = [
  ...(['maxWorkers', 'nQueueLimitWorker', 'nQueueLimitWorkerMax', 'maxNewWorkersPerCycle'] as const),
  ...(['nQueueLimitWorkerRatio', 'nQueueLimitWorkerMin'] as const),
  ...(['nQueueLimitWorkerCores', 'nQueueLimitWorkerCoresRatio', 'nQueueLimitWorkerCoresMin'] as const),
  ...(['nQueueLimitWorkerMemory', 'nQueueLimitWorkerMemoryRatio', 'nQueueLimitWorkerMemoryMin'] as const),
];
type Written = Partial<Record<(typeof allLimits)[number], number>> & { mapType?: string };

/** The limits of a queue that says this and nothing else. */
function clamp(written: Written) {
  const checked = check(QueueOptions, written);
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return clampLimits(checked.value);
}

/**
 * The rules as they stand in Harvester's queue_config_mapper, step by step and in its order. Two things are said otherwise
 * and mean the same: nQueueLimitWorker unset is maxWorkers there at the time of use, and Max is not needed afterwards.
 */
function asHarvester({ mapType = 'OneToOne', ...written }: Written): Record<string, number> {
  const queue: Record<string, number> = { ...written };
  const has = (key: string): boolean => queue[key] !== undefined;
  const lower = (key: string, ...bounds: string[]) => {
    queue[key] = Math.min(...[key, ...bounds].map((bound) => queue[bound]!));
  };
  if (mapType !== 'NoJob') {
    delete queue.nQueueLimitWorkerRatio;
    delete queue.nQueueLimitWorkerMin;
  }
  for (const key of Object.keys(queue)) if (queue[key]! < 0) queue[key] = 0;
  if (!has('maxWorkers')) queue.maxWorkers = 0;
  if (has('nQueueLimitWorker') && has('nQueueLimitWorkerMax')) {
    lower('nQueueLimitWorker', 'nQueueLimitWorkerMax', 'maxWorkers');
  } else if (has('nQueueLimitWorker')) {
    lower('nQueueLimitWorker', 'maxWorkers');
  } else if (has('nQueueLimitWorkerMax')) {
    lower('nQueueLimitWorkerMax', 'maxWorkers');
    queue.nQueueLimitWorker = queue.nQueueLimitWorkerMax!;
  }
  delete queue.nQueueLimitWorkerMax;
  if (!has('nQueueLimitWorker')) queue.nQueueLimitWorker = queue.maxWorkers!;
  if (has('nQueueLimitWorkerMin')) lower('nQueueLimitWorkerMin', 'nQueueLimitWorker', 'maxWorkers');
  for (const what of ['nQueueLimitWorkerCores', 'nQueueLimitWorkerMemory']) {
    if (has(`${what}Min`) && has(what)) lower(`${what}Min`, what);
  }
  return { maxNewWorkersPerCycle: 0, ...queue };
}

describe('the limits of a queue', () => {
  const limit = fc.integer({ min: -5, max: 2000 });
  const some = fc.record(
    {
      maxWorkers: limit,
      nQueueLimitWorker: limit,
      nQueueLimitWorkerMax: limit,
      maxNewWorkersPerCycle: limit,
    },
    { requiredKeys: [] },
  );

  it('are integers of at least 0, and nothing is queued beyond maxWorkers', () => {
    fc.assert(
      fc.property(some, (written) => {
        const limits = clamp(written);
        for (const value of Object.values(limits)) {
          expect(Number.isInteger(value)).to.equal(true);
          expect(value).to.be.at.least(0);
        }
        expect(limits.nQueueLimitWorker).to.be.at.most(limits.maxWorkers);
      }),
    );
  });

  it('below 0 count as 0', () => {
    fc.assert(
      fc.property(some, (written) => {
        const raised = Object.fromEntries(
          Object.entries(written).map(([key, value]) => [key, Math.max(0, value)]),
        );
        expect(clamp(written)).to.deep.equal(clamp(raised));
      }),
    );
  });

  it('start nothing while maxWorkers is unset', () => {
    fc.assert(
      fc.property(limit, limit, (nQueueLimitWorker, nQueueLimitWorkerMax) => {
        expect(clamp({ nQueueLimitWorker, nQueueLimitWorkerMax })).to.include({
          maxWorkers: 0,
          nQueueLimitWorker: 0,
        });
      }),
    );
  });

  const natural = fc.nat({ max: 2000 });

  it('queue at most the least of nQueueLimitWorker, its Max and maxWorkers where all are set', () => {
    fc.assert(
      fc.property(natural, natural, natural, (maxWorkers, nQueueLimitWorker, nQueueLimitWorkerMax) => {
        const { nQueueLimitWorker: queued } = clamp({ maxWorkers, nQueueLimitWorker, nQueueLimitWorkerMax });
        expect(queued).to.equal(
          [maxWorkers, nQueueLimitWorker, nQueueLimitWorkerMax].sort((a, b) => a - b)[0],
        );
      }),
    );
  });

  it('take nQueueLimitWorkerMax alone for nQueueLimitWorker', () => {
    fc.assert(
      fc.property(natural, natural, (maxWorkers, bound) => {
        const alone = clamp({ maxWorkers, nQueueLimitWorkerMax: bound });
        expect(alone).to.deep.equal(clamp({ maxWorkers, nQueueLimitWorker: bound }));
        expect(alone.nQueueLimitWorker).to.equal(bound < maxWorkers ? bound : maxWorkers);
      }),
    );
  });

  it('queue up to maxWorkers where nothing else is said', () => {
    expect(clamp({ maxWorkers: 7 })).to.deep.equal({
      maxWorkers: 7,
      nQueueLimitWorker: 7,
      maxNewWorkersPerCycle: 0,
    });
  });

  it('leave maxNewWorkersPerCycle to itself: it may be above maxWorkers', () => {
    expect(clamp({ maxWorkers: 2, maxNewWorkersPerCycle: 50 }).maxNewWorkersPerCycle).to.equal(50);
    expect(clamp({ maxNewWorkersPerCycle: -1 }).maxNewWorkersPerCycle).to.equal(0);
  });

  it('are what Harvester makes of them, for every form of every option', () => {
    const forms = fc.oneof(fc.integer({ min: -3, max: 12 }), fc.constant(undefined));
    const record = Object.fromEntries(allLimits.map((key) => [key, forms]));
    const mapType = fc.constantFrom('NoJob', 'OneToOne', 'ManyToOne', 'OneToMany');
    fc.assert(
      fc.property(fc.record(record), mapType, (values, type) => {
        const set = Object.entries(values).filter(([, value]) => value !== undefined);
        const written = { ...(Object.fromEntries(set) as Written), mapType: type };
        expect(clamp(written)).to.deep.equal(asHarvester(written));
      }),
      { numRuns: 2000 },
    );
  });

  it('have no ratio and no minimum of workers where workers are pushed, and all others', () => {
    const written = Object.fromEntries(allLimits.map((key) => [key, 5]));
    expect(clamp({ ...written, mapType: 'OneToOne' })).to.not.have.any.keys(
      'nQueueLimitWorkerRatio',
      'nQueueLimitWorkerMin',
    );
    expect(clamp({ ...written, mapType: 'OneToOne' })).to.include({ nQueueLimitWorkerCoresRatio: 5 });
    expect(clamp({ ...written, mapType: 'NoJob' })).to.include({
      nQueueLimitWorkerRatio: 5,
      nQueueLimitWorkerMin: 5,
    });
  });

  it('unset limits are no keys, so that equal queues have equal snapshots', () => {
    expect(Object.keys(clamp({ maxWorkers: 3 }))).to.have.members([
      ...['maxWorkers', 'nQueueLimitWorker', 'maxNewWorkersPerCycle'],
    ]);
  });

  for (const wrong of ['10', 1.5, null, true]) {
    it(`are no ${JSON.stringify(wrong)}: that is an error, not unset`, () => {
      expect(check(QueueOptions, { maxWorkers: wrong }).ok).to.equal(false);
    });
  }
});
