import { dirname } from 'node:path';
import type { QueueRuntime } from '../agents/queue-runtime.ts';
import { harvesterIdOf } from '../config/settings/machine.ts';
import { modulesOf, type PluginCatalogue, parseSnapshot, type QueueConfig } from '../config/queues/queues.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { Log, LogReader, Monitor } from '../plugins/contracts/index.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { ThresherError } from '../worker/errors.ts';
import { loadPlugins } from './plugins.ts';
import { Wiring } from './wiring.ts';

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
  store: Snapshots,
  options: ReaderOptions,
): Promise<LogReader> {
  const { settings, clock, files, random, log, factoryId } = options;
  const config = await configOf(worker, store);
  const catalogue = await loadPlugins(modulesOf(config), dirname(settings.queueFile), files);
  const wiring = new Wiring(catalogue, {
    clock,
    files,
    random,
    log,
    factoryId,
    harvesterId: harvesterIdOf(settings.values.master),
    stateDir: settings.stateDir,
    maxStatusAge: 0,
  });
  return logsOf(wiring.monitorAt(config, worker.placement), worker);
}

export interface LogReadersParts {
  readonly store: Snapshots;
  readonly wiring: Pick<Wiring, 'monitorAt'>;
  /** The configurations that the daemon runs or follows. */
  running(): readonly QueueRuntime[];
  /** The plugins of a configuration that does not run any more. */
  cataloguePastOf(config: QueueConfig): Promise<PluginCatalogue>;
}

/** So many monitors of configurations that do not run any more are kept. */
const mostPast = 32;

/**
 * How a daemon reads logs: with the monitors that it has. A monitor made for each request would have file threads of its own,
 * and a dashboard that polls the log of a worker on a dead disk would take all of Node's.
 */
export class LogReaders {
  readonly #parts: LogReadersParts;
  /** By configuration and connection, the last used last. */
  readonly #past = new Map<string, Monitor | undefined>();

  constructor(parts: LogReadersParts) {
    this.#parts = parts;
  }

  /** @throws ThresherError `no-log`, `unknown-plugin` */
  async of(worker: WorkerRecord): Promise<LogReader> {
    const { configId, placement } = worker;
    const own = this.#parts.running().filter((runtime) => runtime.configId === configId);
    const connected = own.map((runtime) => runtime.connected.get(placement)).find((one) => one !== undefined);
    return logsOf(connected?.monitor ?? (await this.#pastMonitor(worker)), worker);
  }

  async #pastMonitor(worker: WorkerRecord): Promise<Monitor | undefined> {
    const { store, wiring } = this.#parts;
    const { configId, placement } = worker;
    const key = `${configId} ${placement}`;
    if (!this.#past.has(key)) {
      const config = await configOf(worker, store);
      const catalogue = await this.#parts.cataloguePastOf(config);
      // Another request for the same log may have come first meanwhile.
      if (!this.#past.has(key)) this.#past.set(key, wiring.monitorAt(config, placement, catalogue));
    }
    const monitor = this.#past.get(key);
    this.#past.delete(key);
    this.#past.set(key, monitor);
    for (const oldest of [...this.#past.keys()].slice(0, -mostPast)) this.#past.delete(oldest);
    return monitor;
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
