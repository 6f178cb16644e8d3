import { expect } from 'chai';
import fc from 'fast-check';
import { TokenBucket } from '../../src/util/token-bucket.ts';
import { ManualClock } from '../support/manual-clock.ts';

const rates = fc.constantFrom(0.01, 0.3, 1, 3, 7, 100);
const bursts = fc.integer({ min: 1, max: 20 });
const pauses = fc.array(fc.integer({ min: 0, max: 5000 }), { minLength: 1, maxLength: 30 });

describe('a token bucket', () => {
  it('begins empty: what was let through before a restart counts', () => {
    const bucket = new TokenBucket(2, 10, new ManualClock());
    expect([bucket.available, bucket.nextIn]).to.deep.equal([0, 500]);
  });

  it('fills at its rate and no further than its burst', async () => {
    const clock = new ManualClock();
    const bucket = new TokenBucket(2, 3, clock);
    const seen: number[] = [];
    for (let step = 0; step < 6; step++) {
      await clock.advance(500);
      seen.push(bucket.available);
    }
    expect(seen).to.deep.equal([1, 2, 3, 3, 3, 3]);
    bucket.take(3);
    expect(bucket.available).to.equal(0);
  });

  it('has a whole one also where many small parts make it up', async () => {
    const clock = new ManualClock();
    const bucket = new TokenBucket(0.1, 5, clock);
    for (let step = 0; step < 100; step++) {
      await clock.advance(100);
      expect(bucket.available).to.be.oneOf([0, 1]);
    }
    expect([bucket.available, bucket.nextIn]).to.deep.equal([1, 0]);
  });

  it('lets through no more than its burst and its rate, in any window of time', async () => {
    const takes = fc.array(fc.tuple(fc.integer({ min: 0, max: 4000 }), fc.nat({ max: 30 })), {
      maxLength: 40,
    });
    await fc.assert(
      fc.asyncProperty(rates, bursts, takes, async (rate, burst, steps) => {
        const clock = new ManualClock();
        const bucket = new TokenBucket(rate, burst, clock);
        const taken: { at: number; count: number }[] = [];
        for (const [pause, wish] of steps) {
          await clock.advance(pause);
          const count = Math.min(wish, bucket.available);
          bucket.take(count);
          taken.push({ at: clock.monotonic(), count });
        }
        for (let from = 0; from < taken.length; from++) {
          let sum = 0;
          for (const { at, count } of taken.slice(from)) {
            sum += count;
            const seconds = (at - taken[from]!.at) / 1000;
            expect(sum).to.be.at.most(burst + rate * seconds + 1e-6);
          }
        }
      }),
    );
  });

  it('a token bucket tells to the millisecond when it lets the next one through', async () => {
    await fc.assert(
      fc.asyncProperty(rates, bursts, pauses, fc.nat({ max: 5 }), async (rate, burst, waits, owed) => {
        const clock = new ManualClock();
        const bucket = new TokenBucket(rate, burst, clock);
        for (const wait of waits) {
          await clock.advance(wait);
          bucket.take(bucket.available);
        }
        bucket.take(owed);
        const { nextIn } = bucket;
        expect(nextIn).to.be.greaterThan(0);
        await clock.advance(nextIn - 1);
        expect(bucket.available).to.be.at.most(0);
        await clock.advance(1);
        expect(bucket.available).to.equal(1);
        expect(bucket.nextIn).to.equal(0);
      }),
    );
  });

  it('a token bucket owes the tokens that are taken beyond its content', async () => {
    const clock = new ManualClock();
    const bucket = new TokenBucket(1, 10, clock);
    bucket.take(4);
    expect([bucket.available, bucket.nextIn]).to.deep.equal([-4, 5000]);
    await clock.advance(5000);
    expect(bucket.available).to.equal(1);
  });
});
