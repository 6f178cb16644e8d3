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

/** The log in a file on this machine; undefined: there is none. */
export async function fileView(path: string): Promise<LogView | undefined> {
  const file = await openLog(path);
  if (file === undefined) return undefined;
  const { ino } = await file.stat();
  const stamps = new StampFile(path);
  return {
    base: 0,
    grows: true,
    isNew: false,
    end: async () => (await file.stat()).size,
    readAt: (place, length) => readAt(file, place, length),
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

/** The stamps beside a log, read on from where the last look ended. */
class StampFile {
  readonly #path: string;
  #stamps = new Stamps();
  #file: FileHandle | undefined;
  #place = 0;

  constructor(log: string) {
    this.#path = `${log}.times`;
  }

  async now(): Promise<readonly Stamp[]> {
    const file = (this.#file ??= await openLog(this.#path));
    if (file === undefined) return [];
    if ((await file.stat()).size < this.#place) {
      // They begin anew with a log that was cut.
      this.#place = 0;
      this.#stamps = new Stamps();
    }
    for (;;) {
      const piece = await readAt(file, this.#place, stampPiece);
      if (piece.length === 0) return this.#stamps.all;
      this.#place += piece.length;
      this.#stamps.push(piece.toString('latin1'));
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }
}
