import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { sql } from 'kysely';
import type { PostgresqlOptions } from '../../src/util/postgresql-options.ts';
import { openBeside } from '../../src/store/postgresql/database.ts';
import { openStore, openStoreBeside } from '../../src/store/store.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { Factory } from '../support/factory.ts';
import { freePort } from '../env/kubernetes/ports.ts';
import { scriptedSections } from '../support/plugins/scripted-backend.ts';
import { newDatabase, PostgresqlServer, sharedPostgresql } from '../support/postgresql.ts';
import { type Cut, CuttingProxy, TransactionPooler } from '../support/postgresql-proxy.ts';
import { workerOf } from '../support/samples.ts';
import { Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const three = { maxWorkers: 3, nQueueLimitWorker: 3 };
const fast = {
  master: { shutdownTimeout: 1, pluginTimeout: 20 },
  submitter: { sleepTime: 0.1 },
  sweeper: { sleepTime: 0.1 },
};

let factory: Factory | undefined;

function factoryOn(url: string, queue: Record<string, unknown> = three): Factory {
  factory = new Factory({ Q: queue }, { ...fast, database: { url, sslmode: 'disable' } });
  return factory;
}

/** Waits until the wanted workers are submitted. What a service manager does is done here: a daemon that must end starts anew. */
async function untilSubmitted(own: Factory, wanted = 3, mayEnd = true): Promise<void> {
  await until(
    () => `${wanted} workers are submitted; the log ends with ${JSON.stringify(own.log.slice(-5))}`,
    async () => {
      if (own.mustEnd !== undefined) {
        expect(mayEnd, `the daemon ends: ${own.mustEnd}`).to.equal(true);
        await own.stop();
        await own.start();
      }
      const workers = await own.workers('Q');
      const submitted = workers.filter(({ status }) => status === 'submitted');
      return submitted.length === wanted && workers.every(({ status }) => status !== 'pending');
    },
  );
}

/** Each worker of the backend has a row that lives, and began once. */
async function expectOneEach(own: Factory): Promise<void> {
  const rows = await own.workers('Q');
  const living = rows.filter(({ status }) => status === 'submitted').map(({ workerId }) => workerId);
  const there = [...own.backend('Q').workers.values()];
  expect(there.map(({ starts }) => starts)).to.deep.equal(there.map(() => 1));
  expect([...own.backend('Q').workers.keys()].sort()).to.deep.equal(living.sort());
}

const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

afterEach(async () => {
  await factory?.stop();
  await factory?.site.clean();
  factory = undefined;
});

describe('a daemon on PostgreSQL whose connection is cut', () => {
  let proxy: CuttingProxy;

  beforeEach(async () => {
    const server = await sharedPostgresql();
    proxy = new CuttingProxy(server.directory);
    await proxy.start();
  });
  afterEach(() => {
    proxy.close();
  });

  /** With the fence before it. */
  const commit = /^SELECT 1 .*; COMMIT$/s;
  const places: readonly (readonly [what: string, cut: Omit<Cut, 'when'>, unsaid: boolean])[] = [
    ['the ids of workers', { statement: /^update "counters"/ }, false],
    ['the commit of the ids', { statement: commit, following: /^update "counters"/ }, true],
    ['the begin of a transaction', { statement: /^BEGIN/ }, false],
    ['the intents', { statement: /^INSERT INTO "workers"/ }, false],
    ['the history of the intents', { statement: /^INSERT INTO "transitions"/ }, false],
    ['the commit of the intents', { statement: commit, following: /^INSERT INTO "workers"/ }, true],
    ['the outcomes', { statement: /UPDATE workers SET status/ }, false],
    ['the commit of the outcomes', { statement: commit, following: /UPDATE workers SET status/ }, true],
    ['the report of the queue', { statement: /^insert into "queues"/ }, false],
    ['the commit of the report', { statement: commit, following: /^insert into "queues"/ }, true],
    ['a question', { statement: /^\s*SELECT (?!1 )/ }, false],
  ];
  for (const [what, cut, unsaid] of places)
    for (const when of ['before', 'after'] as const)
      it(`has each worker once: ${when} ${what}`, async () => {
        const own = factoryOn(proxy.url(await newDatabase()), { ...three, queueStatus: 'offline' });
        await own.start();
        proxy.cutAt({ ...cut, when });
        own.site.writeQueues({
          Q: { ...scriptedSections('backend-Q'), ...three, demand: 'fill' },
        });
        await own.daemon.reload('test');
        await until('the connection was cut', () => proxy.cuts > 0);
        // The daemon hears of the cut a moment later.
        if (unsaid) await until('it says that it must end', () => own.mustEnd === 'store-outcome-unknown');
        await untilSubmitted(own, 3, unsaid);
        await expectOneEach(own);
      });
});

describe('the program on PostgreSQL whose commit gets no answer', () => {
  it('ends with an error, so that the service manager starts it anew', async () => {
    const server = await sharedPostgresql();
    const proxy = new CuttingProxy(server.directory);
    await proxy.start();
    const site = new Site({
      queues: { Q: three },
      settings: { database: { url: proxy.url(await newDatabase()), sslmode: 'disable' } },
    });
    try {
      proxy.cutAt({ statement: /; COMMIT$/, when: 'after', following: /^INSERT INTO "workers"/ });
      const daemon = site.start();
      expect(await daemon.ended, daemon.output()).to.equal(1);
      expect(daemon.output())
        .to.contain('the daemon must start anew')
        .and.to.contain('[store-outcome-unknown]');
      site.start();
      await until('three workers run', async () => (await site.workers({ status: 'running' })).length === 3);
      expect((await site.workers()).map(({ status }) => status)).to.deep.equal([
        'running',
        'running',
        'running',
      ]);
    } finally {
      await site.clean();
      proxy.close();
    }
  });
});

describe('a daemon on PostgreSQL whose server ends', () => {
  for (const how of ['fast', 'immediate'] as const)
    it(`goes on once it is back, with each worker once: ${how}`, async () => {
      const server = new PostgresqlServer();
      await server.start();
      try {
        const own = factoryOn(server.url(await newDatabase(server)), {
          maxWorkers: 120,
          nQueueLimitWorker: 120,
          maxNewWorkersPerCycle: 20,
        });
        await own.start();
        await until('some workers are there', async () => (await own.workers('Q')).length >= 40);
        await server.stop(how);
        const failed = (loop: string) =>
          own.log.filter(({ message, facts }) => message === 'pass failed' && facts.loop === loop);
        const lastOf = () => JSON.stringify(own.log.slice(-4));
        await until(
          () => `the submitter fails: ${lastOf()}`,
          () => failed('submit Q').length > 0,
        );
        const begun = own.backend('Q').workers.size;
        await until(
          () => `it fails again: ${lastOf()}`,
          () => failed('submit Q').length > 1,
        );
        expect(failed('submit Q').at(-1)?.facts.code).to.match(/^store-(unreachable|outcome-unknown)$/);
        expect(own.backend('Q').workers.size, 'submitted meanwhile').to.equal(begun);
        await server.start();
        await untilSubmitted(own, 120);
        await expectOneEach(own);
      } finally {
        await factory?.stop();
        await server.stop();
      }
    });

  it('lets a session that the server ended be, and takes a new one', async () => {
    const server = await sharedPostgresql();
    const database = await newDatabase();
    const own = factoryOn(server.url(database));
    await own.start();
    await untilSubmitted(own);
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}' AND pid <> pg_backend_pid()`,
    );
    const { status, stdout } = await own.site.run('pause', 'Q', '--reason', 'test');
    expect([status, stdout]).to.deep.equal([0, 'Q is paused\n']);
    expect((await own.queue('Q')).state).to.equal('paused');
  });
});

