import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { hasCode } from '../../util/files.ts';

/** How long a process that only asks whether the lock is held may be in the way, ms. */
const askedFor = 1000;

export interface FileLock {
  release(): void;
}

/**
 * Takes a lock on a file: an exclusive transaction in a database of its own. SQLite's locks are the kernel's, so this one
 * vanishes with the process however that ends, and no pid is ever guessed at. It works without the store, whatever database
 * that is in.
 * @param then runs as soon as the lock is held; if it throws, the lock is given back
 * @returns undefined where another process holds it
 * @throws what SQLite, the file system and `then` say
 */
export function lockFile(path: string, then: () => void): FileLock | undefined {
  let db: Database.Database | undefined;
  try {
    db = new Database(path, { timeout: askedFor });
    db.pragma('journal_mode = DELETE');
    db.exec('BEGIN EXCLUSIVE');
    then();
  } catch (error) {
    db?.close();
    if (hasCode(error, 'SQLITE_BUSY')) return undefined;
    throw error;
  }
  const held = db;
  return {
    release() {
      held.close();
    },
  };
}

/** Whether a process holds the lock now. */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  const db = new Database(path, { readonly: true, timeout: 0 });
  try {
    db.prepare('SELECT count(*) FROM sqlite_master').get();
    return false;
  } catch (error) {
    if (hasCode(error, 'SQLITE_BUSY')) return true;
    throw error;
  } finally {
    db.close();
  }
}
