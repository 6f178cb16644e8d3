import { type CacheReader, digestsOf, type TakenData } from '../cric/cache-reader.ts';
import { inTurns } from '../../util/clock.ts';
import { isObject } from '../../util/json.ts';
import type { Located, Problem } from '../../util/located.ts';
import { readJsonFile } from '../../util/located-file.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { type MergedQueue, type MergeResult, mergeQueues } from './merge.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import type { PluginCatalogue } from './queue-config.ts';

/** Where queues come from beside the local queue file, by the settings. */
export interface QueueOrigins {
  /** The files that the cacher fetched. */
  readonly cache: CacheReader;
  readonly harvesterId: string;
  /** Whether the queues that CRIC gives to this instance are queues here. */
  readonly dynamic: boolean;
  readonly defaultTemplate?: string | undefined;
  /** Whether queues that CRIC gives to another instance are closed. */
  readonly closesOthers: boolean;
}

/** The local queue file, with everything that was merged into its queues. */
export interface ReadOrigins {
  readonly located: Located;
  readonly merged: MergeResult;
  /** The problems of the cacher's files as a whole. */
  readonly problems: readonly Problem[];
  readonly taken?: TakenData;
  /** Why queues lack what CRIC says of them, where the settings name its file and there is none. */
  readonly lacking?: Problem;
}

/** Reads all files that queues come from, and merges them. */
export async function readOrigins(
  path: string,
  { files, origins }: { readonly files: OperatorFiles; readonly origins?: QueueOrigins | undefined },
): Promise<ReadOrigins> {
  const located = await readJsonFile(files, path, 'queues');
  if (origins === undefined) return { located, merged: await inTurns(mergeQueues(located)), problems: [] };
  const { cache, ...use } = origins;
  const file = await cache.queueFile();
  const remote = file.queueFile;
  const named = [located, remote].flatMap((one) => (isObject(one?.value) ? Object.keys(one.value) : []));
  const names = new Set(named.flatMap((name) => [name, computingSiteOf(name)]));
  const data = await cache.queueData(names);
  const merged = await inTurns(mergeQueues(located, { ...use, remote, queueData: data.queueData }));
  const [absence] = data.queueData === undefined ? data.problems : [];
  const lacking = absence && { ...absence, severity: 'error' as const };
  return {
    located,
    merged,
    problems: [...file.problems, ...(remote?.problems ?? []), ...data.problems],
    taken: { names, digests: await digestsOf(file, data) },
    ...(lacking && { lacking }),
  };
}

/** A queue that names its own demand is no queue of PanDA's, unless that is the demand of its server. */
export function mayNeedCric({ values }: MergedQueue, { sources }: Pick<PluginCatalogue, 'sources'>): boolean {
  const demand = values['demand'] ?? undefined;
  if (demand === undefined) return true;
  const named = isObject(demand) ? demand['name'] : demand;
  return sources.some(({ name, needsServer }) => name === named && needsServer);
}
