import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { schedule, type ScheduledTask } from 'node-cron';
import { Ledger } from '../agents/ledger.ts';
import type { LoopHealth } from '../agents/loop.ts';
import { type Metrics, noMetrics } from '../agents/metrics.ts';
import { ObservationWriter } from '../agents/observations.ts';
import type { Step } from '../agents/queue-runtime.ts';
import { modulesNamedIn, modulesOf, type QueueConfig, readQueueFile } from '../config/queues.ts';
import type { LoadedSettings } from '../config/settings.ts';
import type { Log } from '../plugins/contracts/index.ts';
import { instancesIn } from '../store/database.ts';
import { openStore, type Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';
import type { Problem } from '../util/located.ts';
import { workerIdFloor } from '../worker/identity.ts';
import { assemble, type ConfigInUse } from './assembly.ts';
import { type Lock, takeLock } from './lock.ts';
import { LoopSet } from './loop-set.ts';
import { loadPlugins } from './plugins.ts';
import { factoryId, prepareStateDir, readFactoryId } from './state-dir.ts';
import { readVersion } from './version.ts';
import { Wiring } from './wiring.ts';

export interface DaemonOptions {
  readonly settings: LoadedSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Who counts; default: nobody. */
  readonly metrics?: Metrics;
  /** Called once everything is ready and nothing runs yet; what it throws stops the start. */
  readonly beforeLoops?: (daemon: Daemon) => Promise<void>;
  /** For tests that stop the daemon dead at a certain moment. */
  readonly step?: (step: Step) => void;
}

/** How long a stop waits for calls that were given up, and for the last writes, ms. */
const lastWait = 2000;

/** The running factory: everything wired together, started, and stopped in bounded time. */
export class Daemon {
  readonly #options: DaemonOptions;
  readonly #lock: Lock;
  readonly #store: Store;
  readonly #ledger: Ledger;
  readonly #writer: ObservationWriter;
  readonly #loops: LoopSet;
  readonly #giveUp = new AbortController();
  readonly #onPass = new Set<() => void>();
  #cron: ScheduledTask | undefined;

  /**
   * Starts a daemon. Mistakes in single queues are logged and shown as their reasons; the others run.
   * @throws ThresherError for what stops the whole: a state directory or database that cannot be used.
   */
  static async start(options: DaemonOptions): Promise<Daemon> {
    const { settings, clock, random } = options;
    const dir = prepareStateDir(settings.stateDir);
    const lock = takeLock(dir, {
      pid: process.pid,
      host: hostname(),
      startedAt: clock.now(),
      version: readVersion(),
    });
    let store: Store | undefined;
    try {
      // A database knows its factory, also where the file with the id was lost.
      const [known, ...others] = instancesIn(dir.database);
      const kept = others.length === 0 && readFactoryId(dir) === undefined ? known : undefined;
      const id = factoryId(dir, settings.values.master.factoryId ?? kept, random);
      store = await openStore(dir.database, id);
      if (!(await store.ids.any())) await store.ids.raise(workerIdFloor(clock.now()));
      const daemon = new Daemon(options, lock, store);
      await daemon.#run(id);
      return daemon;
    } catch (error) {
      await store?.close();
      lock.release();
      throw error;
    }
  }

  private constructor(options: DaemonOptions, lock: Lock, store: Store) {
    const { clock, random, log, metrics = noMetrics } = options;
    this.#options = options;
    this.#lock = lock;
    this.#store = store;
    this.#loops = new LoopSet({
      ...{ clock, random, log },
      passed: (pass) => {
        metrics.passDone(pass);
        for (const tell of this.#onPass) tell();
      },
    });
    this.#ledger = new Ledger(store, clock, log, {
      roomMade: (queue) => {
        this.#loops.wake('submit', queue);
      },
      killRequested: (queue) => {
        this.#loops.wake('sweep', queue);
      },
      ended: (queue, status, code) => {
        metrics.ended(queue, status, code);
      },
    });
    this.#writer = new ObservationWriter(this.#ledger, clock, log, metrics);
  }

  /** Loops with their last pass, for health checks. */
  get health(): LoopHealth[] {
    return this.#loops.health;
  }

  /** Calls `tell` after every pass of any loop: how a watchdog knows that they get on. */
  onPass(tell: () => void): void {
    this.#onPass.add(tell);
  }

  /** How many living workers are followed. */
  get liveWorkers(): number {
    return this.#ledger.live.size;
  }

  /** Stops within `master.shutdownTimeout` and little more. Workers go on; nothing that was written is lost. */
  async stop(): Promise<void> {
    const { clock, log, settings } = this.#options;
    const { shutdownTimeout } = settings.values.master;
    log.info('stopping');
    await this.#cron?.stop();
    const stopped = this.#loops.stop();
    if (!(await within(clock, shutdownTimeout * 1000, stopped))) {
      log.warn('calls under way are given up', { shutdownTimeout });
      this.#giveUp.abort();
      await within(clock, lastWait, stopped);
    }
    await within(clock, lastWait, this.#writer.flushed());
    await this.#store.close();
    this.#lock.release();
    log.info('stopped');
  }

  async #run(id: string): Promise<void> {
    const { settings, clock, random, log, step, metrics = noMetrics, beforeLoops } = this.#options;
    const { master, monitor, submitter, qconf, sweeper } = settings.values;
    const inUse = await configsInUse(this.#store);
    const modules = [
      ...modulesNamedIn(settings.queueFile),
      ...inUse.flatMap(({ config }) => modulesOf(config)),
    ];
    const catalogue = await loadPlugins(modules, dirname(settings.queueFile));
    const queueFile = readQueueFile(settings.queueFile, catalogue, {
      stateDir: settings.stateDir,
      defaultDemand: submitter.defaultDemand,
      queueList: qconf.queueList,
    });
    for (const problem of queueFile.problems) logProblem(log, problem);
    const harvesterId = master.harvester_id ?? `thresher-${hostname()}`;
    const maxStatusAge = monitor.maxStatusAge * 1000;
    const shared = { factoryId: id, harvesterId, clock, random, log };
    const context = {
      ...shared,
      ledger: this.#ledger,
      metrics,
      pluginTimeout: master.pluginTimeout * 1000,
      giveUp: this.#giveUp.signal,
      progress: () => undefined,
      step: step ?? (() => undefined),
    };
    const wiring = new Wiring({ ...shared, catalogue, maxStatusAge, stateDir: settings.stateDir });
    const parts = { settings: settings.values, context, ledger: this.#ledger, writer: this.#writer, wiring };
    await assemble({ ...parts, loops: this.#loops }, queueFile, inUse);
    await beforeLoops?.(this);
    this.#loops.start();
    if (sweeper.cron !== undefined) {
      this.#cron = schedule(sweeper.cron, () => {
        this.#loops.wakeAll('sweep');
      });
    }
    const { queues, refused } = queueFile;
    log.info('started', {
      factory: id,
      queues: queues.length,
      refused: refused.length,
      liveWorkers: this.liveWorkers,
    });
  }
}

/** The configurations of workers that are alive or not swept yet. */
async function configsInUse(store: Store): Promise<ConfigInUse[]> {
  const result: ConfigInUse[] = [];
  for (const { configId } of await store.workers.configsInUse()) {
    const row = await store.queues.snapshot(configId);
    if (row !== undefined) result.push({ configId, config: JSON.parse(row.snapshot) as QueueConfig });
  }
  return result;
}

function logProblem(log: Log, { severity, message, ...facts }: Problem): void {
  const detail = { ...facts, message };
  switch (severity) {
    case 'error':
      log.error('configuration error', detail);
      break;
    case 'warning':
      log.warn('configuration warning', detail);
      break;
    case 'notice':
      log.info('configuration notice', detail);
      break;
  }
}

async function within(clock: Clock, ms: number, work: Promise<void>): Promise<boolean> {
  const done = new AbortController();
  const late = clock.sleep(ms, done.signal).then(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    done.abort();
  }
}
