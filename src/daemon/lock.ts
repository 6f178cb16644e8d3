import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type FileLock, isLocked, lockFile } from '../store/sqlite/file-lock.ts';
import { isoTime } from '../util/clock.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import type { StateDir } from './state-dir.ts';

export interface Holder {
  /** The holder's command, where it is no daemon: "thresher db prune --vacuum". */
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
 * Takes the state directory for this process, by a lock that vanishes with the process however that ends.
 * @throws ThresherError `already-running`, which says who; `state-dir-unusable`
 */
export function takeLock(dir: StateDir, holder: Holder): Lock {
  let lock: FileLock | undefined;
  try {
    lock = lockFile(dir.lock, () => {
      writeFileSync(dir.holder, JSON.stringify(holder));
    });
  } catch (error) {
    const message = `the state directory ${dir.path} cannot be locked: ${messageOf(error)}`;
    throw new ThresherError('state-dir-unusable', message, { path: dir.path }, { cause: error });
  }
  if (lock === undefined) throw alreadyRunning(dir);
  const held = lock;
  return {
    release() {
      held.release();
      try {
        rmSync(dir.holder, { force: true });
      } catch {
        // On a disk that became read-only it stays; without the lock it means nothing.
        return;
      }
    },
  };
}

/** The process that runs on a state directory now; undefined when there is none. */
export function runningDaemon(dir: StateDir): Holder | 'unknown' | undefined {
  return isLocked(dir.lock) ? (readHolder(dir) ?? 'unknown') : undefined;
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
