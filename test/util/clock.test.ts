import { expect } from 'chai';
import { Age, BelievedClock, isoSeconds, isoTime, systemClock } from '../../src/util/clock.ts';
import { recordingLog } from '../support/samples.ts';

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

describe('the clock by which old things are removed', () => {
  const minute = 60_000;
  const day = 86_400_000;
  let passed: number;
  /** How far the wall clock is ahead of what it was at the beginning. */
  let ahead: number;
  let believed: BelievedClock;
  let log: ReturnType<typeof recordingLog>;

  beforeEach(() => {
    [passed, ahead] = [0, 0];
    log = recordingLog();
    believed = new BelievedClock({ now: () => day + passed + ahead, monotonic: () => passed }, log);
  });

  /** How far it is ahead after some minutes, with a look at each. */
  const after = (minutes: number) => {
    let now = believed.now();
    for (let each = 0; each < minutes; each++) {
      passed += minute;
      now = believed.now();
    }
    return now - day - passed;
  };

  it('is the wall clock where that goes on as time does, is set back, or is set right by seconds', () => {
    expect(after(5)).to.equal(0);
    ahead = 2000;
    expect(after(5)).to.equal(2000);
    ahead = -day;
    expect(after(5)).to.equal(-day);
    expect(log.lines).to.deep.equal([]);
  });

  it('does not go with a jump ahead, and says so once', () => {
    ahead = 8 * day;
    expect(after(59)).to.equal(0);
    ahead = 0;
    expect(after(120)).to.equal(0);
    expect(log.lines.map(({ level, facts }) => [level, facts])).to.deep.equal([
      ['warn', { ahead: (8 * day) / 1000 }],
    ]);
  });

  it('goes with a jump ahead that has stayed for an hour, and says so', () => {
    ahead = 8 * day;
    expect(after(59)).to.equal(0);
    expect(after(1)).to.equal(8 * day);
    expect(after(60)).to.equal(8 * day);
    expect(log.lines.map(({ message }) => message)).to.deep.equal([
      'the clock has jumped ahead: until it has stayed so for an hour, nothing is removed because of that',
      'the clock that jumped ahead has stayed so for an hour, and is believed now',
    ]);
  });

  it('goes with no more of a jump than has stayed for an hour', () => {
    ahead = day;
    after(30);
    ahead = 8 * day;
    expect(after(30)).to.equal(day);
    expect(after(30)).to.equal(day);
    ahead = 2 * day;
    expect(after(29)).to.equal(day);
    expect(after(1)).to.equal(2 * day);
  });

  it('counts a jump anew that was over in between', () => {
    for (let times = 0; times < 3; times++) {
      ahead = 8 * day;
      expect(after(40)).to.equal(0);
      ahead = 0;
      expect(after(1)).to.equal(0);
    }
  });
});
