import { expect } from 'chai';
import { OperatorDesk } from '../../../src/daemon/requests/operator-desk.ts';
import type { Desk, WorkerNews } from '../../../src/plugins/contracts/index.ts';
import { OperatorSource } from '../../../src/sources/request/source.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';

describe('the desk for requests of operators, and their source', () => {
  let store: Store;
  let desk: OperatorDesk;
  let source: OperatorSource;
  let woken: string[];
  let failures: unknown[];
  let asked: number;

  beforeEach(async () => {
    store = await openStore(':memory:', 'factory');
    await store.queues.report({ queue: 'Q', queueStatus: 'online', limits: {}, reasons: [], reportTime: 1 });
    [woken, failures, asked] = [[], [], 0];
    const counting: Pick<Store['requests'], 'open' | 'served' | 'toEnd'> = {
      open: (...args) => counted(() => store.requests.open(...args)),
      served: (...args) => counted(() => store.requests.served(...args)),
      toEnd: () => counted(() => store.requests.toEnd()),
    };
    desk = new OperatorDesk({
      store: {
        ...counting,
        add: (...args) => store.requests.add(...args),
        withdraw: (...args) => store.requests.withdraw(...args),
        ended: (...args) => store.requests.ended(...args),
      },
      clock: new ManualClock(),
      random: Math.random,
      reports: () => store.queues.all(),
      why: () => [],
      wakeSubmitter: (queue) => woken.push(queue),
      failed: (error) => failures.push(error),
    });
    source = new OperatorSource(desk);
  });
  afterEach(() => store.close());

  function counted<T>(ask: () => Promise<T>): Promise<T> {
    asked += 1;
    return ask();
  }

  const keys = async (queue = 'Q') =>
    (await source.wanted({ name: queue })).requests.map(({ origin }) => origin);
  const news = (uid: string, index: number, what: WorkerNews['what'] = 'added') =>
    ({ what, origin: { uid, index } }) as WorkerNews;
  /** As the command line does, in another process. */
  const left = async (id: string, count = 2) => {
    await store.requests.add({ id, queue: 'Q', count, by: 'command-line', payload: { argv: ['x'] } }, 1);
    await desk.changed();
  };

  it('ask for each worker once, and forget a request when all have rows', async () => {
    await left('a');
    expect(woken).to.deep.equal(['Q']);
    expect(await keys()).to.deep.equal([
      { uid: 'a', index: 0 },
      { uid: 'a', index: 1 },
    ]);
    expect(await keys('other')).to.deep.equal([]);
    await source.told([news('a', 1)]);
    expect(await keys()).to.deep.equal([{ uid: 'a', index: 0 }]);
    // The same news twice, and others of the worker, change nothing.
    await source.told([news('a', 1), news('a', 1, 'changed')]);
    expect(await keys()).to.deep.equal([{ uid: 'a', index: 0 }]);
    await source.told([news('a', 0, 'known')]);
    expect(await keys()).to.deep.equal([]);
    expect((await store.requests.byId('a'))?.servedTime).to.be.a('number');
  });

  it('take any news of a worker for its row: an answer is left out beside another news', async () => {
    await left('a');
    await keys();
    await source.told([news('a', 0, 'known'), news('a', 1, 'changed')]);
    expect((await store.requests.byId('a'))?.servedTime).to.be.a('number');
  });

  it('give the workers of a request one group, and its payload', async () => {
    await left('a', 2);
    const { requests } = await source.wanted({ name: 'Q' });
    const common = { requirements: {}, groupId: 'a', payload: { argv: ['x'] } };
    expect(requests).to.deep.equal([
      { origin: { uid: 'a', index: 0 }, ...common },
      { origin: { uid: 'a', index: 1 }, ...common },
    ]);
  });

  it('ask again after a restart, and learn then which workers there were', async () => {
    await left('a');
    await keys();
    await source.told([news('a', 0)]);
    source = new OperatorSource(desk);
    expect(await keys()).to.have.length(2);
    await source.told([news('a', 0, 'known'), news('a', 1)]);
    expect((await store.requests.byId('a'))?.servedTime).to.be.a('number');
  });

  it('ask the database nothing in the passes of a queue, unless something was left', async () => {
    await left('a');
    await keys();
    const before = asked;
    for (let pass = 0; pass < 10; pass++) await keys();
    expect(asked).to.equal(before);
  });

  it('ask by the same objects in each pass', async () => {
    await left('a');
    const [first] = (await source.wanted({ name: 'Q' })).requests;
    const [again] = (await source.wanted({ name: 'Q' })).requests;
    expect(again).to.equal(first);
  });

  it('make a group of several workers, and none of a single one', async () => {
    await left('a', 2);
    await left('b', 1);
    const { requests } = await source.wanted({ name: 'Q' });
    expect(requests.map(({ groupId }) => groupId)).to.deep.equal(['a', 'a', undefined]);
  });

  it('wake a queue for what is new alone', async () => {
    await left('a');
    woken = [];
    await desk.changed();
    expect(woken).to.deep.equal([]);
    await desk.ask({ queue: 'Q', count: 1 }, 'http');
    expect(woken).to.deep.equal(['Q']);
  });

  it('read again after a database that could not be read', async () => {
    await store.requests.add({ id: 'a', queue: 'Q', count: 1, by: 'http' }, 1);
    const open = store.requests.open.bind(store.requests);
    store.requests.open = async () => {
      throw new Error('the disk is gone');
    };
    await desk.changed();
    expect(failures).to.have.length(1);
    store.requests.open = open;
    expect(await keys()).to.have.length(1);
  });

  it('end the workers of a request that is taken back, once, and again where that failed', async () => {
    const ended: string[] = [];
    let fails = true;
    const backend = {
      end: async (origins: readonly { uid: string; index: number }[], reason: string) => {
        if (fails) throw new Error('not now');
        ended.push(...origins.map(({ uid, index }) => `${uid} ${index} ${reason}`));
      },
    } as unknown as Desk;
    const stop = new AbortController();
    await left('a');
    await keys();
    await desk.withdraw('a', 'enough');
    expect(await keys()).to.deep.equal([]);
    const error = await source.run(backend, stop.signal).catch((thrown: unknown) => String(thrown));
    expect(error).to.contain('not now');
    fails = false;
    // As the daemon does: it starts the source again.
    const life = source.run(backend, stop.signal);
    await until('its workers are ended', async () => (await store.requests.toEnd()).length === 0);
    expect(ended).to.deep.equal(['a 0 enough', 'a 1 enough']);
    await left('b', 1);
    await desk.withdraw('b', 'late');
    await until('the next one is ended', () => ended.includes('b 0 late'));
    stop.abort();
    await life;
  });
});
