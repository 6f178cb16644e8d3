import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { schedule, type ScheduledTask } from 'node-cron';
import { cacheItemsOf } from '../config/settings/cache-items.ts';
import { harvesterIdOf } from '../config/settings/machine.ts';
import { CredentialBoard, type KnownCredential } from '../agents/credentials/credential-board.ts';
import { Ledger } from '../agents/ledger/ledger.ts';
import { SourceDesk } from '../agents/sources/desk.ts';
import { type WaitingCount, WaitingBoard } from '../agents/sources/waiting-board.ts';
import { FactoryLimits } from '../agents/submission/factory-limits.ts';
import { type Loop, type LoopHealth } from '../agents/loop.ts';
import { ThresherError, toReason } from '../worker/errors.ts';
import { type FactoryEvents, factoryEvents } from '../agents/events.ts';
import { ObservationWriter } from '../agents/observation/observation-writer.ts';
import { logServerOf } from '../config/settings/log-server.ts';
import { modulesOf } from '../config/queues/queues.ts';
import { sourceModulesOf } from '../config/queues/sources.ts';
import type {
  Desk,
  LogReader,
  SourceGauge,
  SourceHttpAnswer,
  SourceHttpRequest,
} from '../plugins/contracts/index.ts';
import type { WorkerRecord } from '../store/rows.ts';
import { openStore, type Store } from '../store/store.ts';
import type { Events } from '../util/events.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { within } from '../util/within.ts';
import { workerIdFloor } from '../worker/identity.ts';
import { operatorKind } from '../worker/operator-request.ts';
import { RunningQueues } from './running-queues.ts';
import { stuckAfter } from './queue-loops.ts';
import { cacheReaderOf, readForRun } from './configuration.ts';
import { OwnPart } from './sharing/own-part.ts';
import { sourceMemories } from './source-memory.ts';
import { Credentials } from './credentials/credentials.ts';
import { OperatorDesk } from './requests/operator-desk.ts';
import { RequestFile } from './requests/request-file.ts';
import type { DaemonParts } from './daemon-options.ts';
import { CacheWatch } from './cacher/cache-watch.ts';
import type { CacherService } from './cacher/cacher-service.ts';
import { makeCacherService } from './cacher/make-cacher.ts';
import { FileWatch } from './file-watch.ts';
import { type Lock, takeLock } from './lock.ts';
import { LogReaders } from './log-reader.ts';
import { logUrlsBy } from './log-urls.ts';
import { LoopSet } from './loop-set.ts';
import { gaugesOf } from './metrics/source-gauges.ts';
import { kindsOfLink } from './panda-view.ts';
import { loadPlugins } from './plugins.ts';
import { logProblem, logProblems, logReload, logStart } from './reports/problem-log.ts';
import { databaseOf } from './database-place.ts';
import { factoryIdAtStart, writeFactoryId } from './factory-file.ts';
import { servicesOf } from './services.ts';
import type { Service, ServiceHealth } from './services/service.ts';
import { ServiceFile } from './services/service-file.ts';
import { ServiceSet } from './services/service-set.ts';
import { SourceService } from './services/source-service.ts';
import { answerOfSource } from './source-door.ts';
import { prepareStateDir, type StateDir } from './state-dir.ts';
import { BelievedClock, givingWayTogether } from '../util/clock.ts';
import { readVersion } from '../util/version.ts';
import { wakeLoops } from './wake-loops.ts';
import { WarningBoard } from './warning-board.ts';
import { PluginFactory } from './plugin-factory.ts';

export interface DaemonOptions extends DaemonParts {
  /** Services beside the daemon's own, such as HTTP. They begin once everything is ready and nothing runs yet. */
  readonly services?: (daemon: Daemon) => readonly Service[];
}

/** The parts that a daemon opens before it begins. */
interface Opened {
  readonly dir: StateDir;
  readonly lock: Lock;
  readonly store: Store;
  readonly warnings: WarningBoard;
}

/** How long a stop waits for the last writes, ms. */
const lastWait = 2000;
/** Passes of loops look at the services, at least so far apart, ms. */
const serviceInterval = 5000;
/** How long a changed file must stay as it is before it is read, ms: half of it may still be on its way. */
const settleTime = 500;
/** Daemons that share a factory look so often who is there and who has what, ms. */
const shareInterval = 1000;

