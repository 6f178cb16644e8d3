import { brief } from '../../util/beginning.ts';
import { isAbsolute, resolve } from 'node:path';
import { builtInSources } from '../../plugins/contracts/source.ts';
import type { SourceDefinition } from '../../plugins/contracts/index.ts';
import { whatIsMeant } from '../../util/nearest.ts';
import type { Problem } from '../../util/located.ts';
import type { PluginCatalogue } from './queue-config.ts';

/** A source as a file names it. */
export interface NamedSource {
  readonly name: string;
  /** Absolute where it is a path. Undefined: a source of thresher, or one that the settings bring. */
  readonly module: string | undefined;
}

/** The modules that `sources` of the settings brings, by the name of the source. */
export type SourceModules = ReadonlyMap<string, string>;

export type FoundSource =
  | { readonly definition: SourceDefinition }
  | { readonly definition?: undefined; readonly code: Problem['code']; readonly message: string };

/** Sources are one per name in a daemon, so a path is the same module from whichever file it is named. */
export function moduleFrom(module: string, configDir: string): string {
  return module.startsWith('.') || isAbsolute(module) ? resolve(configDir, module) : module;
}

/** The source of this name and module. `what` begins the message: the option that names it. */
export function findSource(
  { name, module }: NamedSource,
  what: string,
  catalogue: PluginCatalogue,
  modules: SourceModules = new Map(),
): FoundSource {
  const ours = catalogue.find('source', builtInSources, name);
  const wanted = module ?? (ours === undefined ? modules.get(name) : builtInSources);
  if (wanted === undefined) {
    const own = catalogue.choices('source').filter((choice) => choice.module === builtInSources);
    const known = [...new Set([...own.map((choice) => choice.name), ...modules.keys()])];
    const message = `${what} is "${brief(name)}", which is no source; ${whatIsMeant(name, known)}`;
    return { code: 'unknown-source', message };
  }
  if (ours !== undefined && wanted !== builtInSources) {
    const message = `${what} takes "${name}" from ${brief(wanted)}, and thresher has a source of that name: give yours another name`;
    return { code: 'source-name-taken', message };
  }
  const other = modules.get(name);
  if (other !== undefined && other !== wanted) {
    const message = `${what} takes "${name}" from ${brief(wanted)}, and sources.${name} of the settings from ${other}: a daemon has one source of a name`;
    return { code: 'source-name-taken', message };
  }
  const definition = catalogue.find('source', wanted, name);
  if (definition !== undefined) return { definition };
  const failure = catalogue.failure(wanted);
  if (failure !== undefined) {
    const message = `${what}: the module ${brief(wanted)} could not be used: ${failure.message}`;
    return { code: failure.code, message };
  }
  const there = catalogue.choices('source').filter((choice) => choice.module === wanted);
  const message = `${what} is "${brief(name)}", which ${brief(wanted)} does not define; ${whatIsMeant(
    name,
    there.map((choice) => choice.name),
  )}`;
  return { code: 'unknown-source', message };
}
