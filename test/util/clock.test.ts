import { expect } from 'chai';
import { Age, isoSeconds, isoTime, systemClock } from '../../src/util/clock.ts';

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

describe('how long ago a time is', () => {
  const day = 86_400_000;

  it('is what the clock says, and no more than has passed since the first look, though the clock was set since', () => {
    const age = new Age();
    expect(age.of(1000, 6000, 100)).to.equal(5000);
    expect(age.of(1000, 7000, 1100)).to.equal(6000);
    expect(age.of(1000, 7000 + day, 2100), 'the clock was behind').to.equal(7000);
    expect(age.of(1000, 4000, 3100), 'the clock was ahead').to.equal(3000);
  });

  it('counts from the first look where the clock is behind the time then, and from now for a time that was just written', () => {
    const age = new Age();
    expect(age.of(day, 1000, 0)).to.equal(1000 - day);
    expect(age.of(day, day + day, 5000)).to.equal(5000);
    age.begin(0, 6000);
    expect(age.of(0, day, 6500)).to.equal(500);
  });
});
