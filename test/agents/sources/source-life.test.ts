import { expect } from 'chai';
import { SourceLife } from '../../../src/agents/sources/source-life.ts';
import type { Desk, Source } from '../../../src/plugins/contracts/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';

const desk: Desk = {
  wake: () => undefined,
  end: async () => undefined,
  withdraw: async () => undefined,
  discard: async () => 0,
  whyLeft: () => undefined,
  expectEnd: () => undefined,
  detail: async () => undefined,
  find: async () => [],
  living: async () => [],
  alive: async () => new Set(),
  queued: async () => 0,
  census: async () => ({ at: 0, upTo: 0, living: [] }),
  madeSince: async () => new Map(),
  logs: () => Promise.reject(new Error('none')),
  peek: async () => undefined,
  output: async () => undefined,
  dropOutputs: async () => undefined,
  reasons: () => [],
  unlisted: () => undefined,
  queues: () => [],
  ownQueues: () => [],
  keepIdsAbove: async () => undefined,
};

describe('the life of a source', () => {
  let clock: ManualClock;
  let begun: number;
  let changes: number;
  let life: SourceLife;

  beforeEach(() => {
    clock = new ManualClock();
    begun = 0;
    changes = 0;
  });

  function make(run: NonNullable<Source['run']>): ReturnType<typeof recordingLog> {
    const log = recordingLog();
    const counted = (at: Desk, signal: AbortSignal) => {
      begun++;
      return run(at, signal);
    };
    const changed = () => changes++;
    life = new SourceLife('toy', { run: counted }, desk, { clock, log, changed });
    return log;
  }
  const untilAborted = (_: Desk, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => {
        resolve();
      });
    });

  it('begins once, gets the desk, and ends when it is told to', async () => {
    let got: Desk | undefined;
    make((at, signal) => {
      got = at;
      return untilAborted(at, signal);
    });
    life.start();
    life.start();
    await clock.settle();
    expect([begun, got === desk, life.failure]).to.deep.equal([1, true, undefined]);
    await life.stop();
  });

  it('begins again after a growing pause when it throws, and says why', async () => {
    const log = make(async () => {
      throw new Error('no route to its server');
    });
    life.start();
    for (const pause of [1000, 2000, 4000, 8000]) {
      await clock.settle();
      expect(clock.sleeping).to.deep.equal([pause]);
      await clock.advance(pause);
    }
    expect(begun).to.equal(5);
    expect(life.failure?.message).to.contain('no route to its server');
    expect(changes).to.be.at.least(4);
    expect(log.lines[0]?.facts).to.include({ source: 'toy', pause: 1 });
    await life.stop();
  });

  it('begins again when it throws at once, or comes to its end by itself', async () => {
    make(() => {
      if (begun === 1) throw new Error('at once');
      return Promise.resolve();
    });
    life.start();
    await clock.settle();
    expect(life.failure?.message).to.contain('at once');
    await clock.advance(1000);
    expect(life.failure?.message).to.contain('by itself');
    await life.stop();
  });

  it('never waits longer than five minutes', async () => {
    make(async () => {
      throw new Error('no');
    });
    life.start();
    await clock.advance(10 * 3_600_000);
    expect(Math.max(...clock.asked.filter((ms) => ms !== 60_000))).to.equal(300_000);
    await life.stop();
  });

  it('counts as well once it has lasted for a minute, and forgets its failures', async () => {
    make((at, signal) => {
      if (begun < 4) throw new Error('no');
      return untilAborted(at, signal);
    });
    life.start();
    await clock.advance(7000);
    expect([begun, life.failure?.code]).to.deep.equal([4, 'source-failed']);
    await clock.advance(59_999);
    expect(life.failure).to.not.equal(undefined);
    await clock.advance(1);
    expect(life.failure).to.equal(undefined);
    await life.stop();
  });

  it('has not failed when it throws on the way to its end', async () => {
    const log = make(async (at, signal) => {
      await untilAborted(at, signal);
      throw new Error('aborted');
    });
    life.start();
    await clock.settle();
    await life.stop();
    expect([life.failure, log.lines]).to.deep.equal([undefined, []]);
  });
});
