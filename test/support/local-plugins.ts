import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type {
  AnyBackend,
  BackendDefinition,
  Context,
  Monitor,
  Observation,
  ObservationSink,
  Submitter,
  Sweeper,
  Worker,
} from '../../src/plugins/contracts/index.ts';
import { LocalHost, type Uptime } from '../../src/plugins/local/host.ts';
import { localBackend, LocalConnection } from '../../src/plugins/local/index.ts';
import { readProcesses, signalProcess } from '../../src/plugins/local/processes.ts';
import type { LocalDaemon } from '../../src/plugins/local/schema.ts';
import { type BackendParts, connectionAt, partOf } from './backend-parts.ts';
import { pluginContext } from './plugin-context.ts';
import { recordingLog, workerOf } from './samples.ts';
import { temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

/** A local backend in a directory of its own, with the daemon that uses it; `restarted` is the next daemon on it. */
export class LocalBackend {
  readonly directory: string;
  readonly context: Context;
  readonly log = recordingLog();
  readonly submitter: Submitter;
  readonly monitor: Monitor;
  readonly sweeper: Sweeper;
  readonly #definitions: readonly BackendDefinition[];
  readonly #signal = new AbortController().signal;

  constructor(changes: Partial<Context> = {}, directory = temporaryDirectory(), uptime?: Uptime) {
    this.directory = directory;
    this.#definitions = uptime === undefined ? localBackend : this.#aging(uptime);
    const stateDir = join(directory, 'state');
    this.context = pluginContext({ stateDir, configDir: directory, log: this.log, ...changes });
    this.submitter = this.#make('submitter');
    this.monitor = this.#make('monitor');
    this.sweeper = this.#make('sweeper');
  }

  restarted(changes: Partial<Context> = {}): LocalBackend {
    return new LocalBackend(changes, this.directory);
  }

  /** The host that its plugins share. */
  host(): LocalHost {
    const connection = connectionAt(this.#definition('monitor'), options, this.context);
    if (connection instanceof LocalConnection) return connection.host;
    throw new Error('it is of another backend');
  }

  get root(): string {
    return join(this.directory, 'work');
  }

  path(worker: Pick<Worker, 'workerId'>, ...names: string[]): string {
    return join(this.root, String(worker.workerId), ...names);
  }

  /** Starts a worker; `script` is what its shell does. */
  async start(workerId: number, script = 'exec sleep 1000', changes: Partial<Worker> = {}): Promise<Worker> {
    // Outside of the worker's directory, which tests remove and look into.
    const began = join(this.directory, `began-${workerId}`);
    rmSync(began, { force: true });
    const template = { command: '/bin/sh', args: ['-c', `: >'${began}'; ${script}`], cpu: 0 };
    writeFileSync(join(this.directory, 'pilot.yaml'), stringify(template));
    const requirements = { ...workerOf(1).requirements, minRamCount: 0, maxWalltime: 0 };
    const worker = workerOf(workerId, { requirements, ...changes });
    const outcome = (await this.submitter.submit([worker], this.#signal)).get(workerId);
    if (outcome?.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
    // The shim has its claim before it starts the command.
    await until('the command runs', () => existsSync(began));
    return { ...worker, handle: outcome.handle };
  }

  async check(worker: Worker) {
    return (await this.monitor.check([worker], this.#signal)).get(worker.workerId);
  }

  async find(worker: Worker) {
    return (await this.submitter.find([worker], this.#signal)).get(worker.workerId);
  }

  /** Kills until it is gone. */
  async kill(worker: Worker): Promise<void> {
    await until('it is gone', async () => {
      const outcome = (await this.sweeper.kill([worker], this.#signal)).get(worker.workerId);
      return outcome?.kind === 'gone';
    });
  }

  list() {
    return this.sweeper.list(this.#signal);
  }

  /** Observes until `enough` of what was shown last and of the reasons of trouble; `over` is how often all was shown. */
  async observe(enough: (shown: Shown) => boolean): Promise<Shown> {
    const shown = { seen: new Map<number, Observation>(), trouble: [] as string[], over: 0 };
    const stop = new AbortController();
    const sink: ObservationSink = {
      begin: () => undefined,
      observe: (observation) => shown.seen.set(observation.workerId, observation),
      complete: () => {
        shown.over++;
      },
      gone: () => undefined,
      trouble: ({ code, message }) => shown.trouble.push(`${code}: ${message}`),
    };
    const work = this.monitor.observe(sink, stop.signal);
    try {
      await Promise.race([until('enough was observed', () => enough(shown)), work]);
    } finally {
      stop.abort();
      await work;
    }
    return shown;
  }

  /** Pids of all that lives of this backend. */
  async living(): Promise<number[]> {
    const mark = `THRESHER_WORKER_DIR=${this.root}/`;
    return (await readProcesses()).flatMap((one) => (one.mark?.startsWith(mark) === true ? [one.pid] : []));
  }

  async clean(): Promise<void> {
    await until('all are gone', async () => {
      for (const pid of await this.living()) signalProcess(pid, 'SIGKILL');
      return (await this.living()).length === 0;
    });
  }

  #make<K extends keyof BackendParts>(kind: K): BackendParts[K] {
    return partOf(this.#definition(kind), kind, options, this.context);
  }

  #definition(kind: keyof BackendParts): BackendDefinition {
    const definition = this.#definitions.find((one) => one.kind === kind);
    if (definition === undefined) throw new Error(kind);
    return definition;
  }

  /** The backend on a machine that says to be up for so long. */
  #aging(uptime: Uptime): BackendDefinition[] {
    const { root } = this;
    const backend: AnyBackend = {
      name: 'Local',
      connect: (_place, daemon) =>
        new LocalConnection(new LocalHost(root, daemon, uptime), daemon as LocalDaemon),
    };
    return localBackend.map((definition) => ({ ...definition, backend }));
  }
}

const options = { workDir: 'work', templateFile: 'pilot.yaml', pollInterval: 0.05, killGrace: 0.5 };

export interface Shown {
  readonly seen: ReadonlyMap<number, Observation>;
  readonly trouble: readonly string[];
  readonly over: number;
}
