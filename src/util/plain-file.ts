import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { hasCode } from './files.ts';

/** Why something that has a name is not read as a file. */
export type NotPlain = 'not-a-file' | 'link' | 'too-large';

/** Something stands in the place of a file that must not be read: a pipe, a device, a link, or a file without end. */
export class NotPlainFile extends Error {
  readonly path: string;
  readonly why: NotPlain;

  constructor(path: string, why: NotPlain, message: string) {
    super(`${path} ${message}`);
    this.name = 'NotPlainFile';
    this.path = path;
    this.why = why;
  }
}

export interface PlainFileRules {
  /** Bytes. A longer file is refused, also one that grows while it is read. */
  readonly largest: number;
  /**
   * Whether the last part of the path may be a symbolic link: `follow` for files that an operator names, `refuse` for
   * files whose directory another user's program can write to.
   */
  readonly links: 'follow' | 'refuse';
}

export interface PlainFile {
  readonly bytes: Buffer;
  readonly stats: Stats;
}

/** `O_NONBLOCK` keeps a pipe without a writer from holding the thread that opens it. */
const flagsOf = (links: PlainFileRules['links']): number =>
  constants.O_RDONLY |
  constants.O_NONBLOCK |
  constants.O_NOCTTY |
  (links === 'refuse' ? constants.O_NOFOLLOW : 0);

const pieceSize = 64 * 1024;

/**
 * Opens a regular file for reading. The caller closes it.
 * @throws NotPlainFile for anything else of that name, or what open(2) says
 */
export async function openPlainFile(path: string, links: PlainFileRules['links']): Promise<FileHandle> {
  let file: FileHandle;
  try {
    file = await open(path, flagsOf(links));
  } catch (error) {
    throw explained(path, error);
  }
  try {
    requireFile(path, await file.stat());
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Reads a whole regular file.
 * @throws NotPlainFile for anything else of that name and for a file over `rules.largest`, or what open(2) and read(2) say
 */
export async function readPlainFile(path: string, rules: PlainFileRules): Promise<PlainFile> {
  const file = await openPlainFile(path, rules.links);
  try {
    const stats = await file.stat();
    requireSize(path, stats.size, rules);
    const pieces: Buffer[] = [];
    let size = 0;
    for (;;) {
      const piece = Buffer.allocUnsafe(pieceSize);
      const { bytesRead } = await file.read(piece, 0, pieceSize, size);
      if (bytesRead === 0) break;
      pieces.push(piece.subarray(0, bytesRead));
      size += bytesRead;
      requireSize(path, size, rules);
    }
    return { bytes: Buffer.concat(pieces, size), stats };
  } finally {
    await file.close();
  }
}

/** Like `readPlainFile`, for the command line and for what is read before the daemon's loops run. */
export function readPlainFileSync(path: string, rules: PlainFileRules): PlainFile {
  let file: number;
  try {
    file = openSync(path, flagsOf(rules.links));
  } catch (error) {
    throw explained(path, error);
  }
  try {
    const stats = fstatSync(file);
    requireFile(path, stats);
    requireSize(path, stats.size, rules);
    const pieces: Buffer[] = [];
    let size = 0;
    for (;;) {
      const piece = Buffer.allocUnsafe(pieceSize);
      const bytesRead = readSync(file, piece, 0, pieceSize, size);
      if (bytesRead === 0) break;
      pieces.push(piece.subarray(0, bytesRead));
      size += bytesRead;
      requireSize(path, size, rules);
    }
    return { bytes: Buffer.concat(pieces, size), stats };
  } finally {
    closeSync(file);
  }
}

function explained(path: string, error: unknown): unknown {
  if (hasCode(error, 'ELOOP')) return new NotPlainFile(path, 'link', 'is a symbolic link');
  // A socket cannot be opened, nor a pipe for which a device driver is missing.
  if (hasCode(error, 'ENXIO', 'ENODEV')) return new NotPlainFile(path, 'not-a-file', 'is not a regular file');
  return error;
}

function requireFile(path: string, stats: Stats): void {
  if (stats.isFile()) return;
  throw new NotPlainFile(path, 'not-a-file', `is ${kindOf(stats)}, not a regular file`);
}

function requireSize(path: string, size: number, { largest }: PlainFileRules): void {
  if (size <= largest) return;
  throw new NotPlainFile(path, 'too-large', `has more than the ${largest} bytes that are read of it`);
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a directory';
  if (stats.isFIFO()) return 'a pipe';
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return 'a device';
  return 'a socket';
}
