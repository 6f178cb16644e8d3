import { dirname } from 'node:path';
import type { PluginCatalogue } from '../config/queues/queue-config.ts';
import {
  modulesNamedIn,
  modulesOf,
  parseSnapshot,
  type QueueConfig,
  type QueueFileOptions,
  type QueueFileResult,
  readQueueFile,
} from '../config/queues/queues.ts';
import { type SourcesOfSettings, sourceModulesOf, sourcesOf } from '../config/queues/sources.ts';
import { cacheDirectory } from '../config/cric/cache-place.ts';
import { CacheReader } from '../config/cric/cache-reader.ts';
import type { QueueOrigins } from '../config/queues/origins.ts';
import { cacheItemsOf } from '../config/settings/cache-items.ts';
import { harvesterIdOf } from '../config/settings/machine.ts';
import { type LoadedSettings, readSettings } from '../config/settings/settings.ts';
import type { ConfigPlace } from '../store/config-places.ts';
import type { Store } from '../store/store.ts';
import type { Problem } from '../util/located.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { loadPlugins } from './plugins.ts';

/** A configuration that workers were submitted with. */
export interface ConfigInUse {
  readonly configId: number;
  readonly config: QueueConfig;
}

/** Everything that reading the queue file needs, as the daemon reads it. */
export interface Readable {
  readonly file: string;
  readonly catalogue: PluginCatalogue;
  readonly options: QueueFileOptions;
  /** The sources that the settings name. */
  readonly sources: SourcesOfSettings;
}

/** The settings with their mistakes, and how to read the queue file where they say which it is. */
export interface Configuration {
  /** Undefined where they cannot be used. */
  readonly settings: LoadedSettings | undefined;
  readonly problems: readonly Problem[];
  readonly queueFile: Readable | undefined;
}

/** All that a start or a reload has to know. */
export interface RunConfiguration {
  readonly queueFile: QueueFileResult;
  readonly catalogue: PluginCatalogue;
  /** The sources that the settings name. */
  readonly sources: SourcesOfSettings;
  readonly inUse: readonly ConfigInUse[];
  /** Where workers of which configurations are. */
  readonly places: readonly ConfigPlace[];
}

/** Reads the settings and imports the plugins; starts nothing, makes nothing, asks no daemon. */
export async function readConfiguration(
  config: string,
  stateDir: string | undefined,
  files: OperatorFiles,
): Promise<Configuration> {
  const result = readSettings(config, stateDir);
  const { problems } = result;
  if (!result.ok) return { problems, settings: undefined, queueFile: undefined };
  const { settings } = result;
  const ofCacher = cacheItemsOf(settings).problems;
  return { problems: [...problems, ...ofCacher], settings, queueFile: await readable(settings, [], files) };
}

/** Reads the queue file, with every plugin that it or a living worker's configuration names. */
export async function readForRun(
  settings: LoadedSettings,
  store: Store,
  files: OperatorFiles,
): Promise<RunConfiguration> {
  const places = await store.workers.configsInUse();
  const inUse = await configsOf(places, store);
  const more = inUse.flatMap(({ config }) => modulesOf(config));
  const { file, catalogue, options, sources } = await readable(settings, more, files);
  return { queueFile: await readQueueFile(file, catalogue, options), catalogue, sources, inUse, places };
}

/** Of all that was read, what is about these queues: other daemons have the rest. */
export function partOf(read: RunConfiguration, queues: ReadonlySet<string>): RunConfiguration {
  const { queueFile, inUse, places } = read;
  return {
    ...read,
    queueFile: {
      ...queueFile,
      queues: queueFile.queues.filter(({ name }) => queues.has(name)),
      verdicts: queueFile.verdicts.filter(({ name, state }) => state !== 'ready' || queues.has(name)),
    },
    inUse: inUse.filter(({ config }) => queues.has(config.name)),
    places: places.filter(({ queue }) => queues.has(queue)),
  };
}

async function readable(
  settings: LoadedSettings,
  more: readonly string[],
  files: OperatorFiles,
): Promise<Readable> {
  const file = settings.queueFile;
  const origins = originsOf(settings, files);
  const sourceModules = sourceModulesOf(settings);
  const catalogue = await loadPlugins(
    [...(await modulesNamedIn(file, files, origins)), ...more],
    dirname(file),
    files,
    new Map([...sourceModules.values()].map((module) => [module, dirname(settings.file)])),
  );
  const sources = await sourcesOf(settings, catalogue, files);
  const { master, submitter, qconf, pandacon } = settings.values;
  const options = {
    stateDir: settings.stateDir,
    files,
    defaultDemand: submitter.defaultDemand,
    placeOfDefaultDemand: () => settings.placeOf('/submitter/defaultDemand'),
    sourceModules,
    sources,
    queueList: qconf.queueList,
    ...(origins && { origins }),
    harvesterId: harvesterIdOf(master),
    pandaURLSSL: pandacon.pandaURLSSL,
    placeOfListed: (index: number) => settings.placeOf(`/qconf/queueList/${index}`),
  };
  return { file, catalogue, options, sources };
}

/** Where queues come from beside the queue file. */
function originsOf(settings: LoadedSettings, files: OperatorFiles): QueueOrigins | undefined {
  const cache = cacheReaderOf(settings, files);
  if (cache.paths.length === 0) return undefined;
  const { qconf, master } = settings.values;
  return {
    cache,
    harvesterId: harvesterIdOf(master),
    dynamic: qconf.queueList?.includes('DYNAMIC') === true,
    defaultTemplate: qconf.defaultTemplateQueueName,
    closesOthers: qconf.autoBlacklist,
  };
}

/** A reader of the files that the settings have fetched. */
export function cacheReaderOf(settings: LoadedSettings, files: OperatorFiles): CacheReader {
  const { items } = cacheItemsOf(settings);
  const { qconf, master } = settings.values;
  return new CacheReader({
    directory: cacheDirectory(settings.stateDir),
    // Without that setting, the file is fetched for other programs at most.
    items: items.filter(({ use }) => use !== 'queue-file' || qconf.configFromCacher),
    harvesterId: harvesterIdOf(master),
    files,
  });
}

/** The configurations of workers that are alive or not swept yet. */
async function configsOf(places: readonly ConfigPlace[], store: Store): Promise<ConfigInUse[]> {
  const result: ConfigInUse[] = [];
  for (const configId of new Set(places.map((place) => place.configId))) {
    const row = await store.queues.snapshot(configId);
    if (row !== undefined) result.push({ configId, config: parseSnapshot(row.snapshot) });
  }
  return result;
}
