import { expect } from 'chai';
import type { Store } from '../../src/store/store.ts';
import type { WorkerChange } from '../../src/store/worker-changes.ts';
import type { WorkerStatus } from '../../src/worker/status.ts';
import { onEachDatabase } from '../support/each-database.ts';
import { requirements, workerOf } from '../support/samples.ts';

onEachDatabase('what limits count in the database', (database) => {
  let store: Store;
  let nextId: number;

  beforeEach(async () => {
    store = await database.openNew();
    nextId = 1;
  });

  afterEach(async () => {
    await store.close();
  });

  /** One worker, made at 10 and brought to a status at `at`. */
  async function worker(
    queue: string,
    status: WorkerStatus,
    facts: Partial<WorkerChange> & { made?: number; site?: string } = {},
    changes = {},
  ): Promise<number> {
    const { made = 10, site = queue, ...more } = facts;
    const workerId = nextId++;
    const row = workerOf(workerId, {
      queue,
      computingSite: site,
      requirements: { ...requirements, ...changes },
    });
    await store.workers.insert([row], 'pending', made, 'submitter');
    const change = { workerId, from: 'pending' as const, to: status, at: 20, source: 'monitor' };
    if (status !== 'pending') await store.workers.apply([{ ...change, ...more }]);
    return workerId;
  }

  it('is the living of each queue by status and kind, with their cores and memory', async () => {
    const mcore = { nCore: 8, minRamCount: 16_000, resourceType: 'MCORE' };
    await worker('A', 'pending');
    await worker('A', 'running', {}, mcore);
    await worker('A', 'running', {}, mcore);
    await worker('A', 'running', {}, { jobType: 'user' });
    await worker('A', 'finished');
    await worker('B', 'idle', {}, { minRamCount: 0 });
    await worker('C', 'running');
    const rows = await store.load.alive(['A', 'B', 'unknown']);
    const one = { workers: 1, cores: 1, memory: 2000, resourceType: 'SCORE', jobType: 'managed' };
    expect(rows).to.have.deep.members([
      { ...one, queue: 'A', status: 'pending' },
      { ...one, queue: 'A', status: 'running', jobType: 'user' },
      {
        queue: 'A',
        status: 'running',
        resourceType: 'MCORE',
        jobType: 'managed',
        workers: 2,
        cores: 16,
        memory: 32_000,
      },
      { ...one, queue: 'B', status: 'idle', memory: 0 },
    ]);
    expect(await store.load.alive([])).to.deep.equal([]);
    expect(await store.load.alive(["A' OR 1=1 --"])).to.deep.equal([]);
  });

  it('is there also where users asked for more memory than an integer of the database can count', async () => {
    const minRamCount = Number.MAX_SAFE_INTEGER;
    const rows = Array.from({ length: 1025 }, (_, at) =>
      workerOf(at + 1, { queue: 'A', computingSite: 'A', requirements: { ...requirements, minRamCount } }),
    );
    await store.workers.insert(rows, 'pending', 10, 'submitter');
    const [found] = await store.load.alive(['A']);
    expect(found).to.deep.include({ workers: 1025, cores: 1025 });
    expect(found?.memory).to.be.closeTo(1025 * minRamCount, 1e6);
  });

  it('is the running ones that started before a moment', async () => {
    await worker('A', 'running', { startTime: 100 });
    await worker('A', 'running', { startTime: 200 });
    await worker('A', 'failed', { startTime: 50, endTime: 60 });
    await worker('A', 'submitted');
    await worker('B', 'running', { startTime: 1 });
    expect(await Promise.all([100, 101, 201].map((at) => store.load.runningSince('A', at)))).to.deep.equal([
      ...[0, 1, 2],
    ]);
  });

  it('takes the moment at which it was first seen running where the backend says no start', async () => {
    const id = await worker('A', 'running', { at: 300 });
    await store.workers.apply([
      { workerId: id, from: 'running', to: 'running', at: 900, source: 'monitor', node: 'n' },
    ]);
    expect(await Promise.all([300, 301].map((at) => store.load.runningSince('A', at)))).to.deep.equal([0, 1]);
    await store.workers.apply([
      { workerId: id, from: 'running', to: 'failed', at: 1000, source: 'monitor', endTime: 950 },
    ]);
    const [last] = await store.workers.lastEnded('A', 5);
    expect(last).to.include({ status: 'failed', startTime: 300, endTime: 950 });
  });

  it('is when the newest of a queue was made, whatever became of it', async () => {
    expect(await store.load.lastMade('A')).to.equal(undefined);
    await worker('A', 'running', { made: 70 });
    await worker('A', 'cancelled', { made: 80 });
    await worker('B', 'running', { made: 90 });
    expect(await store.load.lastMade('A')).to.equal(80);
  });
});

onEachDatabase('what limits count where two factories share a database', (database) => {
  it("is each one's own", async () => {
    const shared = await database.fresh();
    const stores = [await shared.open('one'), await shared.open('other')];
    try {
      for (const [index, store] of stores.entries()) {
        const workers = [1, 2, 3].slice(index).map((id) => workerOf(id + index * 10));
        await store.workers.insert(workers, 'missed', 5 + index, 'submitter');
      }
      expect(await Promise.all(stores.map(({ load }) => load.lastMade('Q')))).to.deep.equal([5, 6]);
      const [made] = await Promise.all(stores.map(({ load }) => load.alive(['Q'])));
      expect(made).to.deep.equal([]);
      await stores[0]?.workers.insert([workerOf(50)], 'pending', 9, 'submitter');
      const alive = await Promise.all(stores.map(({ load }) => load.alive(['Q'])));
      expect(alive.map((rows) => rows.length)).to.deep.equal([1, 0]);
    } finally {
      for (const store of stores) await store.close();
    }
  });
});
