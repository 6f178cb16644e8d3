import { expect } from 'chai';
import fc from 'fast-check';
import { clampLimits } from '../../src/config/limits.ts';
import { QueueOptions } from '../../src/config/queue-schema.ts';
import { check } from '../../src/util/schema.ts';

type Written = Partial<
  Record<'maxWorkers' | 'nQueueLimitWorker' | 'nQueueLimitWorkerMax' | 'maxNewWorkersPerCycle', number>
>;

/** The limits of a queue that says this and nothing else. */
function clamp(written: Written) {
  const checked = check(QueueOptions, written);
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return clampLimits(checked.value);
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

  for (const wrong of ['10', 1.5, null, true]) {
    it(`are no ${JSON.stringify(wrong)}: that is an error, not unset`, () => {
      expect(check(QueueOptions, { maxWorkers: wrong }).ok).to.equal(false);
    });
  }
});
