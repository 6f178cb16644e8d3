import { expect } from 'chai';
import { EarlyLooks } from '../../../src/agents/observation/early-looks.ts';
import { ManualClock } from '../../support/manual-clock.ts';

describe('early looks', () => {
  let clock: ManualClock;
  let living: Set<number>;
  /** When each look was, ms, and at how many. */
  let seen: { readonly at: number; readonly workers: number }[];
  /** How long a look takes, ms. */
  let cost: number;
  let stop: AbortController;
  let early: EarlyLooks;

  beforeEach(() => {
    clock = new ManualClock();
    living = new Set([1, 2, 3]);
    seen = [];
    cost = 0;
    stop = new AbortController();
    early = new EarlyLooks({
      clock,
      giveUp: stop.signal,
      lives: (id) => living.has(id),
      look: async (ids) => {
        seen.push({ at: clock.monotonic(), workers: ids.length });
        if (cost > 0) await clock.sleep(cost);
      },
    });
  });
  afterEach(() => {
    stop.abort();
  });

  const times = () => seen.map(({ at }) => at);

  it('a worker that is said to end is looked at now, and a few times more until it has ended', async () => {
    early.expect([1]);
    await clock.settle();
    expect(times()).to.deep.equal([0]);
    await clock.advance(100_000);
    expect(times()).to.deep.equal([0, 1000, 3000, 7000, 15_000, 31_000, 63_000]);
  });

  it('a worker that has ended is not looked at again', async () => {
    early.expect([1]);
    await clock.settle();
    living.delete(1);
    await clock.advance(100_000);
    expect(seen).to.have.length(1);
    expect(clock.sleeping).to.deep.equal([]);
  });

  it('a storm of words about the same workers asks once a second at most, and in all no more often than one word', async () => {
    for (let ms = 0; ms < 20_000; ms += 10) {
      early.expect([1, 2, 3]);
      await clock.advance(10);
    }
    const gaps = times().map((at, index) => at - (times()[index - 1] ?? -Infinity));
    expect(Math.min(...gaps)).to.be.at.least(1000);
    living.clear();
    await clock.advance(100_000);
    expect(seen.length).to.be.at.most(8);
  });

  it('words of many workers within a second are one look', async () => {
    living = new Set(Array.from({ length: 400 }, (_, id) => id));
    early.expect([0]);
    await clock.settle();
    for (const id of living) {
      early.expect([id]);
      await clock.advance(2);
    }
    await clock.advance(199);
    expect(seen).to.deep.equal([{ at: 0, workers: 1 }]);
    await clock.advance(1);
    expect(seen).to.deep.equal([
      { at: 0, workers: 1 },
      { at: 1000, workers: 400 },
    ]);
  });

  it('one look names 500 workers at most; the others come a second later', async () => {
    living = new Set(Array.from({ length: 700 }, (_, id) => id));
    early.expect([...living]);
    await clock.advance(1000);
    expect(seen.slice(0, 2)).to.deep.equal([
      { at: 0, workers: 500 },
      { at: 1000, workers: 500 },
    ]);
  });

  it('a look that takes long is followed by a pause four times as long', async () => {
    cost = 2000;
    early.expect([1]);
    await clock.advance(9999);
    expect(times()).to.deep.equal([0]);
    await clock.advance(1);
    expect(times()).to.deep.equal([0, 10_000]);
  });

  it('a worker that is not known to live is not looked at', async () => {
    early.expect([9]);
    await clock.advance(100_000);
    expect(seen).to.deep.equal([]);
  });

  it('ends when looks are given up', async () => {
    early.expect([1]);
    await clock.settle();
    stop.abort();
    await clock.advance(100_000);
    expect(seen).to.have.length(1);
    expect(clock.sleeping).to.deep.equal([]);
  });
});
