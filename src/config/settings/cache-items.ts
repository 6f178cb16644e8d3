import { resolve, dirname } from 'node:path';
import type { Problem } from '../../util/located.ts';
import { nearest, whatIsMeant } from '../../util/nearest.ts';
import { maskText } from '../../util/secrets.ts';
import { type Machine, thisMachine, variable } from './machine.ts';
import type { LoadedSettings } from './settings.ts';

/** The files of the cacher that thresher reads, by their keys there. Source: Harvester 0.7.5, the readers of its cache. */
export const cacheKeys = {
  /** The queues of CRIC. Source: `info_utils.py`. */
  queueData: 'panda_queues.json',
  /** A queue file from elsewhere. Source: `queue_config_mapper.py`. */
  queueFile: 'queues_config_file',
} as const;

/** `read`: thresher takes queues from it. `dump`: it is fetched for the programs that read its dump file. */
export type CacheUse = 'queue-data' | 'queue-file' | 'dump';

/** One file to fetch. */
export interface CacheItem {
  readonly key: string;
  readonly subKey: string;
  readonly use: CacheUse;
  readonly from: CacheOrigin;
  /** The same without passwords, for messages. */
  readonly shown: string;
  /** Absolute. */
  readonly dumpFile?: string;
}

export type CacheOrigin =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'web'; readonly url: string }
  /** A call of the PanDA server, by its path below `/api/v1/`. */
  | { readonly kind: 'server'; readonly path: string };

/** The calls behind Harvester's names of methods. Source: its `panda_communicator.py`. */
const serverMethods: Readonly<Record<string, string>> = {
  get_resource_types: 'metaconfig/get_resource_types',
  get_job_stats: 'statistics/active_job_stats_by_site',
  get_job_stats_new: 'statistics/active_job_detailed_stats_by_site',
  get_worker_stats_from_panda: 'harvester/get_worker_statistics',
};

/** Keys that Harvester itself reads, and thresher has from elsewhere. */
const fromElsewhere: Readonly<Record<string, string>> = {
  'resource_types.json': 'thresher asks the PanDA server itself for the resource types',
  'job_statistics.json': 'thresher asks the PanDA server itself for the active jobs',
  'job_statistics_new.json': 'thresher asks the PanDA server itself for the active jobs',
  'worker_statistics.json':
    'thresher asks the PanDA server itself for the instances of a site, where `activateWorkerFactor: auto` needs them',
};

export interface CacheItems {
  readonly items: readonly CacheItem[];
  readonly problems: readonly Problem[];
}

/** Reads `cacher.data`. A wrong item is left out with a warning; the others count. */
export function cacheItemsOf(
  { values, file, placeOf }: Pick<LoadedSettings, 'values' | 'file' | 'placeOf'>,
  machine: Machine = thisMachine(),
): CacheItems {
  const problems: Problem[] = [];
  const items = new Map<string, CacheItem>();
  for (const [index, text] of (values.cacher.data ?? []).entries()) {
    const place = placeOf(`/cacher/data/${index}`);
    const read = itemOf(text, dirname(file), machine);
    if ('problem' in read) {
      const { severity, message } = read.problem;
      problems.push({ ...place, severity, code: 'cacher-item', message });
      continue;
    }
    const { item } = read;
    const id = idOf(item);
    if (items.has(id)) {
      const message = `${nameOf(item)} is in cacher.data twice; the last one counts`;
      problems.push({ ...place, severity: 'warning', code: 'cacher-item', message });
    }
    items.set(id, item);
  }
  const found = [...items.values()];
  return { items: found, problems: [...problems, ...unserved(values, found, placeOf)] };
}

