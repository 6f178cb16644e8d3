import { dirname } from 'node:path';
import type { QueueRuntime } from '../agents/queue-runtime.ts';
import { harvesterIdOf } from '../config/settings/machine.ts';
import { modulesOf, type PluginCatalogue, parseSnapshot, type QueueConfig } from '../config/queues/queues.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { Log, LogReader, Monitor, OutputReader } from '../plugins/contracts/index.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { ThresherError } from '../worker/errors.ts';
import { loadPlugins } from './plugins.ts';
import { PluginFactory } from './plugin-factory.ts';
import { memoriesToRead } from './source-memory.ts';

export interface ReaderOptions {
  readonly factoryId: string;
  readonly settings: LoadedSettings;
  readonly clock: Clock;
  readonly files: OperatorFiles;
  readonly random: () => number;
  readonly log: Log;
}

type Snapshots = Pick<Store, 'queues'>;

/** For the command line: how the log of this worker is read, by the configuration it was submitted with. @throws ThresherError `no-log` */
export async function logReaderOf(
  worker: WorkerRecord,
  store: Store,
  options: ReaderOptions,
): Promise<LogReader> {
  const { settings, clock, files, random, log, factoryId } = options;
  const config = await configOf(worker, store);
  const catalogue = await loadPlugins(modulesOf(config), dirname(settings.queueFile), files);
  const plugins = new PluginFactory(catalogue, {
    clock,
    files,
    random,
    log,
    factoryId,
    harvesterId: harvesterIdOf(settings.values.master),
    stateDir: settings.stateDir,
    maxStatusAge: 0,
    memoryOf: memoriesToRead(settings.stateDir, store, settings.postgresql !== undefined),
  });
  return logsOf(plugins.monitorAt(config, worker.placement), worker);
}

export interface LogReadersParts {
  readonly store: Snapshots;
  readonly plugins: Pick<PluginFactory, 'monitorAt'>;
  /** The configurations that the daemon runs or follows. */
  running(): readonly QueueRuntime[];
  /** The plugins of a configuration that does not run any more. */
  cataloguePastOf(config: QueueConfig): Promise<PluginCatalogue>;
}

/** A configuration that does not run any more, with its plugins. */
interface PastConfig {
  readonly config: QueueConfig;
  readonly catalogue: PluginCatalogue;
}

/** So many of them are kept. */
const mostPast = 32;

/**
 * How a daemon reads logs: with the monitors that it has. A monitor made for each request would have file threads of its own,
 * and a dashboard that polls the log of a worker on a dead disk would take all of Node's.
 */
export class LogReaders {
  readonly #parts: LogReadersParts;
  /** By configuration, the last used last. Never a monitor: it goes with its connection, which the plugins makes anew. */
  readonly #past = new Map<number, PastConfig>();

  constructor(parts: LogReadersParts) {
    this.#parts = parts;
  }

  /** @throws ThresherError `no-log`, `unknown-plugin` */
  async of(worker: WorkerRecord): Promise<LogReader> {
    return logsOf(await this.#monitorOf(worker), worker);
  }

  /** @returns undefined where workers of this backend leave no output. @throws ThresherError `no-log`, `unknown-plugin` */
  async outputsOf(worker: WorkerRecord): Promise<OutputReader | undefined> {
    return (await this.#monitorOf(worker))?.outputs;
  }

  async #monitorOf(worker: WorkerRecord): Promise<Monitor | undefined> {
    const { configId, placement } = worker;
    const own = this.#parts.running().filter((runtime) => runtime.configId === configId);
    const connected = own.map((runtime) => runtime.connected.get(placement)).find((one) => one !== undefined);
    return connected?.monitor ?? this.#pastMonitor(worker);
  }

  async #pastMonitor(worker: WorkerRecord): Promise<Monitor | undefined> {
    const { config, catalogue } = await this.#pastConfig(worker);
    return this.#parts.plugins.monitorAt(config, worker.placement, catalogue);
  }

  async #pastConfig(worker: WorkerRecord): Promise<PastConfig> {
    const { configId } = worker;
    const past = this.#past.get(configId) ?? (await this.#readPast(worker));
    this.#past.delete(configId);
    this.#past.set(configId, past);
    for (const oldest of [...this.#past.keys()].slice(0, -mostPast)) this.#past.delete(oldest);
    return past;
  }

  async #readPast(worker: WorkerRecord): Promise<PastConfig> {
    const config = await configOf(worker, this.#parts.store);
    return { config, catalogue: await this.#parts.cataloguePastOf(config) };
  }
}

async function configOf({ configId, workerId }: WorkerRecord, store: Snapshots): Promise<QueueConfig> {
  const row = await store.queues.snapshot(configId);
  if (row === undefined) throw new ThresherError('no-log', `the configuration of worker ${workerId} is gone`);
  return parseSnapshot(row.snapshot);
}

function logsOf(monitor: Monitor | undefined, { workerId }: WorkerRecord): LogReader {
  if (monitor?.logs !== undefined) return monitor.logs;
  throw new ThresherError('no-log', `the backend of worker ${workerId} keeps no logs`);
}
