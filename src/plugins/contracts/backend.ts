import type { Static, TSchema } from 'typebox';
import type { PayloadPart } from '../../worker/payload.ts';
import { problemsOf } from './checks.ts';
import type { Context, Host } from './context.ts';
import type {
  BackendKind,
  CheckContext,
  PluginDefinition,
  PluginKind,
  SectionDefinition,
} from './definition.ts';
import type { DefinitionProblem } from './definition-problem.ts';
import type { Monitor } from './monitor.ts';
import type { SourceDefinition, SourceMemory } from './source.ts';
import type { Submitter } from './submitter.ts';
import type { Sweeper } from './sweeper.ts';

/** One configuration of a queue that leads to a connection, with the options of its sections that name the backend. */
export interface ConnectedQueue<Submit = unknown, Watch = unknown, Sweep = unknown> {
  readonly queue: string;
  /** As its workers carry it (`Worker.configId`). */
  readonly configId: number;
  /** False for an earlier configuration whose workers are followed to their end. */
  readonly current: boolean;
  /** Relative paths in its options count from here. Absolute. */
  readonly configDir: string;
  readonly submitter?: Submit;
  readonly monitor?: Watch;
  readonly sweeper?: Sweep;
}

/** A connection to be made, as a queue that leads there describes it. */
export interface ConnectionPlace<Config = unknown> {
  /** One of the names that `connections` gave. */
  readonly name: string;
  /** Options of the queue's submitter; of its monitor or sweeper where another backend submits. */
  readonly config: Config;
  readonly configDir: string;
}

/** Everything that a connection gets from the daemon. The queues are always those of now: keep no copy of their options. */
export interface ConnectionHost<Submit = unknown, Watch = unknown, Sweep = unknown> extends Host {
  readonly connection: string;
  /** The queues that lead here, in the order of the queue file: each with its current configuration, or with its newest one. */
  readonly queues: readonly ConnectedQueue<Submit, Watch, Sweep>[];
  /** This configuration of a queue; else the one in `queues`; undefined for a queue that does not lead here. */
  queue(
    name: string | undefined,
    configId: number | undefined,
  ): ConnectedQueue<Submit, Watch, Sweep> | undefined;
  /** Aborts when the daemon ends: for what a plugin does beside calls. Calls have come to their end then, or are given up, too. */
  readonly ended: AbortSignal;
  /** Waits for so many ms, or until `signal` aborts. A change of the queues asks `howLong` again. */
  pause(howLong: () => number, signal: AbortSignal): Promise<void>;
  /**
   * The one thing of this key in this daemon: how connections share what they have in common, as the namespaces of one
   * cluster do. It goes with the last connection that asked for it.
   */
  share<T>(key: string, make: () => T): T;
  /** What it must still know after a crash, and on another machine that takes over. @param kind begins with the name of the backend */
  memoryOf(kind: string): SourceMemory;
}

/** The options of the monitor that the queues of a connection share: those of the first queue that has one here. */
export function sharedMonitorOptions<Watch>(
  { queues }: Pick<ConnectionHost<unknown, Watch>, 'queues'>,
  defaults: () => Watch,
): Watch {
  return queues.find(({ monitor }) => monitor !== undefined)?.monitor ?? defaults();
}

/**
 * One connection of a backend: made when the first queue leads there, and shared by all queues that do. It goes after
 * the last one has left and its workers are gone: at a reload, or at a pass of the prune loop
 * (`sweeper.pruneInterval`).
 */
export interface BackendConnection<Submit = unknown, Self = unknown> {
  readonly monitor?: Monitor;
  readonly sweeper?: Sweeper;
  /**
   * The submitter of one configuration of a queue, asked for on the first of the queue's connections.
   * @param at the connection of this name: for queues that submit to several
   */
  submitter?(config: Submit, context: Context, at: (name: string) => Self): Submitter;
  /** Called after each change of `host.queues`; a last time when no queue is left. */
  queuesChanged?(): void;
}

/** One section of a queue: its options, and how they are checked. */
export interface BackendSection<Config extends TSchema> {
  /** Other [module, name] pairs it answers to: Harvester's Python modules. */
  readonly aliases?: readonly (readonly [module: string, name: string])[];
  /** Options of the section with defaults, units and bounds. Keys it does not have are kept and reported. */
  readonly config: Config;
  /**
   * Names of the connections: which cluster, schedd, directory. The submitter's are the placements its workers can have.
   * `backend:*` of a monitor or sweeper: wherever the submitter is.
   */
  connections(config: Static<Config>, context: CheckContext): readonly string[];
  /**
   * What its connections have in common with others, as the rate of one cluster: daemons that share a factory leave queues with one
   * of these in common together. Default: nothing beside the connections themselves.
   */
  common?(config: Static<Config>, context: CheckContext): readonly string[];
  /**
   * The options with what other files say of where workers go, as it is now. That is kept with the configuration: so a file
   * that changes makes another configuration, and the workers of this one are followed where they are. Called after a `check`
   * without errors.
   */
  withFiles?(config: Static<Config>, context: CheckContext): Static<Config> | Promise<Static<Config>>;
  /** Mistakes a schema cannot see (a missing or wrong template file), found before anything starts. */
  check?(
    config: Static<Config>,
    context: CheckContext,
  ): readonly DefinitionProblem[] | Promise<readonly DefinitionProblem[]>;
}

