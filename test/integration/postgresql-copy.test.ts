import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { openStore } from '../../src/store/store.ts';
import { newDatabase, sharedPostgresql } from '../support/postgresql.ts';
import { countStarts, Site, untilSaid } from '../support/site.ts';
import { namedWorker, secretPayload, secretText } from '../support/named-workers.ts';
import { until } from '../support/until.ts';

describe('a factory that moves to PostgreSQL and back', () => {
  let site: Site;
  let database: string;

  beforeEach(async () => {
    database = await newDatabase();
    const three = { maxWorkers: 3, nQueueLimitWorker: 3 };
    site = new Site({ pilot: `${countStarts} exec sleep 1000`, queues: { Q: three } });
  });
  afterEach(() => site.clean());

  const settings = () => parse(readFileSync(site.config, 'utf8')) as Record<string, unknown>;
  const use = async (kind: 'sqlite' | 'postgresql') => {
    const rest = Object.fromEntries(Object.entries(settings()).filter(([name]) => name !== 'database'));
    const url = (await sharedPostgresql()).url(database);
    const own = kind === 'postgresql' ? { database: { url, sslmode: 'disable' } } : {};
    writeFileSync(site.config, stringify({ ...rest, ...own }));
  };
  const ran = async (...args: string[]) => {
    const { status, stdout, stderr } = await site.run(...args);
    expect(status, stderr).to.equal(0);
    return stdout;
  };
  /** Runs the daemon until all wanted workers run, and stops it. */
  const runOnce = async () => {
    const daemon = site.start();
    await untilSaid(daemon, 'started');
    await until(
      () => `three workers run; the daemon wrote ${daemon.output().slice(-2000)}`,
      async () => (await site.workers({ status: 'running' })).length === 3,
    );
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
  };
  const ids = async () => (await site.workers()).map(({ workerID }) => workerID).sort();

  it('keeps its workers, which run on, and its ids', async () => {
    await runOnce();
    const before = await ids();
    await use('postgresql');
    const said = await ran('db', 'copy', '--from', 'sqlite', '--to', 'postgresql');
    expect(said).to.match(/^workers: 3\ntransitions: \d+\nconfigs: 1\nqueues: 1\n/);
    expect(said).to.contain(`all of it is in postgresql://thresher@`);
    expect(await ids()).to.deep.equal(before);
    expect(await ran('db', 'check')).to.equal('ok\n');
    await runOnce();
    expect(await ids()).to.deep.equal(before);
    expect([...site.starts().values()]).to.deep.equal([1, 1, 1]);

    const again = await site.run('db', 'copy', '--from', 'sqlite', '--to', 'postgresql');
    expect([again.status, again.stderr]).to.deep.equal([
      1,
      `thresher: ${(await sharedPostgresql()).url(database).replace(/@localhost.*/, '')}@${(await sharedPostgresql()).directory}:5432/${database} has rows in workers: only an empty database is copied into [copy-target]\n`,
    ]);
    const taken = await site.run('db', 'copy', '--from', 'postgresql', '--to', 'sqlite');
    expect(taken.stderr).to.contain('is there already');

    expect(await ran('db', 'prune', '--vacuum')).to.match(/^deleted: workers: 0 finished/);
    const backup = site.path('backup.db');
    expect(await ran('db', 'backup', backup)).to.match(/^3 workers in \d+ bytes were written to /);
    expect(await ran('db', 'check', backup)).to.equal('ok\n');
    site.removeDatabase();
    await ran('db', 'copy', '--from', 'postgresql', '--to', 'sqlite');
    await use('sqlite');
    expect(existsSync(join(site.stateDir, 'thresher.db'))).to.equal(true);
    expect(await ran('db', 'check')).to.equal('ok\n');
    await runOnce();
    expect(await ids()).to.deep.equal(before);
    expect([...site.starts().values()]).to.deep.equal([1, 1, 1]);
  });

  it('is refused while the daemon runs', async () => {
    await use('postgresql');
    const daemon = site.start();
    await until('three workers run', async () => (await site.workers({ status: 'running' })).length === 3);
    const { status, stderr } = await site.run('db', 'copy', '--from', 'postgresql', '--to', 'sqlite');
    expect([status, stderr]).to.satisfy(() => stderr.includes('[already-running]'));
    daemon.process.kill('SIGTERM');
    await daemon.ended;
  });
});

describe('a copy of a database', () => {
  it('has every row of every table, and goes on with ids that none had', async () => {
    const server = await sharedPostgresql();
    const { copyDatabases } = await import('../../src/store/store.ts');
    const { temporaryDirectory } = await import('../support/temporary.ts');
    const file = join(temporaryDirectory(), 'thresher.db');
    const store = await openStore(file, 'factory');
    store.news.listen(new Set(['toy']));
    await store.ids.raise(100);
    const payload = secretPayload(secretText(30));
    await store.workers.insert(
      [namedWorker(1, 'ä\0"\\'), namedWorker(2, 'b', { payload, payloadId: '2' })],
      'pending',
      1,
      'submitter',
    );
    await store.origins.end('toy', [{ uid: 'gone', index: 0 }], 'x', 2);
    await store.requests.add({ id: 'r', queue: 'Q', count: 2, by: 'http', payload, key: 'k' }, 1);
    await store.commands.add({ kind: 'sweep', orphans: true }, 1);
    await store.queues.configId('Q', '{}', 1);
    await store.sourceMemories.write('panda', 'link.json', '{}');
    const orphan = { connection: 'c', place: 'p', workerId: 5, queue: 'Q', why: 'x', seenTime: 1 };
    await store.orphans.replace('c', [orphan]);
    const told = await store.news.next('toy', 10);
    await store.news.taken('toy', told.at(-1)?.sequence ?? 0);
    await store.close();

    const place = server.options(await newDatabase());
    const counts = await copyDatabases(file, place, 'factory');
    expect(counts).to.deep.equal({
      workers: 2,
      transitions: 2,
      configs: 1,
      queues: 0,
      commands: 1,
      orphans: 1,
      counters: 1,
      news: 0,
      payloads: 1,
      payload_shares: 0,
      spent_origins: 1,
      requests: 1,
      source_memories: 1,
    });
    const there = await openStore(place, 'factory');
    there.news.listen(new Set(['toy']));
    expect([...(await there.payloads.byIds(['2'])).values()]).to.deep.equal([payload]);
    expect(await there.ids.take(1)).to.equal(100);
    await there.workers.apply([{ workerId: 1, from: 'pending', to: 'missed', at: 9, source: 'x' }]);
    const [next] = await there.news.next('toy', 10);
    expect(next?.sequence).to.be.greaterThan(told.at(-1)?.sequence ?? 0);
    expect((await there.workers.history(1)).map(({ to_status }) => to_status)).to.deep.equal([
      'pending',
      'missed',
    ]);
    await there.news.taken('toy', next?.sequence ?? 0);
    await there.close();

    const back = join(temporaryDirectory(), 'back.db');
    expect(await copyDatabases(place, back, 'factory')).to.deep.include({
      workers: 2,
      transitions: 3,
      news: 0,
    });
    const home = await openStore(back, 'factory');
    home.news.listen(new Set(['toy']));
    await home.workers.apply([{ workerId: 2, from: 'pending', to: 'missed', at: 9, source: 'x' }]);
    const [last] = await home.news.next('toy', 10);
    expect(last?.sequence).to.be.greaterThan(next?.sequence ?? Infinity);
    await home.close();
  });
});
