import { headOf } from '../../util/beginning.ts';
import { eventOf } from './event-ads.ts';
import { parseClassic } from './event-text.ts';
import type { EventAd, JobEvent } from './event-types.ts';
import { parseXml } from './event-xml.ts';

/** A part of a log that is no event. */
export interface Garbage {
  /** Offset of its beginning in the bytes that were read. */
  readonly at: number;
  readonly bytes: number;
  /** So much of its beginning as `beginningFromOutside` needs for `excerptLength` characters. Users write it: it is not masked yet. */
  readonly excerpt: string;
}

/** Characters of garbage that are shown. */
export const excerptLength = 80;

export function excerptOf(raw: string): string {
  return headOf(raw.trim(), excerptLength);
}

export interface EventsRead {
  readonly events: readonly JobEvent[];
  readonly garbage: readonly Garbage[];
  /** Number of bytes that are done; the rest is the beginning of a record whose end is not written yet, unless there is `more`. */
  readonly consumed: number;
  /** The bytes had so many records that the rest is for another call. */
  readonly more: boolean;
}

/** Records of one reading, events and others: short ones cost as much as long ones, and whoever writes a log may write nothing else. */
const mostRecords = 10_000;
/** So many beginnings without an end cost as much as one record. */
const tornPerRecord = 20;

/** A record that is tried once more, from another brace, costs as much as so many: what is no JSON takes longer than what is. */
const recordsPerTry = 4;

/** Bytes: no event is longer, so a longer one never ends. */
const longestRecord = 1024 * 1024;

/**
 * Reads HTCondor's event logs, in any of their formats: text, XML, JSON. It remembers nothing between calls, so any
 * process that has the offset can go on. It does not read half a record; it reports a record whose writer died in it as
 * garbage as soon as another begins.
 *
 * In the text format it takes no word for a record that does not begin a line: users write into records (reasons of holds, notes,
 * file names; HTCondor lets no line break in), and what they wrote looks like a record behind a torn one. Both are garbage then.
 * @param bytes of a log, from where an earlier call left off
 * @param now ms UTC: for dates without a year
 * @param inLine whether they begin in the middle of a line: the rest of it is garbage
 */
export function readEvents(bytes: Buffer, now: number, inLine = false): EventsRead {
  // One character is one byte, so that places in it are offsets; records are decoded on their own.
  const text = bytes.toString('latin1');
  const events: JobEvent[] = [];
  const garbage: Garbage[] = [];
  const skip = (from: number, to: number) => {
    const last = garbage.at(-1);
    if (last !== undefined && last.at + last.bytes === from) {
      garbage[garbage.length - 1] = { ...last, bytes: to - last.at };
      return;
    }
    const raw = bytes.subarray(from, to).toString('utf8');
    if (raw.trim() !== '') garbage.push({ at: from, bytes: to - from, excerpt: excerptOf(raw) });
  };
  const places = new Places(text);
  const budget = { bytes: mostAgain };
  let records = 0;
  let at = inLine ? text.indexOf('\n') + 1 || text.length : 0;
  skip(0, at);
  while (at < text.length && records < mostRecords) {
    const found = recordAt(text, at, places);
    if (found === 'wait') {
      if (text.length - at <= longestRecord) break;
      skip(at, text.length);
      at = text.length;
      break;
    }
    const { from, event, tries } = recordIn(text, at, found, budget, (start, format) =>
      eventFrom(format, bytes.subarray(start, found.end).toString('utf8'), now),
    );
    records += found.parse === undefined ? 1 / tornPerRecord : tries;
    if (event === undefined) skip(at, found.end);
    else {
      skip(at, from);
      events.push(event);
    }
    at = found.end;
  }
  return { events, garbage, consumed: at, more: records >= mostRecords && at < text.length };
}

type Format = 'text' | 'xml' | 'json';

interface Piece {
  readonly end: number;
  /** Undefined for what is no record. */
  readonly parse?: Format;
}

/**
 * Beginnings of lines at which a record may begin. JSON has the brace of a record, and of nothing else, at the margin. `^` would take
 * a carriage return for the end of a line, which a user may write.
 */
