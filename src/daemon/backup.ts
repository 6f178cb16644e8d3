import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { LoadedSettings } from '../config/settings/settings.ts';
import { copyDatabase } from '../store/sqlite/backup.ts';
import { copyToFile } from '../store/store.ts';
import { isDamage } from '../store/sqlite/errors.ts';
import { filesOf, isDatabase } from '../store/sqlite/files.ts';
import { syncToDisk } from '../util/files.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import { type StateDir, stateDirAt } from './state-dir.ts';

export interface Backup {
  readonly file: string;
  readonly workers: number;
  readonly bytes: number;
}

/**
 * Writes a backup of the database to `path`, as a whole or not at all, readable by its owner only.
 * @throws ThresherError `backup-target`, `backup-failed`, and for the database itself as `copyDatabase` says
 */
export async function backUp(settings: LoadedSettings, path: string, force: boolean): Promise<Backup> {
  const dir = stateDirAt(settings.stateDir);
  const { postgresql } = settings;
  if (postgresql === undefined && !existsSync(dir.database)) {
    throw new ThresherError('store-missing', `there is no database ${dir.database}`, { file: dir.database });
  }
  const target = backupTarget(dir, path, force);
  const temporary = `${target}.${randomUUID()}.tmp`;
  await makeEmpty(temporary, target);
  const copied = `${temporary}.copy`;
  try {
    if (postgresql !== undefined) await copyToFile(postgresql, copied);
    const workers = await copyDatabase(postgresql === undefined ? dir.database : copied, temporary);
    await syncToDisk(temporary);
    const bytes = statSync(temporary).size;
    await rename(temporary, target);
    await syncToDisk(dirname(target));
    return { file: target, workers, bytes };
  } catch (error) {
    if (error instanceof ThresherError) throw error;
    if (isDamage(error)) {
      const file = dir.database;
      throw new ThresherError(
        'store-corrupt',
        `${file} is damaged: ${messageOf(error)}`,
        { file },
        { cause: error },
      );
    }
    const message = `the backup ${target} could not be written: ${messageOf(error)}; nothing was left of it`;
    throw new ThresherError('backup-failed', message, { target }, { cause: error });
  } finally {
    for (const file of [temporary, copied].flatMap(filesOf)) await rm(file, { force: true });
  }
}

/** Where a backup may go: nothing but an older backup is ever replaced. @throws ThresherError `backup-target` */
function backupTarget(dir: StateDir, path: string, force: boolean): string {
  const wrong = (why: string) =>
    new ThresherError('backup-target', `${path} cannot be a backup: ${why}`, { path });
  if (path.trim() === '') throw wrong('it is no file name');
  const parent = dirname(resolve(path));
  let real: string;
  try {
    real = realpathSync(parent);
  } catch (error) {
    throw wrong(`the directory ${parent} cannot be used: ${messageOf(error)}`);
  }
  if (!statSync(real).isDirectory()) throw wrong(`${parent} is not a directory`);
  const target = join(real, basename(resolve(path)));
  const state = realpathSync(dir.path);
  const own = [dir.factory, dir.holder, ...[dir.database, dir.lock].flatMap(filesOf)];
  if (own.some((file) => join(state, basename(file)) === target)) {
    throw wrong('it is a file of the state directory itself');
  }
  const there = lstatSync(target, { throwIfNoEntry: false });
  if (there === undefined) return target;
  if (there.isDirectory()) throw wrong('it is a directory; name a file in it');
  if (!there.isFile()) throw wrong('it is there already, and no plain file');
  const live = statSync(dir.database, { throwIfNoEntry: false });
  if (there.ino === live?.ino && there.dev === live.dev) throw wrong('it is the database itself');
  if (!force) throw wrong('it is there already; --force replaces it');
  if (!isDatabase(target))
    throw wrong('it is there already and no database; --force replaces only an older backup');
  return target;
}

/** thresher makes the file itself, so that no other user can ever read it: SQLite would ask the umask. */
async function makeEmpty(temporary: string, target: string): Promise<void> {
  try {
    await (await open(temporary, 'wx', 0o600)).close();
  } catch (error) {
    const message = `${target} cannot be a backup: no file can be made beside it: ${messageOf(error)}`;
    throw new ThresherError('backup-target', message, { target }, { cause: error });
  }
}
