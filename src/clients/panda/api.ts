import type { Static, TSchema } from 'typebox';
import { wrongInAnswer } from '../../util/schema.ts';
import { isDeeper, isObject, valuesIn } from '../../util/json.ts';
import Type from '../../util/type.ts';
import { highestForeignId } from '../../worker/identity.ts';
import { isTokenKey } from '../credentials/credential.ts';
import type { PandaCall, PandaClient } from './client.ts';
import {
  type AnswerBounds,
  type PandaFailure,
  type PandaOutcome,
  statisticsBounds,
  usualBounds,
} from './outcome.ts';
import { pandaDatetime, pandaTime, readPandaTime } from './times.ts';
import { fit, fitAll, widths } from './widths.ts';

/** A worker as the server's table has it. Absent keys stay as they are there. Times are ms UTC. */
export interface ReportedWorker {
  readonly workerID: number;
  readonly status: string;
  readonly batchID?: string;
  readonly queueName?: string;
  readonly computingSite?: string;
  readonly computingElement?: string;
  readonly submissionHost?: string;
  readonly harvesterHost?: string;
  readonly nodeID?: string;
  readonly submitTime?: number;
  readonly startTime?: number;
  readonly endTime?: number;
  readonly nCore?: number;
  readonly minRamCount?: number;
  readonly jobType?: string;
  readonly resourceType?: string;
  readonly nativeExitCode?: number;
  readonly nativeStatus?: string;
  readonly diagMessage?: string;
  readonly nJobs?: number;
  readonly syncLevel?: number;
  readonly errorCode?: number;
  readonly stdOut?: string;
  readonly stdErr?: string;
  readonly batchLog?: string;
  readonly jdl?: string;
}

/** A command that an instance takes for a site. */
export interface TakenCommand {
  readonly command: string;
  readonly computingSite: string;
  readonly resourceType: string;
}

/** Counts of workers by job type, resource type and status. */
export type WorkerStatistics = Readonly<
  Record<string, Readonly<Record<string, Readonly<Record<string, number>>>>>
>;

export interface Dialog {
  readonly diagID: number;
  readonly moduleName: string;
  readonly identifier: string;
  /** ms UTC */
  readonly creationTime: number;
  readonly messageLevel: 'INFO' | 'WARNING' | 'ERROR';
  readonly diagMessage: string;
}

/** Numbers of a service by name; one of them may be a table of its own. */
export interface ServiceMetricValues {
  readonly [name: string]: number | string | ServiceMetricValues;
}

/** A command as the server gave it. It gives each only once. */
export interface PandaCommand {
  /** 0 where the server gave no number. */
  readonly command_id: number;
  readonly command: string;
  readonly params?: unknown;
  readonly creation_date?: unknown;
  /** Why it cannot be read. */
  readonly wrong?: string;
}

/** Levels of lists and objects in the parameters of a command; the server's own have 3. */
export const deepestParameters = 8;
/** The longest name of a command, characters: one of the server's has a site of at most 64 behind it. */
const longestCommand = 200;
/** The server has 6 types of resources. */
const mostTypes = 100;

const ResourceTypes = Type.Array(
  Type.Object({
    resource_name: Type.String(),
    mincore: Type.Union([Type.Number(), Type.Null()]),
    maxcore: Type.Union([Type.Number(), Type.Null()]),
    minrampercore: Type.Union([Type.Number(), Type.Null()]),
    maxrampercore: Type.Union([Type.Number(), Type.Null()]),
  }),
  { maxItems: mostTypes },
);
export type ResourceType = Static<typeof ResourceTypes>[number];

/** A schema is compiled once, so it is made once. */
const Things = Type.Array(Type.Unknown());
const Anything = Type.Unknown();
/** Of each site the caller looks at what it asks for: the answer has those of all sites of the server. */
const SiteStatistics = Type.Record(Type.String(), Type.Unknown());

/** Its form is judged by `whyNoTokenKey`, which names no part of it. */
const TokenKeyAnswer = Type.Object({ tokenKey: Type.Unknown() });
const tokenKeyBounds: AnswerBounds = { bytes: 64 * 1024, values: 100, isSecret: true };

