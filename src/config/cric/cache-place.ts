import { join } from 'node:path';
import type { Static } from 'typebox';
import type { FileKind } from '../../util/file-kinds.ts';
import { type Located, parseJson } from '../../util/located.ts';
import { check } from '../../util/schema.ts';
import Type from '../../util/type.ts';
import { type CacheItem, type CacheUse, idOf } from '../settings/cache-items.ts';

/** Beside each file of the cacher: where it came from, and when. */
const Fetched = Type.Object({
  url: Type.String(),
  /** When this content came, ms UTC. */
  fetchedAt: Type.Number(),
  /** When the server last said that it is the newest, ms UTC. */
  checkedAt: Type.Number(),
  /** Size of the content as it is kept. */
  bytes: Type.Number(),
  /** Entries of the content, where it has any. */
  entries: Type.Optional(Type.Number()),
  /** Those of this instance, in queues of CRIC. */
  own: Type.Optional(Type.Object({ harvesterId: Type.String(), entries: Type.Number() })),
  /** The dump file that has this content. */
  dumpFile: Type.Optional(Type.String()),
  etag: Type.Optional(Type.String()),
  lastModified: Type.Optional(Type.String()),
});
export type Fetched = Static<typeof Fetched>;

/** The directory of the cacher's files. */
export function cacheDirectory(stateDir: string): string {
  return join(stateDir, 'cache');
}

/** A queue file is parsed whole wherever it came from, so that one that was fetched may be no larger than the local one. */
export function kindOfUse(use: CacheUse): FileKind {
  return use === 'queue-file' ? 'queues' : 'cached';
}

/** Values in a queue file that was fetched, as a thousand queues with a hundred options have them. Nothing else runs while it is parsed. */
const mostValues = 100_000;

/** Parses a queue file that was fetched. It may have fewer values than the local one, which its operator wrote. */
export function parseQueueFile(text: string, file: string): Located {
  return parseJson(text, file, mostValues);
}

/** The two files of an item. Keys are names that operators choose: no part of one leads out of the directory. */
export function cachePlace(directory: string, item: Pick<CacheItem, 'key' | 'subKey'>) {
  const id = item.subKey === '' ? item.key : idOf(item);
  const name = encodeURIComponent(id).replaceAll('%20', ' ').replace(/^\./, '%2E').slice(0, 200);
  return { content: join(directory, name), fetched: join(directory, `${name}.fetched`) };
}

/** Undefined for a text that is none of ours: the file counts then as one of an unknown time. */
export function parseFetched(text: string): Fetched | undefined {
  try {
    const checked = check(Fetched, JSON.parse(text));
    return checked.ok ? checked.value : undefined;
  } catch {
    return undefined;
  }
}
