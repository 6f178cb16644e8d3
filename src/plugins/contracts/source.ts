import type { Static, TSchema } from 'typebox';
import type { Payload, PayloadPart } from '../../worker/payload.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Census, OriginFilter, OriginKey, WorkerNews } from '../../worker/news.ts';
import type { OperatorRequest, WithdrawnRequest } from '../../worker/operator-request.ts';
import type { Requirements } from '../../worker/worker.ts';
import { messageOf } from '../../worker/errors.ts';
import { problemsOf } from './checks.ts';
import type { CheckContext, SectionDefinition } from './definition.ts';
import type { DefinitionProblem } from './definition-problem.ts';
import type { Host } from './context.ts';
import type { LogRequest, PeekRequest } from './log-reader.ts';
import type { LeftOutput } from './output-reader.ts';
import type { PandaServer } from './panda-server.ts';
import type { SourceGauge } from './source-gauge.ts';
import type { SourceHttpAnswer, SourceHttpRequest } from './source-http.ts';

/** One worker that a source asks for by name. It gets this worker once, however often it asks. */
export interface Request {
  readonly origin: OriginKey;
  /** Where they differ from the queue's own. */
  readonly requirements?: Partial<Requirements>;
  readonly payload?: Payload;
  /** It has a payload that `Source.payloads` brings when its worker is about to be made. */
  readonly payloadFollows?: boolean;
  /** Requests of one group, next to each other, may become one submission. */
  readonly groupId?: string;
}

/** Workers of one kind that are wanted, whichever they are. */
export interface Group {
  readonly requirements: Requirements;
  /** How many new ones; Infinity = as many as the limits let through. */
  readonly count: number;
}

/** Many requests of equal needs, one behind the other: they are made as far as the limits may let them through, and no further. */
export interface RequestSeries {
  /** How many there are. */
  readonly count: number;
  readonly requests: Iterable<Request>;
}

/** The workers that a source asks for on one queue, before any limit. */
export interface Wanted {
  /** They are served before the groups, and in this order. */
  readonly requests: readonly Request[];
  /** Requests behind `requests`, in this order. Of those with the same needs in one series a full queue looks at a few alone. */
  readonly series?: readonly RequestSeries[];
  readonly groups: readonly Group[];
  /** Why there is none, or less than an operator may expect. */
  readonly reasons: readonly Reason[];
}

/** Facts that a source may know of the queue it is asked about. */
export interface SourceQueue<Options = unknown> {
  readonly name: string;
  /** Needs of one worker by the queue's configuration. */
  readonly requirements: Requirements;
  /** A worker takes all of a slot, whatever the resource type that is asked for. */
  readonly wholeSlots?: boolean;
  /** `noPilotsWhenNoActiveJobs` of the queue's submitter, as Harvester reads it: without jobs it gets no worker. */
  readonly noPilotsWhenNoActiveJobs?: boolean;
  /** Whether the queue names this source as its `demand`. */
  readonly own: boolean;
  /** Options of that section, as `queueConfig` left them; defaults where the queue names another source. */
  readonly options: Options;
  readonly mapType: string;
  readonly runMode: string;
}

/** A queue whose own source this is, as it runs now. */
export interface OwnQueue<Options = unknown> extends Pick<
  SourceQueue<Options>,
  'name' | 'requirements' | 'options' | 'mapType' | 'runMode'
> {
  /** Relative paths in its options count from here. Absolute. */
  readonly configDir: string;
}

