import { mkdir, readFile, stat } from 'node:fs/promises';
import pMap from 'p-map';
import { cachePlace, type Fetched, parseFetched } from '../../config/cric/cache-place.ts';
import { type CacheItem, idOf, nameOf } from '../../config/settings/cache-items.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { hasCode, writeFileAtomically } from '../../util/files.ts';
import { messageOf, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Fetching } from './fetching.ts';
import { judgeFile } from './judging.ts';

export interface CacherParts {
  /** The directory of its files. */
  readonly directory: string;
  readonly items: readonly CacheItem[];
  /** Whose queues they bring. */
  readonly harvesterId: string;
  readonly fetching: Pick<Fetching, 'fetch'>;
  readonly clock: Clock;
  readonly log: Log;
  /** After how long a file is fetched again, ms. */
  readonly refreshInterval: number;
}

/** The fate of one file, as the last try left it. Times are ms UTC. */
export interface ItemState {
  readonly item: CacheItem;
  /** The content that is here; undefined where none ever came. */
  readonly fetched: Fetched | undefined;
  /** When it was tried last; undefined before the first try of this process. */
  readonly triedAt: number | undefined;
  /** Why the last try brought nothing, or not all of it. */
  readonly failure: Reason | undefined;
}

/** `new`: another content than before. `same`: it is still the newest. */
export type Refreshed = 'new' | 'same' | 'failed';

/** The result of a fetch. */
interface Brought {
  readonly fetched: Fetched;
  /** Why other programs did not get it. */
  readonly failure?: Reason;
}

/** Files fetched side by side. */
const atOnce = 4;

/**
 * Fetches files and keeps them in the state directory. A file that cannot be fetched, or is not of its form, leaves the last
 * good one in force.
 */
export class Cacher {
  readonly #parts: CacherParts;
  readonly #states = new Map<string, ItemState>();
  /** Names of the configuration in force: of its queues and templates. */
  names: readonly string[] = [];

  constructor(parts: CacherParts) {
    this.#parts = parts;
  }

  /** All items, as they are here now. */
  async states(): Promise<readonly ItemState[]> {
    return Promise.all(this.#parts.items.map((item) => this.#stateOf(item)));
  }

  /**
   * Fetches the files whose time has come, or all.
   * @returns what became of each that was fetched
   */
  async refresh(which: 'due' | 'all', signal: AbortSignal): Promise<ReadonlyMap<CacheItem, Refreshed>> {
    const states = await this.states();
    const wanted = states.filter((state) => which === 'all' || this.#isDue(state));
    const outcomes = await pMap(
      wanted,
      async (state) => [state.item, await this.#one(state, signal)] as const,
      {
        concurrency: atOnce,
      },
    );
    return new Map(outcomes);
  }

  #isDue({ item, fetched }: ItemState): boolean {
    if (fetched === undefined || fetched.url !== item.shown) return true;
    const age = this.#parts.clock.now() - fetched.checkedAt;
    // A clock that was set back must not keep a file for ever.
    return age >= this.#parts.refreshInterval || age < 0;
  }

  async #one({ item, fetched: before }: ItemState, signal: AbortSignal): Promise<Refreshed> {
    const { clock } = this.#parts;
    const triedAt = clock.now();
    try {
      const { fetched, failure } = await this.#fetch(item, before, signal);
      if (failure !== undefined)
        this.#tell('a file of the cacher has no dump file for other programs', item, failure);
      this.#states.set(idOf(item), { item, fetched, triedAt: clock.now(), failure });
      return before === undefined || fetched.fetchedAt !== before.fetchedAt ? 'new' : 'same';
    } catch (error) {
      if (signal.aborted) return 'failed';
      const failure = toReason(error);
      this.#tell('a file of the cacher could not be fetched; the last good one counts', item, failure);
      this.#states.set(idOf(item), { item, fetched: before, triedAt, failure });
      return 'failed';
    }
  }

  /** Once: it is tried every minute. */
  #tell(what: string, item: CacheItem, failure: Reason): void {
    const last = this.#states.get(idOf(item))?.failure;
    if (last?.message !== failure.message) this.#parts.log.warn(what, { file: nameOf(item), ...failure });
  }

