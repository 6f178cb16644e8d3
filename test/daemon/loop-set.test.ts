import { expect } from 'chai';
import { factoryEvents } from '../../src/agents/events.ts';
import type { Loop } from '../../src/agents/loop.ts';
import { LoopSet } from '../../src/daemon/loop-set.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { recordingLog } from '../support/samples.ts';

describe('a set of loops', () => {
  let clock: ManualClock;
  let loops: LoopSet;
  /** Names of loops in the order of their passes. */
  let passes: string[];

  beforeEach(() => {
    clock = new ManualClock();
    passes = [];
    loops = new LoopSet({ clock, random: () => 0.5, log: recordingLog() });
  });

  afterEach(async () => {
    const stopping = loops.stop();
    await clock.advance(1_000_000);
    await stopping;
  });

  /** A loop whose passes last so long, ms. */
  const lasting = (name: string, ms: number) => ({
    name,
    interval: 60_000,
    pass: async () => {
      passes.push(name);
      if (ms > 0) await clock.sleep(ms);
    },
  });
  const forQueue = (queue: string, name: string, ms = 0): Loop =>
    loops.addForQueue('submit', queue, lasting(name, ms));

  it('starts none before it is told to, and then all', async () => {
    loops.add(lasting('a', 0));
    forQueue('Q', 'b');
    await clock.settle();
    expect(passes).to.deep.equal([]);
    loops.start();
    await clock.settle();
    expect(passes).to.deep.equal(['a', 'b']);
    expect(loops.health.map(({ name }) => name)).to.deep.equal(['a', 'b']);
  });

  it('begins no pass while the daemon may not act, and goes on once it may', async () => {
    let mayAct = false;
    loops = new LoopSet({ clock, random: () => 0.5, log: recordingLog(), mayAct: () => mayAct });
    loops.add(lasting('a', 0));
    loops.start();
    await clock.settle();
    expect(passes).to.deep.equal([]);
    expect(loops.health[0]?.lastError?.code).to.equal('lease-expired');
    mayAct = true;
    await clock.advance(60_000);
    expect(passes).to.include('a');
  });

  it('wakes all loops of a queue and of a kind, and nobody else', async () => {
    forQueue('Q', 'one');
    forQueue('Q', 'two');
    forQueue('R', 'three');
    loops.addForQueue('sweep', 'Q', lasting('sweep', 0));
    loops.start();
    await clock.settle();
    passes.length = 0;
    loops.wake('submit', 'Q');
    loops.wake('submit', 'unknown');
    await clock.settle();
    expect(passes).to.deep.equal(['one', 'two']);
    passes.length = 0;
    await clock.advance(20);
    loops.wakeAll('submit');
    await clock.settle();
    expect(passes).to.deep.equal(['one', 'two', 'three']);
  });

  it('takes a loop out at once, and ends it after the pass under way', async () => {
    const loop = forQueue('Q', 'old', 500);
    loops.start();
    await clock.settle();
    let ended = false;
    const ending = loops.end(loop).then(() => (ended = true));
    await clock.advance(499);
    expect([ended, loops.health]).to.deep.equal([false, []]);
    loops.wake('submit', 'Q');
    await clock.advance(1);
    await ending;
    await clock.advance(600_000);
    expect(passes).to.deep.equal(['old']);
  });

  it('leaves the other loops of the queue alone when one is taken out', async () => {
    const old = forQueue('Q', 'old');
    forQueue('Q', 'new');
    loops.start();
    await clock.settle();
    await loops.end(old);
    passes.length = 0;
    loops.wake('submit', 'Q');
    await clock.settle();
    expect(passes).to.deep.equal(['new']);
  });

  it('starts who takes over only when who was there before has come to an end', async () => {
    const old = forQueue('Q', 'old', 500);
    loops.start();
    await clock.settle();
    const ending = loops.end(old);
    loops.startAfter(ending, [forQueue('Q', 'new')]);
    loops.startAfter(undefined, [forQueue('R', 'other')]);
    await clock.advance(499);
    expect(passes).to.deep.equal(['old', 'other']);
    await clock.advance(1);
    expect(passes).to.deep.equal(['old', 'other', 'new']);
  });

  it('starts who takes over also when the end before it failed', async () => {
    loops.start();
    loops.startAfter(Promise.reject(new Error('x')), [forQueue('Q', 'new')]);
    await clock.settle();
    expect(passes).to.deep.equal(['new']);
  });

  it('starts nobody in a set that was not started itself', async () => {
    loops.startAfter(undefined, [forQueue('Q', 'new')]);
    await clock.settle();
    expect(passes).to.deep.equal([]);
    loops.start();
    await clock.settle();
    expect(passes).to.deep.equal(['new']);
  });

  it('stops all, those included that are ending already, and nobody starts after that', async () => {
    const old = forQueue('Q', 'old', 500);
    loops.start();
    await clock.settle();
    loops.startAfter(loops.end(old), [forQueue('Q', 'new')]);
    let stopped = false;
    const stopping = loops.stop().then(() => (stopped = true));
    await clock.advance(499);
    expect(stopped).to.equal(false);
    await clock.advance(1);
    await stopping;
    await clock.advance(600_000);
    expect(passes).to.deep.equal(['old']);
  });

  it('starts who takes a place only after everybody who had it, however fast they follow each other', async () => {
    const first = forQueue('Q', 'first', 5000);
    loops.start();
    await clock.settle();
    const second = forQueue('Q', 'second');
    loops.replace('Q', [first], [second]);
    const third = forQueue('Q', 'third');
    loops.replace('Q', [second], [third]);
    await clock.advance(4999);
    expect(passes).to.deep.equal(['first']);
    await clock.advance(1);
    expect(passes).to.deep.equal(['first', 'third']);
  });

  it('starts nobody after it was stopped', async () => {
    loops.start();
    const stopping = loops.stop();
    loops.replace('Q', [], [forQueue('Q', 'late')]);
    await stopping;
    await clock.settle();
    expect(passes).to.deep.equal([]);
  });

  it('tells of each pass', async () => {
    const told: string[] = [];
    const log = recordingLog();
    const events = factoryEvents(log);
    events.on('passEnded', ({ loop, failed }) => told.push(`${loop} ${String(failed)}`));
    loops = new LoopSet({ clock, random: () => 0.5, log, events });
    loops.add(lasting('a', 0));
    loops.start();
    await clock.settle();
    expect(told).to.deep.equal(['a false']);
  });
});
