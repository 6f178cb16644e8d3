import { createHash } from 'node:crypto';
import type { CacheItem } from '../settings/cache-items.ts';
import { givingWayAfter } from '../../util/clock.ts';
import { hasCode } from '../../util/files.ts';
import { isObject } from '../../util/json.ts';
import type { Problem } from '../../util/located.ts';
import { readLocated } from '../../util/located-file.ts';
import { type OperatorFiles, whyUnreadable } from '../../util/operator-files.ts';
import { fromOutside, holdsOwn } from '../../util/own-secrets.ts';
import { cachePlace, kindOfUse, parseQueueFile } from './cache-place.ts';
import { type EntryLines, readEntryLines } from './entry-lines.ts';
import type { CachedFile, CachedQueueData, CachedQueueFile, QueueData } from './queue-data.ts';

export interface CacheReaderOptions {
  /** The directory of the cacher's files. */
  readonly directory: string;
  readonly items: readonly CacheItem[];
  readonly harvesterId: string;
  readonly files: OperatorFiles;
}

/** The parts of the cacher's files that a configuration was made of, to tell whether they changed. */
export interface TakenData {
  /** The queues whose entries were asked for. */
  readonly names: ReadonlySet<string>;
  readonly digests: DataDigests;
}

/** A text of each file that changes when something does in what was read; absent for a file that was missing or damaged. */
export interface DataDigests {
  readonly queueFile?: string;
  readonly queueData?: string;
}

/** Entries left out whose names are told. */
const mostNamed = 10;

/** Reads the cacher's files for the configuration. It fetches nothing. */
export class CacheReader {
  readonly #options: CacheReaderOptions;

  constructor(options: CacheReaderOptions) {
    this.#options = options;
  }

  /** Whether the settings name queues of CRIC. */
  get hasQueueData(): boolean {
    return this.#itemFor('queue-data') !== undefined;
  }

  /** The content files that the configuration may depend on. */
  get paths(): readonly string[] {
    const { directory, items } = this.#options;
    return items.filter(({ use }) => use !== 'dump').map((item) => cachePlace(directory, item).content);
  }

