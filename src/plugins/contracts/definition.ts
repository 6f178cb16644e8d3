import type { Static, TSchema } from 'typebox';
import type { PayloadPart } from '../../worker/payload.ts';
import { problemsOf } from './checks.ts';
import type { Context } from './context.ts';
import type { CredentialManager, WriteTarget } from './credential-manager.ts';
import type { DefinitionProblem } from './definition-problem.ts';
import type { Messenger } from './messenger.ts';
import type { Sizes } from './sizes.ts';
import type { Throttler } from './throttler.ts';

/** The sections by which a queue names backends: `defineBackend` of `backend.ts` brings them. */
export type BackendKind = 'submitter' | 'monitor' | 'sweeper';

/** Products of the other plugins. `inert`: accepted for Harvester's sake (preparator, stager ...), does nothing. */
export interface PluginOf {
  messenger: Messenger;
  throttler: Throttler;
  credmanager: CredentialManager;
  inert: null;
}
export type PluginKind = BackendKind | keyof PluginOf | 'source';

/** Why a third-party module is of no use, or not all of it. */
export interface PluginFailure {
  readonly code: 'plugin-not-loaded' | 'plugin-outdated';
  readonly message: string;
}

/** Facts that `connections` and `check` may use: the daemon's directories, before anything is started. */
export type CheckContext = Pick<Context, 'queue' | 'stateDir' | 'configDir' | 'files'> & {
  /** How large its workers are. Undefined where no queue is meant, and where what is written of them is wrong. */
  readonly requirements?: Sizes;
  /** Whether its pilots fetch their own jobs. */
  readonly pull?: boolean;
  /** The submitter's option of that name; undefined where it has none. */
  readonly computingElements?: readonly string[];
};

/** Facts that `targets` may use. */
export type TargetContext = Pick<CheckContext, 'configDir' | 'files'>;

/** A plugin other than a backend, as data. */
export interface Definition<Kind extends keyof PluginOf, Config extends TSchema> {
  readonly kind: Kind;
  /** `name` and `module` as a queue's section gives them. */
  readonly name: string;
  readonly module: string;
  /** Other [module, name] pairs it answers to: Harvester's Python modules. */
  readonly aliases?: readonly (readonly [module: string, name: string])[];
  /** Options of the section with defaults, units and bounds. Keys it does not have are kept and reported. */
  readonly config: Config;
  /** Whether it can do nothing without the PanDA server of the settings. Credential managers of thresher alone may say so. */
  readonly needsServer?: boolean;
  /** Mistakes a schema cannot see (a missing file), found before anything starts. */
  check?(
    config: Static<Config>,
    context: CheckContext,
  ): readonly DefinitionProblem[] | Promise<readonly DefinitionProblem[]>;
  /**
   * Targets that a credential manager writes, made or renewed, as far as its options say. `check-config` lists them.
   * Called after a `check` without errors.
   */
  targets?(
    config: Static<Config>,
    context: TargetContext,
  ): readonly WriteTarget[] | Promise<readonly WriteTarget[]>;
  create(config: Static<Config>, context: Context): PluginOf[Kind];
}

/** The part of a section's plugin that the registry and the readers of queue files use. */
export interface SectionDefinition {
  readonly kind: PluginKind;
  readonly name: string;
  readonly module: string;
  readonly aliases: readonly (readonly [module: string, name: string])[];
  readonly defaultDemand: string | undefined;
  /** The parts of a payload that a submitter's workers can get, or that a source's requests may have. */
  readonly payload: readonly PayloadPart[];
  readonly config: TSchema;
  /** Empty for plugins that speak to nothing. */
  connections(config: unknown, context: CheckContext): readonly string[];
  check(config: unknown, context: CheckContext): Promise<readonly DefinitionProblem[]>;
  withFiles(config: unknown, context: CheckContext): Promise<unknown>;
}

/** A plugin whose types are forgotten, as the daemon uses it. */
export interface PluginDefinition extends SectionDefinition {
  readonly kind: keyof PluginOf;
  readonly needsServer: boolean;
  targets(config: unknown, context: TargetContext): Promise<readonly WriteTarget[]>;
  create(config: unknown, context: Context): PluginOf[keyof PluginOf];
}

/** Makes a definition usable by the daemon. Configs reach it only after they passed its own schema. */
export function definePlugin<Kind extends keyof PluginOf, Config extends TSchema>(
  definition: Definition<Kind, Config>,
): PluginDefinition {
  return {
    kind: definition.kind,
    name: definition.name,
    module: definition.module,
    aliases: definition.aliases ?? [],
    defaultDemand: undefined,
    payload: [],
    config: definition.config,
    needsServer: definition.needsServer ?? false,
    connections: () => [],
    check: (config, context) =>
      problemsOf(definition.name, () => definition.check?.(config as Static<Config>, context)),
    withFiles: async (config) => config,
    targets: async (config, context) => (await definition.targets?.(config as Static<Config>, context)) ?? [],
    create: (config, context) => definition.create(config as Static<Config>, context),
  };
}
