import { expect } from 'chai';
import { withDeadline } from '../../src/util/deadline.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('a deadline', () => {
  let clock: ManualClock;
  let stop: AbortController;

  beforeEach(() => {
    clock = new ManualClock();
    stop = new AbortController();
  });

  const call = <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    withDeadline({ clock, what: 'submit of queue Q', timeoutMs: 2500, signal: stop.signal }, work);

  /** What became of it, so that a rejection before anybody looks is no accident. */
  const outcome = async (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

  it('a deadline returns the result of the call', async () => {
    expect(await call(async () => 'done')).to.equal('done');
    await clock.settle();
    expect(clock.sleeping).to.deep.equal([]);
  });

  it('throws what the call throws', async () => {
    const error = new Error('refused');
    expect(await outcome(call(() => Promise.reject(error)))).to.equal(error);
    const thrown = call(() => {
      throw error;
    });
    expect(await outcome(thrown)).to.equal(error);
    await clock.settle();
    expect(clock.sleeping).to.deep.equal([]);
  });

  it('ends a call that hangs for ever and ignores its signal', async () => {
    let seen: AbortSignal | undefined;
    const hanging = outcome(
      call((signal) => {
        seen = signal;
        return new Promise(() => undefined);
      }),
    );
    await clock.advance(2499);
    expect(seen?.aborted).to.equal(false);
    await clock.advance(1);
    const error = await hanging;
    expect(error).to.be.instanceOf(ThresherError).and.to.include({
      code: 'plugin-timeout',
      message: 'submit of queue Q did not come back within 2.5 s',
    });
    expect(seen?.reason).to.equal(error);
  });

  it('gives up a call when the daemon stops', async () => {
    const hanging = outcome(call(() => new Promise(() => undefined)));
    await clock.advance(1000);
    stop.abort();
    expect(await hanging)
      .to.be.instanceOf(ThresherError)
      .and.to.include({
        code: 'shutting-down',
        message: 'submit of queue Q was given up because the daemon stops',
      });
  });

  it('gives up a call that begins when the daemon has stopped', async () => {
    stop.abort();
    const hanging = call(() => new Promise(() => undefined));
    expect(await outcome(hanging)).to.include({ code: 'shutting-down' });
  });

  it('is the reason also where the call ends by its signal with an error of its own', async () => {
    const obedient = outcome(
      call(
        (signal) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              reject(new Error('The operation was aborted'));
            });
          }),
      ),
    );
    await clock.advance(2500);
    expect(await obedient).to.include({ code: 'plugin-timeout' });
  });

  it('does not tell a call that came back in time that it timed out', async () => {
    let seen: AbortSignal | undefined;
    await call(async (signal) => {
      seen = signal;
    });
    await clock.settle();
    expect(seen?.reason).to.equal(undefined);
  });

  describe('that gives a call a moment to bring in what it has done', () => {
    const graceful = <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
      withDeadline(
        { clock, what: 'submit of queue Q', timeoutMs: 2500, graceMs: 1000, signal: stop.signal },
        work,
      );
    /** Comes back so long after its signal aborted, ms. */
    const late =
      (ms: number, fail = false) =>
      (signal: AbortSignal) =>
        new Promise<string>((resolve, reject) => {
          signal.addEventListener('abort', () => {
            clock.sleep(ms).then(() => {
              if (fail) reject(new Error('The operation was aborted'));
              else resolve('half of them');
            }, reject);
          });
        });

    it('a call may report its results within the moment of grace after its deadline', async () => {
      const result = outcome(graceful(late(900)));
      await clock.advance(2500);
      await clock.advance(900);
      expect(await result).to.equal('half of them');
      await clock.settle();
      expect(clock.sleeping).to.deep.equal([]);
    });

    it('the deadline is the reason even if the call ends with an error of its own within the grace', async () => {
      const result = outcome(graceful(late(900, true)));
      await clock.advance(3400);
      expect(await result).to.include({ code: 'plugin-timeout' });
    });

    it('a call that hangs ends when the grace is over too, and not before', async () => {
      let ended = false;
      const hanging = outcome(graceful(() => new Promise(() => undefined))).finally(() => (ended = true));
      await clock.advance(3499);
      expect(ended).to.equal(false);
      await clock.advance(1);
      expect(await hanging).to.include({ code: 'plugin-timeout' });
    });

    it('a call gets no grace when the daemon stops', async () => {
      const hanging = outcome(graceful(late(500)));
      await clock.advance(1000);
      stop.abort();
      expect(await hanging).to.include({ code: 'shutting-down' });
      expect(clock.monotonic()).to.equal(1000);
    });

    it('the grace ends when the daemon stops meanwhile', async () => {
      const hanging = outcome(graceful(() => new Promise(() => undefined)));
      await clock.advance(2600);
      stop.abort();
      expect(await hanging).to.include({ code: 'plugin-timeout' });
      expect(clock.monotonic()).to.equal(2600);
    });
  });
});
