import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { isoTime } from '../util/clock.ts';
import { hasCode } from '../util/files.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import type { StateDir } from './state-dir.ts';

export interface Holder {
  /** Who holds it, where it is no daemon: "thresher db prune --vacuum". */
  readonly what?: string;
  readonly pid: number;
  readonly host: string;
  readonly startedAt: number;
  readonly version: string;
}

export interface Lock {
  release(): void;
}

/**
 * Takes the state directory for this process. The lock is an exclusive transaction in a database of its own: SQLite's
 * locks are the kernel's, so it vanishes with the process however that ends, and no pid is ever guessed at.
 * @throws ThresherError `already-running`, which says who; `state-dir-unusable`
 */
export function takeLock(dir: StateDir, holder: Holder): Lock {
  let db: Database.Database | undefined;
  try {
    // A command line that asks whether the daemon runs holds the lock for a moment.
    db = new Database(dir.lock, { timeout: 1000 });
    db.pragma('journal_mode = DELETE');
    db.exec('BEGIN EXCLUSIVE');
    writeFileSync(dir.holder, JSON.stringify(holder));
  } catch (error) {
    db?.close();
    if (hasCode(error, 'SQLITE_BUSY')) throw alreadyRunning(dir);
    const message = `the state directory ${dir.path} cannot be locked: ${messageOf(error)}`;
    throw new ThresherError('state-dir-unusable', message, { path: dir.path }, { cause: error });
  }
  const held = db;
  return {
    release() {
      held.close();
      try {
        rmSync(dir.holder, { force: true });
      } catch {
        // On a disk that became read-only it stays; without the lock it means nothing.
        return;
      }
    },
  };
}

/** Who runs on a state directory now; undefined when nobody does. */
export function runningDaemon(dir: StateDir): Holder | 'unknown' | undefined {
  if (!existsSync(dir.lock)) return undefined;
  const db = new Database(dir.lock, { readonly: true, timeout: 0 });
  try {
    db.prepare('SELECT count(*) FROM sqlite_master').get();
    return undefined;
  } catch (error) {
    if (hasCode(error, 'SQLITE_BUSY')) return readHolder(dir) ?? 'unknown';
    throw error;
  } finally {
    db.close();
  }
}

function readHolder(dir: StateDir): Holder | undefined {
  try {
    return JSON.parse(readFileSync(dir.holder, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}

function alreadyRunning(dir: StateDir): ThresherError {
  const holder = readHolder(dir);
  const who =
    holder === undefined
      ? 'another daemon'
      : `${holder.what ?? 'the daemon'} with pid ${holder.pid} on ${holder.host}, started ${isoTime(holder.startedAt)}`;
  return new ThresherError('already-running', `${who} works on ${dir.path}`, { holder });
}
