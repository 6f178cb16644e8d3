import { distrust } from '../util/schema.ts';
import { messageOf } from '../worker/errors.ts';
import type {
  AnyDefinition,
  BackendKind,
  DefinitionOf,
  PluginFailure,
  PluginKind,
  SourceDefinition,
} from './contracts/index.ts';
import { CondorTokenCredManager } from './credentials/condor-idtoken/index.ts';
import { FileCredManager } from './credentials/file/index.ts';
import { IamTokenCredManager } from './credentials/iam-token/index.ts';
import { K8sSecretCredManager } from './credentials/k8s-secret/index.ts';
import { KerberosCredManager } from './credentials/kerberos/index.ts';
import { ArcproxyCredManager, NoVomsCredManager } from './credentials/grid-proxy/index.ts';
import { TokenKeyCredManager } from './credentials/token-key/index.ts';
import { htcondorBackend } from './htcondor/index.ts';
import { inertPlugins } from './inert/index.ts';
import { kubernetesBackend } from './kubernetes/index.ts';
import { localBackend } from './local/index.ts';
import { SharedFileMessenger } from './messengers/shared-file/index.ts';
import { FillSource } from '../sources/fill/index.ts';
import { HtcJobSource } from '../sources/htcjob/index.ts';
import { HTCondorIdleSource } from '../sources/htcondor-idle/index.ts';
import { InterlinkSource } from '../sources/interlink/index.ts';
import { NoneSource } from '../sources/none/index.ts';
import { PandaSource } from '../sources/panda/index.ts';
import { RequestSource } from '../sources/request/index.ts';
import { SimpleThrottler, TinyThrottler } from './throttlers/rules/index.ts';

/** Every plugin and source there is. Nothing is found by scanning: what is not in this list does not exist. */
export const builtInPlugins: readonly AnyDefinition[] = [
  ...localBackend,
  ...kubernetesBackend,
  ...htcondorBackend,
  ...inertPlugins,
  SharedFileMessenger,
  ArcproxyCredManager,
  CondorTokenCredManager,
  FileCredManager,
  IamTokenCredManager,
  K8sSecretCredManager,
  KerberosCredManager,
  NoVomsCredManager,
  TokenKeyCredManager,
  FillSource,
  HtcJobSource,
  HTCondorIdleSource,
  InterlinkSource,
  NoneSource,
  PandaSource,
  RequestSource,
  SimpleThrottler,
  TinyThrottler,
];

/** Finds definitions by what a queue's section says. */
export class Registry {
  readonly #definitions: readonly AnyDefinition[];

  constructor(definitions: readonly AnyDefinition[]) {
    this.#definitions = definitions;
  }

  find<Kind extends PluginKind>(kind: Kind, module: string, name: string): DefinitionOf<Kind> | undefined {
    return this.#definitions.find(
      (definition): definition is DefinitionOf<Kind> =>
        definition.kind === kind &&
        [[definition.module, definition.name] as const, ...definition.aliases].some(
          ([itsModule, itsName]) => itsModule === module && itsName === name,
        ),
    );
  }

  /** The names of all plugins of a kind, for error messages. */
  names(kind: PluginKind): string[] {
    return this.#definitions
      .filter((definition) => definition.kind === kind)
      .map(({ name, module }) => `${name} of ${module}`);
  }

  /** All sources, in the order of their registration. */
  get sources(): readonly SourceDefinition[] {
    return this.#definitions.filter((definition) => definition.kind === 'source');
  }

  /** Every pair that a section of this kind may name, aliases among them. */
  choices(kind: PluginKind): { readonly module: string; readonly name: string }[] {
    return this.#definitions
      .filter((definition) => definition.kind === kind)
      .flatMap(({ module, name, aliases }) => [[module, name] as const, ...aliases])
      .map(([module, name]) => ({ module, name }));
  }
}

export interface ThirdParty {
  readonly definitions: readonly AnyDefinition[];
  /** By module: why it could not be had, or not all of it. */
  readonly failures: ReadonlyMap<string, PluginFailure>;
}

/** Whether a section's `module` is a path or package of a third party, and not one of Harvester's or ours. */
export function isThirdParty(module: string): boolean {
  return !module.startsWith('pandaharvester.') && !module.startsWith('thresher/');
}

const nothingFound = 'it exports nothing that definePlugin(), defineBackend() or defineSource() returned';
const outdated =
  'it exports a submitter, monitor or sweeper of definePlugin(): a backend is made by defineBackend() now, which connects once and gives all three (docs/plugins.md)';

/**
 * Imports third-party plugins. Each module exports, under any names, what `definePlugin`, `defineBackend` and `defineSource` returned, or lists
 * of it; it is known here by the `module` the queue file names it with. All are imported side by side: one that hangs must not
 * add its deadline to that of others.
 */
export async function loadThirdParty(
  modules: ReadonlySet<string>,
  importModule: (module: string) => Promise<object>,
): Promise<ThirdParty> {
  const definitions: AnyDefinition[] = [];
  const failures = new Map<string, PluginFailure>();
  const names = [...modules];
  const imports = await Promise.allSettled(names.map(importModule));
  for (const [at, module] of names.entries()) {
    const imported = imports[at];
    if (imported?.status === 'fulfilled') {
      const exported: unknown[] = Object.values(imported.value).flat();
      const found = exported.filter(isDefinition);
      if (exported.some(isOutdated)) failures.set(module, { code: 'plugin-outdated', message: outdated });
      else if (found.length === 0) failures.set(module, { code: 'plugin-not-loaded', message: nothingFound });
      for (const definition of found) {
        distrust(definition.config);
        if (definition.kind === 'source') distrust(definition.queueConfig);
      }
      definitions.push(...found.map((definition) => ({ ...definition, module })));
    } else {
      // Below its first line Node lists who required it, which is thresher itself.
      const message = messageOf(imported?.reason).split('\n')[0] ?? '';
      failures.set(module, { code: 'plugin-not-loaded', message });
    }
  }
  return { definitions, failures };
}

const ofBackends: ReadonlySet<unknown> = new Set<BackendKind>(['submitter', 'monitor', 'sweeper']);

interface Exported {
  readonly kind: unknown;
  readonly create?: unknown;
  readonly backend?: { readonly connect?: unknown };
}

function isNamed(value: unknown): value is Exported {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, name } = value as Partial<Record<'kind' | 'name', unknown>>;
  return typeof kind === 'string' && typeof name === 'string';
}

function isDefinition(value: unknown): value is AnyDefinition {
  if (!isNamed(value)) return false;
  if (ofBackends.has(value.kind)) return typeof value.backend?.connect === 'function';
  return typeof value.create === 'function';
}

/** Earlier versions defined each section of a backend as a plugin of its own. */
function isOutdated(value: unknown): boolean {
  return isNamed(value) && ofBackends.has(value.kind) && typeof value.create === 'function';
}
