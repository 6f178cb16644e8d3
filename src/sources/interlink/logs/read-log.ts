import type { LogOpts } from '../../../clients/interlink/wire.ts';
import type { Clock } from '../../../util/clock.ts';
import { lastPlaceOf } from '../../../util/places.ts';
import { markBytes, type Shown } from './live-log.ts';
import type { LogView } from './log-view.ts';
import { offsetSince, type Stamp, timeOf } from './stamps.ts';

/** How far a container, its job and its log are. */
export type LogStage =
  /** The container has not ended. */
  | 'open'
  /** The container has ended, and its log is whole. */
  | 'ended'
  /** The job has ended, and its files are on their way. */
  | 'coming'
  /** Nothing comes any more. */
  | 'over';

export interface LogParts {
  readonly clock: Clock;
  /** Looked at before the log: all that was written before the end is read after it. */
  stage(): Promise<LogStage>;
  /** The log now, or that part of it which comes after the one that was shown. Undefined: there is none, or none can be had now. */
  look(shown: Shown | undefined): Promise<LogView | undefined>;
  /** Between two looks at a log that is followed, ms: at a file, and at another machine. */
  readonly intervals?: { readonly file: number; readonly machine: number };
}

const pieceSize = 64 * 1024;
/** With a time before each line: a piece may have nothing but line feeds, and becomes twenty times as long. */
const stampedPieceSize = 16 * 1024;
const usual = { file: 500, machine: 2000 };
/** So far around its expected place the end of the shown part is looked for, bytes. */
const searched = 4 * 1024 * 1024;
/** It is looked for in so many bytes at once: nothing else runs meanwhile. */
const searchedAtOnce = 256 * 1024;
/** A line feed is looked for in so many bytes at most: lines may be longer than any log should be, and a container can make its log as long as it likes without a byte on the disk. */
const longestSearch = 64 * 1024 * 1024;
const newLine = 10;

/** Whether a time is Go's zero time, which stands for none. */
export function isUnset(time: string): boolean {
  return time === '' || time.startsWith('0001-01-01T');
}

/** The log in pieces, by kubelet's rules: the lines since a time, the last ones of them, and the first bytes of these. */
export function readLog(opts: LogOpts, signal: AbortSignal, parts: LogParts): AsyncGenerator<Uint8Array> {
  return limited(lines(opts, signal, parts), opts.Bytes);
}

async function* lines(opts: LogOpts, signal: AbortSignal, parts: LogParts): AsyncGenerator<Uint8Array> {
  const { clock, intervals = usual } = parts;
  const stamper = opts.Timestamps ? new Stamper() : undefined;
  const isGone = () => signal.aborted;
  let view: LogView | undefined;
  let shown: Shown | undefined;
  try {
    while (!isGone()) {
      const stage = await parts.stage();
      if (view !== undefined && (!view.grows || (await view.isReplaced()))) {
        if (view.grows) shown = { place: 0, end: noBytes };
        await view.close();
        view = undefined;
      }
      const isSameView = view !== undefined;
      view ??= await parts.look(shown);
      if (view !== undefined) {
        let place =
          shown === undefined
            ? await startOf(view, opts, clock.now(), signal)
            : await placeAfter(view, shown, isSameView, signal);
        // A search that was broken off has found no place.
        if (isGone()) return;
        // Bytes before another place stand elsewhere.
        let end = place === shown?.place ? shown.end : await bytesBefore(view, place);
        for (;;) {
          const piece = await view.readAt(place, stamper === undefined ? pieceSize : stampedPieceSize);
          if (piece.length === 0) break;
          const stamped = stamper?.stamp(piece, place, await view.stamps(), clock.now());
          place += piece.length;
          end = endOf(end, piece);
          yield stamped ?? piece;
          if (isGone()) return;
        }
        shown = { place, end };
        if (stage === 'over' || (stage !== 'coming' && (!opts.Follow || stage === 'ended'))) return;
      } else if (stage === 'over' || (stage !== 'coming' && !opts.Follow)) return;
      await clock.sleep(intervals[view === undefined || view.grows ? 'file' : 'machine'], signal);
    }
  } catch (error) {
    // What breaks off because nobody reads any more is no error.
    if (!isGone()) throw error;
  } finally {
    await view?.close();
  }
}

const noBytes = Buffer.alloc(0);

/** A first look begins where the request wants it to. */
async function startOf(view: LogView, opts: LogOpts, now: number, signal: AbortSignal): Promise<number> {
  const end = await view.end();
  const since = sinceOf(opts, now);
  const byTime =
    since === undefined
      ? view.base
      : await lineAt(view, offsetSince(await view.stamps(), since, end), end, signal);
  const byCount = opts.Tail > 0 ? await tailAt(view, opts.Tail, end, signal) : view.base;
  return Math.max(byTime, byCount);
}