/** The running factory: everything wired together, started, and stopped in bounded time. */
export class Daemon {
  readonly factoryId: string;
  /** Tells what happens in this factory. */
  readonly events: Events<FactoryEvents>;
  /** Requests of operators for workers. */
  readonly operatorDesk: OperatorDesk;
  readonly #options: DaemonOptions;
  readonly #lock: Lock;
  readonly #store: Store;
  readonly #ledger: Ledger;
  readonly #writer: ObservationWriter;
  readonly #loops: LoopSet;
  readonly #board = new CredentialBoard();
  readonly #warnings: WarningBoard;
  readonly #giveUp = new AbortController();
  /** Aborts once nothing else is at work. */
  readonly #ended = new AbortController();
  readonly #files: OperatorFiles;
  readonly #watch: FileWatch;
  readonly #cacheWatch: CacheWatch;
  #watching: Loop | undefined;
  #runningQueues: RunningQueues | undefined;
  #sourceService: SourceService | undefined;
  /** The part of this daemon, where several share the factory. */
  #part: OwnPart | undefined;
  #plugins: PluginFactory | undefined;
  #services: ServiceSet | undefined;
  readonly #serviceFile: ServiceFile;
  readonly #requestFile: RequestFile;
  readonly #waiting = new WaitingBoard();
  #logs: LogReaders | undefined;
  #reloads: Promise<void> = Promise.resolve();
  #stopping = false;
  #cron: ScheduledTask | undefined;

  /**
   * Starts a daemon. Mistakes in single queues are logged and shown as their reasons; the others run.
   * @throws ThresherError for what stops the whole: a state directory or database that cannot be used.
   */
  static async start(given: DaemonOptions): Promise<Daemon> {
    const warnings = new WarningBoard(given.clock);
    const options = { ...given, log: warnings.hearing(given.log) };
    const { settings, clock, random, log, mustEnd = () => undefined, waiting = () => undefined } = options;
    const dir = prepareStateDir(settings.stateDir);
    const lock = takeLock(dir, {
      pid: process.pid,
      host: hostname(),
      startedAt: clock.now(),
      version: readVersion(),
    });
    let store: Store | undefined;
    try {
      const { id, isWritten } = await factoryIdAtStart(settings, random);
      let writing: Promise<void> | undefined = isWritten ? Promise.resolve() : undefined;
      // Last: where the database cannot be used, the directory gets no id that its workers do not have.
      const write = () => (writing ??= writeFactoryId(dir, id));
      store = await openStore(databaseOf(settings), id, {
        mustEnd(error) {
          log.error('the daemon must start anew', { ...toReason(error) });
          mustEnd(error);
        },
        waiting: (holder) => {
          // Commands on this machine need it.
          write().catch((error: unknown) => {
            log.error('the id of the factory cannot be written', { ...toReason(error) });
          });
          waiting(holder, id);
        },
        signal: options.signal,
      });
      // Also of a database that was there: restored from a backup, it does not know the ids given out since.
      const idFloor = workerIdFloor(clock.now());
      await store.ids.begin(idFloor);
      await write();
      const daemon = new Daemon(options, { dir, lock, store, warnings }, id);
      await daemon.#run(id, idFloor);
      return daemon;
    } catch (error) {
      await store?.close();
      lock.release();
      throw error;
    }
  }

