import { lstat, opendir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lane } from './file-lane.ts';
import { hasCode } from './files.ts';

/** Names taken from a directory at once: so much is the work of one turn in the lane. */
const namesAtOnce = 8;

interface Entry {
  readonly path: string;
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
  const root = await lane.run(`a look at ${path}`, () => entryOf(path), 'background');
  if (root !== undefined) await remove(root, lane);
}

async function remove(entry: Entry, lane: Lane): Promise<void> {
  const { path } = entry;
  if (!entry.isDirectory) return lane.run(`removal of ${path}`, () => gone(unlink(path)), 'background');
  for (;;) {
    const left = await lane.run(`removal of files in ${path}`, () => removeSomeFiles(path), 'background');
    if (left === undefined) break;
    for (const directory of left) await remove(directory, lane);
  }
  return lane.run(`removal of ${path}`, () => gone(rmdir(path)), 'background');
}

/** @returns the directories among the names that it took; undefined: the directory is empty, or gone itself. */
async function removeSomeFiles(path: string): Promise<Entry[] | undefined> {
  const names = await someNames(path);
  if (names.length === 0) return undefined;
  const directories: Entry[] = [];
  for (const name of names) {
    const entry = await entryOf(join(path, name));
    if (entry?.isDirectory) directories.push(entry);
    else if (entry !== undefined) await gone(unlink(entry.path));
  }
  return directories;
}

async function someNames(path: string): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const { name } of await opendir(path)) {
      names.push(name);
      if (names.length === namesAtOnce) break;
    }
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
  return names;
}

/** By `lstat`: a link to a directory is removed itself, and nothing behind it. */
async function entryOf(path: string): Promise<Entry | undefined> {
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
