import { messageOf } from '../worker/errors.ts';
import type { AnyDefinition, PluginKind } from './contracts/index.ts';
import { CondorTokenCredManager } from './credentials/condor-idtoken/index.ts';
import { FileCredManager } from './credentials/file/index.ts';
import { IamTokenCredManager } from './credentials/iam-token/index.ts';
import { K8sSecretCredManager } from './credentials/k8s-secret/index.ts';
import { KerberosCredManager } from './credentials/kerberos/index.ts';
import { ArcproxyCredManager, NoVomsCredManager } from './credentials/grid-proxy/index.ts';
import { FillDemand } from './demand/fill/index.ts';
import { NoDemand } from './demand/none/index.ts';
import { htcondorPlugins } from './htcondor/index.ts';
import { inertPlugins } from './inert/index.ts';
import { kubernetesPlugins } from './kubernetes/index.ts';
import { localPlugins } from './local/index.ts';
import { SharedFileMessenger } from './messengers/shared-file/index.ts';
import { SimpleThrottler, TinyThrottler } from './throttlers/rules/index.ts';

/** Every plugin there is. Nothing is found by scanning: what is not in this list does not exist. */
export const builtInPlugins: readonly AnyDefinition[] = [
  ...localPlugins,
  ...kubernetesPlugins,
  ...htcondorPlugins,
  ...inertPlugins,
  SharedFileMessenger,
  ArcproxyCredManager,
  CondorTokenCredManager,
  FileCredManager,
  IamTokenCredManager,
  K8sSecretCredManager,
  KerberosCredManager,
  NoVomsCredManager,
  FillDemand,
  NoDemand,
  SimpleThrottler,
  TinyThrottler,
];

/** Finds definitions by what a queue's section says. */
export class Registry {
  readonly #definitions: readonly AnyDefinition[];

  constructor(definitions: readonly AnyDefinition[]) {
    this.#definitions = definitions;
  }

  find(kind: PluginKind, module: string, name: string): AnyDefinition | undefined {
    return this.#definitions.find(
      (definition) =>
        definition.kind === kind &&
        [[definition.module, definition.name] as const, ...definition.aliases].some(
          ([itsModule, itsName]) => itsModule === module && itsName === name,
        ),
    );
  }

  /** What may stand for `kind`, for error messages. */
  names(kind: PluginKind): string[] {
    return this.#definitions
      .filter((definition) => definition.kind === kind)
      .map(({ name, module }) => `${name} of ${module}`);
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
  /** By module: why it could not be had. */
  readonly failures: ReadonlyMap<string, string>;
}

/** Whether a section's `module` is a path or package of a third party, and not one of Harvester's or ours. */
export function isThirdParty(module: string): boolean {
  return !module.startsWith('pandaharvester.') && !module.startsWith('thresher/');
}

/**
 * Imports third-party plugins. Each module exports, under any names, what `definePlugin` returned, or lists of it; it
 * is known here by the `module` the queue file names it with. All are imported side by side: one that hangs must not add
 * its deadline to that of others.
 */
export async function loadThirdParty(
  modules: ReadonlySet<string>,
  importModule: (module: string) => Promise<object>,
): Promise<ThirdParty> {
  const definitions: AnyDefinition[] = [];
  const failures = new Map<string, string>();
  const names = [...modules];
  const imports = await Promise.allSettled(names.map(importModule));
  for (const [at, module] of names.entries()) {
    const imported = imports[at];
    if (imported?.status === 'fulfilled') {
      const exported: unknown[] = Object.values(imported.value);
      const found = exported.flat().filter(isDefinition);
      if (found.length === 0) failures.set(module, 'it exports nothing that definePlugin() returned');
      definitions.push(...found.map((definition) => ({ ...definition, module })));
    } else {
      // Below its first line Node lists who required it, which is thresher itself.
      failures.set(module, messageOf(imported?.reason).split('\n')[0] ?? '');
    }
  }
  return { definitions, failures };
}

function isDefinition(value: unknown): value is AnyDefinition {
  if (typeof value !== 'object' || value === null) return false;
  const candidate = value as Partial<AnyDefinition>;
  return (
    typeof candidate.kind === 'string' &&
    typeof candidate.name === 'string' &&
    typeof candidate.create === 'function'
  );
}
