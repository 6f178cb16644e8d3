import { expect } from 'chai';
import { factoryEvents } from '../../src/agents/events.ts';
import { Loop, Progress } from '../../src/agents/loop.ts';
import { ThresherError, toReason } from '../../src/worker/errors.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { recordingLog } from '../support/samples.ts';

describe('a loop', () => {
  let clock: ManualClock;
  let log: ReturnType<typeof recordingLog>;
  let loop: Loop;
  let passes: number;

  beforeEach(() => {
    clock = new ManualClock(0);
    log = recordingLog();
    passes = 0;
  });

  afterEach(async () => {
    await loop.stop();
  });

  /** Random numbers of 0.5 make every pause as long as it is written. */
  async function start(pass: (signal: AbortSignal) => Promise<void>, random = () => 0.5): Promise<void> {
    const counted = async (signal: AbortSignal) => {
      passes++;
      await pass(signal);
    };
    loop = new Loop({ name: 'submit Q', interval: 10_000, clock, random, log, pass: counted });
    loop.start();
    await clock.settle();
  }

  const fine = async () => undefined;
  const failing = async () => Promise.reject(new Error('no route to host'));

  it('makes a pass at once and then one per interval', async () => {
    await start(fine);
    expect(passes).to.equal(1);
    await clock.advance(9999);
    expect(passes).to.equal(1);
    await clock.advance(1);
    expect(passes).to.equal(2);
    await clock.advance(50_000);
    expect(passes).to.equal(7);
  });

  it('is started once only', async () => {
    await start(fine);
    loop.start();
    await clock.settle();
    expect(passes).to.equal(1);
  });

  it('jitters its interval by a tenth either way', async () => {
    const numbers = [0, 0.999_999, 0.5];
    await start(fine, () => numbers.shift() ?? 0.5);
    await clock.advance(9000);
    expect(passes).to.equal(2);
    await clock.advance(10_999);
    expect(passes).to.equal(2);
    await clock.advance(1);
    expect(passes).to.equal(3);
  });

  it('makes a pass at once when woken', async () => {
    await start(fine);
    loop.wake();
    loop.wake();
    await clock.settle();
    expect(passes).to.equal(2);
    expect(clock.monotonic()).to.equal(0);
  });

  it('makes one more pass when woken during a pass, and only one', async () => {
    let release = (): void => undefined;
    await start(() => new Promise((resolve) => (release = resolve)));
    loop.wake();
    loop.wake();
    await clock.settle();
    expect(passes).to.equal(1);
    release();
    await clock.settle();
    expect(passes).to.equal(2);
    release();
    await clock.settle();
    expect(passes).to.equal(2);
    loop.wake();
    await clock.advance(20);
    expect(passes).to.equal(3);
    release();
  });

  it('lets timers through, and keeps a gap, where each pass wakes the loop again', async () => {
    await start(async () => {
      if (passes < 10_000) loop.wake();
    });
    expect(passes, 'the first wake is answered at once').to.equal(2);
    await clock.advance(19);
    expect(passes).to.equal(2);
    await clock.advance(1);
    expect(passes).to.equal(3);
    await clock.advance(100);
    expect(passes).to.equal(8);
  });

  it('waits longer after each failure, up to 5 minutes', async () => {
    await start(failing);
    await clock.advance(3_000_000);
    expect(clock.asked.slice(0, 11)).to.deep.equal([
      ...[1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000],
    ]);
  });

  it('does not shorten the pause after a failure when woken', async () => {
    await start(failing);
    loop.wake();
    await clock.advance(999);
    expect(passes).to.equal(1);
    await clock.advance(1);
    expect(passes).to.equal(2);
    loop.wake();
    await clock.advance(1999);
    expect(passes).to.equal(2);
    await clock.advance(1);
    expect(passes).to.equal(3);
  });

  it('forgets its failures with the first pass that succeeds', async () => {
    let broken = true;
    await start(() => (broken ? failing() : fine()));
    await clock.advance(1000);
    expect(loop.health).to.deep.equal({
      name: 'submit Q',
      startedAt: 1000,
      endedAt: 1000,
      failures: 2,
      lastError: { code: 'plugin-failed', message: 'no route to host' },
      stuckFor: undefined,
    });
    broken = false;
    await clock.advance(2000);
    expect(loop.health).to.deep.equal({
      name: 'submit Q',
      startedAt: 3000,
      endedAt: 3000,
      failures: 0,
      lastError: undefined,
      stuckFor: undefined,
    });
    broken = true;
    await clock.advance(10_000);
    expect(clock.asked.at(-1)).to.equal(1000);
  });

  it('logs every failure with its code', async () => {
    await start(() => Promise.reject(new ThresherError('store-full', 'the disk is full')));
    expect(log.lines).to.deep.equal([
      {
        level: 'error',
        message: 'pass failed',
        facts: { loop: 'submit Q', failures: 1, code: 'store-full', message: 'the disk is full' },
      },
    ]);
  });

  it('ends at once while it sleeps, and never begins another pass', async () => {
    await start(fine);
    await loop.stop();
    expect(clock.sleeping).to.deep.equal([]);
    loop.wake();
    await clock.advance(60_000);
    expect(passes).to.equal(1);
  });

  it('ends at once in the pause after a failure', async () => {
    await start(failing);
    await loop.stop();
    await clock.advance(60_000);
    expect(passes).to.equal(1);
  });

  it('waits for the pass under way when it is stopped, and tells it', async () => {
    let release = (): void => undefined;
    let seen: AbortSignal | undefined;
    await start((signal) => {
      seen = signal;
      return new Promise((resolve) => (release = resolve));
    });
    let stopped = false;
    const stopping = loop.stop().then(() => (stopped = true));
    await clock.settle();
    expect([seen?.aborted, stopped]).to.deep.equal([true, false]);
    release();
    await stopping;
    expect(passes).to.equal(1);
  });

  it('takes an error of a pass that was told to stop for no failure', async () => {
    await start(
      (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            reject(new Error('aborted'));
          });
        }),
    );
    await loop.stop();
    expect(log.lines).to.deep.equal([]);
    expect(loop.health.failures).to.equal(0);
  });

  it('is stuck when a pass makes no progress for too long, and not while it makes some', async () => {
    const progress = new Progress(clock);
    let release: () => void = () => undefined;
    const pass = () => new Promise<void>((resolve) => (release = resolve));
    const random = () => 0.5;
    loop = new Loop({
      name: 'x',
      interval: 1000,
      clock,
      random,
      log,
      pass,
      progress,
      stuckAfter: 60_000,
    });
    loop.start();
    await clock.advance(60_000);
    expect(loop.health.stuckFor).to.equal(undefined);
    await clock.advance(1);
    expect(loop.health.stuckFor).to.equal(60_001);
    progress.made();
    expect(loop.health.stuckFor).to.equal(undefined);
    await clock.advance(60_001);
    expect(loop.health.stuckFor).to.equal(60_001);
    release();
    await clock.settle();
    expect(loop.health.stuckFor).to.equal(undefined);
    await clock.advance(1000);
    release();
  });

  it('makes the next pass as soon as a pass asked for it, and that once only', async () => {
    const asked = [300, 2000, 700];
    await start(async () => {
      for (const ms of passes === 1 ? asked : []) loop.wakeIn(ms);
    });
    await clock.advance(299);
    expect(passes).to.equal(1);
    await clock.advance(1);
    expect(passes).to.equal(2);
    await clock.advance(9999);
    expect(passes).to.equal(2);
    await clock.advance(1);
    expect(passes).to.equal(3);
  });

  it('makes the next pass after its interval at the latest, whatever a pass asked for', async () => {
    await start(async () => {
      loop.wakeIn(60_000);
    });
    await clock.advance(10_000);
    expect(passes).to.equal(2);
  });

  it('does not shorten the pause after a failure when the pass had asked for the next', async () => {
    await start(() => {
      loop.wakeIn(1);
      return failing();
    });
    await clock.advance(999);
    expect(passes).to.equal(1);
  });

  it('says after each pass how long it took and whether it failed', async () => {
    const told: unknown[] = [];
    const random = () => 0.5;
    const events = factoryEvents(log);
    events.on('passEnded', (pass) => told.push(pass));
    const pass = async () => {
      await clock.sleep(20);
      if (told.length === 1) throw new Error('no route to host');
    };
    loop = new Loop({ name: 'x', interval: 1000, clock, random, log, pass, events });
    loop.start();
    await clock.advance(2000);
    expect(told).to.deep.equal([
      { loop: 'x', duration: 20, failed: false },
      { loop: 'x', duration: 20, failed: true },
    ]);
  });

  it('that was never started stops, too', async () => {
    loop = new Loop({ name: 'x', interval: 1, clock, random: () => 0, log, pass: fine });
    await loop.stop();
    expect(loop.health).to.include({ startedAt: undefined, failures: 0 });
  });
});

describe('the reason of whatever was thrown', () => {
  it('has the code of our own errors, and plugin-failed for all others', () => {
    expect(toReason(new ThresherError('plugin-timeout', 'late'))).to.deep.equal({
      code: 'plugin-timeout',
      message: 'late',
    });
    expect(toReason(new Error('x'))).to.deep.equal({ code: 'plugin-failed', message: 'x' });
    expect(toReason('x')).to.deep.equal({ code: 'plugin-failed', message: 'x' });
  });
});
