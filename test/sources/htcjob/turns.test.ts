import { expect } from 'chai';
import { kept } from '../../../src/sources/htcjob/followed.ts';
import { Tracked } from '../../../src/sources/htcjob/tracked.ts';
import { Turns } from '../../../src/sources/htcjob/turns.ts';
import { htcJob } from '../../support/htc-jobs.ts';
import type { Reason } from '../../../src/worker/reason.ts';

describe('turns of HTCJobs that wait for the same queue', () => {
  let turns: Turns;
  let all: Tracked[];
  /** By namespace. */
  let living: Map<string, number>;

  beforeEach(() => {
    turns = new Turns();
    all = [];
    living = new Map();
  });

  /** A HTCJob that wants so many jobs, as a step leaves it. */
  function made(namespace: string, wanted: number): Tracked {
    const job = htcJob({ queue: wanted }, `${namespace}-${all.length}`);
    const creationTimestamp = new Date(1e12 + 1000 * all.length).toISOString();
    const tracked = new Tracked(
      kept({ ...job, metadata: { ...job.metadata, namespace, creationTimestamp } }),
    );
    all.push(tracked);
    tracked.queue = 'Q';
    ask(tracked, wanted);
    return tracked;
  }
  /** The first jobs are those that were served. */
  function ask(tracked: Tracked, wanted: number): void {
    const first = (tracked.spec.queue ?? 1) - wanted;
    if (wanted === 0) tracked.stopAsking(true);
    else {
      const indexes = Array.from({ length: turns.take(tracked, 'Q', wanted) }, (_, at) => first + at);
      tracked.ask(new Map(indexes.map((index) => [index, { origin: { uid: tracked.uid, index } }])));
    }
    tracked.wanted = wanted;
  }
  const shared = (changed: (tracked: Tracked) => void) =>
    turns.share(
      'Q',
      all.filter(({ asked }) => asked.size > 0),
      living,
      changed,
    );
  /** A pass of the queue; those whose turn has changed ask anew. @returns the requests, by HTCJob, next to each other */
  function pass(): [name: string, count: number][] {
    const requests = shared((tracked) => {
      ask(tracked, tracked.wanted);
    });
    const runs: [string, number][] = [];
    for (const { origin } of requests) {
      const name = origin.uid.replace('uid-of-', '');
      const last = runs.at(-1);
      if (last?.[0] === name) last[1]++;
      else runs.push([name, 1]);
    }
    return runs;
  }
  /** The first requests get workers. */
  function serve(count: number): void {
    const served = Map.groupBy(shared(() => undefined).slice(0, count), ({ origin }) => origin.uid);
    for (const tracked of all) {
      const some = served.get(tracked.uid)?.length ?? 0;
      if (some > 0) ask(tracked, tracked.wanted - some);
      const { namespace } = tracked.meta;
      living.set(namespace, (living.get(namespace) ?? 0) + some);
    }
  }
  const asked = () => all.map((tracked) => tracked.asked.size);
  const sum = (numbers: readonly number[]) => numbers.reduce((one, other) => one + other, 0);

  it('hole 8: are so many that 20,000 requests are in memory, and one of each that waits behind them', () => {
    for (let at = 0; at < 40; at++) made('a', 10_000);
    const ones = Array.from({ length: 38 }, () => 1);
    expect(asked()).to.deep.equal([10_000, 10_000, ...ones]);
    for (const tracked of all) ask(tracked, 10_000);
    expect(asked(), 'a further look takes nothing away').to.deep.equal([10_000, 10_000, ...ones]);
    expect(
      pass().map(([name]) => name),
      'the oldest first',
    ).to.deep.equal(all.map((_, at) => `a-${at}`));
    for (let at = 0; at < 3; at++) {
      serve(10_000);
      pass();
      pass();
      expect(asked().slice(at + 1, at + 4)).to.deep.equal([10_000, 10_000, 1]);
      expect(sum(asked())).to.be.at.most(20_000 + 40);
    }
    expect(turns.isFull('Q')).to.equal(true);
  });

  it('come at once where there is room, also for a job that is run again', () => {
    const tracked = made('a', 5);
    made('b', 7000);
    expect(asked()).to.deep.equal([5, 7000]);
    pass();
    ask(tracked, 6);
    expect([tracked.asked.size, turns.isFull('Q')]).to.deep.equal([6, false]);
  });

  it('hole 8: are taken by namespaces, 500 jobs at a time: none fills a pass, also with jobs that can never run', () => {
    living.set('many', 50_000);
    for (let at = 0; at < 3; at++) made('many', 10_000);
    made('few', 3);
    made('never', 10_000);
    expect(asked(), 'until the next pass').to.deep.equal([10_000, 10_000, 1, 1, 1]);
    pass();
    expect(asked()).to.deep.equal([9997, 1, 1, 3, 10_000]);
    expect(pass().slice(0, 5)).to.deep.equal([
      ['few-3', 3],
      ['never-4', 500],
      ['many-0', 500],
      ['never-4', 500],
      ['many-0', 500],
    ]);
    expect(sum(asked())).to.be.at.most(20_000 + 5);
  });

  it('hole 8: come to each namespace in every pass, however many have jobs that can never run', () => {
    living.set('good', 5000);
    for (let at = 0; at < 300; at++) made(`never-${at}`, 500);
    made('good', 500);
    pass();
    pass();
    const first = shared(() => undefined).slice(0, 10_000);
    const good = first.filter(({ origin }) => origin.uid.includes('good'));
    expect(good.length).to.be.at.least(30);
    expect(sum(asked())).to.be.at.most(20_000 + 301);
  });

  it('hole 8: are made anew for a hundred jobs, and no HTCJob is judged for less', () => {
    for (const namespace of ['a', 'b', 'c', 'd', 'e']) made(namespace, 10_000);
    pass();
    let judged = 0;
    for (let at = 0; at < 50; at++) {
      const [first] = shared(() => judged++);
      const served = all.find(({ uid }) => uid === first?.origin.uid);
      if (served === undefined) throw new Error('none is asked for');
      served.asked = new Map([...served.asked].slice(1));
      served.wanted--;
    }
    expect(judged).to.equal(0);
  });

  it('begin with the namespace that has the fewest living jobs', () => {
    for (const namespace of ['a', 'b']) made(namespace, 1000);
    const firsts: string[] = [];
    for (let at = 0; at < 4; at++) {
      firsts.push(pass()[0]?.[0] ?? '');
      serve(20);
    }
    expect(firsts).to.deep.equal(['a-0', 'b-1', 'a-0', 'b-1']);
  });

  it('hole 8: take no room for those whose jobs the queue refuses', () => {
    const refused = [made('a', 10_000), made('a', 10_000)];
    const other = made('a', 10_000);
    for (const tracked of refused) tracked.waiting = { code: 'payload-unsupported' } as Reason;
    pass();
    expect(asked()).to.deep.equal([1, 1, 10_000]);
    for (const tracked of refused) tracked.waiting = undefined;
    pass();
    expect([asked()[0], asked()[1], other.asked.size]).to.deep.equal([10_000, 10_000, 1]);
  });

  it('hole 8: are counted anew where many are suspended and go on at once', () => {
    for (let at = 0; at < 10; at++) made('a', 10_000);
    for (const tracked of all) {
      pass();
      pass();
      ask(tracked, 0);
    }
    for (const tracked of all) ask(tracked, 10_000);
    expect(sum(asked())).to.be.at.most(20_000 + 10);
  });

  it('are those of each queue by itself', () => {
    made('a', 10_000);
    made('a', 10_000);
    const other = made('a', 1);
    other.dropRequests();
    expect(turns.take(other, 'OTHER', 10_000)).to.equal(10_000);
    expect([turns.isFull('Q'), turns.isFull('OTHER')]).to.deep.equal([true, false]);
  });
});
