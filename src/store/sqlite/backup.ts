import { randomUUID } from 'node:crypto';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
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
  removeLeftOvers(file);
  const raw = `${file}.backup.${process.pid}.${randomUUID()}`;
  try {
    await copyRaw(file, raw);
    const workers = makeRestorable(raw, file);
    rewrite(raw, copy);
    return workers;
  } finally {
    for (const one of filesOf(raw)) rmSync(one, { force: true });
  }
}

/** The raw copy has secrets, also in the room between rows. It stays beside the database, where a kill may leave it. */
async function copyRaw(file: string, raw: string): Promise<void> {
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
    // A file of the owner alone: SQLite would make one that others can read.
    writeFileSync(raw, '', { mode: 0o600, flag: 'wx' });
    await source.backup(raw, { progress: () => allPages });
  } finally {
    source.close();
  }
}

/** Removes raw copies of backups that were killed. */
function removeLeftOvers(file: string): void {
  const start = `${basename(file)}.backup.`;
  for (const name of readdirSync(dirname(file)).filter((one) => one.startsWith(start))) {
    const [pid] = name.slice(start.length).split('.');
    if (!isRunning(Number(pid))) rmSync(join(dirname(file), name), { force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Leaves out of a copy what must not be done again when a daemon starts on it: an intent of then may have been carried
 * out and be over since, so its restored row would start it a second time; what is alive of them is adopted by its mark. So
 * with commands that were open.
 */
function makeRestorable(copy: string, file: string): number {
  const db = new Database(copy, { timeout: busyTimeout });
  try {
    // One file, which is read without writing others beside it.
    db.pragma('journal_mode = DELETE');
    const names = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table'`).pluck().all();
    const tables = new Set(names);
    db.transaction(() => {
      // A database of an earlier version has none of these.
      if (tables.has('payloads')) db.exec('UPDATE payloads SET secret = NULL');
      if (tables.has('payload_shares')) db.exec('UPDATE payload_shares SET secret = NULL');
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
    return db.prepare('SELECT count(*) FROM workers').pluck().get() as number;
  } finally {
    db.close();
  }
}

/** Writes the rows of the raw copy into the empty file `copy`, and nothing of the room between them, where deleted ones were. */
function rewrite(raw: string, copy: string): void {
  const db = new Database(raw, { timeout: busyTimeout });
  try {
    db.prepare('VACUUM INTO ?').run(copy);
  } finally {
    db.close();
  }
}