  private constructor(options: DaemonOptions, { dir, lock, store, warnings }: Opened, factoryId: string) {
    this.factoryId = factoryId;
    const { clock, random, log } = options;
    this.events = options.events ?? factoryEvents(log);
    this.#options = options;
    this.#files = options.files ?? new OperatorFiles({ clock });
    this.#watch = new FileWatch(options.settings.queueFile, {
      settle: settleTime,
      clock,
      files: this.#files,
    });
    this.#cacheWatch = new CacheWatch(cacheReaderOf(options.settings, this.#files), this.#files);
    this.#serviceFile = new ServiceFile(dir, log);
    this.#requestFile = new RequestFile(dir, {
      clock,
      log,
      waiting: () => this.#waiting.allOf(operatorKind),
    });
    this.#lock = lock;
    this.#store = store;
    this.#warnings = warnings;
    this.#loops = new LoopSet({
      clock,
      random,
      log,
      events: this.events,
      mayAct: () => store.mayAct(),
    });
    wakeLoops(this.events, this.#loops);
    this.operatorDesk = new OperatorDesk({
      store: store.requests,
      clock,
      random,
      reports: () => store.queues.all(),
      why: (queue, id) => this.#waiting.reasonsOf(queue, operatorKind, id),
      wakeSubmitter: (queue) => {
        this.#loops.wake('submit', queue);
      },
      failed: (error) => {
        log.error('requests of operators could not be read', { ...toReason(store.errorOf(error)) });
      },
    });
    this.events.on('writtenElsewhere', () => {
      this.operatorDesk.changed().catch(() => undefined);
    });
    let servicesLookedAt = -Infinity;
    this.events.on('passEnded', ({ loop }) => {
      if (loop.startsWith('submit ')) this.#requestFile.changed();
      // A loop that is stuck tells nothing: the others' passes look at it.
      const now = clock.monotonic();
      if (now - servicesLookedAt < serviceInterval) return;
      servicesLookedAt = now;
      this.#services?.changed();
    });
    this.#ledger = new Ledger(store, clock, log, this.events);
    this.#writer = new ObservationWriter(this.#ledger, clock, log, this.events);
  }

  /** Loops with their last pass, for health checks. */
  get health(): LoopHealth[] {
    return this.#loops.health;
  }

  /** All credentials that are kept or watched here. */
  get credentials(): readonly KnownCredential[] {
    return this.#board.all;
  }

  /** The services with their states. */
  get services(): readonly ServiceHealth[] {
    return this.#services?.health ?? [];
  }

  /** Kinds of news that wait for the PanDA server of the settings. */
  get kindsOfLink(): ReadonlySet<string> {
    return kindsOfLink(this.#plugins?.sources.all.map(({ definition }) => definition) ?? []);
  }

  /** How many requests of which source wait at which queue. */
  get waiting(): readonly WaitingCount[] {
    return this.#waiting.counts;
  }

  /** Numbers that sources show in the metrics. */
  get gauges(): readonly SourceGauge[] {
    return gaugesOf(this.#plugins?.sources.all ?? []);
  }

  /** Answer of a source at its door; undefined where no such source has one. @throws what `answerOfSource` throws */
  async askSource(kind: string, request: SourceHttpRequest): Promise<SourceHttpAnswer | undefined> {
    if (this.#part !== undefined && this.#sourceService?.livesHere(kind) !== true) return undefined;
    const parts = { clock: this.#options.clock, signal: this.#giveUp.signal };
    return await answerOfSource(this.#plugins?.sources.all ?? [], kind, request, parts);
  }

  /** Whether it is on its way to its end. */
  get isStopping(): boolean {
    return this.#stopping;
  }

  /** How many queues are run, or followed to the end of their workers. */
  get queueCount(): number {
    return this.#loops.queues;
  }

  /** Whether each connection was listed, and has shown its workers or said why it cannot. */
  get heard(): boolean {
    return this.#plugins?.heard ?? false;
  }

  /** How many living workers are followed. */
  get liveWorkers(): number {
    return this.#ledger.live.size;
  }

  /** Reads the log of a worker with the monitors that run here. @throws ThresherError `no-log`, `unknown-plugin` */
  async logsOf(worker: WorkerRecord): Promise<LogReader> {
    if (this.#logs === undefined) throw new ThresherError('no-log', 'the daemon has not begun yet');
    return this.#logs.of(worker);
  }

  /** Stops within `master.shutdownTimeout` and little more. Workers go on; nothing that was written is lost. */
  async stop(): Promise<void> {
    const { clock, log, settings } = this.#options;
    const { shutdownTimeout } = settings.values.master;
    log.info('stopping');
    this.#stopping = true;
    this.#part?.runs(undefined);
    await this.#cron?.stop();
    const end = clock.monotonic() + shutdownTimeout * 1000;
    await within(clock, shutdownTimeout * 1000, this.#reloads);
    await this.#services?.stop(end);
    this.#ended.abort();
    await within(clock, lastWait, this.#writer.flushed());
    await within(clock, lastWait, this.#serviceFile.written());
    await within(clock, lastWait, this.#requestFile.stop());
    await this.#store.close();
    this.#lock.release();
    log.info('stopped');
  }

  /**
   * Reads the queue file again and brings what runs in line with it. What has errors changes nothing: the queue, or all of them
   * where the file cannot be read, go on as they were. One reload after the other.
   */
  async reload(cause: string): Promise<void> {
    try {
      await this.#oneReload(cause);
    } catch (error) {
      this.#options.log.error('reload failed', { cause, ...toReason(error) });
    }
  }

  #oneReload(cause: string): Promise<void> {
    return this.#inTurn(() => this.#reload(cause));
  }

  /** Does this once all reloads that were asked for before are over, and before those that are asked for later. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const mine = this.#reloads.then(work);
    this.#reloads = mine.then(
      () => undefined,
      () => undefined,
    );
    return mine;
  }

  async #reload(cause: string): Promise<void> {
    if (this.#runningQueues === undefined || this.#plugins === undefined || this.#stopping) return;
    await this.#watch.use();
    try {
      await this.#takeUp(this.#plugins, cause);
    } catch (error) {
      // It is still to be taken up: the next look finds it changed.
      this.#watch.forget();
      this.#runningQueues.notReloaded(toReason(error));
      throw error;
    }
  }

  async #takeUp(plugins: PluginFactory, cause: string): Promise<void> {
    const { settings, log } = this.#options;
    const read = await readForRun(settings, this.#store, this.#files);
    const { queueFile, catalogue, sources } = read;
    this.#cacheWatch.use(queueFile.taken);
    logProblems(log, queueFile);
    for (const problem of sources.problems) logProblem(log, problem);
    plugins.use(catalogue, { ...sources, modules: sourceModulesOf(settings) });
    await this.#services?.reload(this.#part?.of(read) ?? read);
    logReload(log, queueFile, cause);
  }

  async #lookForChange(): Promise<void> {
    const seen = await this.#watch.look();
    if (seen === 'changing') this.#watching?.wakeIn(settleTime);
    if (seen === 'changed') await this.#oneReload('the file changed');
    // Another process may have fetched anew.
    await this.#lookAtCache();
  }

  async #lookAtCache(): Promise<void> {
    // Two may have seen the same change: the second looks once the first has taken it up.
    await this.#inTurn(async () => {
      if ((await this.#cacheWatch.look()) === 'changed') await this.#reload('fetched data changed');
    });
  }

  async #run(id: string, idFloor: number): Promise<void> {
    const { settings, clock, random, log, step } = this.#options;
    const { master, monitor, submitter, sweeper, qconf, credmanager } = settings.values;
    await this.#watch.use();
    const whole = await readForRun(settings, this.#store, this.#files);
    const { queueFile, catalogue, sources } = whole;
    this.#cacheWatch.use(queueFile.taken);
    logProblems(log, queueFile);
    for (const problem of [...sources.problems, ...cacheItemsOf(settings).problems]) logProblem(log, problem);
    const harvesterId = harvesterIdOf(master);
    const files = this.#files;
    const shared = { factoryId: id, harvesterId, clock, files, random, log };
    const context = {
      ...shared,
      believed: new BelievedClock(clock, log),
      idFloor,
      ledger: this.#ledger,
      store: this.#store,
      events: this.events,
      giveWay: givingWayTogether(clock),
      factoryLimits: new FactoryLimits(submitter.submissionRate, submitter.submissionBurst, clock),
      credentials: this.#board,
      waiting: this.#waiting,
      credentialLifetime: credmanager.minLifetime * 1000,
      pluginTimeout: master.pluginTimeout * 1000,
      giveUp: this.#giveUp.signal,
      step: step ?? (() => undefined),
    };
    const maxStatusAge = monitor.maxStatusAge * 1000;
    this.#plugins = new PluginFactory(catalogue, {
      requests: this.operatorDesk,
      memoryOf: sourceMemories(settings.stateDir, this.#store, settings.postgresql !== undefined),
      ownServices: {
        logUrls: logUrlsBy(settings.values.http),
        takeWarnings: (most) => this.#warnings.take(most),
        credentials: () => this.#board.held,
      },
      ...shared,
      ended: AbortSignal.any([this.#giveUp.signal, this.#ended.signal]),
      maxStatusAge,
      stateDir: settings.stateDir,
      logServer: logServerOf(settings.values),
      sources: { ...sources, modules: sourceModulesOf(settings) },
      configDir: dirname(settings.queueFile),
    });
    const plugins = this.#plugins;
    const { shares } = this.#store;
    const part = shares && new OwnPart({ settings, store: shares, clock, log, plugins, step: context.step });
    this.#part = part;
    const sharing = part?.sharing;
    let read = whole;
    if (part !== undefined) {
      part.of(whole);
      await part.sharing.begin();
      // Again: a daemon that is gone may have written until its queues were taken.
      read = part.of(await readForRun(settings, this.#store, this.#files));
    }
    const parts = {
      settings: settings.values,
      context,
      writer: this.#writer,
      plugins,
      sharing,
    };
    const desk = (kind: string): Desk =>
      new SourceDesk(kind, {
        ...context,
        queues: () => runningQueues.names,
        queuesOf: (source) => runningQueues.queuesOf(source),
        reasonsOf: (queue) => runningQueues.reasonsOf(queue),
        unlistedOf: (queue) => runningQueues.unlistedOf(queue),
        wakeSubmitter: (queue) => {
          this.#loops.wake('submit', queue);
        },
        logsOf: (worker) => this.logsOf(worker),
        outputsOf: async (worker) => this.#logs?.outputsOf(worker),
      });
    const sourceService: SourceService = new SourceService({
      ...parts,
      loops: this.#loops,
      sources: this.#plugins.sources,
      deskFor: desk,
      changed: () => {
        this.#services?.changed();
      },
    });
    this.#sourceService = sourceService;
    const runningQueues: RunningQueues = new RunningQueues({
      ...parts,
      loops: this.#loops,
      places: async () => {
        const places = await this.#store.workers.configsInUse();
        return sharing === undefined ? places : places.filter(({ queue }) => sharing.queues.has(queue));
      },
      betweenReloads: (work) => this.#inTurn(work),
      dropOldNews: () => sourceService.dropOldNews(),
      notesOn: (queue) => cacher.notesOn(queue),
    });
    const cacher: CacherService = makeCacherService({
      settings,
      server: sources.pandaServer,
      clock,
      files,
      log,
      loops: this.#loops,
      first: read,
      renewed: () => this.#lookAtCache(),
      changed: () => this.#services?.changed(),
    });
    this.#runningQueues = runningQueues;
    this.#logs = new LogReaders({
      store: this.#store,
      plugins: this.#plugins,
      running: () => runningQueues.runtimes,
      cataloguePastOf: (config) => loadPlugins(modulesOf(config), dirname(settings.queueFile), files),
    });
    const credentials = new Credentials({ ...parts, files, loops: this.#loops }, this.#board);
    part?.runs({
      runningQueues,
      credentials,
      sourceService,
      takeUp: (cause) => this.#takeUp(plugins, cause),
    });
    const services = servicesOf({
      settings,
      credentials,
      queues: { clock, log, runningQueues, loops: this.#loops, giveUp: this.#giveUp, read },
      beside: this.#options.services?.(this) ?? [],
      sources: sourceService,
      cacher,
    });
    this.#services = new ServiceSet(services, {
      clock,
      log,
      changed: (health) => {
        this.#serviceFile.write(health);
      },
    });
    await this.#services.begin();
    if (sharing !== undefined)
      this.#loops.add({
        name: 'share',
        interval: shareInterval,
        stuckAfter: 2 * stuckAfter(parts),
        longestPause: shareInterval,
        pass: () => this.#inTurn(() => sharing.pass()),
      });
    if (qconf.checkInterval > 0) {
      const interval = qconf.checkInterval * 1000;
      const pass = () => this.#lookForChange();
      this.#watching = this.#loops.add({ name: 'watch', interval, stuckAfter: stuckAfter(parts), pass });
    }
    this.#loops.start();
    if (sweeper.cron !== undefined) {
      this.#cron = schedule(sweeper.cron, () => {
        this.#loops.wakeAll('sweep');
      });
    }
    logStart(log, queueFile, { factory: id, liveWorkers: this.liveWorkers });
  }
}
