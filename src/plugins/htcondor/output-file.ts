import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { normalize, resolve } from 'node:path';
import { hasCode } from '../../util/files.ts';
import { NotPlainFile, openPlainFile } from '../../util/plain-file.ts';
import { ThresherError } from '../../worker/errors.ts';

/** Place of a job's output. */
export interface OutputFile {
  /** The job's directory, or that of an absolute path. The operator's template names it, so thresher follows links. */
  readonly directory: string;
  /** Below it, where the job's output is brought: nothing on this way may be a link. */
  readonly name: string;
}

const openDirectory = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NONBLOCK;

/**
 * The last `most` bytes of an output as text; undefined if there is none.
 *
 * The way to the job's directory is the operator's. Below it a job can leave what it likes, and links to files that
 * only the daemon may read would be served to everyone who may read logs: each part of the way is opened by itself,
 * through the one before, and none may be a link.
 * @throws ThresherError `no-log` for what is no plain file, or what the file system says
 */
export async function endOfFile({ directory, name }: OutputFile, most: number): Promise<string | undefined> {
  const parts = normalize(name).split('/');
  const upwards = parts.lastIndexOf('..') + 1;
  const way = parts.slice(upwards, -1);
  try {
    return await inDirectories(resolve(directory, ...parts.slice(0, upwards)), 0, way, (inside) =>
      readEnd(`${inside}/${parts.at(-1) ?? ''}`, most),
    );
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'EACCES')) return undefined;
    if (error instanceof NotPlainFile || hasCode(error, 'ENOTDIR', 'ELOOP')) {
      const message = `${directory}/${name} is no plain file, or a link leads to it: it is not read`;
      throw new ThresherError('no-log', message, { directory, name });
    }
    throw error;
  }
}

async function inDirectories<T>(
  path: string,
  links: number,
  way: readonly string[],
  work: (inside: string) => Promise<T>,
): Promise<T> {
  const directory: FileHandle = await open(path, openDirectory | links);
  try {
    const inside = `/proc/self/fd/${directory.fd}`;
    const [next, ...rest] = way;
    if (next === undefined) return await work(inside);
    return await inDirectories(`${inside}/${next}`, constants.O_NOFOLLOW, rest, work);
  } finally {
    await directory.close();
  }
}

async function readEnd(path: string, most: number): Promise<string> {
  const file = await openPlainFile(path, 'refuse');
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - most);
    const piece = Buffer.alloc(size - from);
    const { bytesRead } = await file.read(piece, 0, piece.length, from);
    return piece.subarray(0, bytesRead).toString('utf8');
  } finally {
    await file.close();
  }
}
