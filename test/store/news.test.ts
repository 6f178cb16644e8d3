import { expect } from 'chai';
import fc from 'fast-check';
import type { Store } from '../../src/store/store.ts';
import type { WorkerChange } from '../../src/store/worker-changes.ts';
import type { WorkerNews } from '../../src/worker/news.ts';
import { onEachDatabase, type TestDatabase } from '../support/each-database.ts';
import { namedWorker } from '../support/named-workers.ts';
import { workerOf } from '../support/samples.ts';

const toy = new Set(['toy']);
const always = {
  endedBefore: { finished: 1e9, failed: 1e9, cancelled: 1e9, missed: 1e9 },
  sweptBefore: 1e9,
  unusedBefore: 0,
  currentConfigs: undefined,
};
const step = (workerId: number, from: WorkerChange['from'], to: WorkerChange['to'], at = 20) => ({
  workerId,
  from,
  to,
  at,
  source: 'monitor',
});
const brief = (news: readonly WorkerNews[]) =>
  news.map(({ what, worker }) => `${what} ${String(worker.workerId)} ${worker.status}`);

onEachDatabase('the news of a source', (database) => {
  let beside: TestDatabase;
  let store: Store;

  beforeEach(async () => {
    beside = await database.fresh();
    store = await beside.open();
    store.news.listen(toy);
  });
  afterEach(() => store.close());

  const insert = (...workers: readonly ReturnType<typeof namedWorker>[]) =>
    store.workers.insert(workers, 'pending', 10, 'submitter');
  const next = (limit = 100) => store.news.next('toy', limit);
  const rows = async () =>
    (await beside.rows<{ count: number }>('SELECT count(*) AS count FROM news'))[0]?.count;

  it('tell every change of a worker in order, with all that is known after it', async () => {
    await insert(namedWorker(1, 'a'));
    const facts = { batchId: 'b1', submitTime: 12, handle: '{"batchID":"b1"}' };
    await store.workers.apply([{ ...step(1, 'pending', 'submitted', 12), ...facts }]);
    await store.workers.apply([{ ...step(1, 'submitted', 'running', 13), node: 'n1', nativeStatus: 'R' }]);
    // Without a change of the status.
    await store.workers.apply([{ ...step(1, 'running', 'running', 14), node: 'n2' }]);
    const error = { code: 'exit-status', message: 'why' };
    const end = { exitCode: 7, endTime: 15, startTime: 13, computingElement: 'ce' };
    await store.workers.apply([{ ...step(1, 'running', 'failed', 16), ...end, error }]);
    await store.workers.markSwept([1], 17);
    const news = await next();
    expect(news.map(({ what, at, worker }) => [what, at, worker.status, worker.node])).to.deep.equal([
      ['added', 10, 'pending', null],
      ['changed', 12, 'submitted', null],
      ['changed', 13, 'running', 'n1'],
      ['changed', 14, 'running', 'n2'],
      ['changed', 16, 'failed', 'n2'],
      ['swept', 17, 'failed', 'n2'],
    ]);
    expect(news.map(({ sequence }) => sequence)).to.deep.equal([1, 2, 3, 4, 5, 6]);
    expect(news.at(-1)).to.deep.include({ origin: { uid: 'a', index: 0 }, queue: 'Q' });
    expect(news.at(-1)?.worker).to.deep.equal({
      workerId: 1,
      status: 'failed',
      computingSite: 'Q',
      resourceType: 'SCORE',
      jobType: 'managed',
      nCore: 1,
      minRamCount: 2000,
      batchId: 'b1',
      nativeStatus: 'R',
      exitCode: 7,
      errorCode: 'exit-status',
      diagMessage: 'why',
      node: 'n2',
      computingElement: 'ce',
      placement: 'local:/work',
      creationTime: 10,
      submitTime: 12,
      startTime: 13,
      endTime: 15,
    });
  });

  it('tell of adopted workers, and of withdrawn origins', async () => {
    await store.workers.adopt([namedWorker(1, 'a')], 'submitted', 5);
    const origins = [
      { uid: 'a', index: 0 },
      { uid: 'b', index: 3 },
    ];
    await store.origins.end('toy', origins, 'x', 6);
    await store.origins.end('toy', origins, 'x', 7);
    const news = await next();
    expect(brief(news)).to.deep.equal(['added 1 submitted', 'changed null withdrawn']);
    expect(news[1]).to.deep.include({ at: 6, queue: '', origin: { uid: 'b', index: 3 } });
  });

  it('come again until they were taken, also after a crash, and no sequence comes twice', async () => {
    await insert(namedWorker(1, 'a'), namedWorker(2, 'b'), namedWorker(3, 'c'));
    expect(brief(await next(2))).to.deep.equal(['added 1 pending', 'added 2 pending']);
    expect(brief(await next(2))).to.deep.equal(['added 1 pending', 'added 2 pending']);
    await store.news.taken('toy', 2);
    await store.close();
    store = await beside.open();
    store.news.listen(toy);
    expect(brief(await next())).to.deep.equal(['added 3 pending']);
    await store.news.taken('toy', 3);
    expect(await next()).to.deep.equal([]);
    await insert(namedWorker(4, 'd'));
    expect((await next()).map(({ sequence }) => sequence)).to.deep.equal([4]);
  });

  it('are written for kinds that are listened to, and no others', async () => {
    const other = namedWorker(2, 'a', { origin: { kind: 'other', uid: 'a', index: 0 } });
    await insert(namedWorker(1, 'a'), other, workerOf(3));
    await store.workers.apply([1, 2, 3].map((id) => step(id, 'pending', 'finished')));
    await store.workers.markSwept([1, 2, 3], 30);
    expect(await rows()).to.equal(3);
    expect(brief(await next())).to.deep.equal(['added 1 pending', 'changed 1 finished', 'swept 1 finished']);
    expect(await store.news.next('other', 5)).to.deep.equal([]);
    store.news.listen(new Set());
    await insert(namedWorker(4, 'd'));
    expect(await rows()).to.equal(3);
  });

  it('are not written of changes that were refused, nor of origins that had their worker', async () => {
    await insert(namedWorker(1, 'a'));
    await insert(namedWorker(2, 'a'));
    expect(await store.workers.apply([step(1, 'running', 'finished')])).to.deep.equal([1]);
    expect(brief(await next())).to.deep.equal(['added 1 pending']);
  });

  it('are written with their change or not at all', async () => {
    await insert(namedWorker(1, 'a'));
    await beside.refuseInserts('news');
    let failed = 0;
    const count = () => {
      failed++;
    };
    await store.workers.apply([step(1, 'pending', 'running')]).catch(count);
    await store.workers.markSwept([1], 30).catch(count);
    await insert(namedWorker(2, 'b')).catch(count);
    await store.origins
      .end(
        'toy',
        [
          { uid: 'a', index: 0 },
          { uid: 'c', index: 0 },
        ],
        'x',
        30,
      )
      .catch(count);
    expect(failed).to.equal(4);
    const [one, two] = await store.workers.byIds([1, 2]);
    expect(one).to.deep.include({ status: 'pending', sweptTime: null, killTime: null });
    expect(two).to.equal(undefined);
    expect(await store.origins.known('toy', [{ uid: 'c', index: 0 }])).to.deep.equal([]);
    // Nothing was committed that a loop should wake up for.
    expect([...store.news.written()]).to.deep.equal(['toy']);
    expect([...store.news.written()]).to.deep.equal([]);
  });

  it('say which kinds were committed since the last question', async () => {
    expect([...store.news.written()]).to.deep.equal([]);
    await insert(workerOf(1), namedWorker(2, 'a'));
    expect([...store.news.written()]).to.deep.equal(['toy']);
    await store.workers.apply([step(1, 'pending', 'running')]);
    expect([...store.news.written()]).to.deep.equal([]);
    await store.workers.apply([step(2, 'pending', 'running')]);
    await store.workers.markSwept([2], 30);
    expect([...store.news.written()]).to.deep.equal(['toy']);
  });

  it('tell what a worker went through, whatever that was and however it came in batches', async () => {
    const walk = fc.array(
      fc.tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom('idle' as const, 'running' as const)),
      {
        maxLength: 12,
      },
    );
    let first = 0;
    await fc.assert(
      fc.asyncProperty(walk, async (steps) => {
        const ids = [1, 2, 3, 4].map((id) => (first += 1) * 10 + id);
        await insert(...ids.map((id) => namedWorker(id, `w${id}`)));
        const expected = new Map<number, string[]>(ids.map((id) => [id, ['pending']]));
        for (const [which, to] of steps) {
          const id = ids[which - 1] ?? 0;
          const from = (await store.workers.byId(id))?.status ?? 'pending';
          await store.workers.apply([step(id, from, to)]);
          expected.get(id)?.push(to);
        }
        const told = await next(1000);
        for (const id of ids) {
          const own = told.filter(({ worker }) => worker.workerId === id);
          expect(own.map(({ worker }) => worker.status)).to.deep.equal(expected.get(id));
        }
        await store.news.taken('toy', told.at(-1)?.sequence ?? 0);
      }),
      { numRuns: database.runs(30) },
    );
  });

  it('show how many wait, and since when', async () => {
    store.news.listen(new Set(['toy', 'other']));
    await insert(namedWorker(1, 'a'), namedWorker(2, 'b'));
    const other = namedWorker(3, 'a', { origin: { kind: 'other', uid: 'a', index: 0 } });
    await store.workers.insert([other], 'pending', 15, 'x');
    await store.workers.apply([step(1, 'pending', 'running', 20)]);
    await store.news.taken('toy', 1);
    expect(await store.news.backlog()).to.deep.equal([
      { kind: 'other', count: 1, oldest: 15 },
      { kind: 'toy', count: 2, oldest: 10 },
    ]);
  });

  it('are dropped by age and by number, the oldest first, and say how many', async () => {
    for (let id = 1; id <= 6; id++)
      await store.workers.insert([namedWorker(id, `w${id}`)], 'pending', id * 10, 'x');
    expect([...(await store.news.drop(10, 6))]).to.deep.equal([]);
    expect([...(await store.news.drop(30, 6))]).to.deep.equal([['toy', 2]]);
    expect([...(await store.news.drop(0, 3))]).to.deep.equal([['toy', 1]]);
    expect(brief(await next())).to.deep.equal(['added 4 pending', 'added 5 pending', 'added 6 pending']);
    expect([...(await store.news.drop(0, 0))]).to.deep.equal([['toy', 3]]);
    expect(await next()).to.deep.equal([]);
  });

  describe('that were not taken', () => {
    const prune = async () => (await store.retention.prune(always, async () => true)).workers.finished;

    beforeEach(async () => {
      await insert(namedWorker(1, 'a'), namedWorker(2, 'b'));
      await store.workers.apply([1, 2].map((id) => step(id, 'pending', 'finished')));
      await store.workers.markSwept([1, 2], 30);
    });

    it('keep the rows of their workers, and let go of them one by one', async () => {
      expect((await store.retention.due(always)).workers.finished).to.equal(0);
      expect(await prune()).to.equal(0);
      const news = await next();
      const lastOf = (id: number) => news.findLast(({ worker }) => worker.workerId === id)?.sequence ?? 0;
      await store.news.taken('toy', Math.min(lastOf(1), lastOf(2)));
      expect((await store.retention.due(always)).workers.finished).to.equal(1);
      expect(await prune()).to.equal(1);
      await store.news.taken('toy', Math.max(lastOf(1), lastOf(2)));
      expect(await prune()).to.equal(1);
    });

    it('keep no row any more once they were dropped', async () => {
      await store.news.drop(1e9, 1e9);
      expect(await prune()).to.equal(2);
      expect(await store.origins.known('toy', [{ uid: 'a', index: 0 }])).to.have.length(1);
    });
  });
});