/** Names that the settings want of the cacher and no item brings. */
function unserved(
  { qconf }: LoadedSettings['values'],
  items: readonly CacheItem[],
  placeOf: LoadedSettings['placeOf'],
): Problem[] {
  const has = (use: CacheUse) => items.some((item) => item.use === use);
  const warning = (pointer: string, message: string): Problem => {
    const subject = { severity: 'warning', code: 'cacher-item', message } as const;
    return { ...placeOf(pointer), ...subject };
  };
  const dynamic = qconf.queueList?.indexOf('DYNAMIC') ?? -1;
  const { resolverClass } = qconf;
  return [
    ...(dynamic !== -1 && !has('queue-data')
      ? [
          warning(
            `/qconf/queueList/${dynamic}`,
            `DYNAMIC stands for the queues of CRIC, and cacher.data has no item ${cacheKeys.queueData}: only those of qconf.configFile are used; write "${cacheKeys.queueData}||URL" into it`,
          ),
        ]
      : []),
    ...(qconf.configFromCacher && !has('queue-file')
      ? [
          warning(
            '/qconf/configFromCacher',
            `configFromCacher is true, and cacher.data has no item ${cacheKeys.queueFile}: write "${cacheKeys.queueFile}||URL" into it`,
          ),
        ]
      : []),
    ...(resolverClass !== undefined && resolverClass !== 'PandaQueuesDict'
      ? [
          warning(
            '/qconf/resolverClass',
            `resolverClass is ${JSON.stringify(resolverClass)}, and thresher has PandaQueuesDict alone, which it uses`,
          ),
        ]
      : []),
  ];
}

type Read = { readonly item: CacheItem } | { readonly problem: Pick<Problem, 'severity' | 'message'> };

function itemOf(text: string, directory: string, machine: Machine): Read {
  const [key = '', subKey = '', url = '', dump = ''] = text.split('|').map((part) => part.trim());
  const wrong = (what: string): Read => ({
    problem: {
      severity: 'warning',
      message: `${JSON.stringify(maskText(text))} ${what}${what.endsWith('?') ? ' The' : '; the'} item is left out`,
    },
  });
  if (key === '' || url === '')
    return wrong('has no key or no URL: write "key||URL" or "key|subkey|URL|dump file"');
  const use = useOf(key, subKey);
  if (use === 'dump' && dump === '') {
    const meant = nearest(key, Object.values(cacheKeys));
    if (meant !== undefined) return wrong(`has a key that nothing reads; did you mean "${meant}"?`);
    const why = fromElsewhere[key] ?? `nothing in thresher reads ${key}`;
    const message = `${key} is not fetched: ${why}, and no dump file is named for other programs`;
    return { problem: { severity: 'notice', message } };
  }
  if (text.includes('FIXME')) return wrong("is a placeholder of Harvester's template");
  const written = resolved(url, machine);
  if (written === undefined) return wrong('names a variable that the environment does not have');
  const from = originOf(written, directory);
  if (typeof from === 'string') return wrong(from);
  const shown = from.kind === 'web' ? maskText(written) : written;
  const dumpFile = dump === '' ? {} : { dumpFile: resolve(directory, dump) };
  return { item: { key, subKey, use, from, shown, ...dumpFile } };
}

/** Harvester looks for both without a subkey. */
function useOf(key: string, subKey: string): CacheUse {
  if (subKey !== '') return 'dump';
  if (key === cacheKeys.queueData) return 'queue-data';
  return key === cacheKeys.queueFile ? 'queue-file' : 'dump';
}

/** A variable anywhere in the URL stands for all of it. Source: Harvester's `cacher.py`. */
function resolved(url: string, machine: Machine): string | undefined {
  const name = /\$\{*([^}]+)\}*/.exec(url)?.[1];
  return name === undefined ? url : variable(name, machine);
}

/** @returns a text that says what is wrong */
function originOf(url: string, directory: string): CacheOrigin | string {
  const [, scheme = '', rest = ''] = /^(\w+):(.*)$/s.exec(url) ?? [];
  switch (scheme) {
    case 'file': {
      return rest === ''
        ? 'has no path: write file:///PATH'
        : { kind: 'file', path: resolve(directory, rest.replace(/^\/+/, '/')) };
    }
    case 'http':
    case 'https':
      return URL.canParse(url) ? { kind: 'web', url } : 'has no valid URL';
    case 'panda_server': {
      const path = Object.hasOwn(serverMethods, rest) ? serverMethods[rest] : undefined;
      return path === undefined
        ? `names the call "${rest}", which thresher does not know; ${whatIsMeant(rest, Object.keys(serverMethods))}`
        : { kind: 'server', path };
    }
    case 'panda_cache':
      return 'asks the PanDA server for a pair of keys, which thresher does not keep on disk';
    default:
      return 'has a URL of another kind than file:, http:, https: or panda_server:';
  }
}

/** Two items with the same id are one. */
export function idOf({ key, subKey }: Pick<CacheItem, 'key' | 'subKey'>): string {
  return `${key}|${subKey}`;
}

/** For people. */
export function nameOf({ key, subKey }: Pick<CacheItem, 'key' | 'subKey'>): string {
  return subKey === '' ? key : idOf({ key, subKey });
}
