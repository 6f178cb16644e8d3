import { constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { hasCode } from '../../../util/files.ts';
import { type Stamp, Stamps } from './stamps.ts';

/** A part of a log that can be read, up to its end. Places count from the beginning of the whole log, in bytes. */
export interface LogView {
  /** The first byte that can be read. */
  readonly base: number;
  /** Whether it goes on to show what the container writes. Else it shows one moment. */
  readonly grows: boolean;
  /** Whether it is another log than the one that was shown before: that one was cut or replaced. */
  readonly isNew: boolean;
  /** The place after the last byte. */
  end(): Promise<number>;
  /** At most so many bytes; none at the end. */
  readAt(place: number, length: number): Promise<Buffer>;
  /** Each look may cost more than one at the log. */
  stamps(): Promise<readonly Stamp[]>;
  /** Whether the file is not the log any more. */
  isReplaced(): Promise<boolean>;
  close(): Promise<void>;
}

const stampPiece = 64 * 1024;
/** Bytes of the end of the stamps that are read: those of four days of a log that grows each second. A job may leave a file of any length. */
const mostStampBytes = 8 * 1024 * 1024;

/** Calls to the files of a log, each in its turn. */
export type InTurn = <T>(call: () => Promise<T>) => Promise<T>;

/** The log in a file on this machine; undefined: there is none. */
export async function fileView(
  path: string,
  inTurn: InTurn = (call) => call(),
): Promise<LogView | undefined> {
  const file = await inTurn(() => openLog(path));
  if (file === undefined) return undefined;
  const { ino } = await file.stat();
  const stamps = new StampFile(path, inTurn);
  return {
    base: 0,
    grows: true,
    isNew: false,
    end: async () => (await file.stat()).size,
    readAt: (place, length) => inTurn(() => readAt(file, place, length)),
    stamps: () => stamps.now(),
    isReplaced: async () => {
      const now = await lstat(path).catch(() => undefined);
      return now !== undefined && now.ino !== ino;
    },
    close: async () => {
      await file.close();
      await stamps.close();
    },
  };
}

export async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, position);
  return buffer.subarray(0, bytesRead);
}

/** A job may leave anything under this name: a link leads out of its directory, and a pipe never ends. */
async function openLog(path: string): Promise<FileHandle | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO')) return undefined;
    throw error;
  }
  if ((await file.stat()).isFile()) return file;
  await file.close();
  return undefined;
}

/** The stamps beside a log, read on from where the last look ended. Bytes before the first one that is read are dated by it. */
class StampFile {
  readonly #path: string;
  readonly #inTurn: InTurn;
  #stamps = new Stamps();
  #file: FileHandle | undefined;
  #place = 0;

  constructor(log: string, inTurn: InTurn) {
    this.#path = `${log}.times`;
    this.#inTurn = inTurn;
  }

  async now(): Promise<readonly Stamp[]> {
    const file = (this.#file ??= await this.#inTurn(() => openLog(this.#path)));
    if (file === undefined) return [];
    const { size } = await file.stat();
    const first = Math.max(0, size - mostStampBytes);
    if (size < this.#place || first > this.#place) {
      // They begin anew with a log that was cut, and so does a look that is too far behind.
      this.#place = first;
      this.#stamps = new Stamps();
    }
    // A job may write faster than this reads: what comes meanwhile is for the next look.
    while (this.#place < size) {
      const piece = await this.#inTurn(() => readAt(file, this.#place, stampPiece));
      if (piece.length === 0) break;
      this.#place += piece.length;
      this.#stamps.push(piece.toString('latin1'));
    }
    return this.#stamps.all;
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }
}
