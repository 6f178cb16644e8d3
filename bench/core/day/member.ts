import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const program = resolve(import.meta.dirname, '../../../bin/thresher');
/** Ticks of /proc/PID/stat per second. Source: proc(5); it is 100 on all of Linux' usual builds. */
const ticksPerSecond = 100;

/** One process of a member, from its start to its SIGKILL. Times are real ms since the replay began. */
export interface Life {
  readonly member: string;
  readonly from: number;
  /** Resident memory in bytes, by time. */
  readonly rss: (readonly [at: number, bytes: number])[];
  /** Processor time from the first look to the last, s. */
  cpuSeconds: number;
  isKilled: boolean;
}

/** A daemon of the real program that is killed and started again. */
export class Member {
  readonly name: string;
  readonly lives: Life[] = [];
  readonly #directory: string;
  readonly #config: string;
  #child: ChildProcess | undefined;
  /** Of the current process at its first look, s. */
  #cpuBefore: number | undefined;

  constructor(name: string, directory: string, config: string) {
    this.name = name;
    this.#directory = directory;
    this.#config = config;
  }

  get isUp(): boolean {
    const { pid, exitCode = null, signalCode = null } = this.#child ?? {};
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  /** The last lines of its log. */
  get lastWords(): string {
    return this.#lines().slice(-3).join('\n');
  }

  start(at: number): void {
    // Node's own variables of whoever started the benchmark are not the daemon's.
    const { BENCH_NODE_OPTIONS: options = '' } = process.env;
    const child = spawn(program, ['--config', this.#config, 'run'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd: this.#directory,
      env: { ...process.env, NODE_OPTIONS: options },
    });
    child.stderr.pipe(createWriteStream(this.#log, { flags: 'a' }));
    const withParent = () => child.kill('SIGKILL');
    process.once('exit', withParent);
    child.once('exit', () => process.off('exit', withParent));
    this.#child = child;
    this.#cpuBefore = undefined;
    this.lives.push({ member: this.name, from: at, rss: [], cpuSeconds: 0, isKilled: false });
  }

  async kill(): Promise<void> {
    if (this.#child === undefined || !this.isUp) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    const life = this.lives.at(-1);
    if (life !== undefined) life.isKilled = true;
    await ended;
  }

  /** Looks at the process, if it is up. */
  look(at: number): void {
    const life = this.lives.at(-1);
    if (life === undefined || !this.isUp) return;
    const of = (file: string) => readFileSync(`/proc/${this.#child?.pid ?? 0}/${file}`, 'utf8');
    const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(of('status'))?.[1]);
    // A process that ends just now has none.
    if (!Number.isFinite(kilobytes)) return;
    life.rss.push([at, kilobytes * 1024]);
    const stat = of('stat');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const seconds = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
    // What a process took before the replay began is not part of it.
    this.#cpuBefore ??= life.from === 0 ? seconds : 0;
    life.cpuSeconds = seconds - this.#cpuBefore;
  }

  /** Warnings and errors of its log, and how often each came. */
  complaints(): ReadonlyMap<string, number> {
    const found = new Map<string, number>();
    for (const line of this.#lines()) {
      if (!line.startsWith('{')) continue;
      try {
        const { level, message, code } = JSON.parse(line) as Readonly<Record<string, unknown>>;
        if (level !== 'warn' && level !== 'error') continue;
        const what = `${String(message)}${typeof code === 'string' ? ` (${code})` : ''}`;
        found.set(what, (found.get(what) ?? 0) + 1);
      } catch {
        // The last line of a process that was killed.
      }
    }
    return found;
  }

  get #log(): string {
    return join(this.#directory, 'daemon.log');
  }

  #lines(): string[] {
    return existsSync(this.#log) ? readFileSync(this.#log, 'utf8').trimEnd().split('\n') : [];
  }
}
