import { isAbsolute, resolve } from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { PluginCatalogue } from '../config/queues/queues.ts';
import { builtInPlugins, isThirdParty, loadThirdParty, Registry } from '../plugins/registry.ts';
import { withDeadline } from '../util/deadline.ts';
import { hasCode } from '../util/files.ts';
import { type OperatorFiles, whyUnreadable } from '../util/operator-files.ts';
import { ThresherError } from '../worker/errors.ts';

/** How long a module's top level may take, ms: it only has to define plugins. */
const importTimeout = 10_000;

/**
 * All plugins that a queue file may name, third-party modules among them imported.
 * @param elsewhere directories from which packages of the settings are looked for, by the package
 */
export async function loadPlugins(
  modules: Iterable<string>,
  configDir: string,
  files: OperatorFiles,
  elsewhere: ReadonlyMap<string, string> = new Map(),
): Promise<PluginCatalogue> {
  const thirdParty = await loadThirdParty(
    new Set([...modules, ...elsewhere.keys()].filter(isThirdParty)),
    (module) => importModule(module, elsewhere.get(module) ?? configDir, files),
  );
  const registry = new Registry([...builtInPlugins, ...thirdParty.definitions]);
  return {
    find: (kind, module, name) => registry.find(kind, module, name),
    names: (kind) => registry.names(kind),
    choices: (kind) => registry.choices(kind),
    sources: registry.sources,
    failure: (module) => thirdParty.failures.get(module),
  };
}

/** Node's own `import` reads whatever stands there: it never comes back from a pipe, and reads a device until memory ends. */
async function importModule(module: string, configDir: string, files: OperatorFiles): Promise<object> {
  const url = await toUrl(module, configDir, files);
  const file = fileURLToPath(url);
  try {
    await files.read(file, 'module');
  } catch (error) {
    // Node's own words name what looks for the module, too.
    if (!hasCode(error, 'ENOENT', 'ENOTDIR'))
      throw new Error(`${file}: ${whyUnreadable(error, 'module')}`, { cause: error });
  }
  const call = {
    clock: files.clock,
    what: `the import of ${file}`,
    timeoutMs: importTimeout,
    signal: new AbortController().signal,
  };
  try {
    return await withDeadline(call, () => import(url.href) as Promise<object>);
  } catch (error) {
    if (!(error instanceof ThresherError) || error.code !== 'plugin-timeout') throw error;
    const message = `its top level did not come to its end within ${importTimeout / 1000} s: leave what waits to connect() or create()`;
    throw new Error(message, { cause: error });
  }
}

/** A path counts from the queue file; a package is looked for as if the queue file required it. */
async function toUrl(module: string, configDir: string, files: OperatorFiles): Promise<URL> {
  if (module.startsWith('.') || isAbsolute(module)) return pathToFileURL(resolve(configDir, module));
  // Node looks for a package in the main thread, where a dead mount would stop all queues: this look fails instead.
  await files.stat(resolve(configDir, 'node_modules', module));
  return pathToFileURL(createRequire(resolve(configDir, 'package.json')).resolve(module));
}
