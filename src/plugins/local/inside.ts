import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '../../util/files.ts';
import { NotPlainFile, readPlainFile } from '../../util/plain-file.ts';

/** Bytes that are read of one of the small files: far more than thresher or a shim ever writes. */
export const largest = 64 * 1024;
const openDirectory =
  constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Does something inside a worker's directory, given a path that leads to this very directory whatever happens to its name.
 * @returns `none` if there is no such directory. @throws NotPlainFile if something else has its name
 */
export async function within<T, N>(
  path: string,
  none: N,
  work: (inside: string) => Promise<T>,
): Promise<T | N> {
  let directory: FileHandle;
  try {
    directory = await open(path, openDirectory);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return none;
    if (hasCode(error, 'ENOTDIR', 'ELOOP')) throw new NotPlainFile(path, 'not-a-file', 'is no directory');
    if (hasCode(error, 'EACCES', 'EPERM')) throw new NotPlainFile(path, 'not-a-file', 'may not be entered');
    throw error;
  }
  try {
    return await work(`/proc/self/fd/${directory.fd}`);
  } finally {
    await directory.close();
  }
}

/** Makes one directory in one that is there. */
export async function makeOne(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}

/** Makes a directory of ours in one that is there; what else has its name goes. */
export async function requireDirectory(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined && !found.isDirectory()) await rm(path, { force: true });
  await makeOne(path);
}

export type Small = { readonly text: string; readonly at: number } | { readonly why: string };

/** A small file with the time it was written, ms UTC, or what is wrong with it; undefined: it is not there. */
export async function readSmall(inside: string, name: string): Promise<Small | undefined> {
  try {
    const { bytes, stats } = await readPlainFile(join(inside, name), { largest, links: 'refuse' });
    return { text: bytes.toString('utf8'), at: Math.max(0, Math.round(stats.mtimeMs)) };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    if (error instanceof NotPlainFile) return { why: error.message.replace(error.path, 'it') };
    // The pilot took away the right to read it, or holds a lease on it.
    if (hasCode(error, 'EACCES', 'EPERM', 'EAGAIN')) return { why: `it cannot be read (${String(error)})` };
    throw error;
  }
}
