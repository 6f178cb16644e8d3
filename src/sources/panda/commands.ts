import { fromOutside } from '../../util/own-secrets.ts';
import { deepestParameters, type PandaCommand, type TakenCommand } from '../../clients/panda/api.ts';
import { usualBounds } from '../../clients/panda/outcome.ts';
import { readPandaTime } from '../../clients/panda/times.ts';
import type { WorkerNews } from '../../plugins/contracts/index.ts';
import { hasMoreValues, isDeeper, isObject } from '../../util/json.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import { submissionHostOf } from './reports.ts';

/** The values of a worker that a command means: any of them, or `ALL`. None at all means no worker, as in Harvester. */
type Meant = ReadonlySet<string> | 'ALL';

/** Which workers a command of the server means. */
export type KillFilter = Readonly<Record<keyof typeof filterKeys, Meant>>;

/** A command of the server, as far as it is understood. */
export type ServerCommand =
  | {
      readonly kind: 'set-workers';
      readonly site: string;
      /** New workers by resource type, of all job types together: the server knows one. A name may have a secret. */
      readonly wanted: ReadonlyMap<string, number>;
      /** ms UTC, the server's clock; undefined where it does not say. */
      readonly createdAt: number | undefined;
    }
  | { readonly kind: 'kill'; readonly filter: KillFilter }
  | { readonly kind: 'kill-ids'; readonly workerIds: readonly number[] }
  | { readonly kind: 'activate'; readonly workerIds: readonly number[] }
  | { readonly kind: 'report-statistics'; readonly site: string }
  | { readonly kind: 'unknown'; readonly why: string };

const ofSites: readonly string[] = ['SET_N_WORKERS_JOBTYPE', 'REPORT_WORKER_STATS'];

/** The commands for one site that thresher takes, as the server is told of them. Commands without a site are not announced. */
export function announcedCommands(sites: readonly string[]): TakenCommand[] {
  return sites.flatMap((computingSite) =>
    ofSites.map((command) => ({
      command,
      computingSite,
      resourceType: 'ANY',
    })),
  );
}

/** Whether a filter means this worker. @param host of workers whose batch system has no submission host of its own */
export function isMeant({ worker, queue }: WorkerNews, filter: KillFilter, host: string): boolean {
  const { statuses, sites, computingElements, submissionHosts } = filter;
  return (
    // The server has no word for an intent.
    fits(statuses, worker.status === 'pending' ? 'submitted' : worker.status) &&
    fits(sites, worker.computingSite ?? computingSiteOf(queue)) &&
    fits(computingElements, worker.computingElement) &&
    fits(submissionHosts, submissionHostOf(worker, host))
  );
}

/** A worker without a value is meant by "ALL" alone: in Harvester's database that is NULL, which is in no list. */
function fits(meant: Meant, value: string | null): boolean {
  return meant === 'ALL' || (value !== null && meant.has(value));
}

/** The keys of a filter that mean no worker, by the names of the server. */
export function emptyKeysOf(filter: KillFilter): readonly string[] {
  return Object.entries(filterKeys).flatMap(([ours, theirs]) => {
    const meant = filter[ours as keyof typeof filterKeys];
    return meant !== 'ALL' && meant.size === 0 ? [theirs] : [];
  });
}

/** Reads a command: its name, with a site behind a colon for some, and its parameters. It never throws. */
export function readCommand({ command, params, creation_date: created, wrong }: PandaCommand): ServerCommand {
  if (wrong !== undefined) return unknown(`the command ${shown(command)} cannot be read: ${wrong}`);
  const [, name = '', behind] = /^([A-Z_]+)(?::([^]*))?$/.exec(command) ?? [];
  const site = behind ?? '';
  // A kill for one site would end the workers of all.
  if (behind !== undefined && !ofSites.includes(name))
    return unknown(`${fromOutside(command)} is none of the commands that thresher takes`);
  const given = parsed(params);
  switch (name) {
    case 'SET_N_WORKERS_JOBTYPE': {
      const wanted = numbersIn(given);
      if (site === '') return unknown(`${fromOutside(command)} names no site`);
      if (wanted === undefined)
        return unknown(
          `${fromOutside(command)} has the parameters ${shown(given)} instead of numbers by job and resource type, ${mostTypes} types at most`,
        );
      return { kind: 'set-workers', site, wanted, createdAt: readPandaTime(created) };
    }
    case 'KILL_WORKERS': {
      const filter = filterIn(given);
      return filter === undefined
        ? unknown(
            `${fromOutside(command)} has the parameters ${shown(given)} instead of lists or "ALL" for status, computingSite, computingElement and submissionHost`,
          )
        : { kind: 'kill', filter };
    }
    case 'SYNC_WORKERS_KILL':
    case 'SYNC_WORKERS_ACTIVATE': {
      const workerIds = idsIn(parsed(params, asWritten));
      if (workerIds === undefined)
        return unknown(`${fromOutside(command)} has the parameters ${shown(given)} instead of worker ids`);
      return { kind: name === 'SYNC_WORKERS_KILL' ? 'kill-ids' : 'activate', workerIds };
    }
    case 'REPORT_WORKER_STATS':
      return site === ''
        ? unknown(`${fromOutside(command)} names no site`)
        : { kind: 'report-statistics', site };
    default:
      return unknown(`${fromOutside(command)} is none of the commands that thresher takes`);
  }
}

