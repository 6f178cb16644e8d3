import { dirname } from 'node:path';
import type { PluginCatalogue } from '../config/queue-config.ts';
import { modulesNamedIn, type QueueFileOptions } from '../config/queues.ts';
import { type LoadedSettings, readSettings } from '../config/settings.ts';
import type { Problem } from '../util/located.ts';
import { loadPlugins } from './plugins.ts';

/** What is needed to read the queue file as the daemon would. */
export interface Readable {
  readonly file: string;
  readonly catalogue: PluginCatalogue;
  readonly options: QueueFileOptions;
}

/** The settings with their mistakes, and how to read the queue file where they say which it is. */
export interface Configuration {
  readonly problems: readonly Problem[];
  readonly queueFile: Readable | undefined;
}

/** Reads the settings and imports the plugins; starts nothing, makes nothing, asks no daemon. */
export async function readConfiguration(config: string, stateDir?: string): Promise<Configuration> {
  const { settings, problems } = readSettingsAndProblems(config, stateDir);
  if (settings === undefined) return { problems, queueFile: undefined };
  const file = settings.queueFile;
  const catalogue = await loadPlugins(modulesNamedIn(file), dirname(file));
  const { submitter, qconf } = settings.values;
  const options = {
    stateDir: settings.stateDir,
    defaultDemand: submitter.defaultDemand,
    queueList: qconf.queueList,
  };
  return { problems, queueFile: { file, catalogue, options } };
}

/** Settings may be usable and still have warnings. */
function readSettingsAndProblems(
  config: string,
  stateDir: string | undefined,
): { settings?: LoadedSettings; problems: readonly Problem[] } {
  const result = readSettings(config, stateDir);
  const problems = 'problems' in result ? result.problems : [];
  return result.ok ? { settings: result.settings, problems } : { problems };
}
