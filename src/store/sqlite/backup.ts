import { renameSync, rmSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { ThresherError } from '../../worker/errors.ts';
import { filesOf } from './files.ts';
import { damagesOf, openReadOnly, versionOf } from './raw.ts';

/** How long a writer in the copy's way is waited for, ms: there should be none. */
const busyTimeout = 1000;
/** All pages in one step. In smaller ones every write of the daemon would let the copy begin anew. */
const allPages = 0x7fffffff;

/**
 * Copies a database, also while a daemon writes to it, into the empty file `copy`, without the secret files of payloads.
 * @returns how many workers are in it
 * @throws ThresherError `backup-failed`; `store-missing`, `store-newer`, `store-corrupt` for what is to be copied
 */
export async function copyDatabase(file: string, copy: string): Promise<number> {
  const source = openReadOnly(file);
  try {
    const version = versionOf(source);
    if (version === undefined) {
      throw new ThresherError('store-missing', `${file} is no database of thresher`, { file });
    }
    if (version.unknown.length > 0) {
      const message = `${file} was written by a newer version of thresher (it has ${version.unknown.join(', ')})`;
      throw new ThresherError('store-newer', message, { file, unknown: version.unknown });
    }
    await source.backup(copy, { progress: () => allPages });
  } finally {
    source.close();
  }
  const { workers, hadSecrets } = makeRestorable(copy, file);
  if (hadSecrets) rewrite(copy);
  return workers;
}

/**
 * Leaves out of a copy what must not be done again when a daemon starts on it: an intent of then may have been carried
 * out and be over since, so its restored row would start it a second time; what is alive of them is adopted by its mark. So
 * with commands that were open.
 */
function makeRestorable(
  copy: string,
  file: string,
): { readonly workers: number; readonly hadSecrets: boolean } {
  const db = new Database(copy, { timeout: busyTimeout });
  try {
    // One file, which is read without writing others beside it.
    db.pragma('journal_mode = DELETE');
    const names = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table'`).pluck().all();
    const tables = new Set(names);
    const hadSecrets = mayHaveSecrets(db, tables);
    db.transaction(() => {
      // A database of an earlier version has none of these.
      if (tables.has('payloads')) db.exec('UPDATE payloads SET secret = NULL');
      if (tables.has('news')) {
        db.exec(
          `DELETE FROM news WHERE worker_id IN (SELECT worker_id FROM workers WHERE status = 'pending')`,
        );
      }
      // Requests whose workers all have rows stay, and those that are withdrawn: the daemon ends their workers. The content of
      // the others goes with them, secrets and all.
      if (tables.has('requests')) {
        db.exec('DELETE FROM requests WHERE served_time IS NULL AND withdrawn_time IS NULL');
      }
      db.exec(
        `DELETE FROM transitions WHERE worker_id IN (SELECT worker_id FROM workers WHERE status = 'pending')`,
      );
      db.exec(`DELETE FROM workers WHERE status = 'pending'`);
      db.exec('DELETE FROM commands WHERE result IS NULL');
    })();
    const damages = damagesOf(db);
    if (damages.length > 0) {
      throw new ThresherError('store-corrupt', `${file} is damaged: ${damages.join('; ')}`, {
        file,
        damages,
      });
    }
    const workers = db.prepare('SELECT count(*) FROM workers').pluck().get() as number;
    return { workers, hadSecrets };
  } finally {
    db.close();
  }
}

/** Whether the database has, or may have had, a payload: SQLite keeps the last id that it gave out to one. */
function mayHaveSecrets(db: Database.Database, tables: ReadonlySet<unknown>): boolean {
  const asked = tables.has('requests') && db.prepare('SELECT 1 FROM requests LIMIT 1').get() !== undefined;
  const given = db.prepare(`SELECT 1 FROM sqlite_sequence WHERE name = 'payloads'`).get() !== undefined;
  return asked || given;
}

/** Writes a copy anew. Its pages may hold secrets in the room between rows, where deleted ones were; the new file has the rows alone. */
function rewrite(copy: string): void {
  const clean = `${copy}.clean`;
  // An empty file of the owner alone: SQLite would make one that others can read.
  writeFileSync(clean, '', { mode: 0o600, flag: 'wx' });
  try {
    const db = new Database(copy, { timeout: busyTimeout });
    try {
      db.prepare('VACUUM INTO ?').run(clean);
    } finally {
      db.close();
    }
    renameSync(clean, copy);
  } finally {
    for (const file of filesOf(clean)) rmSync(file, { force: true });
  }
}
