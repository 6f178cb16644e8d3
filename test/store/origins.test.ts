import { expect } from 'chai';
import type { Store } from '../../src/store/store.ts';
import type { WorkerNews } from '../../src/worker/news.ts';
import { onEachDatabase } from '../support/each-database.ts';
import { namedWorker } from '../support/named-workers.ts';
import { workerOf } from '../support/samples.ts';

const keep = async () => true;
const always = {
  endedBefore: { finished: 1e9, failed: 1e9, cancelled: 1e9, missed: 1e9 },
  sweptBefore: 1e9,
  unusedBefore: 0,
  currentConfigs: undefined,
};
const key = (uid: string, index = 0) => ({ uid, index });
const brief = (news: readonly WorkerNews[]) =>
  news.map(({ what, origin, queue, worker }) => [
    what,
    `${origin.uid}/${origin.index}`,
    queue,
    worker.workerId,
    worker.status,
  ]);

onEachDatabase('an origin that a source named', (database) => {
  let store: Store;

  beforeEach(async () => {
    store = await database.openNew();
  });
  afterEach(() => store.close());

  const insert = async (...workers: readonly ReturnType<typeof namedWorker>[]) => [
    ...(await store.workers.insert(workers, 'pending', 10, 'submitter')),
  ];
  const finish = async (workerId: number) => {
    const times = { at: 20, endTime: 20 };
    await store.workers.apply([
      { workerId, from: 'pending', to: 'finished', source: 'monitor', nativeStatus: 'done', ...times },
    ]);
    await store.workers.markSwept([workerId], 30);
  };
  const prune = async () => (await store.retention.prune(always, keep)).workers.finished;

  it('gets one worker of two that ask at once, and the others of the batch get theirs', async () => {
    expect(await insert(namedWorker(1, 'a'), namedWorker(2, 'a'), namedWorker(3, 'b'))).to.deep.equal([1, 3]);
    expect((await store.workers.list({})).map(({ workerId }) => workerId).sort()).to.deep.equal([1, 3]);
    expect(await store.workers.history(2)).to.deep.equal([]);
  });

  it('gets one worker in two passes, beside counted ones', async () => {
    expect(await insert(namedWorker(1, 'a'))).to.deep.equal([1]);
    expect(await insert(workerOf(2), namedWorker(3, 'a'), workerOf(4))).to.deep.equal([2, 4]);
  });

  it('is another one by its index, its uid and its kind, whatever stands in them', async () => {
    const other = namedWorker(9, 'a', { origin: { kind: 'other', uid: 'a', index: 0 } });
    const second = namedWorker(8, 'a', { origin: { kind: 'toy', uid: 'a', index: 1 } });
    const odd = ['', 'A', 'a ', '0', "'", '"', 'ä', '%', 'null'].map((uid, at) => namedWorker(20 + at, uid));
    const all = [namedWorker(1, 'a'), second, other, ...odd];
    expect(await insert(...all)).to.have.length(all.length);
    const again = all.map((worker) => ({ ...worker, workerId: worker.workerId + 100 }));
    expect(await insert(...again)).to.deep.equal([]);
  });

  it('gets no other worker after its row was pruned, and a counted worker leaves nothing behind', async () => {
    await insert(namedWorker(1, 'a'), workerOf(2));
    await finish(1);
    await finish(2);
    expect(await prune()).to.equal(2);
    expect(await store.workers.byIds([1, 2])).to.deep.equal([]);
    expect(await insert(namedWorker(3, 'a'))).to.deep.equal([]);
    expect(brief(await store.origins.known('toy', [key('a')]))).to.deep.equal([
      ['known', 'a/0', 'Q', 1, 'finished'],
    ]);
    expect(await store.origins.known('fill', [key('Q', 2)])).to.deep.equal([]);
  });

  it('is kept in the transaction that deletes its worker, or both stay', async () => {
    const beside = await database.fresh();
    await store.close();
    store = await beside.open();
    await insert(namedWorker(1, 'a'));
    await finish(1);
    const mend = await beside.refuseInserts('spent_origins');
    expect(await prune().catch(() => 'failed')).to.equal('failed');
    expect((await store.workers.byId(1))?.status).to.equal('finished');
    await mend();
    expect(await prune()).to.equal(1);
    expect(await insert(namedWorker(2, 'a'))).to.deep.equal([]);
  });

  it('gets no worker after it was withdrawn, also between being wanted and being recorded', async () => {
    expect(await store.origins.end('toy', [key('a')], 'why', 5)).to.deep.equal([]);
    expect(await insert(namedWorker(1, 'a'), namedWorker(2, 'b'))).to.deep.equal([2]);
    const [known] = await store.origins.known('toy', [key('a')]);
    expect(known).to.deep.include({ at: 5, queue: '', sequence: 0 });
    expect(known?.worker).to.deep.include({ workerId: null, status: 'withdrawn', endTime: null });
  });

  it('that was withdrawn without an end gets no worker, and one that comes to light later lives on', async () => {
    await insert(namedWorker(1, 'a'));
    await store.origins.withdraw('toy', [key('a'), key('b'), key('b'), key('c')], 40);
    expect(await insert(namedWorker(2, 'b'), namedWorker(3, 'c'))).to.deep.equal([]);
    const { recorded, ended } = await store.workers.adopt([namedWorker(4, 'b')], 'submitted', 41);
    expect([[...recorded], [...ended]]).to.deep.equal([[4], []]);
    const fates = await store.workers.byIds([1, 4]);
    expect(fates.map(({ killTime }) => killTime)).to.deep.equal([null, null]);
    expect(brief(await store.origins.find('toy', [key('a'), key('b'), key('c')]))).to.deep.equal([
      ['known', 'a/0', 'Q', 1, 'pending'],
      ['known', 'c/0', '', null, 'withdrawn'],
      ['known', 'b/0', 'Q', 4, 'submitted'],
    ]);
  });

  it('that is ended has a worker ended that comes to light later, whether it was withdrawn before or after', async () => {
    await store.origins.withdraw('toy', [key('a')], 40);
    await store.origins.end('toy', [key('a'), key('b'), key('b')], 'no more', 41);
    await store.origins.withdraw('toy', [key('b')], 42);
    const { ended } = await store.workers.adopt([namedWorker(1, 'a'), namedWorker(2, 'b')], 'submitted', 43);
    expect([...ended]).to.have.members([1, 2]);
  });

  it('has its living worker ended, once, and an ended one left alone', async () => {
    await insert(namedWorker(1, 'a'), namedWorker(2, 'b'), workerOf(3));
    await finish(2);
    const ended = [{ workerId: 1, queue: 'Q' }];
    expect(await store.origins.end('toy', [key('a'), key('b')], 'no more', 40)).to.deep.equal(ended);
    expect(await store.origins.end('toy', [key('a'), key('b')], 'again', 41)).to.deep.equal([]);
    const [one, two, three] = await store.workers.byIds([1, 2, 3]);
    expect(one).to.deep.include({ killTime: 40, killReason: 'no more' });
    expect([two?.killTime, three?.killTime]).to.deep.equal([null, null]);
    // It stays the origin of its worker.
    expect((await store.origins.known('toy', [key('a')]))[0]?.worker.status).to.equal('pending');
  });

  it('is found by name, or by uid with all its indexes, oldest first, without those of deleted rows', async () => {
    const at = (index: number) => ({ origin: { kind: 'toy', uid: 'a', index } });
    await store.workers.insert([namedWorker(1, 'a', at(1))], 'pending', 12, 'submitter');
    await store.workers.insert([namedWorker(2, 'a', at(0)), namedWorker(3, 'b')], 'pending', 11, 'submitter');
    await store.workers.insert([namedWorker(4, 'a', at(5))], 'pending', 13, 'submitter');
    await finish(4);
    await prune();
    await store.origins.end('toy', [key('a', 2), key('c')], 'x', 14);
    expect(brief(await store.origins.find('toy', [{ uid: 'a' }]))).to.deep.equal([
      ['known', 'a/0', 'Q', 2, 'pending'],
      ['known', 'a/1', 'Q', 1, 'pending'],
      ['known', 'a/2', '', null, 'withdrawn'],
    ]);
    const both = await store.origins.find('toy', [
      key('a', 0),
      { uid: 'a', index: 0 },
      { uid: 'c' },
      key('b'),
    ]);
    expect(brief(both).map(([, origin]) => origin)).to.have.members(['a/0', 'b/0', 'c/0']);
    expect(await store.origins.find('toy', [key('d')])).to.deep.equal([]);
    expect(await store.origins.find('toy', [])).to.deep.equal([]);
  });

  it('is known with all that its worker has by now', async () => {
    await insert(namedWorker(1, 'a'));
    await store.workers.apply([
      {
        workerId: 1,
        from: 'pending',
        to: 'running',
        source: 'monitor',
        at: 20,
        batchId: 'b1',
        nativeStatus: 'R',
        node: 'n1',
        startTime: 19,
        computingElement: 'ce',
      },
    ]);
    const [known] = await store.origins.known('toy', [key('a')]);
    expect(known).to.deep.equal({
      sequence: 0,
      at: 20,
      what: 'known',
      origin: key('a'),
      queue: 'Q',
      worker: {
        workerId: 1,
        status: 'running',
        computingSite: 'Q',
        resourceType: 'SCORE',
        jobType: 'managed',
        nCore: 1,
        minRamCount: 2000,
        batchId: 'b1',
        nativeStatus: 'R',
        exitCode: null,
        errorCode: null,
        diagMessage: null,
        node: 'n1',
        computingElement: 'ce',
        placement: 'local:/work',
        creationTime: 10,
        submitTime: null,
        startTime: 19,
        endTime: null,
      },
    });
  });

  describe('with a worker that lives without a row', () => {
    it('has it adopted, also after the origin was pruned', async () => {
      await insert(namedWorker(1, 'a'));
      await finish(1);
      await prune();
      const { recorded, ended } = await store.workers.adopt([namedWorker(1, 'a')], 'submitted', 50);
      expect([[...recorded], [...ended]]).to.deep.equal([[1], []]);
      // Known once, by its row.
      expect(brief(await store.origins.known('toy', [key('a')]))).to.deep.equal([
        ['known', 'a/0', 'Q', 1, 'submitted'],
      ]);
    });

    it('has it adopted and its end asked for, where the origin was withdrawn', async () => {
      await store.origins.end('toy', [key('a')], 'x', 5);
      const adopted = await store.workers.adopt([namedWorker(1, 'a'), namedWorker(2, 'b')], 'submitted', 50);
      expect([[...adopted.recorded], [...adopted.ended]]).to.deep.equal([[1, 2], [1]]);
      const [one, two] = await store.workers.byIds([1, 2]);
      expect(one).to.deep.include({ killTime: 50, killReason: 'its request was withdrawn' });
      expect(two?.killTime).to.equal(null);
    });

    it('does not have it adopted beside another worker', async () => {
      await insert(namedWorker(1, 'a'));
      const { recorded } = await store.workers.adopt(
        [namedWorker(2, 'a'), namedWorker(3, 'b')],
        'submitted',
        50,
      );
      expect([...recorded]).to.deep.equal([3]);
    });
  });

  it('is one of 100,000 that are recorded, known and ended at once', async () => {
    const many = Array.from({ length: 100_000 }, (_, index) => key('flood', index));
    const workers = many
      .slice(0, 10_000)
      .map((origin, at) => namedWorker(at + 1, 'flood', { origin: { kind: 'toy', ...origin } }));
    expect(await insert(...workers)).to.have.length(10_000);
    expect(await store.origins.known('toy', many)).to.have.length(10_000);
    expect(await store.origins.find('toy', many)).to.have.length(10_000);
    expect(await store.origins.end('toy', many, 'x', 50)).to.have.length(10_000);
    expect(await store.origins.known('toy', many)).to.have.length(100_000);
    expect(
      await insert(...workers.map((worker) => ({ ...worker, workerId: worker.workerId + 20_000 }))),
    ).to.deep.equal([]);
  });
});

onEachDatabase('two factories in one database', (database) => {
  it('have origins of their own', async () => {
    const shared = await database.fresh();
    const one = await shared.open('one');
    const other = await shared.open('other');
    try {
      await one.workers.insert([namedWorker(1, 'a')], 'pending', 1, 'x');
      await one.origins.end('toy', [key('b')], 'x', 2);
      expect(await other.origins.known('toy', [key('a'), key('b')])).to.deep.equal([]);
      const workers = [namedWorker(2, 'a'), namedWorker(3, 'b')];
      expect([...(await other.workers.insert(workers, 'pending', 3, 'x'))]).to.deep.equal([2, 3]);
      expect(await other.origins.end('toy', [key('a')], 'x', 4)).to.deep.equal([{ workerId: 2, queue: 'Q' }]);
      expect((await one.workers.byId(1))?.killTime).to.equal(null);
    } finally {
      await one.close();
      await other.close();
    }
  });
});
