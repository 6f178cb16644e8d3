import { randomBytes } from 'node:crypto';
import { lstat, opendir, rename, rmdir, unlink } from 'node:fs/promises';
import type { Lane } from './file-lane.ts';
import { hasCode } from './files.ts';

/** Names taken from a directory at once: so much is the work of one turn in the lane. */
const namesAtOnce = 8;

/**
 * Bytes of the path of a directory with which each name in it can still be said: systems take 1024 or 4096. Whoever changes into a directory may
 * make others below it without end.
 */
const longestPath = 700;

/** Names may be any bytes. */
interface Entry {
  readonly path: Buffer;
  readonly isDirectory: boolean;
}

/**
 * Removes a file, a link or a whole tree, in small steps through a lane: Node's own `rm` works on all parts of a tree
 * at once, so that one tree on a dead disk would take every thread, and a large one would hold its lane until it is
 * gone. Its steps are background work: any number of removals together hold one slot of their lane. A missing file is
 * no error.
 * @throws ThresherError `file-timeout`, or the error of the file system
 */
export async function removeTree(path: string, lane: Lane): Promise<void> {
  const at = Buffer.from(path);
  const root = await lane.run(`a look at ${path}`, () => entryOf(at), 'background');
  if (root !== undefined) await remove(root, at, lane);
}

async function remove(entry: Entry, root: Buffer, lane: Lane): Promise<void> {
  const { path } = entry;
  const called = path.toString();
  if (!entry.isDirectory) return lane.run(`removal of ${called}`, () => gone(unlink(path)), 'background');
  for (;;) {
    const work = () => removeSomeFiles(path, root);
    const left = await lane.run(`removal of files in ${called}`, work, 'background');
    if (left === undefined) break;
    for (const directory of left) await remove(directory, root, lane);
  }
  return lane.run(`removal of ${called}`, () => gone(rmdir(path)), 'background');
}

/** @returns the directories among the names that it took; undefined: the directory is empty, or gone itself. */
async function removeSomeFiles(path: Buffer, root: Buffer): Promise<Entry[] | undefined> {
  const names = await someNames(path);
  if (names.length === 0) return undefined;
  const directories: Entry[] = [];
  for (const name of names) {
    const entry = await entryOf(inside(path, name));
    if (entry?.isDirectory) {
      if (path === root || entry.path.length <= longestPath || !(await isMoved(entry.path, root)))
        directories.push(entry);
    } else if (entry !== undefined) await gone(unlink(entry.path));
  }
  return directories;
}

/** Brings a directory up into the root of its tree, where it comes to its turn. One that cannot be moved may be empty. */
async function isMoved(path: Buffer, root: Buffer): Promise<boolean> {
  try {
    await rename(path, inside(root, Buffer.from(`.moved-${randomBytes(8).toString('hex')}`)));
    return true;
  } catch {
    return false;
  }
}

async function someNames(path: Buffer): Promise<Buffer[]> {
  const names: Buffer[] = [];
  try {
    for await (const { name } of await opendir(path, { encoding: 'latin1' })) {
      names.push(Buffer.from(name, 'latin1'));
      if (names.length === namesAtOnce) break;
    }
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
  return names;
}

function inside(directory: Buffer, name: Buffer): Buffer {
  return Buffer.concat([directory, Buffer.from('/'), name]);
}

/** By `lstat`: a link to a directory is removed itself, and nothing behind it. */
async function entryOf(path: Buffer): Promise<Entry | undefined> {
  try {
    return { path, isDirectory: (await lstat(path)).isDirectory() };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function gone(removal: Promise<void>): Promise<void> {
  try {
    await removal;
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}
