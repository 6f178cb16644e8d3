import { fromOutside, holdsOwn } from '../../util/own-secrets.ts';
import { isUtf8 } from 'node:buffer';
import { parseQueueFile } from '../../config/cric/cache-place.ts';
import { isOurs } from '../../config/cric/dynamic-queues.ts';
import { cricWords } from '../../config/cric/fields.ts';
import { deepestEntry, whyTooLarge, writeEntryLines, writtenEntry } from '../../config/cric/entry-lines.ts';
import type { CacheUse } from '../../config/settings/cache-items.ts';
import { fileKinds } from '../../util/file-kinds.ts';
import { hasMoreValues, isDeeper, isObject, type JsonObject } from '../../util/json.ts';
import { endless } from '../../util/located.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';

/** Whose queues are looked for. */
export interface Home {
  readonly harvesterId: string;
  /** Names of the configuration, its queues and templates: none is a login of ours, whatever has it as its password. */
  readonly names: readonly string[];
}

/** How a fetched file is judged. */
export interface Asked {
  readonly use: CacheUse;
  /** Names the file and the URL, for messages. */
  readonly name: string;
  /** A file that only other programs read may be anything, as in Harvester. */
  readonly anything: boolean;
  readonly home: Home;
  /** The file that this one would replace. */
  readonly before?: {
    readonly entries: number;
    /** Those of this instance; absent where they were not counted. */
    readonly own?: number;
    /** Where it is. */
    readonly path: string;
  };
}

/** CRIC has thousands of queues, and each look at the kept file goes over the names of all. */
const mostEntries = 20_000;
/** Values in one file. The 10 MB of ATLAS have less than a million. */
const mostValues = 3_000_000;
/** Characters of a name: those of PanDA have at most 60. */
const longestName = 200;
/** Entries left out whose names are kept for the log. */
const mostNamed = 20;
/** Fewer queues may well become less than half of them in one day. */
const fewEntries = 10;

/** A fetched file that thresher takes. */
export interface Taken {
  /** The content as it is kept. */
  readonly kept: Buffer;
  /** Entries that were left out, and why, for the log. */
  readonly leftOut: readonly string[];
  /** Entries that were kept; absent for a file that only other programs read. */
  readonly entries?: number;
  /** Those of this instance, in queues of CRIC. */
  readonly own?: number;
}

/**
 * Judges a fetched file, and brings it into the form in which it is kept. A list of queues that is empty, or lost more than half
 * of them, counts as a mistake of its server: it would end every queue that it no longer has.
 * @throws ThresherError `cache-form`, `cache-shrunk`
 */
export function takeFile(bytes: Buffer, { use, name, anything, home, before }: Asked): Taken {
  if (use === 'dump' && anything) return { kept: bytes, leftOut: [] };
  const value = parsed(bytes, name);
  if (use === 'queue-file') requireReadable(bytes, name);
  if (use === 'dump') return { kept: bytes, leftOut: [] };
  if (!isObject(value)) throw wrong(name, 'holds no object { "QUEUE": { ... }, ... }');
  const entries = new Map<string, JsonObject>();
  const leftOut: string[] = [];
  const words = new Set([...cricWords, home.harvesterId, ...home.names]);
  const count = Object.keys(value).length;
  if (count > mostEntries) throw wrong(name, `has ${count} entries; ${mostEntries} can be taken`);
  for (const [key, entry] of Object.entries(value)) {
    const why = whyLeftOut(entry, use);
    const { panda_resource: resource } = isObject(entry) ? entry : {};
    const queue = use === 'queue-data' && typeof resource === 'string' ? resource : key;
    const leave = (because: string) =>
      leftOut.push(leftOut.length < mostNamed ? `${fromOutside(key).slice(0, 100)} (${because})` : '');
    if (why !== undefined || !isObject(entry)) leave(why ?? 'no object');
    else if (use !== 'queue-data') entries.set(queue, entry);
    else if (queue.length > longestName) leave(`its name has more than ${longestName} characters`);
    // Some servers send back how they were asked: a login of ours becomes neither a name nor a value of a queue.
    else if (holdsLogin(key, words) || holdsLogin(queue, words)) leave('a login of ours is in its name');
    else if (holdsOwn(JSON.stringify(entry))) {
      const rest = withoutLogins(entry, words);
      if (JSON.stringify(rest) !== JSON.stringify(entry)) leave('of it only values with a login of ours');
      entries.set(queue, rest);
    } else entries.set(queue, entry);
  }
  if (entries.size === 0) throw wrong(name, 'holds no queue');
  const own =
    use === 'queue-data'
      ? entries
          .values()
          .filter((entry) => isOurs(entry, home.harvesterId))
          .toArray().length
      : undefined;
  const shrinks = (what: string, now: number, last: number) => {
    if (before === undefined || last < fewEntries || now * 2 >= last) return;
    throw new ThresherError(
      'cache-shrunk',
      `${name} has ${now} ${what}, and the one before had ${last}: thresher goes on with that one; if the new one is right, remove ${before.path} and run \`thresher cacher refresh\``,
    );
  };
  shrinks('entries', entries.size, before?.entries ?? 0);
  // A file may well have all queues, and none of them ours.
  shrinks('entries of this instance', own ?? 0, before?.own ?? 0);
  // The remote queue file keeps its lines, which problems name.
  if (use === 'queue-file') return { kept: bytes, leftOut, entries: entries.size };
  const kept = Buffer.from(writeEntryLines(entries));
  if (kept.length > fileKinds.cached.largest)
    throw wrong(
      name,
      `has ${entries.size} entries, ${kept.length} bytes as they are kept; ${fileKinds.cached.largest} can be read`,
    );
  return { kept, leftOut, entries: entries.size, ...(own !== undefined && { own }) };
}

