import { expect } from 'chai';
import { isoSeconds, isoTime, systemClock } from '../../src/util/clock.ts';

describe("the system's clock", () => {
  it('sleeps as long as it is told', async () => {
    const before = systemClock.monotonic();
    await systemClock.sleep(10);
    // Timers count whole milliseconds of a clock of their own.
    expect(systemClock.monotonic() - before).to.be.at.least(9);
  });

  it('wakes at once when the signal aborts', async () => {
    const stop = new AbortController();
    const sleep = systemClock.sleep(3_600_000, stop.signal);
    stop.abort();
    await sleep;
    expect(stop.signal.aborted).to.equal(true);
  });

  it('does not fall asleep when the signal was aborted before', async () => {
    const sleep = systemClock.sleep(3_600_000, AbortSignal.abort());
    expect(
      await Promise.race([sleep.then(() => 'awake'), new Promise((resolve) => setImmediate(resolve))]),
    ).to.equal('awake');
  });

  it('sleeps longer than a timer of Node can, which would fire at once', async () => {
    const stop = new AbortController();
    let awake = false;
    const sleep = systemClock.sleep(2 ** 31, stop.signal).then(() => {
      awake = true;
    });
    await systemClock.sleep(5);
    expect(awake).to.equal(false);
    stop.abort();
    await sleep;
  });

  it('shows times in UTC with milliseconds, and what is no time as it is', () => {
    expect(isoTime(Date.UTC(2026, 0, 2, 3, 4, 5, 6))).to.equal('2026-01-02T03:04:05.006Z');
    expect([isoTime(1e300), isoSeconds(9e15)]).to.deep.equal(['1e+300 ms', '9000000000000000 ms']);
  });
});