/** The facts about a backend's submitter that others decide by. */
export interface SubmitterFacts<Config extends TSchema = TSchema> {
  /** Credential files beside the proxy that its workers may need, absolute. One that no manager keeps is watched. Default: none. */
  credentialFiles?(config: Static<Config>, configDir: string): readonly string[];
  /** The source of queues with this submitter where neither they nor the daemon's settings say one. */
  readonly defaultDemand?: string;
  /** The parts of a payload that its workers can get. Default: none. */
  readonly payload?: readonly PayloadPart[];
  /** Whether its workers belong to the machine of their daemon: a daemon elsewhere can neither see nor end them. Default: no. */
  readonly onThisMachine?: boolean;
}

/**
 * A backend as data. Queue files name its sections by its name and their kind: `My` has `MySubmitter`, `MyMonitor` and
 * `MySweeper`. One that brings only some of the three leaves the others out; a queue takes those from another backend.
 */
export interface Backend<
  Submit extends TSchema,
  Watch extends TSchema,
  Sweep extends TSchema,
  Connection extends BackendConnection<Static<Submit>, Connection>,
> {
  readonly name: string;
  readonly module: string;
  readonly submitter?: BackendSection<Submit> & SubmitterFacts<Submit>;
  readonly monitor?: BackendSection<Watch>;
  readonly sweeper?: BackendSection<Sweep>;
  /** Makes a connection. Reads and asks nothing yet: that waits for the first call. */
  connect(
    place: ConnectionPlace<Static<Submit> | Static<Watch> | Static<Sweep>>,
    host: ConnectionHost<Static<Submit>, Static<Watch>, Static<Sweep>>,
  ): Connection;
}

/** A backend whose types are forgotten, as the daemon uses it. */
export interface AnyBackend {
  readonly name: string;
  connect(place: ConnectionPlace, host: ConnectionHost): BackendConnection;
}

/** A section of a backend as the registry keeps it. */
export interface BackendDefinition extends SectionDefinition {
  readonly kind: BackendKind;
  readonly backend: AnyBackend;
  readonly onThisMachine: boolean;
  common(config: unknown, context: CheckContext): readonly string[];
  credentialFiles(config: unknown, configDir: string): readonly string[];
}

/** A definition whose types are forgotten, as the registry keeps them. */
export type AnyDefinition = PluginDefinition | BackendDefinition | SourceDefinition;

/** The definitions of a kind. */
export type DefinitionOf<Kind extends PluginKind> = Kind extends BackendKind
  ? BackendDefinition
  : Kind extends 'source'
    ? SourceDefinition
    : PluginDefinition;

const titles = { submitter: 'Submitter', monitor: 'Monitor', sweeper: 'Sweeper' } as const;

/** Makes a backend usable by the daemon: one definition for each of its sections. */
export function defineBackend<
  Submit extends TSchema,
  Watch extends TSchema,
  Sweep extends TSchema,
  Connection extends BackendConnection<Static<Submit>, Connection>,
>(backend: Backend<Submit, Watch, Sweep, Connection>): readonly BackendDefinition[] {
  const { name, module, submitter, monitor, sweeper } = backend;
  const face = backend as unknown as AnyBackend;
  const definition = <Config extends TSchema>(
    kind: BackendKind,
    section: (BackendSection<Config> & SubmitterFacts<Config>) | undefined,
  ): BackendDefinition[] => {
    if (section === undefined) return [];
    return [
      {
        kind,
        name: `${name}${titles[kind]}`,
        module,
        backend: face,
        aliases: section.aliases ?? [],
        defaultDemand: section.defaultDemand,
        payload: section.payload ?? [],
        onThisMachine: section.onThisMachine ?? false,
        config: section.config,
        credentialFiles: (config, configDir) =>
          section.credentialFiles?.(config as Static<Config>, configDir) ?? [],
        common: (config, context) => section.common?.(config as Static<Config>, context) ?? [],
        connections: (config, context) => section.connections(config as Static<Config>, context),
        check: (config, context) =>
          problemsOf(`${name}${titles[kind]}`, () => section.check?.(config as Static<Config>, context)),
        withFiles: async (config, context) =>
          (await section.withFiles?.(config as Static<Config>, context)) ?? config,
      },
    ];
  };
  return [
    ...definition('submitter', submitter),
    ...definition('monitor', monitor),
    ...definition('sweeper', sweeper),
  ];
}