  /** The queue file of the cacher, where the settings name one. */
  async queueFile(): Promise<CachedQueueFile> {
    const item = this.#itemFor('queue-file');
    if (item === undefined) return { problems: [] };
    const { content } = cachePlace(this.#options.directory, item);
    if (!(await this.#exists(content)))
      return { problems: [this.#absent(item, 'the queues that it brings do not run')] };
    const located = await readLocated(this.#options.files, content, kindOfUse(item.use), parseQueueFile);
    const { value } = located;
    const { kept, problems } = withoutLogins(isObject(value) ? Object.entries(value) : [], content);
    const queueFile: CachedFile = {
      file: content,
      value: isObject(value) ? Object.fromEntries(kept) : value,
      problems: [...located.problems, ...problems],
      lineOf: (pointer) => located.lineOf(pointer),
      url: item.shown,
    };
    return { queueFile, problems: [] };
  }

  /** The entries of CRIC for these queues, and those that CRIC gives to this instance. */
  async queueData(names: ReadonlySet<string>): Promise<CachedQueueData> {
    const item = this.#itemFor('queue-data');
    if (item === undefined) return { problems: [] };
    const { content: file } = cachePlace(this.#options.directory, item);
    const read = await this.#entries(file, names);
    if (read === 'absent') {
      return { problems: [this.#absent(item, 'queues that may depend on it do not start')] };
    }
    if (typeof read === 'string') {
      const message = `${read}; thresher fetches it again from ${item.shown}, or do it now with \`thresher cacher refresh\``;
      return { problems: [{ ...wholeFile(file), code: 'cache-damaged', message }] };
    }
    const { kept, problems } = withoutLogins(read.entries, file, names);
    const { lines, leftOut } = read;
    const queueData: QueueData = { file, lines, entries: new Map(kept), url: item.shown };
    return { queueData, problems: [...tooLarge(leftOut, file, item.shown), ...problems] };
  }

  async #entries(file: string, names: ReadonlySet<string>): Promise<EntryLines | string> {
    const { files, harvesterId } = this.#options;
    try {
      const { bytes } = await files.read(file, 'cached');
      const read = await readEntryLines(bytes, (name) => names.has(name), harvesterId);
      return read ?? 'the file of the cacher is not as thresher wrote it';
    } catch (error) {
      return hasCode(error, 'ENOENT') ? 'absent' : whyUnreadable(error, 'cached');
    }
  }

  #itemFor(use: CacheItem['use']): CacheItem | undefined {
    return this.#options.items.find((item) => item.use === use);
  }

  async #exists(path: string): Promise<boolean> {
    return (await this.#options.files.stat(path)) !== undefined;
  }

  #absent(item: CacheItem, so: string): Problem {
    const { content } = cachePlace(this.#options.directory, item);
    const message = `${item.key} was never fetched from ${item.shown}, so ${so}; fetch it with \`thresher cacher refresh\`, as the user of the daemon`;
    return { ...wholeFile(content), code: 'cache-missing', message };
  }
}

/** Others have their turn meanwhile. */
export async function digestsOf(
  { queueFile }: Pick<CachedQueueFile, 'queueFile'>,
  { queueData }: Pick<CachedQueueData, 'queueData'>,
): Promise<DataDigests> {
  const isWhole = queueFile?.problems.every(({ severity }) => severity !== 'error');
  return {
    ...(isWhole && {
      queueFile: await digestOf(
        isObject(queueFile?.value) ? Object.entries(queueFile.value) : [queueFile?.value],
      ),
    }),
    // A file without any of our queues is not the same as none: queues wait for the first one.
    ...(queueData && { queueData: await digestOf(queueData.entries) }),
  };
}

/** Characters of which the digest is made in one turn. */
const inATurn = 1_000_000;

async function digestOf(parts: Iterable<unknown>): Promise<string> {
  const hash = createHash('sha256');
  const giveWay = givingWayAfter(inATurn);
  for (const part of parts) {
    const text = `${JSON.stringify(part ?? null)}\n`;
    hash.update(text);
    await giveWay(text.length);
  }
  return hash.digest('hex');
}

/** Entries of a file that a version with other bounds took. */
function tooLarge(leftOut: ReadonlyMap<string, string>, file: string, url: string): readonly Problem[] {
  if (leftOut.size === 0) return [];
  const named = [...leftOut].slice(0, mostNamed);
  const names = named.map(([name, why]) => `${fromOutside(name).slice(0, 100)} (${why})`);
  const more = leftOut.size > mostNamed ? ', ...' : '';
  const message = `${leftOut.size === 1 ? 'an entry of CRIC is' : `${leftOut.size} entries of CRIC are`} left out: ${names.join(', ')}${more}; thresher fetches the file again from ${url}`;
  return [{ ...wholeFile(file), code: 'cric-value-wrong', message }];
}

/**
 * The entries of a fetched file whose names become names of queues. A server may send back how it was asked: one with a login of ours
 * in its name would show it wherever queues are shown.
 * @param configured names that the configuration says itself: none of them is a login, whatever has it as its password
 */
function withoutLogins<Entry>(
  entries: Iterable<readonly [name: string, entry: Entry]>,
  file: string,
  configured: ReadonlySet<string> = new Set(),
): {
  readonly kept: readonly (readonly [name: string, entry: Entry])[];
  readonly problems: readonly Problem[];
} {
  const [wrong = [], kept = []] = [true, false].map((isWrong) =>
    [...entries].filter(([name]) => (!configured.has(name) && holdsOwn(name)) === isWrong),
  );
  if (wrong.length === 0) return { kept, problems: [] };
  const names = wrong.slice(0, mostNamed).map(([name]) => fromOutside(name).slice(0, 100));
  const more = wrong.length > mostNamed ? ', ...' : '';
  const message = `a login of ours is in the name of ${wrong.length === 1 ? 'an entry, which is' : `${wrong.length} entries, which are`} left out: ${names.join(', ')}${more}`;
  return { kept, problems: [{ ...wholeFile(file), code: 'cache-login', message }] };
}

function wholeFile(file: string): Pick<Problem, 'file' | 'pointer' | 'line' | 'severity'> {
  return { file, pointer: '', line: 0, severity: 'warning' };
}
