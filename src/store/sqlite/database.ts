import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { CompiledQuery, Kysely, sql, SqliteDialect } from 'kysely';
import { ThresherError } from '../../worker/errors.ts';
import type { OpenDatabase, LastIds } from '../sql/open-database.ts';
import { inTransaction } from '../sql/transaction.ts';
import type { Tables } from '../tables.ts';
import { sqliteDialect } from './dialect.ts';
import { storeError } from './errors.ts';
import { filesOf } from './files.ts';
import { migrations } from './migrations.ts';
import { KeptStatements } from './statements.ts';
import { keepStatistics } from './statistics.ts';

/** Pages that SQLite keeps, KiB. better-sqlite3 would have it keep 16 MiB; the kernel has them all anyway. */
const pageCache = 4096;

/** How long a writer waits for another process' transaction before it fails, ms. */
const busyTimeout = 10_000;

/**
 * Opens the database of a daemon, creates it where there is none, and brings it up to date in one transaction.
 * @throws ThresherError `store-newer`, `store-corrupt`, `store-readonly`, `store-full`
 */
export async function openForDaemon(file: string): Promise<OpenDatabase> {
  if (file !== ':memory:') keepFromOthers(file);
  const open = connect(file, {});
  try {
    await migrate(open);
    return open;
  } catch (error) {
    await open.close();
    throw storeError(error, file);
  }
}

/**
 * Opens the database beside a daemon that may or may not run. Nothing is created or migrated.
 * @throws ThresherError `store-missing`, `store-newer` and as above
 */
export async function openBeside(file: string, access: 'read' | 'write'): Promise<OpenDatabase> {
  if (!existsSync(file)) throw new ThresherError('store-missing', `there is no database ${file}`, { file });
  const open = connect(file, { readonly: access === 'read', fileMustExist: true });
  try {
    const unknown = await unknownMigrations(open.db);
    if (unknown.length > 0) throw newer(file, unknown);
    const [last] = Object.keys(migrations).slice(-1);
    if (last === undefined || !(await appliedMigrations(open.db)).includes(last)) {
      const message = `${file} was not brought up to date yet: start the daemon of this version once`;
      throw new ThresherError('store-missing', message, { file });
    }
    return open;
  } catch (error) {
    await open.close();
    throw storeError(error, file);
  }
}

/**
 * Gives the database's files to their owner alone: payloads hold secrets. SQLite would ask the umask for a new one, and gives the
 * files that it puts beside it the mode of the first. A file that cannot be made is SQLite's to report.
 */
function keepFromOthers(file: string): void {
  try {
    // One that is there is never opened here: its close would end SQLite's locks of this process.
    if (!existsSync(file)) closeSync(openSync(file, 'wx', 0o600));
    for (const one of filesOf(file)) {
      const mode = statSync(one, { throwIfNoEntry: false })?.mode ?? 0;
      if ((mode & 0o077) !== 0) chmodSync(one, mode & 0o700);
    }
  } catch {
    // Another user decides about his own file.
  }
}

function connect(file: string, options: Database.Options): OpenDatabase {
  let opened: Database.Database | undefined;
  let version: unknown;
  try {
    opened = new Database(file, { ...options, timeout: busyTimeout });
    const sqlite = opened;
    sqlite.pragma(`cache_size = -${pageCache}`);
    // An intent must be on disk before its call goes out: WAL alone may lose the last commits in a power cut.
    if (options.readonly !== true) {
      sqlite.pragma('journal_mode = WAL');
      sqlite.pragma('synchronous = FULL');
    }
    version = dataVersion(sqlite);
  } catch (error) {
    opened?.close();
    throw storeError(error, file);
  }
  const sqlite = opened;
  const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: new KeptStatements(sqlite) }) });
  return {
    file,
    db,
    dialect: sqliteDialect,
    // The number changes whenever another process commits: it costs no query plan and no disk.
    changedElsewhere() {
      const now = dataVersion(sqlite);
      const changed = now !== version;
      version = now;
      return changed;
    },
    // The lock of the state directory ends with the process.
    mayAct: () => true,
    bytes: async () => sizeOf(file),
    snapshot: (work) => inTransaction(db, work),
    lastIds: () => lastIds(db),
    setLastIds,
    async vacuum() {
      await sql`VACUUM`.execute(db);
    },
    emptyLog: () => emptyLog(db),
    errorOf: (error) => storeError(error, file),
    close: () => db.destroy(),
  };
}

/** Bytes of the database and of what is still in its write-ahead log. */
function sizeOf(file: string): number {
  return [file, `${file}-wal`].reduce(
    (sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

/** The log keeps pages as they were until others are written over them, which may take long. */
function emptyLog(db: Kysely<Tables>): Promise<boolean> {
  return db.connection().execute(async (one) => {
    // The daemon would stand still while SQLite waits for a reader.
    await sql`PRAGMA busy_timeout = 0`.execute(one);
    try {
      const { rows } = await sql<{ busy: number }>`PRAGMA wal_checkpoint(TRUNCATE)`.execute(one);
      return rows[0]?.busy === 0;
    } finally {
      await sql.raw(`PRAGMA busy_timeout = ${busyTimeout}`).execute(one);
    }
  });
}

function dataVersion(sqlite: Database.Database): unknown {
  return sqlite.pragma('data_version', { simple: true });
}

async function migrate(open: OpenDatabase): Promise<void> {
  const unknown = await unknownMigrations(open.db);
  if (unknown.length > 0) throw newer(open.file, unknown);
  // Kysely's own migrator opens no transaction on SQLite: a stop in the middle would leave half a migration, for ever.
  const { Migrator } = await import('kysely/migration');
  await inTransaction(open.db, async (tx) => {
    const migrator = new Migrator({
      db: tx,
      provider: { getMigrations: async () => ({ ...migrations }) },
    });
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw error instanceof Error ? error : new Error(JSON.stringify(error));
    await keepStatistics(tx);
  });
}

async function unknownMigrations(db: Kysely<Tables>): Promise<string[]> {
  return (await appliedMigrations(db)).filter((name) => !(name in migrations));
}

async function appliedMigrations(db: Kysely<Tables>): Promise<string[]> {
  const tables = await sql<{
    name: string;
  }>`SELECT name FROM sqlite_master WHERE name = 'kysely_migration'`.execute(db);
  if (tables.rows.length === 0) return [];
  const applied = await db.executeQuery<{ name: string }>(
    CompiledQuery.raw('SELECT name FROM kysely_migration'),
  );
  return applied.rows.map((row) => row.name);
}

function newer(file: string, unknown: readonly string[]): ThresherError {
  const message = `${file} was written by a newer version of thresher (it has ${unknown.join(', ')})`;
  return new ThresherError('store-newer', message, { file, unknown });
}

/** Of tables with AUTOINCREMENT. */
async function lastIds(db: Kysely<Tables>): Promise<LastIds> {
  const { rows } = await sql<{ name: string; seq: number }>`SELECT name, seq FROM sqlite_sequence`.execute(
    db,
  );
  return new Map(rows.map(({ name, seq }) => [name, seq]));
}

async function setLastIds(db: Kysely<Tables>, ids: LastIds): Promise<void> {
  for (const [table, id] of ids) {
    // Other tables have none.
    if (!['transitions', 'news', 'payloads'].includes(table)) continue;
    await sql`DELETE FROM sqlite_sequence WHERE name = ${table}`.execute(db);
    await sql`INSERT INTO sqlite_sequence (name, seq) VALUES (${table}, ${id})`.execute(db);
  }
}