/**
 * The fault of a value that is no key of a token; undefined: it is one. Nothing of the value is in it. Each key of the server is a UUID. Another
 * text may be the name of a queue, which would be hidden from then on wherever it is said.
 */
export function whyNoTokenKey(text: unknown): string | undefined {
  if (typeof text !== 'string') return 'is no text';
  if (text === '') return 'is empty';
  return isTokenKey(text) ? undefined : `is no UUID (${text.length} characters)`;
}

/** The calls of the server that a harvester instance needs, with their forms. */
export class PandaApi {
  readonly #client: Pick<PandaClient, 'call'>;
  readonly #id: string;

  /** @param harvesterId at most 50 characters */
  constructor(client: Pick<PandaClient, 'call'>, harvesterId: string) {
    this.#client = client;
    this.#id = harvesterId;
  }

  /** `data` is needed: a heartbeat without it is not stored. Keys the server does not know fail the call. */
  heartbeat(
    data: {
      readonly startTime: number;
      readonly version: string;
      readonly commit: string;
      /** They replace those of the last heartbeat that had some. */
      readonly commands?: readonly TakenCommand[];
    },
    signal: AbortSignal,
  ): Promise<PandaOutcome<null>> {
    const { startTime, version, commit, commands } = data;
    const fields = fitAll({ sw_version: version, commit_stamp: commit }, widths.heartbeat);
    const taken = commands === undefined || commands.length === 0 ? {} : { commands };
    const all = { startTime: pandaDatetime(startTime), ...fields, ...taken };
    return this.#post('heartbeat', { data: all }, signal);
  }

  async acquireCommands(most: number, signal: AbortSignal): Promise<PandaOutcome<readonly PandaCommand[]>> {
    const body = this.#own({ n_commands: most });
    const call: PandaCall = { method: 'POST', path: 'harvester/acquire_commands', body };
    const outcome = await this.#ask(call, Things, signal);
    if (outcome.kind === 'failed') return outcome;
    const commands = withinBounds(outcome.data.slice(0, most).map(commandOf));
    const more = outcome.data.length - commands.length;
    if (more === 0) return { kind: 'ok', data: commands };
    const wrong = `${more} commands came beyond the ${most} that were asked for`;
    return { kind: 'ok', data: [...commands, { command_id: 0, command: '', wrong }] };
  }

  /** An empty list answers a database error there, so it is not sent. */
  async acknowledge(commandIds: readonly number[], signal: AbortSignal): Promise<PandaOutcome<null>> {
    if (commandIds.length === 0) return { kind: 'ok', data: null };
    const body = { command_ids: commandIds };
    return nothing(
      await this.#client.call({ method: 'POST', path: 'harvester/acknowledge_commands', body }, signal),
    );
  }

  /** @returns for each worker, in order, whether the server took it */
  async updateWorkers(
    workers: readonly ReportedWorker[],
    signal: AbortSignal,
  ): Promise<PandaOutcome<readonly boolean[]>> {
    if (workers.length === 0) return { kind: 'ok', data: [] };
    const body = this.#own({ workers: workers.map(workerFields) });
    const call: PandaCall = { method: 'POST', path: 'harvester/update_workers', body };
    const outcome = await this.#ask(call, Things, signal);
    if (outcome.kind === 'failed') return outcome;
    return { kind: 'ok', data: workers.map((_, at) => outcome.data[at] === true) };
  }

  reportStatistics(
    queue: string,
    statistics: WorkerStatistics,
    signal: AbortSignal,
  ): Promise<PandaOutcome<null>> {
    const fields = { panda_queue: queue, statistics: JSON.stringify(statistics) };
    return this.#post('report_worker_statistics', fields, signal);
  }

  async addDialogs(dialogs: readonly Dialog[], signal: AbortSignal): Promise<PandaOutcome<null>> {
    if (dialogs.length === 0) return { kind: 'ok', data: null };
    const fields = dialogs.map((dialog) => ({
      ...fitAll(dialog, widths.dialog),
      creationTime: pandaTime(dialog.creationTime),
    }));
    return this.#post('add_dialogs', { dialogs: fields }, signal);
  }

