import type { Static, TSchema } from 'typebox';
import type { Context } from './context.ts';
import type { CredentialManager, WriteTarget } from './credential-manager.ts';
import type { DefinitionProblem } from './definition-problem.ts';
import type { DemandSource } from './demand.ts';
import type { Messenger } from './messenger.ts';
import type { Monitor } from './monitor.ts';
import type { Sizes } from './sizes.ts';
import type { Submitter } from './submitter.ts';
import type { Sweeper } from './sweeper.ts';
import type { Throttler } from './throttler.ts';

/** What each kind of plugin makes. `inert`: accepted for Harvester's sake (preparator, stager ...), does nothing. */
export interface PluginOf {
  submitter: Submitter;
  monitor: Monitor;
  sweeper: Sweeper;
  messenger: Messenger;
  demand: DemandSource;
  throttler: Throttler;
  credmanager: CredentialManager;
  inert: null;
}
export type PluginKind = keyof PluginOf;

/** What `connections` and `check` may use: the daemon's directories, before anything is started. */
export type CheckContext = Pick<Context, 'queue' | 'stateDir' | 'configDir' | 'files'> & {
  /** How large its workers are. Undefined where no queue is meant, and where what is written of them is wrong. */
  readonly requirements?: Sizes;
  /** Whether its pilots fetch their own jobs. */
  readonly pull?: boolean;
  /** The submitter's option of that name; undefined where it has none. */
  readonly computingElements?: readonly string[];
};

/** What `targets` may use. */
export type TargetContext = Pick<CheckContext, 'configDir' | 'files'>;

/** A plugin as data. */
export interface Definition<Kind extends PluginKind, Config extends TSchema> {
  readonly kind: Kind;
  /** `name` and `module` as a queue's section gives them. */
  readonly name: string;
  readonly module: string;
  /** Other [module, name] pairs it answers to: Harvester's Python modules. */
  readonly aliases?: readonly (readonly [module: string, name: string])[];
  /** Demand of queues with this submitter where neither they nor the daemon's settings say one. Default: `none`. */
  readonly defaultDemand?: 'fill';
  /** Options of the section with defaults, units and bounds. Keys it does not have are kept and reported. */
  readonly config: Config;
  /**
   * Names of what it speaks to (which cluster, schedd, directory). Queues with the same name share one monitor. The
   * submitter's are the placements its workers can have. Empty for plugins that speak to nothing. `backend:*` of a
   * monitor or sweeper: wherever the submitter is; it is told by `Context.connection`.
   */
  connections(config: Static<Config>, context: CheckContext): readonly string[];
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
  /**
   * Of a credential manager: what it writes, made or renewed, as far as its options say. `check-config` lists it. Called after a
   * `check` without errors.
   */
  targets?(
    config: Static<Config>,
    context: TargetContext,
  ): readonly WriteTarget[] | Promise<readonly WriteTarget[]>;
  create(config: Static<Config>, context: Context): PluginOf[Kind];
}

/** A definition whose config type is forgotten, as the registry keeps them. */
export interface AnyDefinition {
  readonly kind: PluginKind;
  readonly name: string;
  readonly module: string;
  readonly aliases: readonly (readonly [module: string, name: string])[];
  readonly defaultDemand: 'fill' | undefined;
  readonly config: TSchema;
  connections(config: unknown, context: CheckContext): readonly string[];
  check(config: unknown, context: CheckContext): Promise<readonly DefinitionProblem[]>;
  withFiles(config: unknown, context: CheckContext): Promise<unknown>;
  targets(config: unknown, context: TargetContext): Promise<readonly WriteTarget[]>;
  create(config: unknown, context: Context): PluginOf[PluginKind];
}

/** Makes a definition usable by the daemon. Configs reach it only after they passed its own schema. */
export function definePlugin<Kind extends PluginKind, Config extends TSchema>(
  definition: Definition<Kind, Config>,
): AnyDefinition {
  return {
    kind: definition.kind,
    name: definition.name,
    module: definition.module,
    aliases: definition.aliases ?? [],
    defaultDemand: definition.defaultDemand,
    config: definition.config,
    connections: (config, context) => definition.connections(config as Static<Config>, context),
    check: async (config, context) => (await definition.check?.(config as Static<Config>, context)) ?? [],
    withFiles: async (config, context) =>
      (await definition.withFiles?.(config as Static<Config>, context)) ?? config,
    targets: async (config, context) => (await definition.targets?.(config as Static<Config>, context)) ?? [],
    create: (config, context) => definition.create(config as Static<Config>, context),
  };
}
