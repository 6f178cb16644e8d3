import { readLogTimes } from '../pod/report.ts';

/** The log had so many bytes at this time, in seconds since 1970. */
export type Stamp = ReturnType<typeof readLogTimes>[number];

/** The first byte that was written at a time or after it; `size` where there is none. Bytes after the last stamp are new. */
export function offsetSince(stamps: readonly Stamp[], seconds: number, size: number): number {
  let before = 0;
  for (const stamp of stamps) {
    if (stamp.seconds >= seconds) return Math.min(before, size);
    before = stamp.bytes;
  }
  return Math.min(before, size);
}

/** When a byte was written; undefined where no stamp tells. */
export function timeOf(stamps: readonly Stamp[], offset: number): number | undefined {
  let low = 0;
  let high = stamps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((stamps[middle]?.bytes ?? 0) > offset) high = middle;
    else low = middle + 1;
  }
  return stamps[low]?.seconds;
}

/** More stamps than these are thinned out: a line is then dated a little late. */
const mostStamps = 50_000;

/** Stamps as their file grows: lines "BYTES SECONDS". A job may write anything, so a stamp that does not go forward is left out: it dates no byte. */
export class Stamps {
  #all: Stamp[] = [];
  #rest = '';

  get all(): readonly Stamp[] {
    return this.#all;
  }

  /** Takes the next part of the file. */
  push(text: string): void {
    const lines = `${this.#rest}${text}`;
    const end = lines.lastIndexOf('\n') + 1;
    this.#rest = lines.slice(end, end + longestLine);
    for (const stamp of readLogTimes(lines.slice(0, end)))
      if (stamp.bytes > (this.#all.at(-1)?.bytes ?? 0)) this.#all.push(stamp);
    // The later stamp of two stands for both.
    if (this.#all.length > mostStamps) this.#all = this.#all.filter((_, index) => index % 2 === 1);
  }
}

const longestLine = 100;