function unknown(why: string): ServerCommand {
  return { kind: 'unknown', why };
}

/** Parameters come as JSON, or as a text that has it. */
function parsed(params: unknown, reviver?: typeof asWritten): unknown {
  // An escaped comma is none in the answer, and is one here.
  if (typeof params !== 'string' || hasMoreValues(params, usualBounds.values)) return params;
  try {
    const value = JSON.parse(params, reviver) as unknown;
    return isDeeper(value, deepestParameters) ? params : value;
  } catch {
    // The caller shows it.
    return params;
  }
}

/** A number that is written otherwise than its value stays a text: rounded, it would be the id of another worker. */
function asWritten(_: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && context?.source !== String(value) ? context?.source : value;
}

/** Names of resource types: the server's column has 56 characters. A name becomes a part of requests and of keys. */
const typeName = /^[A-Za-z][\w.-]{0,55}$/;

/** Types that one order may name; the server has 6. */
const mostTypes = 1000;
/** More workers than any site has; sums of larger numbers could not be stored. */
const mostWorkers = 1e9;

/** `{"managed": {"SCORE": 3}}`, added up over job types. Below 0 counts as 0. A type with another name than types have gets none. */
function numbersIn(value: unknown): ReadonlyMap<string, number> | undefined {
  if (!isObject(value)) return undefined;
  const wanted = new Map<string, number>();
  const unnamed = new Set<string>();
  for (const byType of Object.values(value)) {
    if (!isObject(byType)) return undefined;
    for (const [type, count] of Object.entries(byType)) {
      if (typeof count !== 'number' || !Number.isFinite(count)) return undefined;
      if (unnamed.has(type)) continue;
      if (!wanted.has(type)) {
        if (wanted.size + unnamed.size >= mostTypes) return undefined;
        if (!typeName.test(type)) {
          unnamed.add(type);
          continue;
        }
      }
      const more = Math.min(mostWorkers, Math.max(0, Math.trunc(count)));
      wanted.set(type, Math.min(mostWorkers, (wanted.get(type) ?? 0) + more));
    }
  }
  return wanted;
}

const filterKeys = {
  statuses: 'status',
  sites: 'computingSite',
  computingElements: 'computingElement',
  submissionHosts: 'submissionHost',
} as const;

/**
 * Each key is a list, or "ALL", which alone means all. An empty list and an absent key mean no worker, but an absent `status` is
 * `submitted`. A value of another form, and a key that is none of these, make the whole unknown.
 * Source: Harvester d561b72f, `db_proxy.py`, `mark_workers_to_kill_by_query`.
 */
function filterIn(value: unknown): KillFilter | undefined {
  if (!isObject(value)) return undefined;
  const known: readonly string[] = Object.values(filterKeys);
  if (Object.keys(value).some((key) => !known.includes(key))) return undefined;
  const filter: Partial<Record<keyof KillFilter, Meant>> = {};
  for (const [ours, theirs] of Object.entries(filterKeys) as [keyof KillFilter, string][]) {
    const list = Object.hasOwn(value, theirs) ? value[theirs] : theirs === 'status' ? ['submitted'] : [];
    if (list !== 'ALL' && list !== null && !isTexts(list)) return undefined;
    filter[ours] = list === 'ALL' ? list : new Set(list);
  }
  return filter as KillFilter;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

/** Numbers, or texts of digits alone: `Number` would read more. */
function idsIn(value: unknown): readonly number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const ids = value.map((one: unknown) =>
    typeof one === 'number' ? one : typeof one === 'string' && /^\d{1,16}$/.test(one) ? Number(one) : NaN,
  );
  return ids.every((id) => Number.isSafeInteger(id) && id > 0) ? ids : undefined;
}

/** Longest piece of parameters that is shown. */
const excerpt = 200;

function shown(value: unknown): string {
  const text = fromOutside(value === undefined ? 'nothing' : JSON.stringify(value));
  return text.length > excerpt ? `${text.slice(0, excerpt)}...` : text;
}
