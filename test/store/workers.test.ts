import { expect } from 'chai';
import fc from 'fast-check';
import type { Store } from '../../src/store/store.ts';
import type { WorkerChange } from '../../src/store/worker-changes.ts';
import { onEachDatabase } from '../support/each-database.ts';
import { workerOf } from '../support/samples.ts';

const change = (
  workerId: number,
  from: WorkerChange['from'],
  to: WorkerChange['to'],
  at = 10,
): WorkerChange => ({
  workerId,
  from,
  to,
  at,
  source: 'monitor',
});
const thrownBy = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
const ids = (workers: readonly { readonly workerId: number }[]) =>
  workers.map(({ workerId }) => workerId).sort((a, b) => a - b);

onEachDatabase('the store of workers', (database) => {
  let store: Store;

  beforeEach(async () => {
    store = await database.openNew();
  });

  afterEach(async () => {
    await store.close();
  });

  const insert = (...workerIds: number[]) =>
    store.workers.insert(
      workerIds.map((id) => workerOf(id)),
      'pending',
      1,
      'submitter',
    );

  it('gives back a worker as it was recorded', async () => {
    const worker = workerOf(1, { accessPoint: '/data/1', handle: { batchID: '7', pid: 7 } });
    await store.workers.insert([worker], 'submitted', 5, 'adoption');
    expect(await store.workers.byId(1)).to.deep.include({
      ...worker,
      status: 'submitted',
      creationTime: 5,
      modificationTime: 5,
    });
    expect(await store.workers.history(1)).to.deep.equal([
      {
        worker_id: 1,
        at: 5,
        from_status: null,
        to_status: 'submitted',
        source: 'adoption',
        native_status: null,
        message: null,
      },
    ]);
    expect(await store.workers.byId(2)).to.equal(undefined);
  });

  it('gives back any text and any number as it was recorded', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 30 }).map((one) => one.toWellFormed());
    const sizes = fc.record({ nCore: fc.nat(), minRamCount: fc.double({ noNaN: true, min: 0, max: 1e15 }) });
    let workerId = 0;
    const property = fc.asyncProperty(
      text,
      text,
      sizes,
      async (queue, accessPoint, { nCore, minRamCount }) => {
        const requirements = { ...workerOf(1).requirements, nCore, minRamCount };
        const worker = workerOf(++workerId, { queue, accessPoint, requirements });
        const [keptQueue, origin] = [database.kept(queue), { ...worker.origin, uid: database.kept(queue) }];
        const kept = { ...worker, queue: keptQueue, computingSite: keptQueue, origin };
        await store.workers.insert([worker], 'pending', 1, 'submitter');
        expect(await store.workers.byId(workerId)).to.deep.include({
          ...kept,
          accessPoint: database.kept(accessPoint),
        });
      },
    );
    await fc.assert(property);
  });

  it('records more intents at once than SQLite binds values', async () => {
    await insert(...Array.from({ length: 2001 }, (_, index) => index + 1));
    const [all] = await store.load.alive(['Q']);
    expect(all).to.include({ status: 'pending', workers: 2001, cores: 2001, memory: 2001 * 2000 });
  });

  it('never gives the same id to two workers, and records none of the batch then', async () => {
    await insert(1);
    const error = await thrownBy(store.workers.insert([workerOf(2), workerOf(1)], 'pending', 1, 'submitter'));
    expect(error).to.have.property('code', database.codes.duplicate);
    expect(ids(await store.workers.list({}))).to.deep.equal([1]);
    expect(await store.workers.history(2)).to.deep.equal([]);
  });

  it('never gives the same origin two workers, and records the others', async () => {
    await insert(1);
    const twice = workerOf(3, { origin: workerOf(1).origin });
    const recorded = await store.workers.insert([workerOf(2), twice], 'pending', 1, 'submitter');
    expect([...recorded]).to.deep.equal([2]);
    expect(ids(await store.workers.list({}))).to.deep.equal([1, 2]);
    expect(await store.workers.history(3)).to.deep.equal([]);
  });

  it('writes a change with all its facts and its history at once', async () => {
    await insert(1);
    const facts = { node: 'n1', submitTime: 2, startTime: 3, endTime: 4, batchId: '7', exitCode: 0 };
    const refused = await store.workers.apply([
      {
        ...change(1, 'pending', 'failed'),
        ...facts,
        nativeStatus: 'X',
        error: { code: 'exit-status', message: 'it failed' },
        handle: '{"batchID":"7"}',
        detail: '{"deep":[1,"a"]}',
      },
    ]);
    expect(refused).to.deep.equal([]);
    expect(await store.workers.byId(1)).to.deep.include({
      status: 'failed',
      modificationTime: 10,
      node: 'n1',
      submitTime: 2,
      startTime: 3,
      endTime: 4,
      exitCode: 0,
      nativeStatus: 'X',
      errorCode: 'exit-status',
      diagMessage: 'it failed',
      handle: { batchID: '7' },
      detail: { deep: [1, 'a'] },
    });
    expect((await store.workers.history(1)).at(-1)).to.deep.equal({
      worker_id: 1,
      at: 10,
      from_status: 'pending',
      to_status: 'failed',
      source: 'monitor',
      native_status: 'X',
      message: 'it failed',
    });
  });

  it('leaves alone what a change does not say, and forgets an error only when told', async () => {
    await insert(1);
    const error = { code: 'no-free-slot', message: 'taken' };
    await store.workers.apply([{ ...change(1, 'pending', 'pending'), error, node: 'n1' }]);
    await store.workers.apply([change(1, 'pending', 'submitted')]);
    expect(await store.workers.byId(1)).to.include({ errorCode: 'no-free-slot', node: 'n1' });
    await store.workers.apply([{ ...change(1, 'submitted', 'submitted'), error: null }]);
    expect(await store.workers.byId(1)).to.include({ errorCode: null, diagMessage: null, node: 'n1' });
  });

  it('refuses a change of a worker whose status is another by now, without history, and writes the others', async () => {
    await insert(1, 2);
    await store.workers.apply([change(1, 'pending', 'finished')]);
    const refused = await store.workers.apply([
      change(1, 'pending', 'running'),
      change(2, 'pending', 'running'),
    ]);
    expect(refused).to.deep.equal([1]);
    expect((await store.workers.byId(1))?.status).to.equal('finished');
    expect((await store.workers.byId(2))?.status).to.equal('running');
    expect((await store.workers.history(1)).map((step) => step.to_status)).to.deep.equal([
      'pending',
      'finished',
    ]);
    expect(await store.workers.apply([change(9, 'pending', 'running')])).to.deep.equal([9]);
    expect(await store.workers.history(9)).to.deep.equal([]);
  });

  it('writes neither change nor history where one of both fails', async () => {
    await insert(1, 2);
    const impossible = { ...change(2, 'pending', 'running'), source: null as unknown as string };
    const error = await thrownBy(store.workers.apply([change(1, 'pending', 'running'), impossible]));
    expect(error).to.have.property('code', database.codes.missing);
    expect((await store.workers.list({})).map(({ status }) => status)).to.deep.equal(['pending', 'pending']);
    expect(await store.workers.history(1)).to.have.length(1);
  });

  it('makes no history of a change that leaves the status', async () => {
    await insert(1);
    await store.workers.apply([{ ...change(1, 'pending', 'pending'), node: 'n1' }]);
    expect(await store.workers.history(1)).to.have.length(1);
    expect(await store.workers.apply([])).to.deep.equal([]);
  });

  it('counts attempts of pending workers only', async () => {
    await insert(1, 2);
    await store.workers.apply([change(2, 'pending', 'submitted')]);
    await store.workers.nextAttempt([1, 2], 20);
    expect((await store.workers.byIds([1, 2])).map(({ attempt }) => attempt)).to.deep.equal([2, 1]);
  });

  describe('asked for the end of workers', () => {
    beforeEach(async () => {
      await insert(1, 2, 3);
      await store.workers.insert([workerOf(4, { queue: 'R' })], 'pending', 1, 'submitter');
      await store.workers.apply([change(2, 'pending', 'running'), change(3, 'pending', 'finished')]);
    });

    it('marks the living, each once, with the first reason', async () => {
      expect(ids(await store.workers.requestKill({ ids: [1, 2, 3] }, 'first', 30))).to.deep.equal([1, 2]);
      expect(await store.workers.requestKill({ ids: [1, 2, 3] }, 'second', 40)).to.deep.equal([]);
      expect(await store.workers.byId(1)).to.include({ killTime: 30, killReason: 'first' });
      expect(await store.workers.byId(3)).to.include({ killTime: null });
    });

    it('takes them by queue and status', async () => {
      expect(
        ids(await store.workers.requestKill({ queue: 'Q', statuses: ['running'] }, 'x', 30)),
      ).to.deep.equal([2]);
      expect(ids(await store.workers.requestKill({ queue: 'R' }, 'x', 30))).to.deep.equal([4]);
      expect(await store.workers.requestKill({ ids: [] }, 'x', 30)).to.deep.equal([]);
    });

    it('shows them until they ended', async () => {
      await store.workers.requestKill({ queue: 'Q' }, 'x', 30);
      expect(ids(await store.workers.toKill('Q', 1, 10))).to.deep.equal([1, 2]);
      expect(ids(await store.workers.toKill('Q', 1, 1))).to.deep.equal([1]);
      expect(ids(await store.workers.toKill('Q', 1, 10, { after: 1 }))).to.deep.equal([2]);
      expect(ids(await store.workers.toKill('Q', 1, 10, { except: ['elsewhere'] }))).to.deep.equal([1, 2]);
      expect(await store.workers.toKill('Q', 1, 10, { except: ['elsewhere', 'local:/work'] })).to.deep.equal(
        [],
      );
      expect(await store.workers.toKill('Q', 2, 10)).to.deep.equal([]);
      await store.workers.apply([change(2, 'running', 'cancelled')]);
      expect(ids(await store.workers.toKill('Q', 1, 10))).to.deep.equal([1]);
    });
  });

  it('shows for the sweep who ended long enough ago, by the time kept for its status', async () => {
    await insert(1, 2, 3, 4, 5, 6);
    await store.workers.apply([
      { ...change(1, 'pending', 'finished'), endTime: 100 },
      { ...change(2, 'pending', 'finished'), endTime: 200 },
      { ...change(3, 'pending', 'failed'), endTime: 100 },
      // Without an end of its own the time of the change counts.
      change(4, 'pending', 'missed', 100),
      { ...change(5, 'pending', 'cancelled'), endTime: 100 },
    ]);
    const sweep = async (finished: number, failed = 0, cancelled = 0, missed = 0) =>
      ids(await store.workers.toSweep('Q', 1, { finished, failed, cancelled, missed }, 10));
    expect(await sweep(100)).to.deep.equal([]);
    expect(await sweep(101)).to.deep.equal([1]);
    expect(await sweep(201, 101, 0, 101)).to.deep.equal([1, 2, 3, 4]);
    await store.workers.markSwept([1, 3], 300);
    expect(await sweep(1000, 1000, 1000, 1000)).to.deep.equal([2, 4, 5]);
    const all = { finished: 1000, failed: 1000, cancelled: 1000, missed: 1000 };
    const without = async (limit: number, workers: readonly number[], ...places: string[]) =>
      ids(await store.workers.toSweep('Q', 1, all, limit, { workers, places }));
    expect(await without(10, [1, 4, 99])).to.deep.equal([2, 5]);
    expect(await without(1, [2])).to.have.length(1);
    expect(await without(10, [4], 'elsewhere')).to.deep.equal([2, 5]);
    expect(await without(10, [4], 'elsewhere', 'local:/work')).to.deep.equal([]);
    expect(
      await store.workers.toSweep('Q', 2, { finished: 1e9, failed: 0, cancelled: 0, missed: 0 }, 9),
    ).to.deep.equal([]);
  });

  it('says which configurations still have workers', async () => {
    await insert(1);
    await store.workers.insert([workerOf(2, { configId: 2 })], 'pending', 1, 'x');
    await store.workers.apply([change(2, 'pending', 'missed')]);
    const inUse = async () => (await store.workers.configsInUse()).map(({ configId }) => configId).sort();
    expect(await inUse()).to.deep.equal([1, 2]);
    await store.workers.markSwept([2], 9);
    expect(await inUse()).to.deep.equal([1]);
  });

  it('lists the newest first', async () => {
    await insert(1, 2, 3);
    expect((await store.workers.list({ limit: 2 })).map(({ workerId }) => workerId)).to.deep.equal([3, 2]);
    expect(await store.workers.list({ queue: 'R' })).to.deep.equal([]);
    expect(await store.workers.list({ statuses: ['running'] })).to.deep.equal([]);
  });

  it('hole 7: counts on by the time and its own workers where an absurd id was stored', async () => {
    for (const absurd of [95_000_000_001, 99_999_999_991, 100_000_000_001, 9_007_199_254_740_992]) {
      const fresh = await database.openNew();
      await fresh.ids.raise(absurd);
      const worker = workerOf(500);
      await fresh.workers.insert([worker, { ...worker, workerId: absurd }], 'submitted', 1, 'submitter');
      await fresh.ids.begin(100);
      expect(await fresh.ids.take(2)).to.equal(501);
      await fresh.ids.begin(1000);
      expect(await fresh.ids.take(1)).to.equal(1000);
      await fresh.close();
    }
  });

  it('hole 7: never goes back behind an id that a server was right to name', async () => {
    const fresh = await database.openNew();
    await fresh.ids.begin(100);
    await fresh.ids.raise(90_000_000_001);
    const first = await fresh.ids.take(5);
    await fresh.workers.insert([workerOf(first)], 'submitted', 1, 'submitter');
    for (const floor of [1, 6, 90_000_000_000]) {
      await fresh.ids.raise(floor);
      await fresh.ids.begin(floor);
    }
    expect([first, await fresh.ids.take(1)]).to.deep.equal([90_000_000_001, 90_000_000_006]);
    await fresh.close();
  });

  it('never gives an id twice, whatever is raised in between', async () => {
    const step = fc.oneof(
      fc.record({ take: fc.integer({ min: 1, max: 50 }) }),
      fc.record({ raise: fc.integer({ min: 0, max: 500 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const fresh = await database.openNew();
        await fresh.ids.raise(1);
        let above = 1;
        for (const one of steps) {
          if ('raise' in one) {
            await fresh.ids.raise(one.raise);
            above = Math.max(above, one.raise);
          } else {
            const first = await fresh.ids.take(one.take);
            expect(first).to.equal(above);
            above = first + one.take;
          }
        }
        await fresh.close();
      }),
      { numRuns: database.runs(25) },
    );
  });
});

onEachDatabase('two factories in one database', (database) => {
  it('see, count and end only their own workers', async () => {
    const shared = await database.fresh();
    const one = await shared.open('one');
    const two = await shared.open('two');
    await one.workers.insert([workerOf(1)], 'pending', 1, 'x');
    expect(await two.workers.byId(1)).to.equal(undefined);
    expect(await two.workers.list({})).to.deep.equal([]);
    expect(await two.load.alive(['Q'])).to.deep.equal([]);
    expect(await two.workers.requestKill({ ids: [1] }, 'x', 1)).to.deep.equal([]);
    expect(await two.workers.liveRows()).to.deep.equal([]);
    expect(await one.workers.liveRows()).to.have.length(1);
    await one.close();
    await two.close();
  });
});
