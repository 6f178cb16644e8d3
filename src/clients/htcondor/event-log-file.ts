import { createHash } from 'node:crypto';
import { type FileHandle, stat } from 'node:fs/promises';
import { hasCode } from '../../util/files.ts';
import { openPlainFile } from '../../util/plain-file.ts';
import { excerptOf, type Garbage, readEvents } from './event-log.ts';
import type { JobEvent } from './event-types.ts';

/** How far a log was read; plain data, to be stored with what was made of its events. */
export interface LogPosition {
  readonly inode: number;
  /** bytes */
  readonly offset: number;
  /** Digest of the first bytes: inodes are used again as soon as a file is removed. */
  readonly head: string;
  /** How many bytes that is of. */
  readonly headLength: number;
}

export interface LogRead {
  readonly events: readonly JobEvent[];
  readonly garbage: readonly (Garbage & { readonly file: string })[];
  /** Undefined while there is no log. */
  readonly position: LogPosition | undefined;
  /** There is more to read at once. */
  readonly more: boolean;
  /** The file of the position is gone or was cut: events may be missing, and the schedd must be asked. */
  readonly gap: boolean;
}

/** Bytes of one reading: parsing them keeps others waiting for some 30 ms. Longer than any record. */
const chunk = 2 * 1024 * 1024;
const headBytes = 256;
const newline = 0x0a;
/** EVENT_LOG_MAX_ROTATIONS of HTCondor is 1 by default; no site keeps more than this. */
const mostRotations = 20;

interface LogFile {
  readonly path: string;
  readonly inode: number;
  readonly size: number;
}

/**
 * Reads on in an event log, through its rotated files (`.old`, or `.1` and older ones) where it was rotated meanwhile.
 * @param position of the last reading; undefined reads all that there is
 * @param now ms UTC
 * @throws what the file system says, but for files that are not there
 */
export async function readLog(
  path: string,
  position: LogPosition | undefined,
  now: number,
): Promise<LogRead> {
  const files = await logFiles(path);
  const nothing = { events: [], garbage: [], position, more: false, gap: false };
  if (files.length === 0) return { ...nothing, gap: position !== undefined && position.offset > 0 };
  // The usual case, many times a second: a log that was replaced meanwhile differs as soon as it has content.
  const [newest] = files;
  if (newest?.inode === position?.inode && newest?.size === position?.offset) return nothing;
  const at = position === undefined ? -1 : await indexOf(files, position);
  const index = at < 0 ? files.length - 1 : at;
  const file = files[index];
  if (file === undefined) return nothing;
  const cut = at >= 0 && position !== undefined && file.size < position.offset;
  const gap = (position !== undefined && at < 0) || cut;
  const offset = at < 0 || cut ? 0 : (position?.offset ?? 0);
  const handle = await openSame(file);
  // It was rotated in this very moment.
  if (handle === undefined) return { ...nothing, more: true };
  try {
    const before = Math.min(offset, 1);
    const all = await readAt(handle, offset - before, before + chunk);
    const bytes = all.subarray(before);
    const inLine = before > 0 && all[0] !== newline;
    const { events, garbage, consumed, more } = readEvents(bytes, now, inLine);
    const end = offset + consumed;
    const there = {
      events,
      garbage: garbage.map((one) => ({ ...one, at: offset + one.at, file: file.path })),
      gap,
    };
    const newer = files[index - 1];
    const rest = bytes.subarray(consumed);
    if (more || bytes.length === chunk || newer === undefined || newer.size === 0) {
      const next = await positionAt(handle, file.inode, end);
      return { ...there, position: next, more: more || bytes.length === chunk };
    }
    // HTCondor adds nothing to a rotated file: half a record at its end stays half.
    const half = rest.toString('utf8').trim();
    const lost =
      half === '' ? [] : [{ at: end, bytes: rest.length, excerpt: excerptOf(half), file: file.path }];
    const next = startOf(newer);
    return { ...there, garbage: [...there.garbage, ...lost], position: next, more: true };
  } finally {
    await handle.close();
  }
}

/** The present end of a log, for a reader of later events. Undefined if there is no log: all its content will be new. */
export async function endOfLog(path: string): Promise<LogPosition | undefined> {
  const [file] = await logFiles(path);
  if (file === undefined) return undefined;
  const handle = await openSame(file);
  if (handle === undefined) return endOfLog(path);
  try {
    return await positionAt(handle, file.inode, file.size);
  } finally {
    await handle.close();
  }
}

/** The newest first. */
async function logFiles(path: string): Promise<LogFile[]> {
  const files: LogFile[] = [];
  const rotated = Array.from({ length: mostRotations }, (_, at) => `${path}.${at + 1}`);
  for (const one of [path, `${path}.old`, ...rotated]) {
    const facts = await stat(one).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    });
    if (facts?.isFile()) files.push({ path: one, inode: facts.ino, size: facts.size });
    else if (/\.\d+$/.test(one)) break;
  }
  return files;
}

async function indexOf(files: readonly LogFile[], position: LogPosition): Promise<number> {
  const index = files.findIndex(({ inode }) => inode === position.inode);
  const file = files[index];
  if (file === undefined || position.headLength === 0) return index;
  const handle = await openSame(file);
  if (handle === undefined) return -1;
  try {
    const same = digest(await readAt(handle, 0, position.headLength)) === position.head;
    // A file that is shorter now was cut, which another check reports.
    return same || file.size < position.headLength ? index : -1;
  } finally {
    await handle.close();
  }
}

async function openSame({ path, inode }: LogFile): Promise<FileHandle | undefined> {
  // The writer of the log may put a pipe into its place at any moment, also between the check and this call.
  const handle = await openPlainFile(path, 'follow').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  if ((await handle.stat()).ino === inode) return handle;
  await handle.close();
  return undefined;
}

const startOf = ({ inode }: LogFile): LogPosition => ({
  inode,
  offset: 0,
  headLength: 0,
  head: digest(Buffer.alloc(0)),
});

async function positionAt(handle: FileHandle, inode: number, offset: number): Promise<LogPosition> {
  const headLength = Math.min(offset, headBytes);
  return { inode, offset, head: digest(await readAt(handle, 0, headLength)), headLength };
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex').slice(0, 16);