/**
 * The place where a log goes on after the part that was shown. One that has become shorter has lost its beginning, as the runner cuts a
 * log beyond its bound; or it begins anew.
 */
async function placeAfter(
  view: LogView,
  { place, end }: Shown,
  isSameView: boolean,
  signal: AbortSignal,
): Promise<number> {
  if (view.isNew) return view.base;
  if (!view.grows) return Math.max(place, view.base);
  const size = await view.end();
  if (size >= place) {
    if (isSameView || end.length === 0) return place;
    const before = await view.readAt(Math.max(0, place - end.length), end.length);
    // The length of a long log on another machine is known by its last stamp alone.
    return before.equals(end) ? place : ((await placeIn(view, end, place - searched, signal)) ?? place);
  }
  const kept = end.length < markBytes ? undefined : await placeIn(view, end, size - 2 * searched, signal);
  return kept ?? view.base;
}

/** The last place after these bytes, where they are near it. */
async function placeIn(
  view: LogView,
  end: Buffer,
  near: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const first = Math.max(0, near);
  let to = Math.min(first + 2 * searched, await view.end());
  while (to > first && !signal.aborted) {
    const from = Math.max(first, to - searchedAtOnce);
    // They may begin in one part and end in the next.
    const found = lastPlaceOf(await view.readAt(from, to - from + end.length), end);
    if (found >= 0) return from + found + end.length;
    to = from;
  }
  return undefined;
}

async function bytesBefore(view: LogView, place: number): Promise<Buffer> {
  const from = Math.max(view.base, place - markBytes);
  return place > from ? view.readAt(from, place - from) : noBytes;
}

function endOf(before: Buffer, piece: Buffer): Buffer {
  if (piece.length >= markBytes) return Buffer.from(piece.subarray(-markBytes));
  return Buffer.concat([before, piece]).subarray(-markBytes);
}

/** Puts the time before each line. */
class Stamper {
  #isStart = true;
  /** Lines of one second have one text: a log may have nothing but line feeds. */
  #last = { seconds: Number.NaN, text: noBytes };

  stamp(piece: Uint8Array, place: number, stamps: readonly Stamp[], now: number): Uint8Array {
    const parts: Uint8Array[] = [];
    let from = 0;
    while (from < piece.length) {
      if (this.#isStart) {
        const seconds = timeOf(stamps, place + from) ?? Math.floor(now / 1000);
        parts.push(this.#textOf(seconds));
      }
      const end = piece.indexOf(newLine, from);
      this.#isStart = end >= 0;
      const to = end < 0 ? piece.length : end + 1;
      parts.push(piece.subarray(from, to));
      from = to;
    }
    return Buffer.concat(parts);
  }

  #textOf(seconds: number): Buffer {
    if (seconds !== this.#last.seconds) {
      const time = new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
      this.#last = { seconds, text: Buffer.from(`${time} `) };
    }
    return this.#last.text;
  }
}

async function* limited(pieces: AsyncGenerator<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let left = bytes > 0 ? bytes : Infinity;
  for await (const piece of pieces) {
    yield piece.length > left ? piece.subarray(0, left) : piece;
    left -= piece.length;
    if (left <= 0) return;
  }
}

/** Seconds since 1970. */
function sinceOf({ SinceSeconds, SinceTime }: LogOpts, now: number): number | undefined {
  if (SinceSeconds > 0) return Math.floor(now / 1000) - SinceSeconds;
  return isUnset(SinceTime) ? undefined : Math.floor(Date.parse(SinceTime) / 1000);
}

/** The first line that begins there or later; of a line that is too long for that, the part from there on. */
async function lineAt(view: LogView, offset: number, end: number, signal: AbortSignal): Promise<number> {
  if (offset <= view.base) return view.base;
  for (let at = offset - 1; at < end && !signal.aborted;) {
    if (at - offset >= longestSearch) return offset;
    const piece = await view.readAt(at, pieceSize);
    if (piece.length === 0) return end;
    const found = piece.indexOf(newLine);
    if (found >= 0) return at + found + 1;
    at += piece.length;
  }
  return end;
}

/** Beginning of the last lines, so many; of longer ones, as many bytes as are searched. */
async function tailAt(view: LogView, count: number, size: number, signal: AbortSignal): Promise<number> {
  const first = Math.max(view.base, size - longestSearch);
  let left = count;
  // The line feed at the very end belongs to the last line.
  for (let end = size - 1; end > first && !signal.aborted;) {
    const from = Math.max(first, end - pieceSize);
    const piece = await view.readAt(from, end - from);
    // It was cut meanwhile, and begins anew.
    if (piece.length === 0) return view.base;
    for (
      let at = piece.lastIndexOf(newLine);
      at >= 0;
      at = at === 0 ? -1 : piece.lastIndexOf(newLine, at - 1)
    ) {
      left -= 1;
      if (left === 0) return from + at + 1;
    }
    end = from;
  }
  return first;
}
