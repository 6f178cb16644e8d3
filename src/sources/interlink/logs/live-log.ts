import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { nextTurn } from '../../../util/clock.ts';
import { placesOf } from '../../../util/places.ts';
import { type LogView, readAt } from './log-view.ts';
import { type Stamp, Stamps } from './stamps.ts';

/** The part of a log that a reader has got. */
export interface Shown {
  /** The place after its last byte, in the whole log. */
  readonly place: number;
  /** The last bytes of it. */
  readonly end: Buffer;
}

export interface LiveParts {
  /** The end of a file of the job; undefined: the job does not run, or has no such file yet. */
  peek(file: string, mostBytes: number): Promise<Uint8Array | undefined>;
  /** For copies that are too long for the memory. */
  readonly directory: string;
}

/** So many of the last bytes tell where a reader is in the log. */
export const markBytes = 4096;
const kib = 1024;
/** Bytes of the end of a log that are asked for: those of a reader's first look, as kubelet keeps them of a log, and those of its next looks, until one meets the part that was shown. */
const first = 10 * kib * kib;
const next = [64 * kib, 1024 * kib, first] as const;
/** A longer copy lies in a file. */
const mostInMemory = 64 * kib;
const mostStamps = 1024 * kib;
/** Bytes that are searched in one turn. */
const atOnce = 1024 * kib;

/** Instead of bytes that went by between two looks. */
const leftOut =
  '\nthresher: a part of the log is left out here, which came too fast; it comes with the end of the job\n';

/**
 * The log of a container whose job runs where the daemon has no file of it: its backend shows the end of the log, byte for byte, and not
 * how long the log is.
 */
export class LiveLog {
  readonly #name: string;
  readonly #parts: LiveParts;

  /** @param name of the container */
  constructor(name: string, parts: LiveParts) {
    this.#name = name;
    this.#parts = parts;
  }

  /** The log, or that part of it which came after the one that was shown. */
  async look(shown: Shown | undefined): Promise<LogView | undefined> {
    return shown === undefined ? this.#first() : this.#next(shown);
  }

  async #first(): Promise<LogView | undefined> {
    const got = await this.#peek(first);
    if (got === undefined) return undefined;
    if (got.length < first) return this.#copy(got, 0);
    const size = (await this.#stamps()).at(-1)?.bytes ?? 0;
    return this.#copy(got, Math.max(0, size - got.length));
  }

  async #next(shown: Shown): Promise<LogView | undefined> {
    const { place, end } = shown;
    let got: Buffer = Buffer.alloc(0);
    for (const most of next) {
      const peeked = await this.#peek(most);
      if (peeked === undefined) return undefined;
      got = peeked;
      if (got.length < most) {
        const isSame = got.length >= place && got.subarray(place - end.length, place).equals(end);
        return isSame ? this.#copy(got.subarray(place), place) : this.#copy(got, 0, true);
      }
      const from = end.length === 0 ? undefined : await this.#after(got, shown);
      if (from !== undefined) return this.#copy(got.subarray(from), place);
    }
    return this.#copy(Buffer.concat([Buffer.from(leftOut), got]), place);
  }

  /** Where the end of a log goes on after the part that was shown. Lines may repeat, so the length of the log decides. */
  async #after(got: Buffer, { place, end }: Shown): Promise<number | undefined> {
    let first: number | undefined;
    let places = 0;
    await inTurns(got, end, (at) => {
      first ??= at;
      places++;
    });
    if (first === undefined) return undefined;
    if (places === 1) return first + end.length;
    const size = (await this.#stamps()).at(-1)?.bytes ?? place;
    const wanted = got.length - Math.max(0, size - place);
    // The nearest one on either side: a log of one and the same byte has it at millions of places.
    const middle = wanted - end.length;
    let nearest = first;
    await inTurns(got, end, (at) => {
      if (Math.abs(at - middle) < Math.abs(nearest - middle)) nearest = at;
    });
    return nearest + end.length;
  }

  async #peek(mostBytes: number): Promise<Buffer | undefined> {
    const got = await this.#parts.peek(`${this.#name}.log`, mostBytes);
    return got && Buffer.from(got.buffer, got.byteOffset, got.byteLength);
  }

  async #stamps(): Promise<readonly Stamp[]> {
    const got = await this.#parts.peek(`${this.#name}.log.times`, mostStamps);
    if (got === undefined) return [];
    const text = Buffer.from(got).toString('latin1');
    const stamps = new Stamps();
    // The first line of a part may have lost its first digits.
    stamps.push(got.length < mostStamps ? text : text.slice(text.indexOf('\n') + 1));
    return stamps.all;
  }

  async #copy(got: Buffer, base: number, isNew = false): Promise<LogView> {
    const end = base + got.length;
    const { readAt: read, close } = await this.#kept(got);
    let stamps: Promise<readonly Stamp[]> | undefined;
    return {
      base,
      grows: false,
      isNew,
      end: async () => end,
      readAt: (place, length) => read(place - base, length),
      stamps: () => (stamps ??= this.#stamps()),
      isReplaced: async () => false,
      close,
    };
  }

  async #kept(got: Buffer): Promise<Pick<LogView, 'readAt' | 'close'>> {
    if (got.length > mostInMemory) {
      const file = await namelessFile(this.#parts.directory, got);
      return { readAt: (place, length) => readAt(file, place, length), close: () => file.close() };
    }
    // A part of a longer one would keep all of it.
    const own = Buffer.from(got);
    return {
      readAt: async (place, length) => own.subarray(place, place + length),
      close: async () => undefined,
    };
  }
}

/** All places of a text in a log. All else has its turn in between. */
async function inTurns(log: Buffer, text: Buffer, take: (at: number) => void): Promise<void> {
  for (let from = 0; from < log.length; from += atOnce) {
    await nextTurn();
    placesOf(log.subarray(from, from + atOnce + text.length - 1), text, (at) => {
      take(from + at);
    });
  }
}

/** A file that goes when it is closed, also by a crash of the daemon. */
async function namelessFile(directory: string, content: Buffer): Promise<FileHandle> {
  const path = join(directory, `.look-${randomBytes(8).toString('hex')}`);
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const file = await open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await rm(path, { force: true });
    await file.writeFile(content);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}
