import { isAbsolute, resolve } from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { PluginCatalogue } from '../config/queues/queues.ts';
import { builtInPlugins, isThirdParty, loadThirdParty, Registry } from '../plugins/registry.ts';

/** All plugins that a queue file may name, third-party modules among them imported. */
export async function loadPlugins(modules: Iterable<string>, configDir: string): Promise<PluginCatalogue> {
  const thirdParty = await loadThirdParty(new Set([...modules].filter(isThirdParty)), (module) =>
    toUrl(module, configDir),
  );
  const registry = new Registry([...builtInPlugins, ...thirdParty.definitions]);
  return {
    find: (kind, module, name) => registry.find(kind, module, name),
    names: (kind) => registry.names(kind),
    choices: (kind) => registry.choices(kind),
    failure: (module) => thirdParty.failures.get(module),
  };
}

/** A path counts from the queue file; a package is looked for as if the queue file required it. */
function toUrl(module: string, configDir: string): string {
  if (module.startsWith('.') || isAbsolute(module)) return pathToFileURL(resolve(configDir, module)).href;
  return pathToFileURL(createRequire(resolve(configDir, 'package.json')).resolve(module)).href;
}
