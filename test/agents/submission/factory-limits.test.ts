import { expect } from 'chai';
import { FactoryLimits } from '../../../src/agents/submission/factory-limits.ts';
import { configOf } from '../../support/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';

describe('what queues share of limits', () => {
  let clock: ManualClock;
  let limits: FactoryLimits;

  beforeEach(() => {
    clock = new ManualClock();
    limits = new FactoryLimits(undefined, 100, clock);
  });

  it('is no bucket where no rate is set, and one for all where one is', () => {
    expect(limits.bucket).to.equal(undefined);
    expect(limits.queueBucket(configOf('A', {}))).to.equal(undefined);
    expect(new FactoryLimits(2, 5, clock).bucket).to.include({ rate: 2, burst: 5 });
  });

  it('is a bucket for each queue, which outlives a reload that leaves its rate', async () => {
    const a = configOf('A', { submissionRate: 1, submissionBurst: 5 });
    const bucket = limits.queueBucket(a)!;
    await clock.advance(4000);
    bucket.take(3);
    limits.configure([configOf('A', { submissionRate: 1, submissionBurst: 5, maxWorkers: 7 })]);
    expect(limits.queueBucket(configOf('A', { submissionRate: 1, submissionBurst: 5 }))?.available).to.equal(
      1,
    );
    expect(limits.queueBucket(configOf('B', { submissionRate: 1, submissionBurst: 5 }))).to.not.equal(bucket);
  });

  it('forgets a queue that is no longer there: one that comes back starts anew', () => {
    const a = configOf('A', { submissionRate: 1, submissionBurst: 5 });
    const bucket = limits.queueBucket(a);
    const memory = limits.memory('A');
    limits.configure([a]);
    expect(limits.memory('A')).to.equal(memory);
    limits.configure([]);
    limits.configure([a]);
    expect(limits.memory('A')).to.not.equal(memory);
    expect(limits.queueBucket(a)).to.not.equal(bucket);
  });

  for (const [what, options] of [
    ['rate', { submissionRate: 2, submissionBurst: 5 }],
    ['burst', { submissionRate: 1, submissionBurst: 6 }],
  ] as const) {
    it(`begins an empty bucket where the ${what} was changed`, async () => {
      limits.queueBucket(configOf('A', { submissionRate: 1, submissionBurst: 5 }));
      await clock.advance(60_000);
      expect(limits.queueBucket(configOf('A', options))?.available).to.equal(0);
    });
  }

  it('keeps the bucket of a queue whose rate is taken away and put back: that is no way around it', () => {
    const rated = configOf('A', { submissionRate: 1 });
    const bucket = limits.queueBucket(rated)!;
    bucket.take(50);
    expect(limits.queueBucket(configOf('A', {}))).to.equal(undefined);
    expect(limits.queueBucket(rated)).to.equal(bucket);
  });

  it('is a family: the queues that name it, or else the queues of a site', () => {
    const names = (family: string) => limits.family(family).map(({ name }) => name);
    limits.configure([
      configOf('CERN/A', {}),
      configOf('CERN/B', { siteFamily: 'SWISS' }),
      configOf('CERN', {}),
      configOf('BERN', { siteFamily: 'SWISS' }),
    ]);
    expect(names('CERN')).to.deep.equal(['CERN/A', 'CERN']);
    expect(names('SWISS')).to.deep.equal(['CERN/B', 'BERN']);
    expect(names('BERN')).to.deep.equal([]);
    limits.configure([]);
    expect(names('CERN')).to.deep.equal([]);
  });

  it('lets one after the other count and record, also after one that failed', async () => {
    const order: string[] = [];
    const work = (name: string, ms: number, error?: Error) => async () => {
      order.push(`${name} begins`);
      await clock.sleep(ms);
      order.push(`${name} ends`);
      if (error !== undefined) throw error;
      return name;
    };
    const failure = new Error('the disk is full');
    const all = Promise.allSettled([
      limits.exclusive(work('first', 300)),
      limits.exclusive(work('second', 10, failure)),
      limits.exclusive(work('third', 1)),
    ]);
    await clock.advance(1000);
    expect(await all).to.deep.equal([
      { status: 'fulfilled', value: 'first' },
      { status: 'rejected', reason: failure },
      { status: 'fulfilled', value: 'third' },
    ]);
    expect(order).to.deep.equal(
      ['first', 'second', 'third'].flatMap((name) => [`${name} begins`, `${name} ends`]),
    );
  });
});
