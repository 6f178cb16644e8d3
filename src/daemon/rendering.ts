import { dirname } from 'node:path';
import { makeWorker, requirementsOf } from '../agents/submission/worker-maker.ts';
import { modulesOf, parseSnapshot, type PluginCatalogue, type QueueConfig } from '../config/queues/queues.ts';
import { logServerOf } from '../config/settings/log-server.ts';
import { harvesterIdOf } from '../config/settings/machine.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { Log } from '../plugins/contracts/index.ts';
import type { Rendered } from '../plugins/contracts/rendered.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Requirements, Worker } from '../worker/worker.ts';
import { loadPlugins } from './plugins.ts';
import { readFactoryId } from './factory-file.ts';
import { PluginFactory } from './plugin-factory.ts';

export interface RenderingOptions {
  readonly settings: LoadedSettings;
  readonly clock: Clock;
  readonly files: OperatorFiles;
  readonly random: () => number;
  readonly log: Log;
}

export interface RenderedWorker extends Rendered {
  readonly worker: Worker;
}

/** A worker of no daemon: ids of real ones are far above. */
const renderedId = 1;

/** A new worker of a queue with this configuration, as its submitter would send it. @throws ThresherError `no-render` */
export async function renderNew(
  config: QueueConfig,
  changes: Partial<Requirements>,
  catalogue: PluginCatalogue,
  options: RenderingOptions,
): Promise<RenderedWorker> {
  const plugins = factoryOf(catalogue, options);
  const { factoryId, harvesterId } = namesOf(options);
  const runtime = plugins.runtime(config, 0, true);
  const [placement = ''] = runtime.connected.keys();
  const requirements = { ...requirementsOf(config), ...changes };
  const make = { factoryId, harvesterId, config, configId: 0, placement, originKind: config.demand };
  const worker = makeWorker(renderedId, { ...make, requirements, messenger: runtime.messenger });
  return rendered(plugins, config, 0, worker);
}

/** A worker that there is, by the configuration it was made with. @throws ThresherError `no-render` */
export async function renderExisting(
  record: WorkerRecord,
  store: Store,
  options: RenderingOptions,
): Promise<RenderedWorker> {
  const row = await store.queues.snapshot(record.configId);
  if (row === undefined) {
    const message = `the configuration of worker ${record.workerId} is gone: leave out --worker to see a worker of its queue as it is now`;
    throw new ThresherError('no-render', message);
  }
  const config = parseSnapshot(row.snapshot);
  const catalogue = await loadPlugins(modulesOf(config), dirname(options.settings.queueFile), options.files);
  return rendered(factoryOf(catalogue, options), config, record.configId, workerIn(record));
}

async function rendered(
  plugins: PluginFactory,
  config: QueueConfig,
  configId: number,
  worker: Worker,
): Promise<RenderedWorker> {
  const { submitter } = plugins.runtime(config, configId, true);
  if (submitter.render === undefined) {
    const { name = '', module = '' } = config.plugins.submitter ?? {};
    const message = `${name} of ${module} does not show what it would send: it has no method render`;
    throw new ThresherError('no-render', message);
  }
  return { ...(await submitter.render(worker)), worker };
}

/** A row without what became of it. */
function workerIn(record: WorkerRecord): Worker {
  const { workerId, name, queue, computingSite, origin, requirements } = record;
  const { placement, configId, attempt, accessPoint } = record;
  return {
    workerId,
    name,
    queue,
    computingSite,
    origin,
    requirements,
    placement,
    configId,
    attempt,
    ...(accessPoint !== undefined && { accessPoint }),
  };
}

function namesOf({ settings }: Pick<RenderingOptions, 'settings'>) {
  const { master } = settings.values;
  const factoryId = readFactoryId(settings) ?? master.factoryId ?? 'thresher-rendered';
  return { factoryId, harvesterId: harvesterIdOf(master) };
}

function factoryOf(catalogue: PluginCatalogue, options: RenderingOptions): PluginFactory {
  const { settings, clock, files, random, log } = options;
  const shared = { ...namesOf(options), stateDir: settings.stateDir, maxStatusAge: 0 };
  const logServer = logServerOf(settings.values);
  return new PluginFactory(catalogue, { ...shared, logServer, clock, files, random, log });
}
