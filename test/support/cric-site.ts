import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cacheDirectory, cachePlace } from '../../src/config/cric/cache-place.ts';
import { CacheReader } from '../../src/config/cric/cache-reader.ts';
import { writeEntryLines } from '../../src/config/cric/entry-lines.ts';
import { mergeQueues, type MergeResult } from '../../src/config/queues/merge.ts';
import { type QueueOrigins, type QueueVerdict, readQueueFile } from '../../src/config/queues/queues.ts';
import { loadPlugins } from '../../src/daemon/plugins.ts';
import { isObject, type JsonObject } from '../../src/util/json.ts';
import { files } from './operator-files.ts';

const item = {
  key: 'panda_queues.json',
  subKey: '',
  use: 'queue-data',
  from: { kind: 'file', path: '/panda_queues.json' },
  shown: 'file:///panda_queues.json',
} as const;

function linesOf(entries: JsonObject): string {
  const named = Object.entries(entries).flatMap(([key, entry]) => {
    if (!isObject(entry)) return [];
    const { panda_resource: resource } = entry;
    return [[typeof resource === 'string' ? resource : key, entry] as const];
  });
  return writeEntryLines(new Map(named));
}

/** Entries of CRIC as thresher reads them from its own file. */
export function cricEntries(entries: JsonObject): ReadonlyMap<string, JsonObject> {
  return new Map(Object.entries(JSON.parse(linesOf(entries)) as Record<string, JsonObject>));
}

/** Merges queues without giving way. */
export function mergedAtOnce(...given: Parameters<typeof mergeQueues>): MergeResult {
  const steps = mergeQueues(...given);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Reads queues, written to a file of `directory`, with the entries of CRIC as the cacher keeps them. */
export async function judgeWithCric(
  directory: string,
  queues: Readonly<Record<string, unknown>>,
  entries: JsonObject | 'never fetched' | undefined,
  changes: Partial<QueueOrigins> = {},
): Promise<Readonly<Record<string, QueueVerdict>>> {
  const file = join(directory, 'queues.json');
  writeFileSync(file, JSON.stringify(queues));
  const stateDir = join(directory, 'state');
  const harvesterId = 'thresher-test';
  const cache = new CacheReader({
    directory: cacheDirectory(stateDir),
    items: entries === undefined ? [] : [item],
    harvesterId,
    files,
  });
  const { content } = cachePlace(cacheDirectory(stateDir), item);
  rmSync(content, { force: true });
  if (entries !== undefined && entries !== 'never fetched') {
    mkdirSync(dirname(content), { recursive: true });
    writeFileSync(content, linesOf(entries));
  }
  const { verdicts } = await readQueueFile(file, await loadPlugins([], '/', files), {
    stateDir,
    files,
    defaultDemand: 'fill',
    queueList: undefined,
    harvesterId,
    origins: { cache, harvesterId, dynamic: false, closesOthers: true, ...changes },
  });
  return Object.fromEntries(verdicts.map((verdict) => [verdict.name, verdict]));
}
