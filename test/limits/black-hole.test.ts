import { expect } from 'chai';
import fc from 'fast-check';
import { blackHole, type BlackHoleState, type EndedWorker, swallowed } from '../../src/limits/black-hole.ts';

const options = { lifetime: 10_000, workers: 20, pause: 600_000 };
const now = Date.UTC(2026, 0, 1, 12);

const bad: EndedWorker = { status: 'failed', startTime: now - 60_000, endTime: now - 55_000 };
const good: EndedWorker = { status: 'finished', startTime: now - 60_000, endTime: now - 1000 };
const times = (count: number, worker: EndedWorker) => Array.from({ length: count }, () => worker);

const state = (changes: Partial<BlackHoleState>): BlackHoleState => ({
  ended: [],
  proven: 0,
  unproven: 0,
  lastMade: now - 1000,
  now,
  ...changes,
});

describe('a swallowed worker', () => {
  for (const [what, worker, is] of [
    ['failed within the time', bad, true],
    [
      'finished within the time: a pilot that finds no job and no site does so',
      { ...bad, status: 'finished' },
      true,
    ],
    ['lived as long as the time', { ...bad, endTime: now - 50_000 }, false],
    ['failed before it ever ran', { ...bad, startTime: null }, true],
    ['finished and nobody knows when it started', { ...bad, status: 'finished', startTime: null }, false],
    ['ended at an unknown time', { ...bad, endTime: null }, false],
    ['was cancelled: an operator says nothing about a resource', { ...bad, status: 'cancelled' }, false],
    ['was missed: that is for throttlers', { ...bad, status: 'missed', startTime: null }, false],
  ] as const) {
    it(`${is ? 'is' : 'is not'} one that ${what}`, () => {
      expect(swallowed(worker, options.lifetime)).to.equal(is);
    });
  }
});

describe('the guard against black holes', () => {
  const what = (count: number, of: number) => `${count} of the last ${of} workers ended within 10 s`;

  it('says nothing while there are too few to judge by', () => {
    expect(blackHole(state({ ended: times(4, bad) }), options)).to.equal(undefined);
    expect(blackHole(state({}), options)).to.equal(undefined);
  });

  it('says nothing where it is switched off', () => {
    expect(blackHole(state({ ended: times(20, bad) }), { ...options, lifetime: 0 })).to.equal(undefined);
  });

  it('lets through one at a time from the fifth on', () => {
    const reason = { code: 'black-hole', message: `${what(5, 5)}: no more than 1 are tried at once` };
    expect(blackHole(state({ ended: times(5, bad) }), options)).to.deep.equal({ atMost: 1, reason });
    expect(blackHole(state({ ended: times(5, bad), unproven: 1 }), options)).to.deep.equal({
      atMost: 0,
      reason,
    });
  });

  it('lets through twice as many as there are good ones, those under way included', () => {
    const ended = [...times(14, bad), ...times(4, good)];
    expect(blackHole(state({ ended, proven: 2, unproven: 5 }), options)).to.deep.equal({
      atMost: 7,
      reason: { code: 'black-hole', message: `${what(14, 18)}: no more than 12 are tried at once` },
    });
  });

  it('counts half of them as too many', () => {
    const ended = [...times(10, bad), ...times(8, good)];
    expect(blackHole(state({ ended, proven: 2 }), options)?.atMost).to.equal(20);
    expect(blackHole(state({ ended, proven: 3 }), options)).to.equal(undefined);
  });

  it('pauses when all were swallowed, and says when the next is tried', () => {
    const message = `${what(20, 20)}: one is tried every 600 s, the next at 2026-01-01T12:09:59.000Z`;
    const all = { ended: times(20, bad) };
    const reason = { code: 'black-hole-pause', message };
    expect(blackHole(state(all), options)).to.deep.equal({ atMost: 0, reason });
    const due = { ...all, now: now + 599_000 };
    expect(blackHole(state({ ...due, now: due.now - 1 }), options)?.atMost).to.equal(0);
    expect(blackHole(state(due), options)).to.deep.equal({ atMost: 1, reason });
  });

  it('tries no other one while one is under way, however long that waits, and says so', () => {
    const waiting = state({ ended: times(20, bad), unproven: 1, now: now + 3_600_000 });
    expect(blackHole(waiting, options)).to.deep.equal({
      atMost: 0,
      reason: { code: 'black-hole-pause', message: `${what(20, 20)}: one is tried every 600 s, 1 under way` },
    });
  });

  it('ends the pause with the first that lives, be it running still', () => {
    expect(blackHole(state({ ended: times(20, bad), proven: 1 }), options)).to.deep.equal({
      atMost: 2,
      reason: { code: 'black-hole', message: `${what(20, 20)}: no more than 2 are tried at once` },
    });
  });

  it('never limits a resource of which less than half are swallowed', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 20 }),
        fc.nat({ max: 50 }),
        fc.nat({ max: 200 }),
        (swallows, proven, unproven) => {
          const lives = 20 - swallows;
          const ended = [...times(swallows, bad), ...times(lives, good)];
          fc.pre(swallows < lives + proven);
          expect(blackHole(state({ ended, proven, unproven }), options)).to.equal(undefined);
        },
      ),
    );
  });

  it('is never stricter for one more good worker, and never lets through less than nothing', () => {
    const few = fc.nat({ max: 20 });
    fc.assert(
      fc.property(few, few, few, few, (swallows, lives, proven, unproven) => {
        const ended = [...times(swallows, bad), ...times(Math.min(lives, 20 - swallows), good)];
        const most = (more: number) =>
          blackHole(state({ ended, proven: proven + more, unproven }), options)?.atMost ?? Infinity;
        expect(most(0)).to.be.at.least(0);
        expect(most(1)).to.be.at.least(most(0));
      }),
    );
  });
});

