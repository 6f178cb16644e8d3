import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isBuilt } from '../../test/support/program.ts';
import { until } from '../../test/support/until.ts';
import { tablesOf } from '../shared/figure.ts';
import { machine } from '../shared/machine.ts';
import { progressOf } from '../shared/progress.ts';
import { bareCommands, figuresOf } from './figures.ts';
import type { CommandTimes, Measured } from './measured.ts';
import { fillDatabase, rows, writeSite } from './site.ts';

const rounds = 21;
const checkout = resolve(import.meta.dirname, '../..');
const readingCommands = ['queues', 'workers --limit 100', `worker ${rows / 2}`];
const progress = progressOf('start');

/** How long commands and the daemon take to start; the results go to `results/start.json` and `results/start.md`. */
export async function benchStart(resultsDirectory: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const remove = () => {
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  try {
    const measured = await measure(directory);
    const date = new Date().toISOString();
    const figures = figuresOf(measured);
    const on = machine();
    const results = { benchmark: 'start', date, machine: on, figures, measured };
    mkdirSync(resultsDirectory, { recursive: true });
    writeFileSync(join(resultsDirectory, 'start.json'), `${JSON.stringify(results, null, 2)}\n`);
    const { cpu, cores, memoryGiB, system, node, sqlite, fileSystem } = on;
    const page = [
      '# Benchmark: start',
      '',
      `${date}, ${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}, SQLite ${sqlite}, databases on ${fileSystem}.`,
      `Medians of ${rounds} runs in turns. How each figure is taken: bench/README.md.`,
      '',
      ...tablesOf(figures),
      '',
    ].join('\n');
    writeFileSync(join(resultsDirectory, 'start.md'), page);
    process.stdout.write(page);
  } finally {
    remove();
    process.off('exit', remove);
  }
}

interface Program {
  readonly path: string;
  /** Each keeps what it compiled in a home of its own. */
  readonly home: string;
}

async function measure(directory: string): Promise<Measured> {
  if (!isBuilt(checkout)) {
    progress('dist/ is older than the sources: it is built');
    execFileSync('npm', ['run', 'build'], { cwd: checkout, stdio: 'ignore' });
  }
  const published = { path: installed(directory), home: join(directory, 'home-published') };
  const sources = { path: join(checkout, 'bin/thresher'), home: join(directory, 'home-checkout') };
  for (const { home } of [published, sources]) mkdirSync(home);
  progress(`a database of ${rows.toLocaleString('en')} rows`);
  const config = writeSite(join(directory, 'site'), 1);
  await fillDatabase(join(directory, 'site'));
  const times = { published: new Times(), checkout: new Times(), beside: new Times() };
  const commands = [...bareCommands, ...readingCommands];
  const beside = [[process.execPath, '-e', '0'], ...kubectl()];
  for (let round = 0; round <= rounds; round++) {
    progress(
      round === 0 ? 'every command once, so that its code is compiled' : `round ${round} of ${rounds}`,
    );
    for (const command of commands) {
      for (const [name, program] of [
        ['published', published],
        ['checkout', sources],
      ] as const) {
        const seconds = processorTime(
          [program.path, '--config', config, ...command.split(' ')],
          program.home,
        );
        if (round > 0) times[name].add(command, seconds);
      }
    }
    for (const [program = '', ...args] of beside) {
      const seconds = processorTime([program, ...args], published.home);
      const name = [program.split('/').at(-1), ...args].join(' ');
      if (round > 0) times.beside.add(name, seconds);
    }
  }
  const starts: { wall: number; processor: number }[] = [];
  for (let round = 0; round <= rounds; round++) {
    progress(`start of a daemon ${round} of ${rounds}`);
    const site = join(directory, `daemon-${round}`);
    const start = await firstPilot(published, site);
    if (round > 0) starts.push(start);
  }
  return {
    published: times.published.all,
    checkout: times.checkout.all,
    beside: times.beside.all,
    firstPilot: starts.map(({ wall }) => wall),
    firstPilotProcessor: starts.map(({ processor }) => processor),
  };
}

class Times {
  readonly all: Record<string, number[]> & CommandTimes = {};

  add(command: string, seconds: number): void {
    (this.all[command] ??= []).push(seconds);
  }
}

/** A tree that holds what the package does: without sources, the program runs `dist/`. */
function installed(directory: string): string {
  const tree = join(directory, 'installed');
  mkdirSync(join(tree, 'bin'), { recursive: true });
  cpSync(join(checkout, 'bin/thresher'), join(tree, 'bin/thresher'));
  for (const name of ['dist', 'node_modules']) symlinkSync(join(checkout, name), join(tree, name));
  return join(tree, 'bin/thresher');
}

function kubectl(): string[][] {
  const found = spawnSync('kubectl', ['version', '--client']).status === 0;
  if (!found) progress('there is no kubectl to measure beside it');
  return found ? [['kubectl', 'version', '--client']] : [];
}

/** User and system time of a command and all that it starts, s: bash tells it to the millisecond. */
function processorTime(command: readonly string[], HOME: string): number {
  const script = 'TIMEFORMAT="%U %S"; time "$@" >/dev/null';
  const { status, stderr } = spawnSync('bash', ['-c', script, 'bash', ...command], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME },
  });
  const [user, system] = (stderr.trimEnd().split('\n').at(-1) ?? '').split(' ').map(Number);
  if (status !== 0 || user === undefined || system === undefined)
    throw new Error(`${command.join(' ')} ended with ${String(status)}: ${stderr}`);
  return user + system;
}

/** Ticks of /proc/PID/stat per second. Source: proc(5); it is 100 on all of Linux' usual builds. */
const ticksPerSecond = 100;

async function firstPilot(program: Program, site: string): Promise<{ wall: number; processor: number }> {
  const config = writeSite(site, 1);
  const begin = performance.now();
  const daemon = spawn(program.path, ['--config', config, 'run'], {
    stdio: 'ignore',
    env: { PATH: process.env['PATH'], HOME: program.home },
  });
  const ended = once(daemon, 'exit');
  try {
    // The file is looked for every 25 ms.
    await until('the first pilot runs', () => existsSync(join(site, 'ran')), 30_000);
    const wall = (performance.now() - begin) / 1000;
    const stat = readFileSync(`/proc/${daemon.pid ?? 0}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { wall, processor: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond };
  } finally {
    // Its pilot ends by itself.
    daemon.kill('SIGKILL');
    await ended;
  }
}