  /** @param at ms UTC */
  async updateServiceMetrics(
    host: string,
    values: ServiceMetricValues,
    at: number,
    signal: AbortSignal,
  ): Promise<PandaOutcome<null>> {
    const text = JSON.stringify(values);
    if (text.length > widths.metric.text) return { kind: 'ok', data: null };
    return this.#post('update_service_metrics', { metrics: [[pandaTime(at), host, text]] }, signal);
  }

  /**
   * The highest worker id that the server knows of this instance; 0 where it knows none. It answers that as it answers for a
   * database that is down, so another call says whether that answers, and then it is asked a second time: one failure among good
   * answers is no "none".
   */
  async currentWorkerId(signal: AbortSignal): Promise<PandaOutcome<number>> {
    const query = { harvester_id: this.#id };
    const call: PandaCall = { method: 'GET', path: 'harvester/get_current_worker_id', query };
    const first = await this.#ask(call, Anything, signal);
    if (first.kind === 'ok') return idOf(first.data);
    if (first.code !== 'panda-database') return first;
    // In whatever form: it is asked whether the server answers.
    const alive = await this.#client.call(typesCall, signal);
    if (alive.kind === 'failed') return first;
    const second = await this.#ask(call, Anything, signal);
    if (second.kind === 'ok') return idOf(second.data);
    return second.code === 'panda-database' ? { kind: 'ok', data: 0 } : second;
  }

  async resourceTypes(signal: AbortSignal): Promise<PandaOutcome<readonly ResourceType[]>> {
    const outcome = await this.#ask(typesCall, ResourceTypes, signal);
    // What else an entry has may be too deep to be written.
    return outcome.kind === 'failed' ? outcome : { kind: 'ok', data: outcome.data.map(typeOf) };
  }

  /** Numbers of jobs by status, by site, unchecked. */
  activeJobs(signal: AbortSignal): Promise<PandaOutcome<Readonly<Record<string, unknown>>>> {
    const path = 'statistics/active_job_stats_by_site';
    const bounds = { ...usualBounds, bytes: statisticsBounds.bytes };
    return this.#ask({ method: 'GET', path, bounds }, SiteStatistics, signal);
  }

  /** What each instance reported of each site, by site and then by instance, unchecked. The server leaves out what is older than four hours. */
  workerStatistics(signal: AbortSignal): Promise<PandaOutcome<Readonly<Record<string, unknown>>>> {
    const path = 'harvester/get_worker_statistics';
    return this.#ask({ method: 'GET', path, bounds: statisticsBounds }, SiteStatistics, signal);
  }

  /**
   * The newest key by which pilots of this client get its token. The server takes its older keys until their end, which it does not say.
   * A failure shows nothing of the key: `panda-token-key` where the server gives none, or none that can be used.
   * Source: panda-server 1.0.4, `api/v1/credential_management_api.py`, `get_token_key`.
   */
  async tokenKey(clientName: string, signal: AbortSignal): Promise<PandaOutcome<string>> {
    const query = { client_name: clientName };
    const call: PandaCall = { method: 'GET', path: 'creds/get_token_key', query, bounds: tokenKeyBounds };
    const outcome = await this.#ask(call, TokenKeyAnswer, signal);
    if (outcome.kind === 'failed') return outcome;
    const { tokenKey: key } = outcome.data;
    const wrong = whyNoTokenKey(key);
    if (wrong === undefined) return { kind: 'ok', data: key as string };
    const message = `the tokenKey that the server answers ${wrong}`;
    return { kind: 'failed', code: 'panda-token-key', message, maybeDone: false };
  }

  #own<Fields extends object>(fields: Fields): Fields & { readonly harvester_id: string } {
    return { harvester_id: this.#id, ...fields };
  }

  async #post(name: string, fields: object, signal: AbortSignal): Promise<PandaOutcome<null>> {
    return nothing(
      await this.#client.call({ method: 'POST', path: `harvester/${name}`, body: this.#own(fields) }, signal),
    );
  }

  async #ask<Schema extends TSchema>(
    call: PandaCall,
    schema: Schema,
    signal: AbortSignal,
  ): Promise<PandaOutcome<Static<Schema>>> {
    const outcome = await this.#client.call(call, signal);
    if (outcome.kind === 'failed') return outcome;
    const wrong = wrongInAnswer(schema, outcome.data);
    if (wrong === undefined) return { kind: 'ok', data: outcome.data as Static<Schema> };
    return otherForm(call, wrong);
  }
}