  async #fetch(item: CacheItem, before: Fetched | undefined, signal: AbortSignal): Promise<Brought> {
    const { fetching, clock, log, directory, harvesterId } = this.#parts;
    const isSame = before?.url === item.shown;
    const { etag, lastModified } = before ?? {};
    const { use, from, shown: url, dumpFile } = item;
    // The kept content is not what the dump file gets: without one, the file has to come again.
    const isDumped = dumpFile === undefined || before?.dumpFile === dumpFile;
    const known =
      isSame && isDumped
        ? { ...(etag !== undefined && { etag }), ...(lastModified !== undefined && { lastModified }) }
        : undefined;
    const found = await fetching.fetch(item, known, signal);
    const now = clock.now();
    const place = cachePlace(directory, item);
    if (found === undefined && before !== undefined) {
      const checked = { ...before, checkedAt: now };
      await writeFileAtomically(place.fetched, JSON.stringify(checked));
      return { fetched: checked };
    }
    const { bytes, validators } = found ?? { bytes: Buffer.alloc(0), validators: {} };
    const name = `${nameOf(item)} of ${url}`;
    const { kept, leftOut, entries, own } = await judgeFile(bytes, {
      use,
      name,
      anything: from.kind === 'file',
      home: { harvesterId, names: this.names },
      ...(isSame &&
        before.entries !== undefined && {
          before: {
            entries: before.entries,
            ...(before.own?.harvesterId === harvesterId && { own: before.own.entries }),
            path: place.content,
          },
        }),
    });
    if (leftOut.length > 0)
      log.warn('entries of a fetched file are no queues, or hold what is none of theirs, and are left out', {
        file: nameOf(item),
        count: leftOut.length,
        entries: leftOut.slice(0, 10).join(', '),
      });
    const isEqual = isSame && (await sameContent(place.content, kept));
    const fetchedAt = isEqual ? before.fetchedAt : now;
    const undumped: Fetched = {
      url,
      fetchedAt,
      checkedAt: now,
      bytes: kept.length,
      ...(entries !== undefined && { entries }),
      ...(own !== undefined && { own: { harvesterId, entries: own } }),
      ...validators,
    };
    const needsDump = dumpFile !== undefined && !(isEqual && isDumped);
    const fetched = needsDump ? undumped : withDump(undumped, dumpFile);
    await mkdir(directory, { recursive: true });
    // The content first: without its second file it counts as old, and never as newer than it is.
    if (!isEqual) await writeFileAtomically(place.content, kept);
    await writeFileAtomically(place.fetched, JSON.stringify(fetched));
    if (!needsDump) return { fetched };
    // Other programs read it: the queues do not wait for it.
    try {
      await writeFileAtomically(dumpFile, bytes);
    } catch (error) {
      const message = `the dump file ${dumpFile} could not be written: ${messageOf(error)}`;
      return { fetched, failure: { code: 'cache-dump', message } };
    }
    const dumped = withDump(fetched, dumpFile);
    await writeFileAtomically(place.fetched, JSON.stringify(dumped));
    return { fetched: dumped };
  }

  async #stateOf(item: CacheItem): Promise<ItemState> {
    const last = this.#states.get(idOf(item));
    const place = cachePlace(this.#parts.directory, item);
    const text = await readFile(place.fetched, 'utf8').catch(() => undefined);
    const fetched = text === undefined ? undefined : parseFetched(text);
    const isHere = fetched !== undefined && (await isFile(place.content, fetched.bytes));
    return {
      item,
      fetched: isHere ? fetched : undefined,
      triedAt: last?.triedAt,
      failure: last?.failure,
    };
  }
}

function withDump(fetched: Fetched, dumpFile: string | undefined): Fetched {
  return dumpFile === undefined ? fetched : { ...fetched, dumpFile };
}

/** Whether the content is there in the length that it was written in: half of one, or none, is fetched again. */
async function isFile(path: string, bytes: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() === true && found.size === bytes;
}

async function sameContent(path: string, content: Buffer): Promise<boolean> {
  try {
    return content.equals(await readFile(path));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}
