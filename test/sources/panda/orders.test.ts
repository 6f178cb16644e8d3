import { expect } from 'chai';
import {
  type ByType,
  knownReport,
  reportsToKeep,
  type StatisticsReport,
  stillWanted,
} from '../../../src/sources/panda/orders.ts';

const numbers = (wanted: Readonly<Record<string, number>>): ByType => new Map(Object.entries(wanted));
/** How long before an order the server may have read its statistics, ms. */
const margin = 120_000;
const reportAt = (countedAt: number, storedBy = countedAt): StatisticsReport => ({
  countedAt,
  storedBy,
  upTo: 0,
});

describe('an order of the PanDA server', () => {
  const rows: readonly (readonly [
    title: string,
    wanted: Readonly<Record<string, number>>,
    made: Readonly<Record<string, number>>,
    still: Readonly<Record<string, number>>,
  ])[] = [
    [
      'what it says where the server knew of every worker',
      { SCORE: 3, MCORE: 1 },
      {},
      { SCORE: 3, MCORE: 1 },
    ],
    ['fewer by the workers that it had not heard of', { SCORE: 5 }, { SCORE: 3 }, { SCORE: 2 }],
    ['each type less by its own', { SCORE: 3, MCORE: 1 }, { SCORE: 2, MCORE: 5 }, { SCORE: 1, MCORE: 0 }],
    ['nothing of a type that it does not say', { SCORE: 1 }, { MCORE: 5 }, { SCORE: 1 }],
  ];
  for (const [title, wanted, made, still] of rows) {
    it(`wants ${title}`, () => {
      expect(Object.fromEntries(stillWanted(numbers(wanted), numbers(made)))).to.deep.equal(still);
    });
  }

  it('is counted from the last report, or an earlier one where it is not certain that the server had the last', () => {
    const [first, second] = [reportAt(100, 101), reportAt(190, 205)];
    expect(knownReport(margin + 206, [first, second])).to.equal(second);
    expect(knownReport(margin + 200, [first, second])).to.equal(first);
    expect(knownReport(margin + 50, [first, second])).to.equal(undefined);
  });

  it('is counted from no report that the server may have got after it read the statistics of all sites', () => {
    const [first, late] = [reportAt(0), reportAt(25_000)];
    expect(knownReport(margin, [first, late])).to.equal(first);
    expect(knownReport(margin + 25_000, [first, late])).to.equal(late);
  });

  it('is counted from the later of two reports, though our clock was set back between them', () => {
    const [first, second] = [reportAt(7_200_000, 100), reportAt(300_000, 200)];
    expect(knownReport(margin + 300, [first, second])).to.equal(second);
    expect(reportsToKeep([first, second], margin + 150)).to.deep.equal([first, second]);
    expect(reportsToKeep([first, second], margin + 300)).to.deep.equal([second]);
  });

  it('keeps the reports that later orders are counted from, and no more than some', () => {
    const all = [reportAt(10, 11), reportAt(20, 21), reportAt(30, 45)];
    expect(reportsToKeep(all, margin + 40)).to.deep.equal(all.slice(1));
    expect(reportsToKeep(all, margin + 5)).to.deep.equal(all);
    const many = Array.from({ length: 1000 }, (_, at) => reportAt(at));
    expect(reportsToKeep(many, 0).length).to.be.below(100);
    expect(reportsToKeep(many, 0).at(-1)).to.equal(many.at(-1));
  });

  it('hole 7: keeps a report for an order of any age up to an hour, however many reports there are', () => {
    let kept: readonly StatisticsReport[] = [];
    for (let at = 0; at <= 4 * 3_600_000; at += 30_000)
      kept = reportsToKeep([...kept, reportAt(at)], at - 3_600_000);
    const now = 4 * 3_600_000;
    for (let age = 0; age <= 3_600_000; age += 10_000) {
      const known = knownReport(now - age, kept)?.storedBy ?? -Infinity;
      expect(now - age - margin - known, `an order of ${age} ms ago`).to.be.within(0, 300_000);
    }
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

/** An order, as the simulated server made it. */
interface Order {
  readonly createdAt: number;
  readonly wanted: number;
}

interface MadeWorkers {
  readonly at: number;
  readonly count: number;
}

interface Rule {
  /** Whether a report follows each submission at once. */
  readonly reportsAtOnce: boolean;
  wanted(order: Order, reports: readonly StatisticsReport[], made: readonly MadeWorkers[]): number;
}

const ours: Rule = {
  reportsAtOnce: true,
  wanted: ({ createdAt, wanted }, reports, workers) => {
    const since = knownReport(createdAt * 1000, reports)?.countedAt ?? -Infinity;
    const made = workers.reduce((sum, { at, count }) => sum + (at * 1000 > since ? count : 0), 0);
    return stillWanted(numbers({ SCORE: wanted }), numbers({ SCORE: made })).get('SCORE') ?? 0;
  },
};

/** Harvester takes the number, counts it down by the workers that it registers, and a newer order replaces the rest. */
const harvesters: Rule = {
  reportsAtOnce: false,
  wanted: ({ createdAt, wanted }, _, workers) => {
    // Its countdown begins when the order arrives: at the poll after it was made.
    const arrived = Math.ceil(createdAt / poll) * poll;
    const since = workers.filter(({ at }) => at >= arrived).reduce((sum, { count }) => sum + count, 0);
    return Math.max(0, wanted - since);
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
    reports.push(reportAt((now + 0.1) * 1000));
    dirty = false;
  };
  report(0);
  for (let now = 1; now <= duration; now++) {
    if (now % period === serverPhase) {
      const wanted = Math.max(0, target - reported);
      last = { createdAt: now, wanted };
    }
    if (now % period === factoryPhase || (rule.reportsAtOnce && dirty && now % poll === 0)) report(now);
    if (now % poll === 0) taken = last;
    if (taken === undefined) continue;
    const rest = rule.wanted(taken, reports, workers);
    const each = submission === 0 ? rest : Math.min(rest, Math.ceil(target / submission));
    if (each > 0) {
      workers.push({ at: now + 0.5, count: each });
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
