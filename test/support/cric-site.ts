import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cacheDirectory, cachePlace } from '../../src/config/cric/cache-place.ts';
import { CacheReader } from '../../src/config/cric/cache-reader.ts';
import { writeEntryLines } from '../../src/config/cric/entry-lines.ts';
import { queueDataIn } from '../../src/config/cric/queue-data.ts';
import { type QueueOrigins, type QueueVerdict, readQueueFile } from '../../src/config/queues/queues.ts';
import { loadPlugins } from '../../src/daemon/plugins.ts';
import type { JsonObject } from '../../src/util/json.ts';
import { files } from './operator-files.ts';

const item = {
  key: 'panda_queues.json',
  subKey: '',
  use: 'queue-data',
  from: { kind: 'file', path: '/panda_queues.json' },
  shown: 'file:///panda_queues.json',
} as const;

/** Reads queues, written to a file of `directory`, with the entries of CRIC as the cacher keeps them. */
export async function judgeWithCric(
  directory: string,
  queues: Readonly<Record<string, unknown>>,
  entries: JsonObject | undefined,
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
  mkdirSync(dirname(content), { recursive: true });
  const { data } = queueDataIn(entries ?? {}, content);
  writeFileSync(content, writeEntryLines(data?.entries ?? new Map<string, JsonObject>()));
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
