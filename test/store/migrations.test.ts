import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import { Kysely, SqliteDialect } from 'kysely';
import { Migrator } from 'kysely/migration';
import { checkDatabase } from '../../src/store/sqlite/check.ts';
import { migrations } from '../../src/store/sqlite/migrations.ts';
import { openStore, openStoreBeside } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const later = '0002-retention';
const crashing = join(import.meta.dirname, '../support/crash-migration.ts');

/** A database as the first version left it, with workers of every kind in it. */
async function firstVersion(): Promise<string> {
  const file = join(temporaryDirectory(), 'thresher.db');
  const db = new Kysely({ dialect: new SqliteDialect({ database: new Database(file) }) });
  const core = migrations['0001-core'];
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ '0001-core': core! }) } });
  const { error } = await migrator.migrateToLatest();
  expect(error).to.equal(undefined);
  await db.destroy();
  const sqlite = new Database(file);
  const statuses = ['pending', 'submitted', 'running', 'finished', 'failed', 'cancelled', 'missed'];
  const insert =
    sqlite.prepare(`INSERT INTO workers (worker_id, instance, name, queue, computing_site, origin_kind,
    origin_uid, origin_index, placement, config_id, status, attempt, n_core, min_ram_count, max_disk_count, max_walltime,
    resource_type, job_type, pilot_type, prod_source_label, creation_time, end_time, modification_time, swept_time)
    VALUES (?, 'factory', 'w', 'Q', 'SITE', 'fill', 'Q', ?, 'local:/w', 1, ?, 1, 1, 2000, 0, 0, 'SCORE', 'managed', 'PR',
    'managed', 5, ?, 9, ?)`);
  const step = sqlite.prepare(
    `INSERT INTO transitions (worker_id, at, to_status, source) VALUES (?, 5, ?, 'submitter')`,
  );
  sqlite.transaction(() => {
    for (let id = 1; id <= 700; id++) {
      const status = statuses[id % statuses.length]!;
      const over = statuses.indexOf(status) >= 3;
      insert.run(id, id, status, over && id % 2 === 0 ? 8 : null, over && id % 3 === 0 ? 9 : null);
      step.run(id, 'pending');
      step.run(id, status);
    }
    sqlite.exec(`INSERT INTO configs VALUES (1, 'factory', 'Q', 'digest', '{}', 3);
      INSERT INTO commands (instance, kind, params, creation_time) VALUES ('factory', 'sweep', '{}', 1);
      INSERT INTO counters VALUES ('factory', 'nextWorkerId', 701);`);
  })();
  sqlite.close();
  return file;
}

function contents(file: string): Record<string, unknown[]> {
  const db = new Database(file, { readonly: true });
  const tables = ['workers', 'transitions', 'configs', 'commands', 'counters', 'kysely_migration'];
  try {
    return Object.fromEntries(tables.map((table) => [table, db.prepare(`SELECT * FROM ${table}`).all()]));
  } finally {
    db.close();
  }
}

describe('a database of the first version', () => {
  it('is brought up to date with all that is in it', async () => {
    const file = await firstVersion();
    const before = contents(file);
    const store = await openStore(file, 'factory');
    expect(await store.workers.list({})).to.have.length(700);
    expect(await store.workers.byId(5)).to.include({ status: 'cancelled', computingElement: null });
    expect((await store.workers.history(5)).map(({ to_status }) => to_status)).to.deep.equal([
      'pending',
      'cancelled',
    ]);
    expect(await store.workers.lastEnded('Q', 1000)).to.have.length(400);
    expect(await store.ids.take(1)).to.equal(701);
    await store.close();
    const after = contents(file);
    expect(after.transitions).to.deep.equal(before.transitions);
    expect(after.commands).to.deep.equal(before.commands);
    expect(after.configs).to.deep.equal([{ ...(before.configs![0] as object), used_time: 3 }]);
    expect(checkDatabase(file).findings).to.deep.equal([]);
  });

  it('is as it was when the machine stops in the middle, and is brought up to date the next time', async () => {
    const file = await firstVersion();
    const before = contents(file);
    const child = spawn(process.execPath, [crashing, file, later], { stdio: 'inherit' });
    expect(await once(child, 'exit')).to.deep.equal([null, 'SIGKILL']);
    expect(contents(file)).to.deep.equal(before);
    const store = await openStore(file, 'factory');
    expect(await store.workers.list({})).to.have.length(700);
    await store.close();
    expect(checkDatabase(file)).to.deep.include({ findings: [] });
  });

  it('is not touched by who reads or writes beside a daemon of the first version', async () => {
    const file = await firstVersion();
    for (const access of ['read', 'write'] as const) {
      const error = await openStoreBeside(file, 'factory', access).catch((thrown: unknown) => thrown);
      expect(error).to.include({
        code: 'store-missing',
        message: `${file} was not brought up to date yet: start the daemon of this version once`,
      });
    }
  });
});
