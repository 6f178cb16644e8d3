import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import { checkDatabase } from '../../src/store/sqlite/check.ts';
import { openStore } from '../../src/store/store.ts';
import { insertEnded } from '../support/ended-workers.ts';
import { type CommandResult, runHere } from '../support/command-line.ts';
import { program } from '../support/program.ts';
import { makeDirectory, Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const old = { endTime: 5, sweptTime: 6 };
const failsWith = (result: CommandResult, line: string) => {
  expect(result).to.deep.equal({ status: 1, stdout: '', stderr: `thresher: ${line}\n` });
};

/** A state directory in which a daemon once ran, with these workers. */
async function stoppedSite(settings: ConstructorParameters<typeof Site>[0]['settings'] = {}) {
  const site = new Site({ queues: {}, settings });
  mkdirSync(site.stateDir);
  writeFileSync(join(site.stateDir, 'factory'), 'factory\n');
  const file = join(site.stateDir, 'thresher.db');
  const store = await openStore(file, 'factory');
  await store.ids.raise(1_000_000);
  await store.queues.configId('Q', '{}', 1);
  await store.close();
  return { site, file };
}

function inDatabase<T>(file: string, use: (db: Database.Database) => T): T {
  const db = new Database(file);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

const countIn = (file: string) => checkDatabase(file).counts.workers;

describe('db, beside a running daemon', () => {
  let site: Site;
  const database = () => join(site.stateDir, 'thresher.db');

  before(async () => {
    site = new Site({
      pilot: 'exit 0',
      settings: {
        master: { pluginTimeout: 2 },
        monitor: { missingGrace: 0.2 },
        sweeper: { keepFinished: 0, keepRows: 0, listInterval: 0.1, sleepTime: 0.2 },
      },
      queues: { Q: { maxWorkers: 2, nQueueLimitWorker: 2 } },
    });
    site.start();
    await until('workers were swept', async () => {
      if (!existsSync(database())) return false;
      return inDatabase(database(), (db) =>
        db.prepare('SELECT 1 FROM workers WHERE swept_time IS NOT NULL').get(),
      );
    });
  });

  after(async () => {
    await site.clean();
  });

  it('backup: a whole, sound copy in one file that only its owner reads', async () => {
    const file = site.path('backup.db');
    const { status, stdout, stderr } = await site.run('db', 'backup', file);
    expect(stderr).to.equal('');
    expect(status).to.equal(0);
    const [, workers, bytes] =
      /^(\d+) workers in (\d+) bytes were written to .*backup\.db\n$/.exec(stdout) ?? [];
    expect(statSync(file).size).to.equal(Number(bytes));
    expect((statSync(file).mode & 0o777).toString(8)).to.equal('600');
    expect(checkDatabase(file)).to.deep.include({ findings: [] });
    expect(countIn(file)).to.equal(Number(workers)).and.to.be.greaterThan(0);
    expect(readdirSync(site.directory).filter((name) => name.startsWith('backup'))).to.deep.equal([
      'backup.db',
    ]);
  });

  it('backup: an older one is replaced only by force, and as a whole', async () => {
    const file = site.path('again.db');
    await site.run('db', 'backup', file);
    const before = statSync(file).ino;
    failsWith(
      await site.run('db', 'backup', file),
      `${file} cannot be a backup: it is there already; --force replaces it [backup-target]`,
    );
    expect(statSync(file).ino).to.equal(before);
    expect((await site.run('db', 'backup', '--force', file)).status).to.equal(0);
    expect(statSync(file).ino).not.to.equal(before);
  });

  it('check: ok, and as JSON the counts', async () => {
    expect(await site.run('db', 'check')).to.deep.equal({ status: 0, stdout: 'ok\n', stderr: '' });
    const [result] = JSON.parse((await site.run('db', 'check', '--output', 'json')).stdout) as [object];
    expect(result).to.deep.include({ file: database(), ok: true, findings: [] });
    expect(result)
      .to.have.property('counts')
      .with.all.keys([...['workers', 'living', 'transitions', 'configs', 'queues', 'orphans']]);
  });

  it('prune: takes what is over, and the daemon goes on with what it does', async () => {
    const first = (await site.workers({ status: 'finished' })).at(-1)?.workerID ?? 0;
    expect(first).to.be.greaterThan(0);
    // Workers are swept in no order of their ids: another than the first may be deleted before it.
    let deleted = 0;
    await until('the first worker was deleted', async () => {
      const { status, stdout, stderr } = await site.run('db', 'prune');
      expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
      const [, finished] =
        /^deleted: workers: (\d+) finished, 0 failed, 0 cancelled, \d+ missed; unused configurations: 0; /.exec(
          stdout,
        ) ?? [];
      expect(finished, stdout).not.to.equal(undefined);
      deleted += Number(finished);
      return (await site.run('worker', String(first))).status !== 0;
    });
    expect(deleted).to.be.greaterThan(0);
    failsWith(await site.run('worker', String(first)), `there is no worker ${first} [no-such-worker]`);
    const newest = (await site.workers())[0]?.workerID ?? 0;
    await until('further workers end', async () =>
      (await site.workers({ status: 'finished' })).some(({ workerID }) => workerID > newest),
    );
    expect(checkDatabase(database()).findings).to.deep.equal([]);
  });

  it('prune: never gives space back under a daemon, and deletes nothing then either', async () => {
    const { status, stdout, stderr } = await site.run('db', 'prune', '--vacuum');
    expect({ status, stdout }).to.deep.equal({ status: 1, stdout: '' });
    expect(stderr).to.match(
      /^thresher: --vacuum needs the database for itself, but the daemon with pid \d+ on \S+, started \S+Z works on \S+\/state: stop it, or prune without --vacuum \[already-running\]\n$/,
    );
  });
});

describe('the daemon', () => {
  it('deletes by itself what is over, and never uses an id again', async () => {
    const site = new Site({
      pilot: 'exit 0',
      settings: {
        master: { pluginTimeout: 2 },
        monitor: { missingGrace: 0.2 },
        sweeper: { keepFinished: 0, keepRows: 0, listInterval: 0.1, sleepTime: 0.2, pruneInterval: 0.2 },
      },
      queues: { Q: { maxWorkers: 2, nQueueLimitWorker: 2 } },
    });
    try {
      const daemon = site.start();
      const ids = new Set<number>();
      const highest = () => Math.max(...ids);
      let first: number[] = [];
      await until('the first workers are gone and others came', async () => {
        const there = (await site.workers().catch(() => [])).map(({ workerID }) => workerID);
        if (first.length === 0) first = there;
        for (const id of there) {
          // Whoever is new is above all that ever were.
          if (!ids.has(id) && ids.size > 0) expect(id).to.be.greaterThan(highest() - there.length);
          ids.add(id);
        }
        return first.length > 0 && there.length > 0 && first.every((id) => !there.includes(id));
      });
      await until('it says so', () => daemon.output().includes('pruned the database'));
      expect(checkDatabase(join(site.stateDir, 'thresher.db')).findings).to.deep.equal([]);
      expect((await site.run('orphans')).stdout.trim().split('\n')).to.have.length(1);
    } finally {
      await site.clean();
    }
  });
});

describe('db backup, to where none can go', () => {
  let site: Site;
  let database: string;

  before(async () => {
    ({ site, file: database } = await stoppedSite());
    inDatabase(database, (db) => {
      insertEnded(db, { from: 1, count: 10, status: 'failed', ...old });
    });
    makeDirectory(site.path('there'));
    writeFileSync(site.path('notes.txt'), 'not a database');
    linkSync(database, site.path('hard.db'));
    symlinkSync(database, site.path('soft.db'));
    symlinkSync(site.stateDir, site.path('link'));
    writeFileSync(site.path('plain'), '');
  });

  const targets: [what: string, path: string, why: (site: Site) => string][] = [
    ['the database itself', 'state/thresher.db', () => 'it is a file of the state directory itself'],
    [
      'the same by a link to its directory',
      'link/thresher.db',
      () => 'it is a file of the state directory itself',
    ],
    [
      'what SQLite keeps beside it',
      'state/thresher.db-wal',
      () => 'it is a file of the state directory itself',
    ],
    ["the factory's id", 'state/factory', () => 'it is a file of the state directory itself'],
    ['the lock', 'state/daemon.lock', () => 'it is a file of the state directory itself'],
    ['a second name of the database', 'hard.db', () => 'it is the database itself'],
    ['a symbolic link', 'soft.db', () => 'it is there already, and no plain file'],
    ['a directory', 'there', () => 'it is a directory; name a file in it'],
    [
      'something that is no backup',
      'notes.txt',
      () => 'it is there already and no database; --force replaces only an older backup',
    ],
    [
      'a directory that is not there',
      'none/backup.db',
      (one) =>
        `the directory ${one.path('none')} cannot be used: ENOENT: no such file or directory, lstat '${one.path('none')}'`,
    ],
    ['a directory that is a file', 'plain/backup.db', (one) => `${one.path('plain')} is not a directory`],
  ];
  for (const [what, name, why] of targets) {
    it(`${what}: refused also with --force, and nothing is touched`, async () => {
      const path = site.path(name);
      failsWith(
        await site.run('db', 'backup', '--force', path),
        `${path} cannot be a backup: ${why(site)} [backup-target]`,
      );
      expect(countIn(database)).to.equal(10);
      expect(readFileSync(site.path('notes.txt'), 'utf8')).to.equal('not a database');
      expect(readFileSync(join(site.stateDir, 'factory'), 'utf8')).to.equal('factory\n');
    });
  }

  it('db backup refuses an empty file name', async () => {
    failsWith(await site.run('db', 'backup', ''), ` cannot be a backup: it is no file name [backup-target]`);
  });

  it('db backup refuses a file in a directory where no user can make files', async () => {
    const { status, stderr } = await site.run('db', 'backup', '/proc/backup.db');
    expect(status).to.equal(1);
    expect(stderr).to.match(
      /^thresher: \/proc\/backup\.db cannot be a backup: no file can be made beside it: ENOENT: .* \[backup-target\]\n$/,
    );
  });

  it('a full disk: what was there stays, and nothing is left', async () => {
    inDatabase(database, (db) => {
      insertEnded(db, { from: 100, count: 5000, status: 'failed', ...old });
    });
    const script = `mount -t tmpfs -o size=64k tmpfs "$1" && cp "$2" "$1/old.db" && shift 2 && "$@"; ls "$SMALL"`;
    const small = makeDirectory(site.path('small'));
    const older = site.path('older.db');
    inDatabase(older, (db) => db.exec('CREATE TABLE t (x)'));
    const command = [program(), '--config', site.config, 'db', 'backup', '--force', join(small, 'old.db')];
    const child = spawn('unshare', ['-rm', 'sh', '-c', script, 'sh', small, older, ...command], {
      env: { ...process.env, SMALL: small },
    });
    let output = '';
    child.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
    child.stderr.on('data', (piece: Buffer) => (output += piece.toString()));
    await once(child, 'close');
    expect(output).to.equal(
      `thresher: the backup ${small}/old.db could not be written: database or disk is full; nothing was left of it [backup-failed]\nold.db\n`,
    );
  });

  it('db backup of a damaged database fails and leaves no backup', async () => {
    const { site: broken, file } = await stoppedSite();
    inDatabase(file, (db) => {
      insertEnded(db, { from: 1, count: 2000, status: 'failed', ...old });
      db.pragma('wal_checkpoint(TRUNCATE)');
    });
    truncateSync(file, statSync(file).size - 4096 * 20);
    const { status, stderr } = await broken.run('db', 'backup', broken.path('b.db'));
    expect(status).to.equal(1);
    expect(stderr).to.match(/^thresher: \S+\/state\/thresher\.db is damaged: .* \[store-corrupt\]\n$/);
    expect(readdirSync(broken.directory).filter((name) => name.startsWith('b.db'))).to.deep.equal([]);
  });

  it('db backup of a newer database, or of none, fails', async () => {
    const { site: newer, file } = await stoppedSite();
    inDatabase(file, (db) => db.exec(`INSERT INTO kysely_migration VALUES ('9999-later', '2030')`));
    failsWith(
      await newer.run('db', 'backup', newer.path('b.db')),
      `${file} was written by a newer version of thresher (it has 9999-later) [store-newer]`,
    );
    const empty = new Site({ queues: {} });
    const missing = join(empty.stateDir, 'thresher.db');
    failsWith(
      await empty.run('db', 'backup', empty.path('b.db')),
      `there is no database ${missing} [store-missing]`,
    );
  });
});

describe('db backup', () => {
  it('a backup leaves out intents and unanswered commands, which a restore must not repeat', async () => {
    const { site, file } = await stoppedSite();
    const store = await openStore(file, 'factory');
    const answered = await store.commands.add({ kind: 'resume', queue: 'Q' }, 1);
    await store.commands.finish(answered, { ok: true, message: '' });
    await store.commands.add({ kind: 'kill-queue', queue: 'Q' }, 2);
    await store.close();
    inDatabase(file, (db) => {
      insertEnded(db, { from: 1, count: 3, status: 'finished', ...old });
      insertEnded(db, { from: 11, count: 2, status: 'running', endTime: 0, sweptTime: null });
      insertEnded(db, { from: 21, count: 2, status: 'pending', endTime: 0, sweptTime: null });
      db.exec(`UPDATE workers SET end_time = NULL WHERE worker_id > 10`);
    });
    const backup = site.path('b.db');
    expect((await site.run('db', 'backup', backup)).stdout).to.match(/^5 workers in /);
    inDatabase(backup, (db) => {
      expect(db.prepare('SELECT worker_id FROM workers ORDER BY 1').pluck().all()).to.deep.equal([
        1, 2, 3, 11, 12,
      ]);
      expect(db.prepare('SELECT id FROM commands').pluck().all()).to.deep.equal([answered]);
    });
    expect(countIn(file)).to.equal(7);
    expect(checkDatabase(backup).findings).to.deep.equal([]);
  });
});

describe('db check', () => {
  const contradictions: [check: string, statements: string, message: string][] = [
    [
      'transition-without-worker',
      'DELETE FROM workers WHERE worker_id IN (3, 4)',
      "transitions of workers that are not there: 4, such as 3's",
    ],
    [
      'worker-without-config',
      'UPDATE workers SET config_id = 9 WHERE worker_id = 2',
      'workers whose configuration is gone: 1, such as 2',
    ],
    [
      'worker-without-history',
      'DELETE FROM transitions WHERE worker_id = 5',
      'workers without any transition: 1, such as 5',
    ],
    [
      'unknown-status',
      `UPDATE workers SET status = 'dreaming' WHERE worker_id < 4`,
      'workers in a status that does not exist: 3, such as "dreaming"',
    ],
    [
      'living-with-end',
      `UPDATE workers SET status = 'running' WHERE worker_id = 7`,
      'living workers that have an end: 1, such as 7',
    ],
    [
      'id-used-again',
      `UPDATE counters SET value = 9 WHERE name = 'nextWorkerId'`,
      'workers whose ids would be given out again: 2, such as 9',
    ],
    [
      'migration-pending',
      `DELETE FROM kysely_migration WHERE name = '0002-retention'`,
      'it was not brought up to date yet: the daemon of this version does that at its start (0002-retention)',
    ],
    [
      'newer',
      `INSERT INTO kysely_migration VALUES ('9999-later', '2030')`,
      'it was written by a newer version of thresher: it has 9999-later',
    ],
  ];
  for (const [check, statements, message] of contradictions) {
    it(`finds ${check}, in one line and with exit status 1`, async () => {
      const { site, file } = await stoppedSite();
      inDatabase(file, (db) => {
        insertEnded(db, { from: 1, count: 10, status: 'failed', ...old });
        db.exec(statements);
      });
      const stderr = `thresher: ${file} is not as it should be [store-inconsistent]\n`;
      const expected = { status: 1, stdout: `${check}: ${message}\n`, stderr };
      expect(await site.run('db', 'check')).to.deep.equal(expected);
      const json = await site.run('db', 'check', file, '--output', 'json');
      expect(json).to.include({ status: 1, stderr });
      const [result] = JSON.parse(json.stdout) as [{ findings: unknown; ok: boolean }];
      expect(result).to.deep.include({ ok: false, findings: [{ check, message }] });
    });
  }

  it('finds damage, wherever it is', async () => {
    const { file } = await stoppedSite();
    inDatabase(file, (db) => {
      insertEnded(db, { from: 1, count: 2000, status: 'failed', ...old });
      db.pragma('wal_checkpoint(TRUNCATE)');
    });
    for (const pages of [1, 20, 100]) {
      const damaged = join(temporaryDirectory(), 'damaged.db');
      copyFileSync(file, damaged);
      truncateSync(damaged, statSync(damaged).size - 4096 * pages);
      const { status, stdout, stderr } = await runHere('db', 'check', damaged);
      expect(stdout).to.match(/^integrity: /);
      expect(stderr).to.equal(`thresher: ${damaged} is not as it should be [store-inconsistent]\n`);
      expect(status).to.equal(1);
    }
  });

  it('db check names the kind of a foreign file, and needs no settings for a file', async () => {
    const dir = temporaryDirectory();
    const path = (name: string) => join(dir, name);
    writeFileSync(path('text'), 'this is no database. '.repeat(100));
    writeFileSync(path('empty'), '');
    inDatabase(path('other.db'), (db) => db.exec('CREATE TABLE workers (x)'));
    const findings = async (name: string) => (await runHere('db', 'check', path(name))).stdout;
    expect(await findings('text')).to.equal('integrity: file is not a database\n');
    expect(await findings('empty')).to.equal('not-thresher: this is a database, but none of thresher\n');
    expect(await findings('other.db')).to.equal('not-thresher: this is a database, but none of thresher\n');
    failsWith(
      await runHere('db', 'check', path('none.db')),
      `there is no database ${path('none.db')} [store-missing]`,
    );
    failsWith(await runHere('db', 'check', dir), `${dir} is a directory, not a database [store-missing]`);
    expect(readdirSync(dir).sort()).to.deep.equal(['empty', 'other.db', 'text']);
  });
});

describe('db prune, while no daemon runs', () => {
  const settings = { sweeper: { keepFailed: 0, keepFinished: 0, keepRows: 0 } };
  const fill = (file: string) => {
    inDatabase(file, (db) => {
      insertEnded(db, { from: 1, count: 2000, status: 'failed', ...old });
      insertEnded(db, { from: 3001, count: 7, status: 'finished', ...old });
      insertEnded(db, { from: 4001, count: 5, status: 'failed', endTime: 5, sweptTime: null });
      insertEnded(db, { from: 5001, count: 3, status: 'cancelled', endTime: Date.now(), sweptTime: 6 });
      db.exec(
        `INSERT INTO configs (instance, queue, digest, snapshot, creation_time) VALUES ('factory', 'Q', 'd', '{}', 1)`,
      );
    });
  };
  const counts =
    'workers: 7 finished, 2000 failed, 0 cancelled, 0 missed; unused configurations: 1; answered commands: 0\n';

  it('db prune shows the rows to delete, deletes just these, and then has nothing to delete', async () => {
    const { site, file } = await stoppedSite(settings);
    fill(file);
    const dry = await site.run('db', 'prune', '--dry-run');
    expect(dry).to.deep.equal({ status: 0, stdout: `would be deleted: ${counts}`, stderr: '' });
    expect(countIn(file)).to.equal(2015);
    expect(await site.run('db', 'prune')).to.deep.equal({
      status: 0,
      stdout: `deleted: ${counts}`,
      stderr: '',
    });
    expect(checkDatabase(file)).to.deep.include({ findings: [] });
    expect(countIn(file)).to.equal(8);
    expect((await site.run('db', 'prune')).stdout).to.match(/^deleted: workers: 0 finished, 0 failed, 0 /);
  });

  it('db prune gives the space back with --vacuum', async () => {
    const { site, file } = await stoppedSite(settings);
    fill(file);
    expect((await site.run('db', 'prune')).status).to.equal(0);
    const before = statSync(file).size;
    expect(await site.run('db', 'prune', '--vacuum')).to.include({ status: 0, stderr: '' });
    expect(statSync(file).size).to.be.lessThan(before / 4);
    expect(readdirSync(site.stateDir)).to.not.include('daemon.json');
  });

  it('keeps rows as long as throttlers look back, whatever traces are kept', async () => {
    const { site, file } = await stoppedSite({ sweeper: { keepFailed: 0, keepRows: 2 } });
    inDatabase(file, (db) => {
      const at = (hours: number) => ({ endTime: Date.now() - hours * 3_600_000, sweptTime: 6 });
      insertEnded(db, { from: 1, count: 2, status: 'failed', ...at(1) });
      insertEnded(db, { from: 11, count: 3, status: 'failed', ...at(3) });
    });
    expect((await site.run('db', 'prune')).stdout).to.match(/ 3 failed,/);
    expect(countIn(file)).to.equal(2);
  });
});

describe('db, used wrongly', () => {
  const site = new Site({ queues: {} });
  const wrong: [what: string, args: string[], says: string][] = [
    ['an unknown subcommand', ['bakup'], "unknown command 'bakup' (Did you mean backup?)"],
    ['a backup to nowhere', ['backup'], "missing required argument 'file'"],
    [
      'two backups at once',
      ['backup', 'a', 'b'],
      "too many arguments for 'backup'. Expected 1 argument but got 2: a, b.",
    ],
    [
      'two files to check',
      ['check', 'a', 'b'],
      "too many arguments for 'check'. Expected 1 argument but got 2: a, b.",
    ],
    [
      'an output that is none',
      ['check', '--output', 'xml'],
      "option '--output <format>' argument 'xml' is invalid. Allowed choices are table, json.",
    ],
    [
      'a file to prune',
      ['prune', 'backup.db'],
      "too many arguments for 'prune'. Expected 0 arguments but got 1: backup.db.",
    ],
    [
      'a vacuum that changes nothing',
      ['prune', '--dry-run', '--vacuum'],
      '--vacuum changes the database: it does not go with --dry-run',
    ],
  ];
  for (const [what, args, says] of wrong) {
    it(`${what}: one clear line and exit status 2`, async () => {
      const { status, stdout, stderr } = await site.run('db', ...args);
      expect(stderr).to.equal(`thresher: ${says} [usage]\n`);
      expect({ status, stdout }).to.deep.equal({ status: 2, stdout: '' });
    });
  }

  it('db fails on a state directory where no daemon ever ran', async () => {
    for (const args of [['check'], ['prune'], ['prune', '--vacuum']]) {
      const { status, stderr } = await site.run('db', ...args);
      expect(status).to.equal(1);
      expect(stderr).to.match(
        /^thresher: (there is no database|no daemon ever ran on) .* \[store-missing\]\n$/,
      );
    }
    expect(existsSync(site.stateDir)).to.equal(false);
  });
});
