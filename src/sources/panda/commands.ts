import type { PandaCommand, TakenCommand } from '../../clients/panda/api.ts';
import { readPandaTime } from '../../clients/panda/times.ts';
import type { WorkerNews } from '../../plugins/contracts/index.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import { submissionHostOf } from './reports.ts';

/** Which workers a command of the server means; an absent list means all. */
export interface KillFilter {
  readonly statuses?: readonly string[];
  readonly sites?: readonly string[];
  readonly computingElements?: readonly string[];
  readonly submissionHosts?: readonly string[];
}

/** A command of the server, as far as it is understood. */
export type ServerCommand =
  | {
      readonly kind: 'set-workers';
      readonly site: string;
      /** New workers by resource type, of all job types together: the server knows one. */
      readonly wanted: ReadonlyMap<string, number>;
      /** ms UTC, the server's clock; undefined where it does not say. */
      readonly createdAt: number | undefined;
    }
  | { readonly kind: 'kill'; readonly filter: KillFilter }
  | { readonly kind: 'kill-ids'; readonly workerIds: readonly number[] }
  | { readonly kind: 'activate'; readonly workerIds: readonly number[] }
  | { readonly kind: 'report-statistics'; readonly site: string }
  | { readonly kind: 'unknown'; readonly why: string };

/** The commands for one site that thresher takes, as the server is told of them. Commands without a site are not announced. */
export function announcedCommands(sites: readonly string[]): TakenCommand[] {
  return sites.flatMap((computingSite) =>
    ['SET_N_WORKERS_JOBTYPE', 'REPORT_WORKER_STATS'].map((command) => ({
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
    (statuses?.includes(worker.status === 'pending' ? 'submitted' : worker.status) ?? true) &&
    (sites?.includes(worker.computingSite ?? computingSiteOf(queue)) ?? true) &&
    (computingElements?.includes(worker.computingElement ?? '') ?? true) &&
    (submissionHosts?.includes(submissionHostOf(worker, host)) ?? true)
  );
}

/** Reads a command: its name, with a site behind a colon for some, and its parameters. It never throws. */
export function readCommand({ command, params, creation_date: created }: PandaCommand): ServerCommand {
  const [, name = '', site = ''] = /^([A-Z_]+)(?::([^]*))?$/.exec(command) ?? [];
  const given = parsed(params);
  switch (name) {
    case 'SET_N_WORKERS_JOBTYPE': {
      const wanted = numbersIn(given);
      if (site === '') return unknown(`${command} names no site`);
      if (wanted === undefined)
        return unknown(
          `${command} has the parameters ${shown(given)} instead of numbers by job and resource type`,
        );
      return { kind: 'set-workers', site, wanted, createdAt: readPandaTime(created) };
    }
    case 'KILL_WORKERS': {
      const filter = filterIn(given);
      return filter === undefined
        ? unknown(`${command} has the parameters ${shown(given)} instead of lists`)
        : { kind: 'kill', filter };
    }
    case 'SYNC_WORKERS_KILL':
    case 'SYNC_WORKERS_ACTIVATE': {
      const workerIds = idsIn(given);
      if (workerIds === undefined)
        return unknown(`${command} has the parameters ${shown(given)} instead of worker ids`);
      return { kind: name === 'SYNC_WORKERS_KILL' ? 'kill-ids' : 'activate', workerIds };
    }
    case 'REPORT_WORKER_STATS':
      return site === '' ? unknown(`${command} names no site`) : { kind: 'report-statistics', site };
    default:
      return unknown(`${command} is none of the commands that thresher takes`);
  }
}

function unknown(why: string): ServerCommand {
  return { kind: 'unknown', why };
}

/** Parameters come as JSON, or as a text that has it. */
function parsed(params: unknown): unknown {
  if (typeof params !== 'string') return params;
  try {
    return JSON.parse(params) as unknown;
  } catch {
    // The caller shows it.
    return params;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Names of resource types: the server's column has 56 characters. A name becomes a part of requests and of keys. */
const typeName = /^[A-Za-z][\w.-]{0,55}$/;

/** `{"managed": {"SCORE": 3}}`, added up over job types. Below 0 counts as 0. A type with another name than types have gets none. */
function numbersIn(value: unknown): ReadonlyMap<string, number> | undefined {
  if (!isRecord(value)) return undefined;
  const wanted = new Map<string, number>();
  for (const byType of Object.values(value)) {
    if (!isRecord(byType)) return undefined;
    for (const [type, count] of Object.entries(byType)) {
      if (typeof count !== 'number' || !Number.isFinite(count)) return undefined;
      if (!typeName.test(type)) continue;
      wanted.set(type, (wanted.get(type) ?? 0) + Math.max(0, Math.trunc(count)));
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
 * Each key is a list, or "ALL". An empty list means all, too, as does an absent key: so does Harvester. A value of another form
 * makes the whole unknown, since taking it for "all" would end every worker.
 */
function filterIn(value: unknown): KillFilter | undefined {
  if (!isRecord(value)) return undefined;
  const filter: Record<string, readonly string[]> = {};
  for (const [ours, theirs] of Object.entries(filterKeys)) {
    const list = value[theirs];
    if (list === undefined || list === null || list === 'ALL') continue;
    if (!Array.isArray(list) || !list.every((one) => typeof one === 'string')) return undefined;
    if (list.length > 0) filter[ours] = list;
  }
  return filter;
}

function idsIn(value: unknown): readonly number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const ids = value.map(Number);
  return ids.every((id) => Number.isSafeInteger(id) && id > 0) ? ids : undefined;
}

/** Longest piece of parameters that is shown. */
const excerpt = 200;

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > excerpt ? `${text.slice(0, excerpt)}...` : text;
}
