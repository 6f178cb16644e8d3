import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { openStore } from '../../src/store/store.ts';
import { newDatabase, type PostgresqlServer, sharedPostgresql } from '../support/postgresql.ts';
import { type Cut, CuttingProxy } from '../support/postgresql-proxy.ts';
import { type RunningDaemon, Site, untilSaid } from '../support/site.ts';
import { leaseDuration, StandingIn } from '../support/standing-in.ts';
import { until } from '../support/until.ts';

const first = 3;
const wanted = 6;
const more = 9;
/** The environment of a daemon of a later version. */
const newer = {
  NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, '../support/newer-version.ts')).href}`,
};
const later = '9999-later';
/** Where HTTP is served. */
const listens = /http:\/\/\S+:\d+\//;

describe('two versions of thresher on one PostgreSQL database', () => {
  let server: PostgresqlServer;
  let database: string;
  let proxy: CuttingProxy;
  let own: StandingIn;

  before(async () => {
    server = await sharedPostgresql();
  });

  beforeEach(async () => {
    database = await newDatabase();
    proxy = new CuttingProxy(server.directory);
    await proxy.start();
    own = new StandingIn([server.url(database), proxy.url(database)], first);
  });

  afterEach(async () => {
    await own.clean();
    proxy.close();
  });

  const query = <Row>(text: string) => server.query<Row>(text, database);
  const laterMigrations = async () =>
    (await query(`SELECT FROM kysely_migration WHERE name = '${later}'`)).length;
  /** Which parts of the later migration are there. */
  const laterParts = () =>
    query<{ part: string }>(`SELECT 'column' AS part FROM information_schema.columns
        WHERE table_name = 'workers' AND column_name = 'later'
      UNION ALL SELECT 'table' FROM pg_tables WHERE tablename = 'later'
      UNION ALL SELECT 'migration' FROM kysely_migration WHERE name = '${later}' ORDER BY part`).then(
      (rows) => rows.map(({ part }) => part),
    );
  const whole = ['column', 'migration', 'table'];
  const workers = () =>
    query<{ workerID: number; status: 'running' }>('SELECT worker_id AS "workerID", status FROM workers');
  /** By the server's clock: the same holder has renewed its lease several times. */
  const untilRenewed = (epoch: number) =>
    until('the leader has renewed its lease for some time', async () => {
      const rows = await query<{ epoch: number }>(
        `SELECT epoch FROM leases WHERE expires_at > taken_at + interval '${3 * leaseDuration} s'`,
      );
      expect(rows.every((row) => row.epoch === epoch)).to.equal(true);
      return rows.length > 0;
    });

  it('wait for each other: the newer migrates only when it leads, and the older is refused from then on', async () => {
    const leader = own.start(0);
    await own.expectOneEach();
    const standby = own.start(1, newer);
    await untilSaid(standby, 'standby: another daemon has the factory');
    await untilRenewed(1);
    expect(await laterParts()).to.deep.equal([]);
    expect(standby.output(), 'it cannot read the tables yet').not.to.match(listens);
    own.want(wanted, leader);
    await own.expectOneEach();
    process.kill(leader.pid, 'SIGTERM');
    expect(await leader.ended, leader.output()).to.equal(0);
    await untilSaid(standby, ' started ');
    await untilSaid(standby, listens);
    expect(await laterParts()).to.deep.equal(whole);
    await own.expectOneEach(workers);

    const former = own.start(0);
    expect(await former.ended, former.output()).to.equal(1);
    expect(former.output())
      .to.contain(`was written by a newer version of thresher (it has ${later})`)
      .and.to.contain('[store-newer]');
    own.want(more, standby);
    await own.expectOneEach(workers);
  });

  it('end the older one that has waited while the newer migrated, and it gives the lease back', async () => {
    const leader = own.start(0);
    await own.expectOneEach();
    const standby = own.start(1);
    await untilSaid(standby, 'standby: another daemon has the factory');
    await query(`INSERT INTO kysely_migration (name, timestamp) VALUES ('${later}', '2030')`);
    process.kill(leader.pid, 'SIGKILL');
    expect(await standby.ended, standby.output()).to.equal(1);
    expect(standby.output()).to.contain('[store-newer]');
    const leases = await query<{ epoch: number; over: boolean }>(
      'SELECT epoch, expires_at <= clock_timestamp() AS over FROM leases',
    );
    expect(leases).to.deep.equal([{ epoch: 2, over: true }]);
  });

  it('migrate once when two newer ones of a factory start at once', async () => {
    await (await openStore(server.options(database), 'standing-in')).close();
    const daemons = [own.start(0, newer), own.start(1, newer)];
    const saying = (what: string) => daemons.filter((daemon) => daemon.output().includes(what));
    await until(
      () => `one leads and one waits:\n${daemons.map((daemon) => daemon.output()).join('\n')}`,
      () => saying(' started ').length === 1 && saying('standby: another daemon').length === 1,
    );
    expect(await laterParts()).to.deep.equal(whole);
    await own.expectOneEach(workers);
    expect(daemons.map(({ process: { exitCode } }) => exitCode)).to.deep.equal([null, null]);
  });

  it('migrate once when newer ones of two factories start at once', async () => {
    await (await openStore(server.options(database), 'one')).close();
    const sites = ['one', 'other'].map(
      (factoryId) =>
        new Site({
          queues: {},
          settings: { master: { factoryId }, database: { url: server.url(database), sslmode: 'disable' } },
        }),
    );
    try {
      const daemons = sites.map((site) => site.start([], newer));
      for (const daemon of daemons) await untilSaid(daemon, ' started ');
      expect(await laterMigrations()).to.equal(1);
      expect(await laterParts()).to.deep.equal(whole);
    } finally {
      for (const site of sites) await site.clean();
    }
  });

  const commit = { statement: /^SELECT 1 .*; COMMIT$/s, following: /INSERT INTO kysely_migration/ };
  const moments: readonly (readonly [what: string, cut: Cut, left: readonly string[]])[] = [
    ['between its statements', { statement: /CREATE TABLE later/, when: 'before' }, []],
    ['after its last statement', { statement: /CREATE TABLE later/, when: 'after' }, []],
    ['before its commit', { ...commit, when: 'before' }, []],
    ['after its commit', { ...commit, when: 'after' }, whole],
  ];
  for (const [what, cut, left] of moments)
    it(`leave a database whole whose migration ends by SIGKILL: ${what}`, async () => {
      const former = own.start(0);
      await own.expectOneEach();
      process.kill(former.pid, 'SIGTERM');
      await former.ended;
      const killed: { daemon?: RunningDaemon } = {};
      proxy.cutAt({ ...cut, act: () => killed.daemon?.process.kill('SIGKILL') });
      const daemon = own.start(1, newer);
      killed.daemon = daemon;
      expect(await daemon.ended, daemon.output()).to.equal('SIGKILL');
      expect(proxy.cuts).to.equal(1);
      expect(await laterParts()).to.deep.equal(left);
      const older = own.start(0);
      if (left.length > 0) {
        expect(await older.ended, older.output()).to.equal(1);
        expect(older.output()).to.contain('[store-newer]');
      } else {
        await untilSaid(older, ' started ');
        own.want(wanted, older);
        await own.expectOneEach();
        older.process.kill('SIGTERM');
        await older.ended;
      }
      const again = own.start(1, newer);
      await untilSaid(again, ' started ');
      expect(await laterParts()).to.deep.equal(whole);
      own.want(more, again);
      await own.expectOneEach(workers);
    });
});
