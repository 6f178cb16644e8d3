import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import { instancesIn, instancesQuery } from '../../src/store/sqlite/instances.ts';
import { storeError } from '../../src/store/sqlite/errors.ts';
import { migrations } from '../../src/store/sqlite/migrations.ts';
import { openStore, openStoreBeside } from '../../src/store/store.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const newFile = () => join(temporaryDirectory(), 'thresher.db');
const thrownBy = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

/** Opens, closes, and leaves the file. */
async function created(): Promise<string> {
  const file = newFile();
  const store = await openStore(file, 'factory');
  await store.close();
  return file;
}

function inDatabase<T>(file: string, use: (db: Database.Database) => T): T {
  const db = new Database(file);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

describe('the database', () => {
  it('is created with every migration where there is none', async () => {
    const file = await created();
    inDatabase(file, (db) => {
      expect(db.prepare('SELECT name FROM kysely_migration ORDER BY name').pluck().all()).to.deep.equal(
        Object.keys(migrations),
      );
      const tables = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table'`).pluck().all();
      expect(tables).to.include.members([
        'workers',
        'transitions',
        'configs',
        'queues',
        'commands',
        'orphans',
      ]);
      expect(db.pragma('journal_mode', { simple: true })).to.equal('wal');
    });
  });

  it('keeps its own statistics, though somebody has it analyzed', async () => {
    const file = await created();
    const told = (db: Database.Database) => db.prepare('SELECT * FROM sqlite_stat1 ORDER BY idx').all();
    const own = inDatabase(file, (db) => {
      const before = told(db);
      db.exec('ANALYZE');
      expect(told(db)).not.to.deep.equal(before);
      return before;
    });
    await (await openStore(file, 'factory')).close();
    inDatabase(file, (db) => {
      expect(told(db)).to.deep.equal(own);
      expect(db.prepare('SELECT count(*) FROM sqlite_stat4').pluck().get()).to.equal(0);
      // The numbers alone are right, and samples lead astray.
      db.exec(`INSERT INTO sqlite_stat4 (tbl, idx) VALUES ('workers', 'workers_alive')`);
    });
    await (await openStore(file, 'factory')).close();
    inDatabase(file, (db) => {
      expect(db.prepare('SELECT count(*) FROM sqlite_stat4').pluck().get()).to.equal(0);
    });
  });

  it("is its owner's alone, with all files beside it, also where it was not before", async () => {
    const file = newFile();
    const modes = () => ['', '-wal', '-shm'].map((end) => (statSync(file + end).mode & 0o777).toString(8));
    const umask = process.umask(0o022);
    try {
      const first = await openStore(file, 'factory');
      expect(modes()).to.deep.equal(['600', '600', '600']);
      await first.close();
      chmodSync(file, 0o644);
      const second = await openStore(file, 'factory');
      expect(modes()).to.deep.equal(['600', '600', '600']);
      await second.close();
    } finally {
      process.umask(umask);
    }
  });

  it('keeps what is in it when it is opened again', async () => {
    const file = newFile();
    const first = await openStore(file, 'factory');
    await first.workers.insert([workerOf(1)], 'pending', 5, 'submitter');
    await first.close();
    const second = await openStore(file, 'factory');
    expect((await second.workers.byId(1))?.creationTime).to.equal(5);
    await second.close();
  });

  for (const [who, open] of [
    ['the daemon', (file: string) => openStore(file, 'factory')],
    ['a reader', (file: string) => openStoreBeside(file, 'factory', 'read')],
    ['a writer beside the daemon', (file: string) => openStoreBeside(file, 'factory', 'write')],
  ] as const) {
    it(`of a newer version is refused and left alone: ${who}`, async () => {
      const file = await created();
      inDatabase(file, (db) => {
        db.exec(`INSERT INTO kysely_migration (name, timestamp) VALUES ('9999-later', '2030')`);
      });
      const error = await thrownBy(open(file));
      expect(error)
        .to.be.instanceOf(ThresherError)
        .and.to.include({
          code: 'store-newer',
          message: `${file} was written by a newer version of thresher (it has 9999-later)`,
        });
      inDatabase(file, (db) => {
        expect(db.prepare('SELECT count(*) FROM kysely_migration').pluck().get()).to.equal(
          Object.keys(migrations).length + 1,
        );
      });
    });

    it(`that is none is called damaged: ${who}`, async () => {
      const file = newFile();
      writeFileSync(file, 'this is no database. '.repeat(500));
      expect(await thrownBy(open(file)))
        .to.be.instanceOf(ThresherError)
        .and.to.include({ code: 'store-corrupt' });
    });
  }

  for (const access of ['read', 'write'] as const) {
    it(`is not created beside a daemon: ${access}`, async () => {
      const file = newFile();
      expect(await thrownBy(openStoreBeside(file, 'factory', access))).to.include({
        code: 'store-missing',
        message: `there is no database ${file}`,
      });
    });
  }

  it('names its factories with their living workers, and reads no ended one for that', async () => {
    const file = newFile();
    for (const factory of ['one', 'two']) {
      const store = await openStore(file, factory);
      await store.ids.raise(1);
      if (factory === 'one') await store.workers.insert([workerOf(1)], 'pending', 1, 'submitter');
      await store.close();
    }
    expect(instancesIn(file)).to.deep.equal([
      { id: 'one', living: 1 },
      { id: 'two', living: 0 },
    ]);
    const plan = inDatabase(file, (db) =>
      db.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${instancesQuery}`).all(),
    );
    const ofWorkers = plan.map(({ detail }) => detail).filter((detail) => detail.includes('workers'));
    expect(ofWorkers.join('\n')).to.contain('INDEX workers_alive');
    expect(ofWorkers.join('\n')).not.to.match(/SCAN workers$|(?<!COVERING )INDEX workers_/m);
  });

  it('cannot be written by a reader', async () => {
    const file = await created();
    const reader = await openStoreBeside(file, 'factory', 'read');
    const error = await thrownBy(reader.workers.insert([workerOf(1)], 'pending', 0, 'x'));
    await reader.close();
    expect(storeError(error, file).code).to.equal('store-readonly');
  });

  it('says whether another process wrote since it was asked last', async () => {
    const file = newFile();
    const daemon = await openStore(file, 'factory');
    const beside = await openStoreBeside(file, 'factory', 'write');
    expect(daemon.changedElsewhere()).to.equal(false);
    await daemon.commands.add({ kind: 'resume', queue: 'Q' }, 1);
    expect(daemon.changedElsewhere()).to.equal(false);
    await beside.commands.add({ kind: 'resume', queue: 'Q' }, 1);
    expect(daemon.changedElsewhere()).to.equal(true);
    expect(daemon.changedElsewhere()).to.equal(false);
    await beside.close();
    await daemon.close();
  });
});

describe('an error of the database', () => {
  it('of a full disk has a code of its own', async () => {
    const file = newFile();
    const error = inDatabase(file, (db): unknown => {
      db.exec('CREATE TABLE t (x)');
      db.pragma('max_page_count = 3');
      try {
        db.prepare('INSERT INTO t VALUES (zeroblob(100000))').run();
        return undefined;
      } catch (thrown) {
        return thrown;
      }
    });
    const full = storeError(error, file);
    expect(full).to.include({ code: 'store-full', cause: error });
    expect(full.message).to.equal('the disk with the database is full: database or disk is full');
    expect(full.facts).to.deep.equal({ file, native: 'SQLITE_FULL' });
  });

  for (const [native, code] of [
    ['SQLITE_READONLY_DBMOVED', 'store-readonly'],
    ['SQLITE_CANTOPEN_ISDIR', 'store-readonly'],
    ['SQLITE_PERM', 'store-readonly'],
    ['SQLITE_CORRUPT_INDEX', 'store-corrupt'],
    ['SQLITE_NOTADB', 'store-corrupt'],
    ['SQLITE_CONSTRAINT_UNIQUE', 'store-row'],
    ['SQLITE_CONSTRAINT_FOREIGNKEY', 'store-failed'],
    ['SQLITE_TOOBIG', 'store-row'],
    ['SQLITE_IOERR_WRITE', 'store-failed'],
    ['SQLITE_BUSY', 'store-failed'],
    ['', 'store-failed'],
  ] as const) {
    it(`with SQLite's "${native}" is ${code}`, () => {
      const error = Object.assign(new Error('why'), { code: native });
      expect(storeError(error, 'f').code).to.equal(code);
    });
  }

  it('that has a code already keeps it', () => {
    const error = new ThresherError('store-missing', 'x');
    expect(storeError(error, 'f')).to.equal(error);
    expect(storeError('text', 'f').message).to.equal('the database refused: text');
  });
});