/** The next reading of the configuration, and each start, would have to do with a file that is kept. */
function requireReadable(bytes: Buffer, name: string): void {
  try {
    const { value, problems } = parseQueueFile(bytes.toString('utf8'), name);
    const [problem] = problems;
    if (value !== undefined || problem === undefined) return;
    throw wrong(
      name,
      `cannot be read: line ${problem.line}, ${problem.pointer || '/'}: ${fromOutside(problem.message)}`,
    );
  } catch (error) {
    // The stack ends where nesting does not.
    if (error instanceof RangeError) throw wrong(name, `cannot be read: ${endless}`);
    throw error;
  }
}

function holdsLogin(text: string, words: ReadonlySet<string>): boolean {
  return !words.has(text) && holdsOwn(text);
}

/** An entry without the values, and without the keys, that hold a secret of ours. @param words that are none */
function withoutLogins(entry: JsonObject, words: ReadonlySet<string>): JsonObject {
  // A password of digits may come back as a number.
  const isOwn = (value: unknown) =>
    !isObject(value) &&
    !Array.isArray(value) &&
    !(typeof value === 'string' && words.has(value)) &&
    holdsOwn(JSON.stringify(value));
  const rest = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.filter((one) => !isOwn(one)).map(rest);
    return isObject(value) ? withoutLogins(value, words) : value;
  };
  return Object.fromEntries(
    Object.entries(entry).flatMap(([key, value]) =>
      holdsLogin(key, words) || isOwn(value) ? [] : [[key, rest(value)]],
    ),
  );
}

/** The queue file has its own bounds where it is read. */
function whyLeftOut(entry: unknown, use: CacheUse): string | undefined {
  if (!isObject(entry)) return 'no object';
  if (use !== 'queue-data') return undefined;
  if (!isOfCric(entry)) return 'neither panda_resource nor status';
  if (isDeeper(entry, deepestEntry)) return `more than ${deepestEntry} levels`;
  return whyTooLarge(writtenEntry(entry));
}

/** An error that a server puts into an object is no queue: each queue of CRIC has one of these. */
function isOfCric({ panda_resource: resource, status }: JsonObject): boolean {
  return typeof resource === 'string' || typeof status === 'string';
}

function parsed(bytes: Buffer, name: string): unknown {
  if (bytes.length === 0) throw wrong(name, 'is empty');
  if (!isUtf8(bytes)) throw wrong(name, 'is no text in UTF-8');
  const text = bytes.toString('utf8');
  // Each may take a hundred times the memory of its text.
  if (hasMoreValues(text, mostValues)) throw wrong(name, `has more than ${mostValues} values`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrong(name, `is no JSON: ${fromOutside(messageOf(error)).slice(0, 200)}`);
  }
}

function wrong(name: string, what: string): ThresherError {
  return new ThresherError('cache-form', `${name} ${what}`);
}