/** A queue that is always to be full, on a resource that is good or swallows; one pass each `step` ms. */
class Simulation {
  at = 0;
  readonly made: number[] = [];
  readonly ended: EndedWorker[] = [];
  readonly #running: { startTime: number }[] = [];
  readonly room: number;

  constructor(room: number) {
    this.room = room;
  }

  get alive(): number {
    return this.#running.length;
  }

  /** One pass; new workers end at once, or live for long. @returns what the guard let through. */
  pass(step: number, lives: boolean): number {
    this.at += step;
    const proven = this.#running.filter(({ startTime }) => startTime < this.at - options.lifetime).length;
    const limit = blackHole(
      {
        ended: this.ended.slice(-options.workers).reverse(),
        proven,
        unproven: this.alive - proven,
        lastMade: this.made.at(-1),
        now: this.at,
      },
      options,
    );
    const count = Math.min(this.room - this.alive, limit?.atMost ?? Infinity);
    for (let made = 0; made < count; made++) {
      this.made.push(this.at);
      if (lives) this.#running.push({ startTime: this.at });
      else this.ended.push({ status: 'failed', startTime: this.at, endTime: this.at + 1 });
    }
    return limit?.atMost ?? Infinity;
  }
}

describe('the guard over time', () => {
  const rooms = fc.integer({ min: 1, max: 500 });
  const steps = fc.array(fc.integer({ min: 1000, max: 60_000 }), { minLength: 50, maxLength: 200 });

  it('feeds a resource that swallows all no more than one worker per pause after the first', () => {
    fc.assert(
      fc.property(rooms, steps, (room, pauses) => {
        const queue = new Simulation(room);
        for (const pause of pauses) queue.pass(pause, false);
        // Who is let through together, before the first has come back, is one room full.
        const late = queue.made.slice(Math.max(room, options.workers));
        for (let index = 1; index < late.length; index++) {
          expect(late[index]! - late[index - 1]!).to.be.at.least(options.pause);
        }
        expect(queue.made.length).to.be.at.most(
          Math.max(room + 1, options.workers + 5) + Math.ceil(queue.at / options.pause),
        );
      }),
    );
  });

  it('has a queue full again within a few steps once the resource is good', () => {
    fc.assert(
      fc.property(fc.integer({ min: 25, max: 2000 }), (room) => {
        const queue = new Simulation(room);
        for (let pass = 0; pass < 100; pass++) queue.pass(10_000, false);
        queue.pass(options.pause, true);
        let rounds = 0;
        while (queue.alive < room) {
          // Long enough for those of the last round to have proven that they live.
          queue.pass(options.lifetime + 1, true);
          rounds++;
          expect(rounds).to.be.at.most(2 + Math.ceil(Math.log2(options.workers)));
        }
        expect(queue.pass(options.lifetime + 1, true)).to.equal(Infinity);
      }),
    );
  });

  it('does not mind an operator who ends every worker at once', () => {
    const ended = times(20, { ...bad, status: 'cancelled' });
    expect(blackHole(state({ ended }), options)).to.equal(undefined);
  });
});
