import { cpSync, mkdirSync, renameSync } from 'node:fs';
import type { Step } from '../../src/agents/queue-runtime.ts';
import { readSettings } from '../../src/config/settings/settings.ts';
import { Daemon } from '../../src/daemon/daemon.ts';
import { runningDaemon } from '../../src/daemon/lock.ts';
import { openBesideDaemon } from '../../src/daemon/reader.ts';
import { queueViews, type QueueView } from '../../src/daemon/view.ts';
import type { Log } from '../../src/plugins/contracts/index.ts';
import type { WorkerRecord } from '../../src/store/rows.ts';
import { systemClock } from '../../src/util/clock.ts';
import { ScriptedBackend, scriptedSections } from './plugins/scripted-backend.ts';
import { Site, type SiteOptions } from './site.ts';
import { removeDirectory } from './temporary.ts';

export interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A daemon in this process, on scripted backends. */
export class Factory {
  readonly site: Site;
  readonly backends: Record<string, ScriptedBackend> = {};
  readonly log: LogLine[] = [];
  /** Why the daemon asked to be started anew. */
  mustEnd: string | undefined;
  #daemon: Daemon | undefined;

  /** `queues`: options of each queue; each gets a backend of its own. */
  constructor(queues: Record<string, Record<string, unknown>>, settings: SiteOptions['settings'] = {}) {
    this.site = new Site({
      settings: { ...settings, monitor: { missingGrace: 0.2, ...settings.monitor } },
      queues: Object.fromEntries(
        Object.entries(queues).map(([name, queue]) => [
          name,
          { ...scriptedSections(`backend-${name}`), demand: 'fill', ...queue },
        ]),
      ),
    });
    for (const name of Object.keys(queues)) {
      const directory = this.site.path(`backend-${name}`);
      mkdirSync(directory);
      this.backends[name] = new ScriptedBackend(directory);
    }
  }

  backend(name: string): ScriptedBackend {
    const backend = this.backends[name];
    if (backend === undefined) throw new Error(`no backend ${name}`);
    return backend;
  }

  get daemon(): Daemon {
    if (this.#daemon === undefined) throw new Error('the daemon is not running');
    return this.#daemon;
  }

  /**
   * Starts it, and takes its state at the step, as SIGKILL would leave it: what is in its files then, and nothing that comes after.
   * Resolves when the next daemon can be started on it.
   * @param onDeath is called at that moment
   */
  async crashAt(at: Step, database: 'kept' | 'removed', onDeath?: () => void): Promise<void> {
    const { stateDir } = this.site;
    const left = `${stateDir}.left`;
    const dead = Promise.withResolvers<undefined>();
    let died = false;
    await this.start((step) => {
      if (step !== at || died) return;
      died = true;
      // No other thread or process writes: all of it is of one moment.
      cpSync(stateDir, left, { recursive: true });
      for (const backend of Object.values(this.backends)) backend.forgetCallers();
      onDeath?.();
      dead.resolve(undefined);
    });
    await dead.promise;
    await this.stop();
    removeDirectory(stateDir);
    renameSync(left, stateDir);
    if (database === 'removed') this.site.removeDatabase();
  }

  async start(step?: (step: Step) => void): Promise<void> {
    const result = readSettings(this.site.config);
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    const write =
      (level: keyof Log) =>
      (message: string, facts: Readonly<Record<string, unknown>> = {}) => {
        this.log.push({ level, message, facts });
      };
    const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
    this.mustEnd = undefined;
    this.#daemon = await Daemon.start({
      settings: result.settings,
      clock: systemClock,
      random: Math.random,
      log,
      mustEnd: ({ code }) => {
        this.mustEnd = code;
      },
      ...(step && { step }),
    });
  }

  async stop(): Promise<void> {
    await this.#daemon?.stop();
    this.#daemon = undefined;
  }

  async workers(queue?: string): Promise<WorkerRecord[]> {
    return this.#read(async (opened) => opened.store.workers.list({ queue }));
  }

  async queue(name: string): Promise<QueueView> {
    const views = await this.#read(async ({ store, dir }) => queueViews(store, runningDaemon(dir)));
    const found = views.find((view) => view.name === name);
    if (found === undefined) throw new Error(`no queue ${name}`);
    return found;
  }

  async #read<T>(use: (opened: Awaited<ReturnType<typeof openBesideDaemon>>) => Promise<T>): Promise<T> {
    const result = readSettings(this.site.config);
    if (!result.ok) throw new Error('settings');
    const opened = await openBesideDaemon(result.settings, 'read');
    try {
      return await use(opened);
    } finally {
      await opened.store.close();
    }
  }
}
