import { dirname } from 'node:path';
import { harvesterIdOf } from '../config/settings/machine.ts';
import { modulesOf, parseSnapshot } from '../config/queues/queues.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { Log, LogReader } from '../plugins/contracts/index.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { ThresherError } from '../worker/errors.ts';
import { loadPlugins } from './plugins.ts';
import { readFactoryId } from './factory-file.ts';
import { stateDirAt } from './state-dir.ts';
import { Wiring } from './wiring.ts';

export interface ReaderOptions {
  readonly settings: LoadedSettings;
  readonly clock: Clock;
  readonly files: OperatorFiles;
  readonly random: () => number;
  readonly log: Log;
}

/** How the log of this worker is read, by the configuration it was submitted with. @throws ThresherError `no-log` */
export async function logReaderOf(
  worker: WorkerRecord,
  store: Store,
  options: ReaderOptions,
): Promise<LogReader> {
  const { settings, clock, files, random, log } = options;
  const row = await store.queues.snapshot(worker.configId);
  if (row === undefined)
    throw new ThresherError('no-log', `the configuration of worker ${worker.workerId} is gone`);
  const config = parseSnapshot(row.snapshot);
  const catalogue = await loadPlugins(modulesOf(config), dirname(settings.queueFile), files);
  const id = readFactoryId(stateDirAt(settings.stateDir)) ?? '';
  const harvesterId = harvesterIdOf(settings.values.master);
  const shared = { clock, files, random, log, factoryId: id, harvesterId };
  const wiring = new Wiring(catalogue, { ...shared, stateDir: settings.stateDir, maxStatusAge: 0 });
  const reader = wiring.runtime(config, worker.configId, false).connected.get(worker.placement)?.monitor.logs;
  if (reader === undefined)
    throw new ThresherError('no-log', `the backend of worker ${worker.workerId} keeps no logs`);
  return reader;
}
