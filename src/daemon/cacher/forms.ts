import { isUtf8 } from 'node:buffer';
import { writeEntryLines } from '../../config/cric/entry-lines.ts';
import type { CacheUse } from '../../config/settings/cache-items.ts';
import { isObject, type JsonObject } from '../../util/json.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';

/** How a fetched file is judged. */
export interface Asked {
  readonly use: CacheUse;
  /** Names the file and the URL, for messages. */
  readonly name: string;
  /** A file that only other programs read may be anything, as in Harvester. */
  readonly anything: boolean;
}

/** A fetched file that thresher takes. */
export interface Taken {
  /** The content as it is kept. */
  readonly kept: Buffer;
  /** Entries that were left out, and why, for the log. */
  readonly leftOut: readonly string[];
}

/**
 * Judges a fetched file, and brings it into the form in which it is kept. An empty list of queues counts as a mistake of its
 * server: it would end every queue that it no longer has.
 * @throws ThresherError `cache-form`
 */
export function takeFile(bytes: Buffer, { use, name, anything }: Asked): Taken {
  if (use === 'dump' && anything) return { kept: bytes, leftOut: [] };
  const value = parsed(bytes, name);
  if (use === 'dump') return { kept: bytes, leftOut: [] };
  if (!isObject(value)) throw wrong(name, 'holds no object { "QUEUE": { ... }, ... }');
  const entries = new Map<string, JsonObject>();
  const leftOut: string[] = [];
  for (const [key, entry] of Object.entries(value)) {
    if (!isObject(entry)) {
      leftOut.push(key);
      continue;
    }
    const { panda_resource: resource } = entry;
    entries.set(use === 'queue-data' && typeof resource === 'string' ? resource : key, entry);
  }
  if (entries.size === 0) throw wrong(name, 'holds no queue: none of its values is an object { ... }');
  // The remote queue file keeps its lines, which problems name.
  if (use === 'queue-file') return { kept: bytes, leftOut };
  return { kept: Buffer.from(writeEntryLines(entries)), leftOut };
}

function parsed(bytes: Buffer, name: string): unknown {
  if (bytes.length === 0) throw wrong(name, 'is empty');
  if (!isUtf8(bytes)) throw wrong(name, 'is no text in UTF-8');
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw wrong(name, `is no JSON: ${messageOf(error).slice(0, 200)}`);
  }
}

function wrong(name: string, what: string): ThresherError {
  return new ThresherError('cache-form', `${name} ${what}`);
}
