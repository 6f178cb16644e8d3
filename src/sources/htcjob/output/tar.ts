import { isUtf8 } from 'node:buffer';

/**
 * Reads archives of `tar`: those of GNU tar, of busybox and of bsdtar, in the formats ustar, GNU and pax. The archive comes from the
 * machine of a job, so every part of it may be wrong.
 */

/** An archive that is damaged, ends too early, or is none. */
export class WrongArchive extends Error {
  /** Its end is missing: it may be whole later. */
  readonly isCut: boolean;

  constructor(message: string, isCut = false) {
    super(message);
    this.name = 'WrongArchive';
    this.isCut = isCut;
  }
}

export interface TarEntry {
  /** As it is written there. */
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'hard-link' | 'other';
  /** Permission bits. */
  readonly mode: number;
  /** Bytes of its content. */
  readonly size: number;
  /** Name of the file that a hard link is another name of. */
  readonly linkName: string;
}

const blockSize = 512;
/** Longest name in an entry of its own, bytes. */
const longestName = 64 * 1024;
/** Most bytes that are taken at once. */
const pieceSize = 1024 * 1024;

const kinds: Readonly<Record<string, TarEntry['kind']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hard-link',
  '5': 'directory',
};

/** The entries of an archive. The content of an entry is read, or skipped, before the next one is asked for. */
export class TarReader {
  readonly #bytes: Bytes;
  /** Bytes of the last entry that are not read yet, and those that fill its last block. */
  #left = 0;
  #padding = 0;

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#bytes = new Bytes(bytes);
  }

  /** @returns undefined at the end of the archive. @throws WrongArchive */
  async next(): Promise<TarEntry | undefined> {
    const long: { name?: string; linkName?: string; size?: number } = {};
    for (;;) {
      await this.#bytes.skip(this.#left + this.#padding);
      this.#left = 0;
      this.#padding = 0;
      const header = await this.#bytes.exactly(blockSize);
      // A block of zeros ends the archive. One that simply stops was cut.
      if (header.every((byte) => byte === 0)) return undefined;
      requireSum(header);
      const type = String.fromCharCode(header[156] ?? 0);
      const size = long.size ?? numberIn(header, 124, 12);
      const isMeta = type === 'L' || type === 'K' || type === 'x' || type === 'g';
      if (isMeta) {
        const text = await this.#text(numberIn(header, 124, 12));
        if (type === 'L') long.name = text.replace(/\0.*/s, '');
        if (type === 'K') long.linkName = text.replace(/\0.*/s, '');
        if (type === 'x') Object.assign(long, paxFacts(text));
        continue;
      }
      const kind = kinds[type] ?? 'other';
      const hasContent = kind === 'file' || (kind === 'other' && type !== '2');
      this.#left = hasContent ? size : 0;
      this.#padding = (blockSize - (this.#left % blockSize)) % blockSize;
      return {
        name: long.name ?? nameIn(header),
        kind,
        mode: numberIn(header, 100, 8) & 0o777,
        size: this.#left,
        linkName: long.linkName ?? textIn(header, 157, 100),
      };
    }
  }

  /** The content of the last entry. @throws WrongArchive where the archive ends in it */
  async *content(): AsyncGenerator<Uint8Array> {
    while (this.#left > 0) {
      const piece = await this.#bytes.some(Math.min(this.#left, pieceSize));
      this.#left -= piece.length;
      yield piece;
    }
  }

  async #text(size: number): Promise<string> {
    if (size > longestName) throw new WrongArchive(`a name in it has ${size} bytes`);
    const text = textOf(await this.#bytes.exactly(size));
    await this.#bytes.skip((blockSize - (size % blockSize)) % blockSize);
    return text;
  }
}

class Bytes {
  readonly #source: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Up to `most` bytes, and at least one. */
  async some(most: number): Promise<Buffer> {
    while (this.#held.length === 0) {
      const next = await this.#source.next();
      if (next.done === true) throw new WrongArchive('its archive ends too early', true);
      const { buffer, byteOffset, byteLength } = next.value;
      this.#held = Buffer.from(buffer, byteOffset, byteLength);
    }
    const piece = this.#held.subarray(0, most);
    this.#held = this.#held.subarray(piece.length);
    return piece;
  }

  async exactly(size: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let left = size; left > 0; left -= pieces.at(-1)?.length ?? 0) pieces.push(await this.some(left));
    return Buffer.concat(pieces, size);
  }

  async skip(size: number): Promise<void> {
    for (let left = size; left > 0;) left -= (await this.some(left)).length;
  }
}

function requireSum(header: Buffer): void {
  let sum = 0;
  // The sum's own place counts as blanks.
  for (const [at, byte] of header.entries()) sum += at >= 148 && at < 156 ? 32 : byte;
  if (sum !== numberIn(header, 148, 8)) throw new WrongArchive('it is no archive of tar, or is damaged');
}

function textIn(header: Buffer, at: number, length: number): string {
  const field = header.subarray(at, at + length);
  const end = field.indexOf(0);
  return textOf(field.subarray(0, end < 0 ? length : end));
}

/** Names of files are bytes: what is no UTF-8 is read byte by byte, so that no two names become the same. */
const textOf = (bytes: Buffer) => bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');

function numberIn(header: Buffer, at: number, length: number): number {
  const field = header.subarray(at, at + length);
  // A number that octal digits cannot hold.
  if (((field[0] ?? 0) & 0x80) !== 0) {
    const number = field.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0);
    if (Number.isSafeInteger(number)) return number;
    throw new WrongArchive('a number in it is too large');
  }
  const digits = textIn(header, at, length).trim();
  if (!/^[0-7]*$/.test(digits)) throw new WrongArchive('it is no archive of tar, or is damaged');
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

function nameIn(header: Buffer): string {
  const name = textIn(header, 0, 100);
  const isUstar = header.subarray(257, 263).toString('latin1') === 'ustar\0';
  const prefix = isUstar ? textIn(header, 345, 155) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** Facts of the next entry, as pax writes them: "LENGTH KEY=VALUE\n" each. */
function paxFacts(text: string): { name?: string; linkName?: string; size?: number } {
  const facts: { name?: string; linkName?: string; size?: number } = {};
  for (const line of text.split('\n')) {
    const [, key, value = ''] = /^\d+ ([^=]+)=(.*)$/s.exec(line) ?? [];
    if (key === 'path') facts.name = value;
    if (key === 'linkpath') facts.linkName = value;
    if (key === 'size' && /^\d{1,15}$/.test(value)) facts.size = Number(value);
  }
  return facts;
}
