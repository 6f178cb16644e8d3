import { expect } from 'chai';
import {
  type MadeWorkers,
  type Order,
  reportsToKeep,
  type StatisticsReport,
  stillWanted,
} from '../../../src/sources/panda/orders.ts';

const order = (createdAt: number, wanted: Readonly<Record<string, number>>): Order => ({
  createdAt,
  wanted: new Map(Object.entries(wanted)),
});
const made = (at: number, count: number, type = 'SCORE'): MadeWorkers => ({ at, count, type });
const wantedOf = (...of: Parameters<typeof stillWanted>) => Object.fromEntries(stillWanted(...of));

describe('an order of the PanDA server', () => {
  const reports = [{ countedAt: 100, storedBy: 101 }];

  it('wants what it says where the server knew of every worker', () => {
    expect(wantedOf(order(200, { SCORE: 3, MCORE: 1 }), reports, [made(99, 7)])).to.deep.equal({
      SCORE: 3,
      MCORE: 1,
    });
  });

  it('is counted down by the workers that are made for it, each type by its own', () => {
    const workers = [made(201, 2), made(202, 5, 'MCORE')];
    expect(wantedOf(order(200, { SCORE: 3, MCORE: 1 }), reports, workers)).to.deep.equal({
      SCORE: 1,
      MCORE: 0,
    });
  });

  it('wants fewer by the workers that the server had not heard of', () => {
    expect(wantedOf(order(200, { SCORE: 5 }), reports, [made(150, 3)])).to.deep.equal({ SCORE: 2 });
  });

  it('counts from an earlier report where it is not certain that the server had the last one', () => {
    const unsure = [...reports, { countedAt: 190, storedBy: 205 }];
    expect(wantedOf(order(200, { SCORE: 5 }), unsure, [made(150, 3)])).to.deep.equal({ SCORE: 2 });
    expect(wantedOf(order(206, { SCORE: 5 }), unsure, [made(150, 3)])).to.deep.equal({ SCORE: 5 });
  });

  it('counts all workers as unknown to a server that never had a report', () => {
    expect(wantedOf(order(200, { SCORE: 5 }), [], [made(1, 3)])).to.deep.equal({ SCORE: 2 });
  });

  it('keeps the reports that later orders are counted from', () => {
    const all = [
      { countedAt: 10, storedBy: 11 },
      { countedAt: 20, storedBy: 21 },
      { countedAt: 30, storedBy: 45 },
    ];
    expect(reportsToKeep(all, 40)).to.deep.equal(all.slice(1));
    expect(reportsToKeep(all, 5)).to.deep.equal(all);
  });
});

/** Seconds. */
const period = 300;
const poll = 5;
const target = 100;
const duration = 3000;

interface Simulated {
  /** When the server makes its orders, and when the factory reports, within their periods, s. */
  readonly serverPhase: number;
  readonly factoryPhase: number;
  /** How long it takes until all workers of an order are made, s. */
  readonly submission: number;
}

interface Rule {
  /** Whether a report follows each submission at once. */
  readonly reportsAtOnce: boolean;
  wanted(order: Order, reports: readonly StatisticsReport[], made: readonly MadeWorkers[]): number;
}

const ours: Rule = {
  reportsAtOnce: true,
  wanted: (given, reports, workers) => stillWanted(given, reports, workers).get('SCORE') ?? 0,
};

/** Harvester takes the number, counts it down by the workers that it registers, and a newer order replaces the rest. */
const harvesters: Rule = {
  reportsAtOnce: false,
  wanted: ({ createdAt, wanted }, _, workers) => {
    // Its countdown begins when the order arrives: at the poll after it was made.
    const arrived = Math.ceil(createdAt / poll) * poll;
    const since = workers.filter(({ at }) => at >= arrived).reduce((sum, { count }) => sum + count, 0);
    return Math.max(0, (wanted.get('SCORE') ?? 0) - since);
  },
};

/**
 * Plays a server that keeps 100 workers queued, and a factory, second by second; the workers never start.
 * @returns the most workers that were ever queued
 */
function play({ serverPhase, factoryPhase, submission }: Simulated, rule: Rule): number {
  let last: Order | undefined;
  let taken: Order | undefined;
  let reported = 0;
  let dirty = false;
  const reports: StatisticsReport[] = [];
  const workers: MadeWorkers[] = [];
  let queued = 0;
  const report = (now: number) => {
    reported = queued;
    // Within a second the order is made first, then the report is stored, then workers are made.
    reports.push({ countedAt: now + 0.1, storedBy: now + 0.1 });
    dirty = false;
  };
  report(0);
  for (let now = 1; now <= duration; now++) {
    if (now % period === serverPhase) {
      const wanted = Math.max(0, target - reported);
      last = order(now, { SCORE: wanted });
    }
    if (now % period === factoryPhase || (rule.reportsAtOnce && dirty && now % poll === 0)) report(now);
    if (now % poll === 0) taken = last;
    if (taken === undefined) continue;
    const rest = rule.wanted(taken, reports, workers);
    const each = submission === 0 ? rest : Math.min(rest, Math.ceil(target / submission));
    if (each > 0) {
      workers.push({ at: now + 0.5, count: each, type: 'SCORE' });
      queued += each;
      dirty = true;
    }
  }
  return queued;
}

describe('orders of the PanDA server against reports of the factory, each every 300 s', () => {
  const cases: Simulated[] = [];
  for (let serverPhase = 0; serverPhase < period; serverPhase += 19)
    for (let factoryPhase = 0; factoryPhase < period; factoryPhase += 19)
      for (const submission of [0, 20, 120, 400]) cases.push({ serverPhase, factoryPhase, submission });

  it('never order a worker twice, whichever phase the two clocks have', () => {
    const most = cases.map((one) => play(one, ours));
    expect(Math.max(...most)).to.equal(target);
    expect(Math.min(...most)).to.equal(target);
  });

  it("order workers twice by Harvester's rule in some of these phases", () => {
    const most = cases.map((one) => play(one, harvesters));
    expect(Math.max(...most)).to.be.above(target);
  });
});