const starts = /(?<![^\n])(?:\d{3} \(-?\d+\.-?\d+\.-?\d+\) |<c>|\{)/g;
const head = /\d{3} \(-?\d+\.-?\d+\.-?\d+\) |<c>|\{/y;

/** Where in a text what begins next: each is looked for once, however often it is asked for. */
class Places {
  readonly #text: string;
  /** A place that is kept in a pattern itself would count for others, too. */
  readonly #own = new Map<RegExp, RegExp>();
  readonly #known = new Map<RegExp, { readonly from: number; readonly match: RegExpExecArray | null }>();
  /** End of the last whole line; -1: there is none. */
  readonly lastLine: number;

  constructor(text: string) {
    this.#text = text;
    this.lastLine = text.lastIndexOf('\n');
  }

  next(pattern: RegExp, from: number): RegExpExecArray | undefined {
    const known = this.#known.get(pattern);
    if (known !== undefined && known.from <= from && from <= (known.match?.index ?? Infinity))
      return known.match ?? undefined;
    const own = this.#own.get(pattern) ?? new RegExp(pattern);
    this.#own.set(pattern, own);
    own.lastIndex = from;
    const match = own.exec(this.#text);
    this.#known.set(pattern, { from, match });
    return match ?? undefined;
  }
}

/** The record, or the garbage, that begins at a place; "wait" if it is not all there yet. */
function recordAt(text: string, at: number, places: Places): Piece | 'wait' {
  head.lastIndex = at;
  if (!head.test(text)) return garbageAt(at, places);
  const format = formatOf(text.charAt(at));
  // Behind the line that ends a record: what is nested in one is indented.
  const last = places.next(ends[format], at);
  const end = last && last.index + last[0].length;
  // A match needs the beginning of a line: a position in the middle of one is no beginning.
  const next = places.next(starts, at + 1)?.index;
  // Another record begins in this one: its writer died, or its disk was full.
  if (next !== undefined && (end === undefined || next < end)) return { end: next };
  return end === undefined ? 'wait' : { end, parse: format };
}

/**
 * A text without a head, up to the next head or to the end of the last whole line: the rest may be the beginning of a
 * head.
 */
function garbageAt(at: number, places: Places): Piece | 'wait' {
  const next = places.next(starts, at)?.index;
  const end = next ?? (places.lastLine < at ? undefined : places.lastLine + 1);
  if (end === undefined) return 'wait';
  // A writer may have died after its first characters.
  const inside = Object.values(heads).map((pattern) => places.next(pattern, at + 1)?.index ?? end);
  return { end: Math.min(end, ...inside) };
}

function formatOf(character: string): Format {
  if (character === '{') return 'json';
  return character === '<' ? 'xml' : 'text';
}

const ends = {
  text: /(?<![^\n])\.\.\.\r?\n/g,
  xml: /(?<![^\n])<\/c>\r?\n?/g,
  json: /(?<![^\n])\}\r?\n?/g,
} as const;

/** A head in the middle of a line: the writer before died there, and its half and this record look like one. Texts are escaped there. */
const heads = { xml: /(?<!">|<l>|<\/c>)<c>\r?\n/g, json: /(?<!: )\{\r?\n/g } as const;
/** In text, what looks like such a head: what a user wrote looks the same. */
const headInLine = /[^\n]\d{3} \(-?\d+\.-?\d+\.-?\d+\) \d\d(?:\d\d-|\/)/;

/** Braces at the end of a line: of records, and of ads in ads. */
const braces = /\{\r?\n/g;
/** A torn record has fewer ads in it. */
const mostBraces = 64;
/** Bytes of one reading that are parsed from another brace once more, some 50 ms: whoever writes a log may write nothing but braces. */
const mostAgain = 4 * 1024 * 1024;

/** The record that ends a piece, where the writer of the one before may have died in the middle of a line. */
function recordIn(
  text: string,
  at: number,
  { end, parse: format }: Piece,
  budget: { bytes: number },
  read: (start: number, format: Format) => JobEvent | undefined,
): { readonly from: number; readonly event: JobEvent | undefined; readonly tries: number } {
  if (format === undefined) return { from: end, event: undefined, tries: 0 };
  if (format === 'text') {
    const event = headInLine.test(text.slice(at, end)) ? undefined : read(at, format);
    return { from: at, event, tries: 1 };
  }
  if (format === 'xml') {
    const from = ownTag(text, at, end);
    return { from, event: read(from, format), tries: 1 };
  }
  // An ad in an ad looks like a record, and a record behind a torn `"Key": ` like an ad in one. Only from the record's own
  // brace to the end the braces are even.
  const inside = Array.from(text.slice(at, end).matchAll(braces), ({ index }) => at + index);
  let tries = 1;
  for (const from of new Set([at, ...inside.slice(-mostBraces)])) {
    if (from !== at && (budget.bytes -= end - from) < 0) break;
    if (from !== at) tries += recordsPerTry;
    const event = read(from, format);
    if (event !== undefined) return { from, event, tries };
  }
  return { from: at, event: undefined, tries };
}

/** Strings are escaped in XML, so that a tag is a tag wherever it stands. */
const tags = /<(\/?)c>/g;

/**
 * Offset of the tag that the last one of an XML piece closes, `at` if there is none. A record behind a torn `<a n="Key">`
 * looks like an ad in an ad: only the tags tell.
 */
function ownTag(text: string, at: number, end: number): number {
  let open = 0;
  for (const { index, 1: slash } of [...text.slice(at, end).matchAll(tags)].reverse()) {
    open += slash === '/' ? 1 : -1;
    if (open <= 0) return at + index;
  }
  return at;
}

function eventFrom(format: Format, record: string, now: number): JobEvent | undefined {
  const ad = adOf(format, record, now);
  return ad && eventOf(ad);
}

function adOf(format: Format, record: string, now: number): EventAd | undefined {
  switch (format) {
    case 'text':
      return parseClassic(record.replace(/\n\.\.\.\r?\n$/, ''), now);
    case 'xml':
      return parseXml(record);
    case 'json':
      try {
        return JSON.parse(record) as EventAd;
      } catch {
        return undefined;
      }
  }
}
