import { expect } from 'chai';
import { Pacer } from '../../../src/clients/kubernetes/pacer.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const never = new AbortController().signal;

/** When each of so many was let through, ms. */
function ask(pacer: Pacer, clock: ManualClock, count: number): number[] {
  const at: number[] = [];
  for (let n = 0; n < count; n++) {
    const noted = pacer.admitted(1e9, never).then((admitted) => {
      if (admitted) at.push(clock.monotonic());
    });
    noted.catch(() => undefined);
  }
  return at;
}

describe('the pace of requests', () => {
  it('is what was set, one after the other', async () => {
    const clock = new ManualClock();
    const pacer = new Pacer({ perSecond: 10, burst: 2 }, clock, () => 0);
    const at = ask(pacer, clock, 5);
    await clock.advance(1000);
    expect(at).to.deep.equal([100, 200, 300, 400, 500]);
  });

  it('hole 8: stops for an hour at most, and for no time that is none', async () => {
    const clock = new ManualClock();
    const pacer = new Pacer({ perSecond: 10, burst: 5 }, clock, () => 0);
    pacer.pause(NaN);
    expect(pacer.pausedFor).to.equal(0);
    pacer.pause(5000);
    expect(pacer.pausedFor).to.equal(5000);
    pacer.pause(Infinity);
    expect(pacer.pausedFor).to.equal(3_600_000);
  });

  it('stops for all while the server asks for patience', async () => {
    const clock = new ManualClock();
    const pacer = new Pacer({ perSecond: 10, burst: 5 }, clock, () => 0);
    const waiting = ask(pacer, clock, 2);
    await clock.advance(50);
    pacer.pause(5000);
    pacer.pause(10);
    const later = ask(pacer, clock, 2);
    await clock.advance(4999);
    expect([...waiting, ...later]).to.deep.equal([]);
    await clock.advance(1000);
    expect([...waiting, ...later].sort()).to.deep.equal([5050, 5050, 5050, 5050]);
  });

  it('is not waited for longer than a caller has', async () => {
    const clock = new ManualClock();
    const pacer = new Pacer({ perSecond: 10, burst: 5 }, clock, () => 0);
    await clock.advance(1000);
    pacer.pause(5000);
    expect(await pacer.admitted(4999, never)).to.equal(false);
    expect(pacer.pausedFor).to.equal(5000);
  });

  it('gives the turn of one who gave up to the next', async () => {
    const clock = new ManualClock();
    const pacer = new Pacer({ perSecond: 1, burst: 1 }, clock, () => 0);
    const gone = new AbortController();
    const first = pacer.admitted(1e9, gone.signal);
    await clock.settle();
    gone.abort();
    expect(await first).to.equal(false);
    const at = ask(pacer, clock, 1);
    await clock.advance(5000);
    expect(at).to.deep.equal([1000]);
  });
});
