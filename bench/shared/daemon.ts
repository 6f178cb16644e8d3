import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { readSettings } from '../../src/config/settings/settings.ts';
import { openBesideDaemon } from '../../src/daemon/reader.ts';
import type { Command } from '../../src/store/commands.ts';
import { until } from '../../test/support/until.ts';
import { Rows } from './rows.ts';

const program = resolve(import.meta.dirname, '../../bin/thresher');
/** Ticks of /proc/PID/stat per second. Source: proc(5); it is 100 on all of Linux' usual builds. */
const ticksPerSecond = 100;

export interface Memory {
  /** Resident now, bytes. */
  readonly rss: number;
  /** The most it ever was, bytes. */
  readonly peak: number;
}

export interface RealDaemonOptions {
  /** Sections of its settings, beside those that every benchmark has. */
  readonly settings?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly environment?: Readonly<Record<string, string>>;
  /** The user that it runs as. Default: that of the benchmark. */
  readonly user?: { readonly uid: number; readonly gid: number };
}

/** The real program with one queue, BENCH, followed through /proc. */
export class RealDaemon {
  readonly directory: string;
  readonly database: string;
  readonly #config: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #user: RealDaemonOptions['user'];
  #child: ChildProcess | undefined;
  #ended: Promise<unknown> | undefined;

  constructor(directory: string, { settings = {}, environment = {}, user }: RealDaemonOptions = {}) {
    mkdirSync(directory, { recursive: true });
    this.directory = directory;
    this.database = join(directory, 'state', 'thresher.db');
    this.#config = join(directory, 'thresher.yaml');
    this.#environment = environment;
    this.#user = user;
    const all = {
      ...settings,
      master: { stateDir: 'state', harvester_id: 'bench', ...settings.master },
      // A round is one pass; what is swept is swept when it is said.
      submitter: { sleepTime: 1, maxNewWorkers: 2000, blackHoleLifetime: 0, ...settings.submitter },
      sweeper: { sleepTime: 3600, keepFinished: 0, ...settings.sweeper },
      http: { port: 0 },
    };
    writeFileSync(this.#config, stringify(all));
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /**
   * So many workers from now on; 0: no more than there are.
   * @param sections the plugins of the queue, and what is common to them
   */
  wantOf(sections: Readonly<Record<string, unknown>>, workers: number): void {
    const queue = {
      queueStatus: 'online',
      mapType: 'NoJob',
      demand: workers === 0 ? 'none' : 'fill',
      maxWorkers: workers || 1,
      nQueueLimitWorker: workers || 1,
      ...sections,
    };
    writeFileSync(join(this.directory, 'panda_queueconfig.json'), JSON.stringify({ BENCH: queue }, null, 2));
    this.#child?.kill('SIGHUP');
  }

  start(): void {
    // Node's own variables of whoever started the benchmark are not the daemon's; a profile is asked for on purpose.
    const { BENCH_NODE_OPTIONS: options } = process.env;
    const { NODE_OPTIONS: own = '' } = this.#environment;
    const env = { ...process.env, ...this.#environment, NODE_OPTIONS: `${own} ${options ?? ''}`.trim() };
    const child = spawn(program, ['--config', this.#config, 'run'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd: this.directory,
      env,
      ...this.#user,
    });
    child.stderr.pipe(createWriteStream(join(this.directory, 'daemon.log'), { flags: 'a' }));
    const withParent = () => child.kill('SIGKILL');
    process.once('exit', withParent);
    this.#child = child;
    this.#ended = once(child, 'exit').then(() => process.off('exit', withParent));
  }

  /** Waits until it has listed its cluster and follows it. */
  async ready(): Promise<void> {
    await until('the daemon follows its queue', () => {
      if (!existsSync(this.database)) return false;
      const rows = new Rows(this.database);
      try {
        // Only the missing demand holds the queue back then.
        const [report] = rows.list<{ reasons: string }>('SELECT reasons FROM queues');
        return report?.reasons.includes('demand-none') && !/not-listed|status-unknown/.test(report.reasons);
      } catch {
        // Its tables are being made.
        return false;
      } finally {
        rows.close();
      }
    });
  }

  /** With SIGTERM it may take its leave, and Node write a profile. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    this.#child?.kill(signal);
    await this.#ended;
    this.#child = undefined;
  }

  /** Leaves a command, as an operator's command line does. @returns the id of the command. */
  async ask(command: Command): Promise<number> {
    const read = readSettings(this.#config);
    if (!read.ok) throw new Error(JSON.stringify(read.problems));
    const { store } = await openBesideDaemon(read.settings, 'write');
    const id = await store.commands.add(command, Date.now());
    await store.close();
    return id;
  }

  /** Processor time since its start, all threads, s. */
  cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  }

  memory(): Memory {
    const text = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    const kilobytes = (key: string) => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(text)?.[1]);
    return { rss: kilobytes('VmRSS') * 1024, peak: kilobytes('VmHWM') * 1024 };
  }

  /** Lines of its log that are warnings or errors: a run with any is not what it seems. */
  complaints(): string[] {
    return readFileSync(join(this.directory, 'daemon.log'), 'utf8')
      .split('\n')
      .filter((line) => / (WARN|ERROR|warn|error)/.test(line))
      .slice(0, 10);
  }
}