/** The side of the daemon that a source with a life of its own works with. */
export interface Desk {
  /** Asks for a pass of this queue now: its sources are asked what they want. */
  wake(queue: string): void;
  /**
   * Ends requests, in whatever state they are: one with a living worker gets its worker ended, one without a worker never gets
   * one, and a worker of it that comes to light later is ended, too. When this returns it survives a crash. The ends come as news.
   */
  end(origins: readonly OriginKey[], reason: string): Promise<void>;
  /**
   * Takes requests back that have no worker: none of them ever gets one. It ends nothing: one whose worker was recorded meanwhile, or
   * comes to light later (a lost database, a listing that adopts it), keeps it. When this returns it survives a crash.
   */
  withdraw(origins: readonly OriginKey[]): Promise<void>;
  /**
   * Nothing of the workers with this `uid` is needed any more: the traces of those that have ended (objects, spool, files) are removed
   * now, and not only after their keep time. Ask again until nothing is left: a restart forgets the wish.
   * @param isUnwanted their outputs are not wanted either. Default: the removal brings them first, and awaits them
   * @returns how many of its workers live, or have left something
   */
  discard(uid: string, isUnwanted?: boolean): Promise<number>;
  /** Why a worker that was ended still lives, or why something of a discarded one is left, as the last pass has it; undefined: nothing is known to stand against it. */
  whyLeft(workerId: number): Reason | undefined;
  /**
   * These workers are said to end now: their monitors look at them before their turn, at most once a second on one connection, and a
   * few times more until they have ended. The word itself changes nothing. A word too many costs nothing.
   */
  expectEnd(workerIds: readonly number[]): void;
  /** The workers of this source that are still kept, by origin. */
  find(filters: readonly OriginFilter[]): Promise<readonly WorkerNews[]>;
  /** Further facts of a worker, by the names of its backend (`HoldReason` of HTCondor); undefined where none are known. */
  detail(workerId: number): Promise<unknown>;
  /** The living workers of this source, by what is recorded now: news that it has not heard yet are in it. Oldest first. */
  living(): Promise<readonly WorkerNews[]>;
  /** Those among these workers of the factory that live, whichever source asked for them. */
  alive(workerIds: readonly number[]): Promise<ReadonlySet<number>>;
  /** Counts the workers of this source in one look. */
  census(): Promise<Census>;
  /** How many workers of this source a site got after a census, by resource type: also those that have ended since. */
  madeSince(computingSite: string, since: Pick<Census, 'at' | 'upTo'>): Promise<ReadonlyMap<string, number>>;
  /** How many workers of a queue are queued, intents among them; whichever source asked for them. */
  queued(queue: string): Promise<number>;
  /**
   * The log of a worker of this source, in pieces as they come.
   * @throws ThresherError `no-such-worker`, `no-log`, also while the pieces come
   */
  logs(workerId: number, request: LogRequest, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /**
   * The end of a file of a running worker, byte for byte, through its backend: for workers that share no file system with the daemon.
   * @returns undefined while the worker does not run, or has no such file yet
   * @throws ThresherError `no-such-worker`, `no-log` if the backend never gives it out, and why the backend gave no answer
   */
  peek(workerId: number, request: PeekRequest, signal: AbortSignal): Promise<Uint8Array | undefined>;
  /**
   * The output that an ended worker left (`output` of its payload), brought from its backend; undefined: it left none.
   * @throws ThresherError `no-such-worker`, and why it cannot be had now
   */
  output(workerId: number, signal: AbortSignal): Promise<LeftOutput | undefined>;
  /** The outputs of these are needed no more. Until then, but not for ever, a sweep leaves a worker with an output. */
  dropOutputs(workerIds: readonly number[]): Promise<void>;
  /** Why the queue gets no more workers; with an origin, why this request waits. Empty: nothing holds it back. */
  reasons(queue: string, origin?: OriginKey): readonly Reason[];
  /**
   * Why workers of this queue may live of which `find` and `discard` know nothing: its backend was not listed since the start, and a listing
   * adopts them, as after the loss of the database. Before that, what is not there has not ended. Undefined: what lives there is known.
   */
  unlisted(queue: string): Reason | undefined;
  /** Queues that run now. */
  queues(): readonly string[];
  /** Those among them whose own source this is. */
  ownQueues(): readonly OwnQueue[];
  /**
   * Workers made from now on have ids above this one, also after a crash: somebody else has given out ids up to it.
   * @throws ThresherError `request-refused` for one above 90,000,000,000, which would leave too few
   */
  keepIdsAbove(workerId: number): Promise<void>;
}

/**
 * Says which workers are wanted. One source of a kind serves all queues of a daemon: it is made once, and goes when neither
 * the settings nor a queue name it any more.
 *
 * A source that throws or hangs costs its own requests alone: the pass goes on with what the other sources of the queue want.
 */
export interface Source<QueueOptions = unknown> {
  /**
   * For the guard against black holes: a worker that fails sooner than this, ms, was swallowed, and one that runs has proven nothing
   * before. Default: `submitter.blackHoleLifetime`, which is the least in any case.
   */
  readonly provenAfter?: number;
  /**
   * The workers that are wanted now on this queue, before any limit. Asked in each pass of the queue, so it answers from
   * memory. It may go on to ask for what it has got: an origin gets one worker, and the source hears of it by news.
   * At most 10,000 requests count in one pass; further ones wait for the next. A source that may have thousands of requests with
   * equal needs gives them as `series`.
   */
  wanted(queue: SourceQueue<QueueOptions>, signal: AbortSignal): Promise<Wanted>;
  /**
   * Brings the payloads that follow (`payloadFollows`) for workers that are about to be made: thousands of requests may wait for weeks,
   * and their payloads need not be in memory meanwhile. A request that the answer leaves out gets no worker in this pass; one whose
   * payload cannot be brought must not be asked for until it can, or it takes the turn of others.
   * @param requests as `wanted` gave them, in the order of service: it may answer for the first of them and leave the others for a later pass
   */
  payloads?(requests: readonly Request[], signal: AbortSignal): Promise<ReadonlyMap<Request, Payload>>;
  /**
   * Takes changes of its workers: each at least once, in order, also after a crash. Those of one call count as taken when the
   * promise is fulfilled; after a rejection or a time-out the same come again, half as many at a time. A source keeps what it
   * must know for longer than workers are kept where its own truth is.
   */
  told?(news: readonly WorkerNews[], signal: AbortSignal): Promise<void>;
  /**
   * Its own life: a watch, a heartbeat, a listener. Runs until `signal` aborts. When it throws, it is started again after a
   * pause, and the service of the source is shown as failing.
   */
  run?(desk: Desk, signal: AbortSignal): Promise<void>;
  /**
   * Answers requests to `/sources/KIND/` of the daemon's HTTP server. The server asks for none of its own tokens there, so anyone who
   * reaches it may ask: the source checks for itself who does. Many requests may be under way at once; one is given up after 10 s.
   */
  answer?(request: SourceHttpRequest, signal: AbortSignal): Promise<SourceHttpAnswer>;
  /** Numbers for the metrics of the daemon, from memory. */
  gauges?(): readonly SourceGauge[];
}

/** Requests that operators left. A source takes them up; the store keeps them. */
export interface OperatorRequests {
  /** Those that may still get workers, oldest first. Nothing is read from the database unless something was left since. */
  open(queue: string): Promise<readonly OperatorRequest[]>;
  /** All workers of these requests have rows, so that nothing is to be asked for any more. */
  served(ids: readonly string[]): Promise<void>;
  /** Waits for requests that their operators took back; none once `signal` aborts. The same come again until they are `ended`. */
  withdrawn(signal: AbortSignal): Promise<readonly WithdrawnRequest[]>;
  /** The origins of these are ended (`Desk.end`). */
  ended(ids: readonly string[]): Promise<void>;
}

/** Addresses at which people read the texts of a worker, by the names that the PanDA server has for them. */
export interface LogUrls {
  readonly stdOut: string;
  readonly stdErr: string;
  /** The words of the backend on the job. */
  readonly batchLog: string;
  /** The job as its backend got it. */
  readonly jdl: string;
}

/** Lines of the daemon's log that say the same of one thing, without secrets. */
export interface LoggedTrouble {
  readonly level: 'warn' | 'error';
  readonly message: string;
  /** The queue, connection or other part of the factory; empty where the lines name none. */
  readonly about: string;
  /** The facts of the last line, cut. */
  readonly facts: string;
  /** How many lines. */
  readonly count: number;
  /** The time of the last line, ms UTC. */
  readonly at: number;
}

/** A credential that the daemon keeps or watches. */
export interface HeldCredential {
  readonly name: string;
  /** ms UTC; undefined where it has no end. */
  readonly expiresAt: number | undefined;
}

/** Services for sources of thresher alone. */
export interface OwnServices {
  /** Absent where no browser elsewhere can read logs. */
  readonly logUrls?: ((workerId: number) => LogUrls) | undefined;
  /** The oldest warnings and errors of the log, which count as told then. */
  readonly takeWarnings?: (most: number) => readonly LoggedTrouble[];
  readonly credentials?: () => readonly HeldCredential[];
}

/**
 * Texts that a source or a connection must still know after a crash, by name. They are files `KIND/NAME` of the state directory, or rows
 * where the daemon has a PostgreSQL database: there they come along when another daemon takes over. A source may write them in `run`
 * and `told`, which come on one machine at a time.
 */
export interface SourceMemory {
  /** Where it is, for messages. */
  placeOf(name: string): string;
  /** undefined: there is none of this name. @throws Error where it cannot be read */
  read(name: string): Promise<string | undefined>;
  /** Replaces it as a whole. When this returns it survives a crash. @throws Error */
  write(name: string, text: string): Promise<void>;
}

/** Services of the daemon for a source. */
export interface SourceHost extends Host, OwnServices {
  /** What it must still know after a crash. */
  readonly memory: SourceMemory;
  /** `kind` of the origins of its workers. */
  readonly kind: string;
  /** For sources of thresher alone: requests of operators may hold secret files. */
  readonly requests?: OperatorRequests;
  /** For sources of thresher alone. Absent where the settings name none. */
  readonly pandaServer?: PandaServer;
  /** Relative paths in its options count from here. Absolute. */
  readonly configDir: string;
}

/** A source as data. */
export interface SourceInput<Config extends TSchema, QueueConfig extends TSchema> {
  /** Its name in `demand` of a queue and in `sources` of the settings, and the `kind` of its origins. */
  readonly name: string;
  readonly module: string;
  /** Its task, in a sentence or two for operators: docs/configuration.md has those of thresher's sources. */
  readonly description?: string;
  /** Options in `sources.NAME` of the settings: one set for the daemon. */
  readonly config: Config;
  /** Options in the `demand` section of a queue. */
  readonly queueConfig?: QueueConfig;
  /** Whether it is asked about every queue, or about those alone that name it. Default: about those alone. */
  readonly everyQueue?: boolean;
  /** Whether it serves the queues for which neither a file nor their backend names a source. One built-in source does. */
  readonly usual?: boolean;
  /** Whether it serves such a queue before the usual source, where neither a file nor the queue's backend names a source. */
  takes?(queue: Pick<SourceQueue, 'mapType' | 'runMode'>, server: PandaServer | undefined): boolean;
  /** Whether its workers are jobs, which may be short: queues of jobs have no guard against black holes. Default: they are pilots. */
  readonly runsJobs?: boolean;
  /**
   * Whether its queues may be asked on different machines: it has no life of its own but for requests that any of them may end, and
   * needs to know nothing of one queue for another. Default: all its queues stay on one machine, where its life is.
   */
  readonly perQueue?: boolean;
  /** Whether it can ask for nothing without the PanDA server of the settings. Sources of thresher alone may say so. */
  readonly needsServer?: boolean;
  /** Parts of a payload that its requests may have: `check-config` refuses its queues on a backend that lacks one. */
  readonly payload?: readonly PayloadPart[];
  /** Why it asks for nothing on such a queue however long one waits; for `check-config` and `queues`. Empty where it does ask. */
  stands?(
    queue: Pick<SourceQueue<Static<QueueConfig>>, 'options' | 'mapType' | 'runMode'>,
  ): readonly Reason[];
  check?(
    config: Static<Config>,
    context: Pick<CheckContext, 'configDir' | 'files'>,
  ): readonly DefinitionProblem[] | Promise<readonly DefinitionProblem[]>;
  /** Mistakes in the options of one queue that its schema does not find; pointers count from its `demand`. */
  checkQueue?(
    config: Static<QueueConfig>,
    context: Pick<CheckContext, 'queue' | 'configDir' | 'files'>,
  ): readonly DefinitionProblem[] | Promise<readonly DefinitionProblem[]>;
  create(config: Static<Config>, host: SourceHost): Source<Static<QueueConfig>>;
}

/** A source whose types are forgotten, as the registry keeps it. */
export interface SourceDefinition extends SectionDefinition {
  readonly kind: 'source';
  readonly description: string;
  readonly queueConfig: TSchema;
  readonly everyQueue: boolean;
  readonly usual: boolean;
  readonly runsJobs: boolean;
  readonly perQueue: boolean;
  readonly needsServer: boolean;
  takes(queue: Pick<SourceQueue, 'mapType' | 'runMode'>, server: PandaServer | undefined): boolean;
  stands(queue: Pick<SourceQueue, 'options' | 'mapType' | 'runMode'>): readonly Reason[];
  checkQueue(config: unknown, context: CheckContext): Promise<readonly DefinitionProblem[]>;
  create(config: unknown, host: SourceHost): Source;
}

/** The module of the sources that thresher brings. */
export const builtInSources = 'thresher/sources';

/** Loads no library, as `Type.Object({})` would. */
export const noOptions: TSchema = { type: 'object', properties: {} };

/** A name becomes a part of marks: of labels, attributes and environments. */
const namePattern = /^[a-z][a-z0-9-]{0,49}$/;

/** Makes a source usable by the daemon. Options reach it only after they passed its own schemas. */
export function defineSource<Config extends TSchema, QueueConfig extends TSchema = TSchema>(
  input: SourceInput<Config, QueueConfig>,
): SourceDefinition {
  const { name, module, description = '', config, queueConfig, payload = [] } = input;
  const { everyQueue = false, usual = false, runsJobs = false } = input;
  const { perQueue = false, needsServer = false } = input;
  if (!namePattern.test(name))
    throw new TypeError(
      `the source ${JSON.stringify(name)} needs a name that matches ${String(namePattern)}`,
    );
  return {
    kind: 'source',
    name,
    module,
    description,
    aliases: [],
    defaultDemand: undefined,
    payload,
    config,
    queueConfig: queueConfig ?? noOptions,
    everyQueue,
    usual,
    runsJobs,
    perQueue,
    needsServer,
    takes: (queue, server) => input.takes?.(queue, server) ?? false,
    connections: () => [],
    check: (options, context) => problemsOf(name, () => input.check?.(options as Static<Config>, context)),
    withFiles: async (options) => options,
    checkQueue: (options, context) =>
      problemsOf(name, () => input.checkQueue?.(options as Static<QueueConfig>, context)),
    stands: (queue) => {
      try {
        return input.stands?.({ ...queue, options: queue.options as Static<QueueConfig> }) ?? [];
      } catch (error) {
        const message = `the source ${name} cannot say whether it asks for workers: ${messageOf(error)}`;
        return [{ code: 'plugin-failed', message }];
      }
    },
    create: (options, host) => {
      const source = input.create(options as Static<Config>, host);
      if (!isSource(source))
        throw new TypeError('its create() must return an object with a function wanted()');
      return source;
    },
  };
}

/** A module in plain JavaScript may return anything. */
function isSource(made: unknown): made is Source {
  return typeof (made as Partial<Source> | null | undefined)?.wanted === 'function';
}
