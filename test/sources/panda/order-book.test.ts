import { expect } from 'chai';
import { SourceDesk } from '../../../src/agents/sources/desk.ts';
import type { Request } from '../../../src/plugins/contracts/index.ts';
import { LinkMemory } from '../../../src/sources/panda/memory.ts';
import { mostLeftRuns, mostOfAllOrders, OrderBook } from '../../../src/sources/panda/order-book.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { requirements, workerOf, ownQueue } from '../../support/samples.ts';
import { memoryFor } from '../../support/source-memory.ts';

describe('the orders of the PanDA server', () => {
  let parts: AgentParts;
  let memory: LinkMemory;
  let orders: OrderBook;
  let desk: SourceDesk;
  let woken: string[];
  let queues: readonly string[];
  let lastId: number;
  /** How far the server's clock is ahead, ms, by what is known of it. */
  let ahead: number | undefined;
  /** What the memory wrote last. */
  let written: string;

  /** What happens while the memory is being written the next time. */
  let meanwhile: (() => Promise<void>) | undefined;

  beforeEach(async () => {
    parts = await AgentParts.open();
    meanwhile = undefined;
    queues = ['S'];
    woken = [];
    lastId = 0;
    ahead = 0;
    memory = memoryWith('');
    orders = new OrderBook({
      memory,
      clock: parts.clock,
      log: parts.log,
      serverAhead: () => (ahead === undefined ? undefined : { ahead, within: 1000 }),
    });
    desk = new SourceDesk('panda', {
      ...parts.context,
      queues: () => queues,
      queuesOf: () => queues.map((name) => ownQueue(name, { runMode: 'slave' })),
      reasonsOf: () => [],
      unlistedOf: () => undefined,
      wakeSubmitter: (queue) => woken.push(queue),
      logsOf: () => Promise.reject(new Error('none')),
      outputsOf: async () => undefined,
    });
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  function memoryWith(text: string): LinkMemory {
    const made = new LinkMemory(
      memoryFor(async (now) => {
        written = now;
        const happens = meanwhile;
        meanwhile = undefined;
        await happens?.();
      }),
    );
    if (text !== '') made.take(text);
    return made;
  }

  /** An order that the server makes at this moment. */
  const take = (id: number, numbers: Readonly<Record<string, number>>, createdAt = parts.clock.now()) =>
    orders.take(
      { kind: 'set-workers', site: 'S', wanted: new Map(Object.entries(numbers)), createdAt },
      id,
      desk,
    );
  const requestsOf = (queue = 'S') =>
    orders.seriesOf({ name: queue, requirements }, queues).flatMap(({ requests }) => [...requests]);
  const asked = (queue = 'S') =>
    requestsOf(queue).map(({ origin, requirements: needs }) => ({
      ...origin,
      type: needs?.resourceType,
    }));
  const typesOf = (queue = 'S') => asked(queue).map(({ type }) => type);
  const workersFor = (requests: readonly Request[]) =>
    requests.map(({ origin, requirements: needs }) =>
      workerOf(++lastId, {
        queue: 'S',
        origin: { kind: 'panda', ...origin },
        requirements: { ...requirements, ...needs },
      }),
    );
  /** The first so many requests get their workers, and the orders hear of these or not. */
  async function make(count: number, isHeard = true): Promise<void> {
    const first = requestsOf().slice(0, count);
    await parts.ledger.intend(workersFor(first));
    if (isHeard) for (const news of await desk.find(first.map(({ origin }) => origin))) orders.heard(news);
  }
  /** The server takes statistics of all workers at this moment, long enough before its next order. */
  async function report(): Promise<void> {
    const { at, upTo } = await desk.census();
    const report = { countedAt: at, upTo, storedBy: at - 120_000 };
    await memory.change((kept) => ({ ...kept, reports: { S: [...(kept.reports['S'] ?? []), report] } }));
    await parts.clock.advance(1);
  }

  it('count by their numbers where one of two has no date, for an hour: a server may count from 1 again', async () => {
    const undated = (id: number) =>
      orders.take(
        { kind: 'set-workers', site: 'S', wanted: new Map([['SCORE', id]]), createdAt: undefined },
        id,
        desk,
      );
    await report();
    await take(9, { SCORE: 9 });
    expect(await undated(7)).to.equal('a newer order of the site counts');
    await undated(10);
    expect(memory.orderOf('S')?.commandId).to.equal(10);
    // It was made before the one without a date came, and is no later one by its number.
    expect(await take(8, { SCORE: 8 }, parts.clock.now() - 60_000)).to.equal(
      'a newer order of the site counts',
    );
    await parts.clock.advance(3_600_000);
    await undated(2);
    expect(memory.orderOf('S')?.commandId).to.equal(2);
  });

  it('become requests by name, for the types that they say, and wake the queue', async () => {
    await report();
    expect(await take(1, { SCORE: 2, MCORE: 1, OTHER: 0 })).to.equal('3 new workers');
    expect(typesOf()).to.deep.equal(['SCORE', 'SCORE', 'MCORE']);
    expect(new Set(asked().map(({ uid, index }) => `${uid} ${index}`)).size).to.equal(3);
    expect(woken).to.deep.equal(['S']);
  });

  it('ask for no worker again that they have heard of, and say how many are left', async () => {
    await report();
    await take(1, { SCORE: 3 });
    await make(2);
    expect(asked()).to.have.length(1);
    expect(orders.orderOf('S')).to.deep.include({ said: { SCORE: 3 }, wanted: { SCORE: 3 }, rest: 1 });
  });

  it('keep the names of requests that an earlier one left over: a pass under way may just be making them', async () => {
    await report();
    await take(1, { SCORE: 5 });
    const before = asked();
    await make(2, false);
    await report();
    await take(2, { SCORE: 4 });
    expect(asked().slice(0, 3)).to.deep.equal(before.slice(2));
    expect(asked()).to.have.length(4);
  });

  it('withdraw what is wanted no more, so that a pass under way cannot make it', async () => {
    await report();
    await take(1, { SCORE: 3 });
    const late = requestsOf();
    await report();
    await take(2, { SCORE: 1 });
    expect(asked()).to.have.length(1);
    const workers = late.map(({ origin }) =>
      workerOf(++lastId, { queue: 'S', origin: { kind: 'panda', ...origin } }),
    );
    expect((await parts.ledger.intend(workers)).size).to.equal(1);
  });

  for (const what of ['after it, as after the loss of the database', 'while it is taken'])
    it(`end no worker that is wanted no more and ${what === 'while it is taken' ? 'is recorded' : 'comes to light'} ${what}`, async () => {
      await report();
      await take(1, { SCORE: 5 });
      const workers = workersFor(requestsOf());
      await report();
      if (what === 'while it is taken') {
        meanwhile = async () => {
          await parts.ledger.intend(workers);
        };
        await take(2, { SCORE: 1 });
      } else {
        await take(2, { SCORE: 1 });
        await parts.ledger.adopt(workers, 'submitted');
      }
      const news = await desk.living();
      expect(news.map(({ worker }) => worker.workerId)).to.deep.equal([1, 2, 3, 4, 5]);
      const rows = await parts.store.workers.byIds([1, 2, 3, 4, 5]);
      expect(rows.map(({ killReason }) => killReason)).to.deep.equal([null, null, null, null, null]);
      expect([...parts.ledger.live.all()].filter(({ killed }) => killed)).to.deep.equal([]);
      for (const one of news) orders.heard(one);
      expect(asked()).to.deep.equal([]);
      // They count, and a command ends them as it ends others.
      expect(await take(3, { SCORE: 5 }, parts.clock.now())).to.match(/^0 new workers/);
      await desk.end([news[4]?.origin ?? { uid: '', index: 0 }], 'KILL_WORKERS');
      expect(parts.ledger.live.get(5)?.killed).to.equal(true);
    });

  it('want fewer by the workers that the server had not heard of, whichever order made them', async () => {
    await report();
    await take(1, { SCORE: 5 });
    await make(3);
    await parts.clock.advance(1);
    expect(await take(2, { SCORE: 5 })).to.equal(
      '2 new workers, 3 of 5 were made before the server knew of them',
    );
    expect(asked()).to.have.length(2);
  });

  it('come twice and count once, also after a restart', async () => {
    await report();
    const createdAt = parts.clock.now();
    await take(1, { SCORE: 2 }, createdAt);
    await make(1);
    memory = memoryWith(written);
    orders = new OrderBook({
      memory,
      clock: parts.clock,
      log: parts.log,
      serverAhead: () => (ahead === undefined ? undefined : { ahead, within: 1000 }),
    });
    await orders.resume(desk);
    expect(asked()).to.have.length(1);
    expect(await take(1, { SCORE: 2 }, createdAt)).to.equal('it is carried out already');
    expect(asked()).to.have.length(1);
  });

  it('give way to no older one', async () => {
    await report();
    const earlier = parts.clock.now();
    await parts.clock.advance(1000);
    await take(2, { SCORE: 1 });
    expect(await take(1, { SCORE: 9 }, earlier)).to.equal('a newer order of the site counts');
    expect(asked()).to.have.length(1);
  });

  it('count though the clock of the server was set back: a later one has a higher number', async () => {
    await report();
    const earlier = parts.clock.now();
    await parts.clock.advance(3_600_000);
    await take(1, { SCORE: 1 });
    expect(await take(2, { SCORE: 3 }, earlier)).to.equal('3 new workers');
  });

  it('hole 7: are counted from the last hour, where the server dates them before all that is known', async () => {
    await report();
    await take(1, { SCORE: 5 });
    await make(5);
    await parts.clock.advance(3_700_000);
    await report();
    const twoHoursAgo = () => parts.clock.now() - 7_200_000;
    expect(await take(2, { SCORE: 3 }, twoHoursAgo())).to.match(/^0 new workers/);
    await parts.clock.advance(3_700_000);
    await report();
    expect(await take(3, { SCORE: 3 }, twoHoursAgo())).to.equal('3 new workers');
    ahead = undefined;
    await make(1);
    expect(await take(4, { SCORE: 3 }, twoHoursAgo())).to.match(/^2 new workers/);
  });

  it('hole 7: rest on no report that is younger than they are, whatever time a server on the way tells', async () => {
    await report();
    await take(1, { SCORE: 10 });
    await parts.clock.advance(140_000);
    await make(10);
    await parts.clock.advance(30_000);
    const ordered = parts.clock.now();
    await parts.clock.advance(20_000);
    const { at, upTo } = await desk.census();
    const late = { countedAt: at, upTo, storedBy: at };
    await memory.change((kept) => ({ ...kept, reports: { S: [...(kept.reports['S'] ?? []), late] } }));
    for (const told of [7_200_000, -7_200_000, 0]) {
      ahead = told;
      expect(await take(told + 8_000_000, { SCORE: 10 }, ordered)).to.match(/^0 new workers/);
    }
  });

  it('hole 7: end with no order that the server dates in the far future', async () => {
    await report();
    const [last, farAhead] = [Number.MAX_SAFE_INTEGER, Date.UTC(9999, 11, 31)];
    for (const told of [0, undefined, -7_200_000, 7_200_000]) {
      ahead = told;
      expect(await take(last, { SCORE: 1 }, farAhead)).to.equal('1 new workers');
      await parts.clock.advance(300_000);
      expect(await take(2, { SCORE: 2 }, parts.clock.now() + (told ?? 0)), String(told)).to.equal(
        '2 new workers',
      );
    }
  });

  it('of the type that the server never counts want what is not queued yet', async () => {
    await report();
    await take(1, { Undefined: 3 });
    await make(3);
    await report();
    expect(await take(2, { Undefined: 3 })).to.match(/^0 new workers/);
    await parts.ledger.change([{ workerId: 1, to: 'running', source: 'test' }]);
    expect(await take(3, { Undefined: 3 })).to.match(/^1 new workers/);
  });

  it('get new names when a server that begins anew gives the same number again', async () => {
    await report();
    await take(1, { SCORE: 1 });
    await make(1);
    await report();
    await take(1, { SCORE: 1 });
    expect(asked()).to.have.length(1);
    expect(await parts.store.origins.known('panda', asked())).to.deep.equal([]);
  });

  it('go to the queue of their type where a site has some', async () => {
    queues = ['S/MCORE', 'S/SCORE', 'T'];
    await report();
    await take(1, { SCORE: 2, MCORE: 1, SCORE_HIMEM: 1 });
    expect(typesOf('S/SCORE')).to.deep.equal(['SCORE', 'SCORE']);
    expect(typesOf('S/MCORE'), 'and what no queue is for').to.deep.equal(['MCORE', 'SCORE_HIMEM']);
    expect(typesOf('T')).to.deep.equal([]);
    expect(woken).to.have.members(['S/SCORE', 'S/MCORE']);
  });

  it('hole 8: of three hundred types of a million each ask for no more than an order can mean', async () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`TYPE${at}`, 1_000_000]));
    await take(1, many);
    expect(asked()).to.have.length(20_000);
    const bounds = { mincore: 1, maxcore: 1, minrampercore: 0, maxrampercore: 2000 };
    const types = ['SCORE', 'MCORE'].map((name) => ({ resource_name: name, ...bounds }));
    await memory.change((kept) => ({ ...kept, types }));
    await take(2, { ...many, SCORE: 3, MCORE: 0, Undefined: 1 }, parts.clock.now() + 1);
    expect(typesOf()).to.deep.equal(['SCORE', 'SCORE', 'SCORE', 'Undefined']);
    const cuts = parts.log.lines.filter(({ message }) => message === 'an order of the PanDA server is cut');
    expect(cuts).to.have.length(2);
    expect(cuts[1]?.facts).to.deep.include({ taken: 4, type: 'TYPE0' });
  });

  it('have no type whose name shows a secret, and the log has none of it', async () => {
    const secret = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl';
    await take(1, { [secret]: 3, SCORE: 2 });
    expect(typesOf()).to.deep.equal(['SCORE', 'SCORE']);
    expect(orders.orderOf('S')).to.deep.include({ said: { SCORE: 2 }, wanted: { SCORE: 2 }, rest: 2 });
    expect(JSON.stringify([written, parts.log.lines])).not.to.include('eyJ');
    expect(parts.log.lines[0]).to.deep.include({ message: 'an order of the PanDA server is cut' });
  });

  describe('of many sites', () => {
    const sites = (count: number) => Array.from({ length: count }, (_, at) => `S${at}`);
    let id = 0;
    const orderOf = (site: string, numbers: Readonly<Record<string, number>>) =>
      orders.take(
        {
          kind: 'set-workers',
          site,
          wanted: new Map(Object.entries(numbers)),
          createdAt: parts.clock.now(),
        },
        ++id,
        desk,
      );
    const requested = () =>
      [...memory.orders.values()].flatMap(({ runs }) => runs).reduce((sum, { count }) => sum + count, 0);
    const full = 'the orders of the PanDA server together ask for more workers than thresher takes';

    it('have a bound together, beyond which each has its part still, and that is said once', async () => {
      queues = sites(20);
      for (let round = 0; round < 2; round++) {
        for (const site of queues) await orderOf(site, { SCORE: 10_000, MCORE: 10_000 });
        await parts.clock.advance(300_000);
      }
      expect(requested()).to.be.at.most(2 * mostOfAllOrders);
      expect(memory.orderOf('S19')?.wanted).to.deep.equal({ SCORE: mostOfAllOrders / 20, MCORE: 0 });
      const told = parts.log.lines.filter(({ message }) => message === full);
      expect(told.map(({ facts }) => facts)).to.deep.equal([
        { site: 'S5', wanted: 20_000, taken: 5000, most: mostOfAllOrders },
      ]);
    });

    it('count for the others as far as their workers are not made', async () => {
      queues = sites(6);
      const requestsOfAll = () => queues.flatMap((site) => requestsOf(site));
      for (const site of queues.slice(0, 5)) await orderOf(site, { SCORE: 10_000, MCORE: 10_000 });
      for (const { origin } of requestsOfAll()) orders.heard({ origin } as Parameters<OrderBook['heard']>[0]);
      expect(await orderOf('S5', { SCORE: 10_000, MCORE: 10_000 })).to.equal('20000 new workers');
      expect(parts.log.lines).to.deep.equal([]);
    });

    it('count for the others only while a queue serves their site', async () => {
      queues = sites(5);
      for (const site of queues) await orderOf(site, { SCORE: 10_000, MCORE: 10_000 });
      queues = Array.from({ length: 20 }, (_, at) => `T${at}`);
      expect(await orderOf('T0', { SCORE: 10_000, MCORE: 10_000 })).to.equal('20000 new workers');
    });

    it('of which some fit and some do not are told of once, and again when all fitted for an hour', async () => {
      queues = sites(20);
      const large = async () => {
        for (const site of queues.slice(0, 6)) await orderOf(site, { SCORE: 10_000, MCORE: 10_000 });
        await parts.clock.advance(300_000);
      };
      const told = () => parts.log.lines.filter(({ message }) => message === full).length;
      for (let round = 0; round < 20; round++) await large();
      expect(told()).to.equal(1);
      for (let round = 0; round < 12; round++) {
        for (const site of queues.slice(0, 6)) await orderOf(site, { SCORE: 1 });
        await parts.clock.advance(300_000);
      }
      await large();
      expect(told()).to.equal(2);
    });

    it('have room for what a large factory needs: a hundred with 500 workers each', async () => {
      queues = sites(100);
      for (const site of queues) await orderOf(site, { SCORE: 400, MCORE: 100 });
      expect(requested()).to.equal(50_000);
      expect(parts.log.lines).to.deep.equal([]);
    });

    it('that want a little more each time keep a bounded number of runs, and each worker comes once', async () => {
      queues = sites(2);
      const rounds = 12;
      const types = Array.from({ length: 100 }, (_, at) => `T${at}`);
      for (let round = 1; round <= rounds; round++) {
        for (const site of queues)
          await orderOf(site, Object.fromEntries(types.map((type) => [type, round])));
        await parts.clock.advance(300_000);
      }
      for (const site of queues) {
        expect(memory.orderOf(site)?.runs.length).to.be.at.most(mostLeftRuns + types.length);
        const open = requestsOf(site).map(({ origin }) => origin);
        expect(new Set(open.map(({ uid, index }) => `${uid} ${index}`)).size).to.equal(rounds * types.length);
        expect(await parts.store.origins.known('panda', open)).to.deep.equal([]);
      }
    });

    it('count a left-over worker that is recorded while its name is given up: it is not made twice', async () => {
      queues = ['S'];
      const types = Array.from({ length: 100 }, (_, at) => `T${at}`);
      const numbers = (count: number) => Object.fromEntries(types.map((type) => [type, count]));
      const withdraw = desk.withdraw.bind(desk);
      let recorded = 0;
      desk.withdraw = async (origins) => {
        const [first] = recorded === 0 ? origins : [];
        if (first !== undefined) {
          recorded++;
          const wanted = { origin: first, requirements: { resourceType: 'T0' } };
          await parts.ledger.intend(workersFor([wanted]));
        }
        await withdraw(origins);
      };
      for (let round = 1; round <= 4; round++) {
        await orderOf('S', numbers(round));
        await parts.clock.advance(300_000);
      }
      expect(recorded).to.equal(1);
      expect(memory.orderOf('S')?.wanted).to.include({ T0: 3, T1: 4 });
      expect(asked()).to.have.length(399);
    });
  });

  it('of an absurd number are cut, and that is said', async () => {
    await report();
    await take(1, { SCORE: 1e9 });
    expect(asked()).to.have.length(10_000);
    expect(parts.log.lines.map(({ message }) => message)).to.include('an order of the PanDA server is cut');
  });

  it('without any report count every worker as one that the server does not know', async () => {
    await take(1, { SCORE: 2 });
    await make(2);
    await take(2, { SCORE: 2 }, parts.clock.now() + 1);
    expect(asked()).to.deep.equal([]);
  });

  it('of sites that no queue serves any more are forgotten after a while', async () => {
    await take(1, { SCORE: 2 });
    queues = ['T'];
    await parts.clock.advance(8 * 86_400_000);
    const wanted = new Map([['SCORE', 1]]);
    await orders.take({ kind: 'set-workers', site: 'T', wanted, createdAt: parts.clock.now() }, 2, desk);
    expect([...memory.orders.keys()]).to.deep.equal(['T']);
  });
});