function typeOf(type: ResourceType): ResourceType {
  const { resource_name, mincore, maxcore, minrampercore, maxrampercore } = type;
  return { resource_name: resource_name.slice(0, 56), mincore, maxcore, minrampercore, maxrampercore };
}

/** A time as it may be kept: the server has two forms of it. */
function timeOf(created: unknown): string | undefined {
  const text = isObject(created) ? created['__datetime__'] : created;
  const isTime = typeof text === 'string' && text.length <= 64 && readPandaTime(text) !== undefined;
  return isTime ? text : undefined;
}

/** One wrong command is no reason to lose the others: the server gives each once. */
function commandOf(given: unknown): PandaCommand {
  const said = isObject(given) ? given : {};
  const { command_id: id, command, params, creation_date: created } = said;
  const number = typeof id === 'number' && Number.isSafeInteger(id) && id > 0 ? id : 0;
  const name = typeof command === 'string' ? command : '';
  const wrong =
    number === 0
      ? 'it has no number'
      : name === '' || name.length > longestCommand
        ? `its name is no text of 1 to ${longestCommand} characters`
        : isDeeper(params, deepestParameters)
          ? `its parameters have more than ${deepestParameters} levels`
          : undefined;
  const time = timeOf(created);
  const head = { command_id: number, command: name.slice(0, longestCommand) };
  if (wrong !== undefined) return { ...head, wrong };
  return { ...head, params, ...(time !== undefined && { creation_date: time }) };
}

/**
 * Parameters may come as a text of JSON, and an escaped comma of it is none of the answer: all texts together have no more values than an answer.
 * One that goes beyond is refused, and those behind it have what it would have taken.
 */
function withinBounds(commands: readonly PandaCommand[]): readonly PandaCommand[] {
  let left = usualBounds.values;
  return commands.map((given) => {
    const { params, ...head } = given;
    const values = typeof params === 'string' ? valuesIn(params, left) : 0;
    if (values > left) {
      const wrong = `its parameters, with those of the commands before it, have more than ${usualBounds.values} values`;
      return { ...head, wrong };
    }
    left -= values;
    return given;
  });
}

const typesCall: PandaCall = { method: 'GET', path: 'metaconfig/get_resource_types' };

function otherForm({ path }: PandaCall, wrong: string): PandaFailure {
  const message = `the answer to ${path} has another form than the API's (${wrong})`;
  return { kind: 'failed', code: 'panda-no-api', message, maybeDone: true };
}

function idOf(id: unknown): PandaOutcome<number> {
  if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id <= highestForeignId)
    return { kind: 'ok', data: id };
  const said = typeof id === 'number' ? String(id) : 'what is no number';
  const why =
    typeof id === 'number' && id > highestForeignId
      ? `the highest that leaves room is ${highestForeignId}`
      : 'that is none';
  const message = `the server names ${said} as a worker id of this instance: ${why}, and thresher counts by its own`;
  return { kind: 'failed', code: 'panda-worker-id', message, maybeDone: false };
}

function nothing(outcome: PandaOutcome<unknown>): PandaOutcome<null> {
  return outcome.kind === 'failed' ? outcome : { kind: 'ok', data: null };
}

const workerWidths: Readonly<Record<string, number>> = widths.worker;
const times: ReadonlySet<string> = new Set(['submitTime', 'startTime', 'endTime']);
/** Numbers of the table have 32 bits, but for the id of the worker. A larger one fails the call. */
const largestInteger = 2 ** 31 - 1;

/** The loop is for the processor: ten thousand workers may change at once. */
function workerFields(worker: ReportedWorker): Readonly<Record<string, unknown>> {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(worker) as [string, string | number][]) {
    if (typeof value === 'string') fields[name] = fit(value, workerWidths[name] ?? Infinity);
    else if (times.has(name)) fields[name] = pandaDatetime(value);
    else if (name === 'workerID') fields[name] = value;
    else fields[name] = Math.max(-largestInteger, Math.min(largestInteger, Math.trunc(value)));
  }
  return fields;
}
