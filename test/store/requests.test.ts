import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import { copyDatabase } from '../../src/store/sqlite/backup.ts';
import type { NewRequest } from '../../src/store/requests.ts';
import { openStoreBeside, type Store } from '../../src/store/store.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { fileOf, onEachDatabase, type TestDatabase } from '../support/each-database.ts';
import { workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const secret = { name: 'key', mode: 0o600, content: 'dGhlIHNlY3JldA==', secret: true };
const requestOf = (id: string, changes: Partial<NewRequest> = {}): NewRequest => ({
  id,
  queue: 'Q',
  count: 2,
  requirements: { nCore: 4 },
  by: 'command-line',
  payload: { argv: ['./run.sh'], files: [secret] },
  ...changes,
});

onEachDatabase('requests of operators in the database', (database) => {
  let beside: TestDatabase;
  const isFile = database.name === 'SQLite';
  let store: Store;

  beforeEach(async () => {
    beside = await database.fresh();
    store = await beside.open();
  });
  afterEach(() => store.close());

  const openIds = async () => (await store.requests.open(new Set())).ids;

  it('are open, oldest first, with their content, until they are served or taken back', async () => {
    for (const [at, id] of ['c', 'a', 'b'].entries()) await store.requests.add(requestOf(id), at);
    const { ids, added } = await store.requests.open(new Set(['c']));
    expect(ids).to.deep.equal(['c', 'a', 'b']);
    const { by, ...content } = requestOf('a');
    expect(by).to.equal('command-line');
    expect(added.find(({ id }) => id === 'a')).to.deep.equal(content);
    expect(added.map(({ id }) => id)).to.have.members(['a', 'b']);
    await store.requests.served(['a'], 5);
    expect(await store.requests.withdraw('b', 'enough', 6)).to.equal(true);
    expect(await store.requests.withdraw('b', 'again', 7)).to.equal(false);
    expect(await openIds()).to.deep.equal(['c']);
    expect(await store.requests.toEnd()).to.deep.equal([{ id: 'b', count: 2, reason: 'enough' }]);
    await store.requests.ended(['b'], 8);
    expect(await store.requests.toEnd()).to.deep.equal([]);
  });

  it('show who asked, and their workers by status', async () => {
    await store.requests.add(requestOf('a', { by: 'http' }), 1);
    const worker = (workerId: number, index: number) =>
      workerOf(workerId, { origin: { kind: 'request', uid: 'a', index } });
    await store.workers.insert([worker(1, 0), worker(2, 1)], 'pending', 2, 'submitter');
    expect(await store.requests.byId('a')).to.deep.equal({
      id: 'a',
      queue: 'Q',
      count: 2,
      requirements: { nCore: 4 },
      parts: ['files', 'argv'],
      by: 'http',
      creationTime: 1,
      withdrawnTime: null,
      withdrawReason: null,
      servedTime: null,
      workers: { pending: 2 },
    });
    expect((await store.requests.workersOf('a', 1)).map(({ workerId }) => workerId)).to.deep.equal([1]);
    expect(await store.requests.list({ queue: 'R', limit: 9 })).to.deep.equal([]);
    expect(await store.requests.byId('b')).to.equal(undefined);
  });

  it('with one key are one request, also at once and after its content is gone', async () => {
    const keyed = (id: string, changes: Partial<NewRequest> = {}) =>
      store.requests.add(requestOf(id, { key: 'k', ...changes }), 1);
    const made = await Promise.all(['a', 'b', 'c'].map((id) => keyed(id)));
    expect(made.filter(({ isNew }) => isNew)).to.have.length(1);
    expect(new Set(made.map(({ id }) => id)).size).to.equal(1);
    await store.requests.served(await openIds(), 2);
    expect((await keyed('d')).isNew).to.equal(false);
    for (const changes of [
      { count: 3 },
      { queue: 'R' },
      { payload: { argv: ['./run.sh'], files: [{ ...secret, content: 'b3RoZXI=' }] } },
    ]) {
      const error = await keyed('e', changes).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(ThresherError).and.to.have.property('code', 'request-key-taken');
    }
    expect(await store.requests.list({ limit: 9 })).to.have.length(1);
  });

  it('keep nothing of a secret once all their workers have rows, nor once they are taken back', async () => {
    await store.requests.add(requestOf('a'), 1);
    await store.requests.add(requestOf('b', { key: 'k' }), 1);
    await store.requests.served(['a'], 2);
    await store.requests.withdraw('b', 'x', 2);
    await store.close();
    if (isFile) expect(readFileSync(fileOf(beside), 'latin1')).to.not.contain(secret.content);
    store = await beside.open();
    expect((await store.requests.list({ limit: 9 })).map(({ parts }) => parts)).to.deep.equal([
      ['files', 'argv'],
      ['files', 'argv'],
    ]);
  });

  if (isFile)
    it('that are open are not in a backup: their workers may be over when it is restored', async () => {
      await store.requests.add(requestOf('open'), 1);
      await store.requests.add(requestOf('served'), 1);
      await store.requests.served(['served'], 2);
      await store.requests.add(requestOf('withdrawn'), 1);
      await store.requests.withdraw('withdrawn', 'a mistake', 2);
      const copy = join(temporaryDirectory(), 'copy.db');
      new Database(copy).close();
      const file = fileOf(beside);
      const killed = spawnSync('true').pid;
      writeFileSync(`${file}.backup.${killed}.x`, 'what a backup that was killed left');
      writeFileSync(`${file}.backup.${process.pid}.x`, 'of one that runs');
      await copyDatabase(file, copy);
      expect(readdirSync(dirname(copy))).to.deep.equal(['copy.db']);
      const left = readdirSync(dirname(file)).filter((name) => name.includes('.backup.'));
      expect(left).to.deep.equal([`thresher.db.backup.${process.pid}.x`]);
      expect(readFileSync(copy, 'latin1')).to.not.contain(secret.content);
      const restored = await openStoreBeside(copy, 'factory', 'read');
      const kept = (await restored.requests.list({ limit: 9 })).map(({ id }) => id);
      expect(kept).to.have.members(['served', 'withdrawn']);
      expect(await restored.requests.toEnd(), 'their workers are still to be ended').to.deep.equal([
        { id: 'withdrawn', count: 2, reason: 'a mistake' },
      ]);
      await restored.close();
    });

  for (const [what, count, workers, content] of [
    ['10,000', 10_000, 1, { SQLite: `''`, PostgreSQL: `''` }],
    ['100,000 workers', 10, 10_000, { SQLite: `''`, PostgreSQL: `''` }],
    [
      '128 MiB of payloads',
      2,
      1,
      {
        SQLite: 'hex(zeroblob(33554432)) || hex(zeroblob(33554432))',
        PostgreSQL: `repeat('0', 134217728)`,
      },
    ],
  ] as const)
    it(`that would make more than ${what} wait are refused, and those that are there already are not`, async () => {
      await store.requests.add(requestOf('first', { key: 'k', count: workers }), 1);
      await beside.execute(`WITH RECURSIVE n (at) AS (SELECT 2 UNION ALL SELECT at + 1 FROM n WHERE at < ${count})
        INSERT INTO requests (id, instance, queue, count, requirements, content, parts, asked_by, creation_time)
        SELECT 'r' || at, instance, queue, count, requirements, ${content[database.name]}, parts, asked_by, 1
        FROM requests, n`);
      const add = (changes: Partial<NewRequest>) =>
        store.requests.add(requestOf('more', changes), 2).then(
          ({ isNew }) => isNew,
          (error: unknown) => (error as ThresherError).code,
        );
      expect(await add({})).to.equal('requests-full');
      expect(await store.requests.byId('more')).to.equal(undefined);
      expect(await add({ key: 'k', count: workers })).to.equal(false);
      await store.requests.served(['first', 'r2'], 3);
      expect(await add({})).to.equal(true);
    });

  it('are deleted when they are over, and the last of their workers is', async () => {
    await store.requests.add(requestOf('open'), 1);
    await store.requests.add(requestOf('served'), 1);
    await store.requests.add(requestOf('working'), 1);
    await store.requests.served(['served', 'working'], 2);
    const origin = { kind: 'request', uid: 'working', index: 0 };
    await store.workers.insert([workerOf(1, { origin })], 'pending', 2, 'submitter');
    expect(await store.requests.prune(2, 2)).to.equal(0);
    expect(await store.requests.prune(3, 2)).to.equal(1);
    expect((await store.requests.list({ limit: 9 })).map(({ id }) => id)).to.have.members([
      'open',
      'working',
    ]);
  });

  it('keep their key for a time of its own', async () => {
    await store.requests.add(requestOf('a', { key: 'k' }), 1);
    await store.requests.add(requestOf('b'), 1);
    await store.requests.served(['a', 'b'], 2);
    expect(await store.requests.prune(3, 1)).to.equal(1);
    expect(await store.requests.add(requestOf('c', { key: 'k' }), 4)).to.deep.equal({
      id: 'a',
      isNew: false,
    });
    expect(await store.requests.prune(3, 2)).to.equal(1);
    expect((await store.requests.add(requestOf('c', { key: 'k' }), 4)).isNew).to.equal(true);
  });

  it('that may still get workers are counted, and listed alone', async () => {
    for (const id of ['open', 'served', 'withdrawn']) await store.requests.add(requestOf(id), 1);
    await store.requests.served(['served'], 2);
    await store.requests.withdraw('withdrawn', 'x', 2);
    expect(await store.requests.countOpen()).to.equal(1);
    expect((await store.requests.list({ open: true, limit: 9 })).map(({ id }) => id)).to.deep.equal(['open']);
  });

  it('stay untouched where they belong to another factory in the same database', async () => {
    await store.requests.add(requestOf('a', { key: 'k' }), 1);
    await store.close();
    store = await beside.open('other');
    expect((await store.requests.add(requestOf('a', { key: 'k', count: 1 }), 1)).isNew).to.equal(true);
    await store.requests.served(['a'], 2);
    await store.close();
    store = await beside.open();
    expect(await openIds()).to.deep.equal(['a']);
  });
});