describe('a database of PostgreSQL', () => {
  it('lets one daemon of a factory in, and one of another factory beside it', async () => {
    const server = await sharedPostgresql();
    const place = server.options(await newDatabase());
    const one = await openStore(place, 'one');
    const other = await openStore(place, 'other');
    const error = await thrownBy(openStore(place, 'one'));
    expect(error).to.be.instanceOf(ThresherError).and.to.have.property('code', 'already-running');
    expect(String(error)).to.match(
      /another daemon has the factory one in the same database, \S+ pid \d+ since \d{4}-\S+Z$/,
    );
    await one.close();
    const next = await openStore(place, 'one');
    await next.close();
    await other.close();
  });

  it('is closed to a daemon once another one had it', async () => {
    const server = await sharedPostgresql();
    const database = await newDatabase();
    const place = server.options(database);
    const told: string[] = [];
    const first = await openStore(place, 'factory', { mustEnd: ({ code }) => told.push(code) });
    await first.ids.raise(5);
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`;
    await server.query(end);
    // A loss alone is none: it is the same daemon.
    await until('it is connected again', () =>
      first.queues.all().then(
        () => true,
        () => false,
      ),
    );
    expect(await first.ids.take(1)).to.equal(5);
    expect(told).to.deep.equal([]);
    await server.query(`UPDATE leases SET epoch = epoch + 1, holder = 'another'`, database);
    expect(await thrownBy(first.ids.take(1))).to.have.property('code', 'store-taken');
    expect(told).to.deep.equal(['store-taken']);
    expect(await thrownBy(first.queues.all())).to.have.property('code', 'store-taken');
    await first.close();
  });

  it('is closed to a daemon whose commit no synchronous standby has confirmed', async () => {
    const server = new PostgresqlServer();
    await server.start();
    const told: string[] = [];
    const database = await newDatabase(server);
    const store = await openStore(server.options(database), 'factory', {
      mustEnd: ({ code }) => told.push(code),
    });
    try {
      await store.ids.raise(5);
      await server.query(`ALTER SYSTEM SET synchronous_standby_names = 'nowhere'`);
      await server.query('SELECT pg_reload_conf()');
      const waits = `FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = '${database}'`;
      let raised: Promise<unknown> | undefined;
      await until('a commit waits for the standby', async () => {
        // The server takes the setting up a moment later: commits until then wait for nothing.
        raised ??= thrownBy(store.ids.raise(9)).then((error) => {
          if (error === undefined) raised = undefined;
          return error;
        });
        return (await server.query(`SELECT 1 ${waits} AND query LIKE '%COMMIT%'`)).length > 0;
      });
      await server.query(`SELECT pg_cancel_backend(pid) ${waits}`);
      expect(await raised).to.have.property('code', 'store-outcome-unknown');
      expect(told).to.deep.equal(['store-outcome-unknown']);
    } finally {
      await server.query('ALTER SYSTEM RESET synchronous_standby_names').catch(() => undefined);
      await server.query('SELECT pg_reload_conf()').catch(() => undefined);
      await store.close();
      await server.stop();
    }
  });

  it('is refused behind a pooler that lends sessions for single transactions', async () => {
    const server = await sharedPostgresql();
    const pooler = new TransactionPooler(server.directory);
    await pooler.start();
    try {
      const place = { ...server.options(await newDatabase()), host: pooler.directory };
      const error = await thrownBy(openStore(place, 'factory'));
      expect(error).to.have.property('code', 'store-unfit');
      expect(String(error)).to.contain('a pooler seems to lend its sessions for single transactions');
    } finally {
      pooler.close();
    }
  });

  it('is refused where it is none, or does not let the user in', async () => {
    const server = await sharedPostgresql();
    const codeOf = async (place: Partial<PostgresqlOptions>) =>
      ((await thrownBy(openStore({ ...server.options(), ...place }, 'f'))) as ThresherError).code;
    expect(await codeOf({ database: 'nowhere' })).to.equal('store-login');
    expect(await codeOf({ user: 'stranger' })).to.equal('store-login');
    expect(await codeOf({ host: '/nowhere' })).to.equal('store-unreachable');
    expect(await codeOf({ passwordFile: '/nowhere' })).to.equal('store-login');
    expect(await codeOf({ host: '127.0.0.1', port: 1 })).to.equal('store-unreachable');
    await server.query(
      'CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LC_COLLATE "C" LC_CTYPE "C"',
    );
    expect(await codeOf({ database: 'latin' })).to.equal('store-unfit');
  });

  it('of a newer version is refused and left alone, and one that is empty is not made by a reader', async () => {
    const server = await sharedPostgresql();
    const database = await newDatabase();
    const place = server.options(database);
    expect(await thrownBy(openStoreBeside(place, 'factory', 'read'))).to.have.property(
      'code',
      'store-missing',
    );
    await (await openStore(place, 'factory')).close();
    await server.query(
      `INSERT INTO kysely_migration (name, timestamp) VALUES ('9999-later', '2030')`,
      database,
    );
    for (const open of [
      () => openStore(place, 'factory'),
      () => openStoreBeside(place, 'factory', 'read'),
      () => openStoreBeside(place, 'factory', 'write'),
    ])
      expect(await thrownBy(open())).to.have.property('code', 'store-newer');
  });

  it('cannot be written by a reader', async () => {
    const server = await sharedPostgresql();
    const place = server.options(await newDatabase());
    await (await openStore(place, 'factory')).close();
    const reader = await openStoreBeside(place, 'factory', 'read');
    const error = await thrownBy(reader.workers.insert([workerOf(1)], 'pending', 0, 'x'));
    expect(reader.errorOf(error).code).to.equal('store-readonly');
    await reader.close();
  });

  it('ends what a daemon reads for its clients and takes too long, and nothing of a command', async () => {
    const place = (await sharedPostgresql()).options(await newDatabase());
    await (await openStore(place, 'factory')).close();
    for (const [asker, limit] of [
      ['daemon', '30s'],
      ['command', '0'],
    ] as const) {
      const { db } = await openBeside(place, 'read', asker);
      const { rows } = await sql<object>`SHOW statement_timeout`.execute(db);
      expect(rows).to.deep.equal([{ statement_timeout: limit }]);
      await db.destroy();
    }
  });

  it('says whether another process wrote since it was asked last', async () => {
    const server = await sharedPostgresql();
    const place = server.options(await newDatabase());
    const daemon = await openStore(place, 'factory');
    const beside = await openStoreBeside(place, 'factory', 'write');
    await daemon.commands.add({ kind: 'resume', queue: 'Q' }, 1);
    await beside.commands.add({ kind: 'resume', queue: 'Q' }, 1);
    await until('it hears', () => daemon.changedElsewhere());
    await daemon.commands.add({ kind: 'resume', queue: 'Q' }, 1);
    // A question that comes back on the daemon's own connection says nothing of the other one: this is the next news.
    expect(daemon.changedElsewhere()).to.equal(false);
    await beside.requests.add({ id: 'r', queue: 'Q', count: 1, by: 'command-line' }, 1);
    await until('it hears of a request', () => daemon.changedElsewhere());
    expect(daemon.changedElsewhere()).to.equal(false);
    await beside.close();
    await daemon.close();
  });
});

describe('an encrypted connection with PostgreSQL', () => {
  it('is there in the modes of libpq, and no other server is taken for the right one', async () => {
    const directory = temporaryDirectory();
    const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
    const names = ['-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1'];
    const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
    const made = spawnSync('openssl', ['req', ...kind, ...names, '-keyout', key, '-out', cert]);
    expect(made.status, String(made.stderr)).to.equal(0);
    const port = await freePort();
    const settings = { ssl: 'on', ssl_cert_file: 'cert.pem', ssl_key_file: 'key.pem' };
    const server = new PostgresqlServer(
      { ...settings, listen_addresses: 'localhost', port: String(port) },
      { port },
    );
    server.give(cert, key);
    await server.start();
    try {
      const answerOf = async (place: Partial<PostgresqlOptions>) => {
        const options = { ...server.options(), host: '127.0.0.1', ...place };
        const store = await openStore(options, 'f').catch((error: unknown) => error as ThresherError);
        if (store instanceof ThresherError) return `${store.code}: ${store.message}`;
        await store.close();
        return 'open';
      };
      expect(await answerOf({ sslmode: 'verify-full', sslrootcert: cert })).to.equal('open');
      expect(await answerOf({ sslmode: 'verify-full' })).to.match(/^store-unreachable: .*self-signed/);
      const byName = { host: 'localhost', sslrootcert: cert };
      expect(await answerOf({ ...byName, sslmode: 'verify-full' })).to.match(
        /^store-unreachable: .*altnames/,
      );
      expect(await answerOf({ ...byName, sslmode: 'verify-ca' })).to.equal('open');
      expect(await answerOf({ sslmode: 'require' })).to.equal('open');
    } finally {
      await server.stop();
    }
  });
});

describe('a daemon on PostgreSQL whose disk is full', () => {
  it('submits nothing, says so, and goes on once there is room', async () => {
    const server = new PostgresqlServer({}, { smallDisk: '24m' });
    await server.start();
    try {
      await server.query(`CREATE TABLESPACE small LOCATION '${server.small}'`);
      const own = factoryOn(server.url(await newDatabase(server, 'small')));
      await own.start();
      await untilSubmitted(own);
      const free = server.fillDisk();
      const many = { maxWorkers: 400, nQueueLimitWorker: 400 };
      own.site.writeQueues({ Q: { ...scriptedSections('backend-Q'), ...many, demand: 'fill' } });
      await own.daemon.reload('test');
      await until(
        () => `the submitter says why; the log ends with ${JSON.stringify(own.log.slice(-4))}`,
        () => own.log.some(({ facts }) => facts.loop === 'submit Q' && facts.code === 'store-full'),
      );
      const rows = (await own.workers('Q')).length;
      expect(own.backend('Q').workers.size).to.be.at.most(rows);
      free();
      await untilSubmitted(own, 400);
      await expectOneEach(own);
    } finally {
      await factory?.stop();
      await server.stop();
    }
  });
});
