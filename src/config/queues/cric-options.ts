import { isUps } from '../cric/dynamic-queues.ts';
import { cricLayer } from '../cric/layer.ts';
import type { QueueData } from '../cric/queue-data.ts';
import type { JsonObject } from '../../util/json.ts';
import { type Problem, toPointer } from '../../util/located.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import { type CricOptions, cricLabel, type LayerFile } from './layers.ts';

/** How the settings use the queues of CRIC. */
export interface CricUse {
  readonly data: QueueData;
  /** `DYNAMIC` is in `qconf.queueList`: limits of CRIC win over templates, and CRIC says which queues are UPS queues. */
  readonly dynamic: boolean;
  /** The id of this instance, where queues of other instances are closed. */
  readonly closesOthersOf?: string;
}

/** The options that Harvester takes from `params` of CRIC for a `DYNAMIC` queue. Source: its `queue_limit_attrs`. */
const limitName =
  /^(maxWorkers|maxNewWorkersPerCycle|nQueueLimit(Worker|Job)(Max|Min|Ratio|(Cores|Memory)(Ratio|Min)?)?)$/;

/** The file of CRIC's queues as the origin of options. */
export function cricFile({ file, url, lines }: QueueData): LayerFile {
  return {
    file,
    lineOf: (pointer) => lines?.get(pointer.slice(1).replaceAll('~1', '/').replaceAll('~0', '~')) ?? 0,
    label: cricLabel,
    ...(url !== undefined && { url }),
  };
}

/** CRIC's options of a queue with these values; undefined where CRIC does not know it. */
export function cricOptionsOf(
  name: string,
  values: JsonObject,
  { data, dynamic, closesOthersOf }: CricUse,
): { readonly options: CricOptions; readonly problems: readonly Problem[] } | undefined {
  const entry = [name, computingSiteOf(name)].find((one) => data.entries.has(one));
  const said = entry === undefined ? undefined : data.entries.get(entry);
  if (entry === undefined || said === undefined) return undefined;
  const from = cricFile(data);
  const id = closesOthersOf === undefined ? {} : { harvesterId: closesOthersOf };
  const layer = cricLayer(said, { name, values, file: data.file, ...id });
  const limits = dynamic ? Object.entries(layer.values).filter(([key]) => limitName.test(key)) : [];
  // Its status is an option of its own, `cricStatus`: a queue is closed by the stricter of the two.
  const above = { ...layer.above, ...(dynamic && isUps(said) && { runMode: 'slave', mapType: 'NoJob' }) };
  const options = { from, entry, below: layer.values, limits: Object.fromEntries(limits), above };
  const at = toPointer([entry]);
  const problems = layer.problems.map((problem) => ({
    ...problem,
    file: data.file,
    pointer: at + problem.pointer,
    line: from.lineOf(at),
    message: withUrl(problem.message, data.url),
    queue: name,
  }));
  return { options, problems };
}

/** A mistake in a fetched file is to be fixed where it came from. */
export function withUrl(message: string, url: string | undefined): string {
  return url === undefined ? message : `${message} (fetched from ${url})`;
}
