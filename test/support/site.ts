import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { namedCommand } from '../../src/cli/named-command.ts';
import { readSettings } from '../../src/config/settings/settings.ts';
import { runningDaemon } from '../../src/daemon/lock.ts';
import { openBesideDaemon } from '../../src/daemon/reader.ts';
import type { StateDir } from '../../src/daemon/state-dir.ts';
import { type QueueView, queueViews, type WorkerView, workerView } from '../../src/daemon/view.ts';
import type { Store } from '../../src/store/store.ts';
import type { WorkerStatus } from '../../src/worker/status.ts';
import { type CommandResult, runHere } from './command-line.ts';
import { modules, program } from './program.ts';
import { temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

const checkout = resolve(import.meta.dirname, '../..');
const crashDaemon = join(import.meta.dirname, 'crash-daemon.ts');

export interface RunningDaemon {
  readonly pid: number;
  readonly process: ChildProcess;
  /** Everything it wrote so far. */
  output(): string;
  /** Resolves with its end: exit code or signal. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

export interface SiteOptions {
  /** Queue file; plugin sections of the local backend are filled in where a queue has none. */
  readonly queues: Record<string, Record<string, unknown>>;
  /** thresher.yaml beside what every test site has. */
  readonly settings?: Record<string, Record<string, unknown>>;
  /** Body of the pilots' shell script. */
  readonly pilot?: string;
}

/** A site of its own in a temporary directory: configuration, state, and the real program run on it. */
export class Site {
  readonly directory = temporaryDirectory();
  readonly config = join(this.directory, 'thresher.yaml');
  readonly queueFile = join(this.directory, 'panda_queueconfig.json');
  readonly stateDir = join(this.directory, 'state');
  readonly #daemons: RunningDaemon[] = [];

  constructor(options: SiteOptions) {
    const { settings = {}, queues, pilot = 'exec sleep 1000' } = options;
    const fast = {
      master: { stateDir: 'state', harvester_id: 'test-harvester', ...settings.master },
      // Most pilots of tests live for a moment only, and that is no black hole.
      submitter: { sleepTime: 0.3, blackHoleLifetime: 0, ...settings.submitter },
      // Tests run side by side: a port is for those that ask for one.
      http: { enabled: false, ...settings.http },
      monitor: { ...settings.monitor },
      sweeper: { sleepTime: 0.3, ...settings.sweeper },
      ...(settings.database && { database: settings.database }),
      ...(settings.qconf && { qconf: settings.qconf }),
      ...(settings.log && { log: settings.log }),
      ...(settings.cacher && { cacher: settings.cacher }),
      ...(settings.pandacon && { pandacon: settings.pandacon }),
      ...(settings.commandmanager && { commandmanager: settings.commandmanager }),
      ...(settings.propagator && { propagator: settings.propagator }),
      ...(settings.credmanager && { credmanager: settings.credmanager }),
      ...(settings.sources && { sources: settings.sources }),
    };
    writeFileSync(this.config, stringify(fast));
    writeFileSync(
      join(this.directory, 'pilot.yaml'),
      stringify({ command: '/bin/sh', args: ['-c', pilot], cpu: 0, env: { SITE_DIR: this.directory } }),
    );
    this.writeQueues(queues);
  }

  writeQueues(queues: Record<string, Record<string, unknown>>): void {
    const common = {
      queueStatus: 'online',
      mapType: 'NoJob',
      submitter: { name: 'LocalSubmitter', module: 'thresher/local', templateFile: 'pilot.yaml' },
      monitor: { name: 'LocalMonitor', module: 'thresher/local', pollInterval: 0.1, killGrace: 1 },
      sweeper: { name: 'LocalSweeper', module: 'thresher/local', killGrace: 1 },
    };
    const filled = Object.entries(queues).map(([name, queue]) => [name, { ...common, ...queue }]);
    writeFileSync(this.queueFile, JSON.stringify(Object.fromEntries(filled), null, 2));
  }

  path(...parts: string[]): string {
    return join(this.directory, ...parts);
  }

  /** Starts the real daemon. */
  start(args: string[] = [], env: Record<string, string> = {}): RunningDaemon {
    return this.#spawn(program(), ['--config', this.config, 'run', ...args], env);
  }

  /** Starts the real program with a command line of its own, followed and ended as a daemon is. */
  startWith(args: string[], env: Record<string, string> = {}, directory?: string): RunningDaemon {
    return this.#spawn(program(), args, env, directory);
  }

  /**
   * Starts the real daemon with its state on a disk of its own, in a mount namespace of its own: no root needed.
   * `stateDir` is how files there are reached from outside, `run` how the program is run inside.
   */
  startOnSmallDisk(size: string) {
    mkdirSync(this.stateDir, { recursive: true });
    const script = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"';
    const command = [program(), '--config', this.config];
    const inside = ['-rm', 'sh', '-c', script, 'sh', size, this.stateDir, ...command, 'run'];
    const daemon = this.#spawn('unshare', inside, {});
    const enter = ['-t', String(daemon.pid), '-U', '-m', '--preserve-credentials', '--', ...command];
    return {
      daemon,
      stateDir: `/proc/${daemon.pid}/root${this.stateDir}`,
      run: (...args: string[]) => runCommand('nsenter', [...enter, ...args]),
    };
  }

  /**
   * Starts the real daemon as the child of PID 1 in a PID namespace of the test's own, which nothing inside can kill out of.
   * A daemon that ends starts again, as below systemd, after a line `a daemon ended`. `as`: what gives it another user.
   */
  startFenced(as: readonly string[] = []): RunningDaemon {
    const own = process.getuid?.() === 0 ? [] : ['--user', '--map-current-user'];
    const fence = [...own, '--pid', '--fork', '--kill-child', '--mount-proc', '--'];
    // The other user may not be let into the directory that holds the checkout.
    const checkoutInside = as.length > 0 ? this.path('checkout') : checkout;
    const reach = as.length > 0 ? `mkdir -p "$inside" && mount --bind "$outside" "$inside" && ` : '';
    const again = 'while :; do setsid "$@" & wait "$!"; echo a daemon ended; done';
    const script = `outside=$1 inside=$2; shift 2; ${reach}${again}`;
    const started = as.length > 0 ? join(checkoutInside, 'bin/thresher') : program();
    const command = [started, '--config', this.config, 'run'];
    const inside = ['sh', '-c', script, 'sh', checkout, checkoutInside, ...as, ...command];
    // A session of its own: a signal to "the group of PID 1" stays inside.
    return this.#spawn('setsid', ['unshare', ...fence, ...inside], {});
  }

  /** Starts the real daemon as PID 1 of a PID namespace of its own, as in a container. A SIGKILL of its process ends it, too. */
  startAsFirst(args: string[] = []): RunningDaemon {
    const own = process.getuid?.() === 0 ? [] : ['--user', '--map-current-user'];
    const inside = [program(), '--config', this.config, 'run', ...args];
    return this.#spawn(
      'unshare',
      [...own, '--pid', '--fork', '--kill-child', '--mount-proc', '--', ...inside],
      {},
    );
  }

  /** Starts a daemon that kills itself with SIGKILL at a step. */
  startCrashingAt(step: string, env: Record<string, string> = {}): RunningDaemon {
    const { directory, extension } = modules();
    return this.#spawn(process.execPath, [crashDaemon, this.config, step, directory, extension], env);
  }

  /** Starts a daemon that stands still by SIGSTOP at a step, once. After a SIGCONT it goes on, and ends as the program does. */
  startPausingAt(step: string): RunningDaemon {
    return this.startCrashingAt(step, { THRESHER_TEST_SIGNAL: 'SIGSTOP' });
  }

  /**
   * Runs one subcommand, in this process: a program would take ten times as long. A daemon has a process of its own, which it may
   * end by force.
   */
  run(...args: string[]): Promise<CommandResult> {
    const run = namedCommand(args) === 'run' ? runProgram : runHere;
    return run('--config', this.config, ...args);
  }

  /**
   * The first run of a command in this process loads the program, which takes seconds on a busy machine. A proxy of the test stands
   * still meanwhile, and a daemon behind it loses its lease: so this comes before such a daemon starts.
   */
  async loadCommands(): Promise<void> {
    for (const command of [['status'], ['queues'], ['pause', 'Q'], ['kill', '1']]) await this.run(...command);
  }

  /** The workers as the command line prints them, newest first. Read in this process: polling by a program is dear. */
  async workers(filter: { queue?: string; status?: WorkerStatus } = {}): Promise<WorkerView[]> {
    const { queue, status } = filter;
    return this.read(async ({ store }) => {
      const records = await store.workers.list({ queue, statuses: status && [status] });
      return records.map(workerView);
    });
  }

  async queues(): Promise<QueueView[]> {
    return this.read(({ store, dir }) => queueViews(store, runningDaemon(dir)));
  }

  async queue(name: string): Promise<QueueView> {
    const found = (await this.queues()).find((queue) => queue.name === name);
    if (found === undefined) throw new Error(`no queue ${name}`);
    return found;
  }

  removeDatabase(): void {
    for (const suffix of ['', '-wal', '-shm'])
      rmSync(join(this.stateDir, `thresher.db${suffix}`), { force: true });
  }

  /** Live shims, that is process-group leaders, by worker id: what really runs, whatever anybody believes. */
  liveShims(): Map<number, number> {
    return liveShims(join(this.stateDir, 'local'));
  }

  /** Living processes of all workers, shims or not. */
  liveProcesses(): number {
    return markedProcesses(this.directory).length;
  }

  /** The queue that a worker's directory names; undefined when it is gone already. */
  queueOfDirectory(workerId: number): string | undefined {
    try {
      const text = readFileSync(join(this.stateDir, 'local', String(workerId), 'worker.json'), 'utf8');
      return (JSON.parse(text) as { worker: { queue: string } }).worker.queue;
    } catch {
      return undefined;
    }
  }

  /** How often each worker's command was started; pilots say so themselves by `countStarts`. */
  starts(): Map<number, number> {
    const directory = this.path('starts');
    if (!existsSync(directory)) return new Map();
    return new Map(
      readdirSync(directory).map((id) => [
        Number(id),
        readFileSync(join(directory, id), 'utf8').trim().split('\n').length,
      ]),
    );
  }

  /** Kills every process of every worker, shims included, behind everybody's back. */
  killEverything(): void {
    for (const pid of markedProcesses(this.directory)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Gone meanwhile.
      }
    }
  }

  /** Ends all daemons and all workers of the site. */
  async clean(): Promise<void> {
    for (const daemon of this.#daemons) daemon.process.kill('SIGKILL');
    await Promise.all(this.#daemons.map((daemon) => daemon.ended));
    await until('all workers of the site are gone', () => {
      this.killEverything();
      return markedProcesses(this.directory).length === 0;
    });
  }

  /** Reads the records of thresher, beside a daemon that may run. */
  async read<T>(use: (opened: { store: Store; dir: StateDir }) => Promise<T>): Promise<T> {
    const result = readSettings(this.config);
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    const opened = await openBesideDaemon(result.settings, 'read');
    try {
      return await use(opened);
    } finally {
      await opened.store.close();
    }
  }

  #spawn(command: string, args: string[], env: Record<string, string>, cwd?: string): RunningDaemon {
    const child = spawn(command, args, {
      ...(cwd !== undefined && { cwd }),
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    let output = '';
    child.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
    child.stderr.on('data', (piece: Buffer) => (output += piece.toString()));
    const ended = once(child, 'close').then(
      ([code, signal]) => (code as number | null) ?? (signal as NodeJS.Signals),
    );
    const daemon = { pid: child.pid ?? 0, process: child, output: () => output, ended };
    this.#daemons.push(daemon);
    return daemon;
  }
}

/**
 * Waits until a daemon has written this. Its output comes through a pipe, so it may be behind the database, and behind each
 * signal that the daemon gives otherwise.
 */
export async function untilSaid(daemon: Pick<RunningDaemon, 'output'>, what: string | RegExp): Promise<void> {
  const isThere = () =>
    typeof what === 'string' ? daemon.output().includes(what) : what.test(daemon.output());
  await until(() => `the daemon says ${String(what)}; it wrote:\n${daemon.output().slice(-4000)}`, isThere);
}

/** Shell line for pilots whose starts a test counts. */
export const countStarts = 'mkdir -p $SITE_DIR/starts; echo start >> $SITE_DIR/starts/$HARVESTER_WORKER_ID;';

export function runProgram(...args: string[]): Promise<CommandResult> {
  return runCommand(program(), args);
}

async function runCommand(command: string, args: readonly string[]): Promise<CommandResult> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (piece: Buffer) => (stdout += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => (stderr += piece.toString()));
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, stdout, stderr };
}

/** Pids of living processes whose environment carries a worker directory below `directory`. */
function markedProcesses(directory: string): number[] {
  return readProcesses().flatMap(({ pid, mark }) => (mark.startsWith(directory) ? [pid] : []));
}

function liveShims(workDir: string): Map<number, number> {
  const result = new Map<number, number>();
  for (const { pid, group, mark } of readProcesses()) {
    if (pid !== group || !mark.startsWith(`${workDir}/`)) continue;
    const id = Number(mark.slice(workDir.length + 1));
    result.set(id, (result.get(id) ?? 0) + 1);
  }
  return result;
}

function readProcesses(): { pid: number; group: number; mark: string }[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (fields[0] === 'Z') return [];
      const environ = readFileSync(`/proc/${entry}/environ`, 'latin1').split('\0');
      const mark = environ.find((line) => line.startsWith('THRESHER_WORKER_DIR='))?.split('=')[1];
      return mark === undefined ? [] : [{ pid: Number(entry), group: Number(fields[2]), mark }];
    } catch {
      return [];
    }
  });
}

export function makeDirectory(path: string): string {
  mkdirSync(path, { recursive: true });
  return path;
}
