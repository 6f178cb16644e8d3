import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PostgresqlServer } from '../../test/support/postgresql.ts';
import { until } from '../../test/support/until.ts';
import { flagsOfTheProgram } from '../shared/children.ts';
import { atMost, type Figure, info, tablesOf } from '../shared/figure.ts';
import { machine } from '../shared/machine.ts';
import { progressOf } from '../shared/progress.ts';
import { median, percentiles, round } from '../shared/statistics.ts';
import { configuration } from './postgresql.ts';
import { queues, sleep, writeSite } from './site.ts';
import type { Told, TookOver } from './takeover-daemon.ts';

const perQueue = 2000;
const rounds = 20;
/** Default of `database.leaseDuration`, and how often a lease is renewed in it, ms. */
const renewalEvery = 15_000 / 3;
const database = 'takeover';
const progress = progressOf('take-over');

/** ms */
interface Round {
  /** From the leader's last renewal to its SIGKILL. */
  readonly sinceRenewal: number;
  /** From the SIGKILL until the standby has the lease. */
  readonly lease: number;
  /** From there until all rows are in memory and the loops run. */
  readonly reading: number;
  /** From there until the backend gets the first new worker. */
  readonly submitting: number;
  /** From the SIGKILL until the backend gets the first new worker. */
  readonly first: number;
  /** From the SIGKILL until the last queue has submitted. */
  readonly last: number;
}

/** The take-over of a factory with 20,000 live workers; the results go to `results/core-takeover.{json,md}`. */
export async function benchTakeover(resultsDirectory: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const server = new PostgresqlServer(configuration);
  const daemons = new Set<Daemon>();
  try {
    await server.start();
    const [about] = await server.query<{ version: string }>(
      `SELECT current_setting('server_version') AS version`,
    );
    await server.query(`CREATE DATABASE ${database}`);
    const before = loadavg()[0] ?? NaN;
    const start = (generation: number): Daemon => {
      const own = join(directory, `daemon-${generation}`);
      mkdirSync(own);
      const maxWorkers = perQueue + generation;
      writeSite(own, server.url(database), { maxWorkers, factoryId: 'bench' });
      const daemon = new Daemon(own, join(directory, 'backend.json'), maxWorkers * queues);
      daemons.add(daemon);
      return daemon;
    };
    progress(`a leader with ${perQueue * queues} live workers`);
    let leader = start(0);
    await leader.hears('filled');
    const measured: Round[] = [];
    const complaints: string[] = [];
    for (let one = 1; one <= rounds; one++) {
      progress(`take-over ${one} of ${rounds}`);
      await settled(server, (perQueue + one - 1) * queues);
      const standby = start(one);
      await standby.hears('standby');
      // Each round kills the leader at another moment between two renewals.
      await sleep(2000 + ((one - 1) * renewalEvery) / rounds);
      const renewed = await lastRenewal(server);
      const killedAt = Date.now();
      leader.kill();
      const took = await standby.hears('took');
      measured.push(roundOf(took, { killedAt, renewed, takenAt: await takenAt(server) }));
      const { workers, complaints: its } = await standby.hears('filled');
      if (took.liveWorkers !== (perQueue + one - 1) * queues || workers !== (perQueue + one) * queues)
        throw new Error(`the new leader knew ${took.liveWorkers} workers, and made ${workers} of them`);
      complaints.push(...its);
      leader = standby;
    }
    await settled(server, (perQueue + rounds) * queues);
    const results: Results = {
      benchmark: 'core-takeover',
      date: new Date().toISOString(),
      machine: machine(),
      postgresql: about?.version ?? 'unknown',
      loads: [before, loadavg()[0] ?? NaN],
      figures: figuresOf(measured),
      measured,
      complaints: [...new Set(complaints)],
    };
    mkdirSync(resultsDirectory, { recursive: true });
    writeFileSync(join(resultsDirectory, 'core-takeover.json'), `${JSON.stringify(results, null, 2)}\n`);
    writeFileSync(join(resultsDirectory, 'core-takeover.md'), pageOf(results));
    process.stdout.write(pageOf(results));
  } finally {
    for (const daemon of daemons) daemon.kill();
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A daemon in a process of its own. */
class Daemon {
  readonly #child: ChildProcess;
  readonly #told: Told[] = [];

  constructor(directory: string, snapshot: string, workers: number) {
    const program = join(import.meta.dirname, 'takeover-daemon.ts');
    this.#child = fork(program, [directory, snapshot, String(workers)], {
      execArgv: ['--expose-gc', ...flagsOfTheProgram()],
    });
    const withParent = () => {
      this.kill();
    };
    process.once('exit', withParent);
    this.#child.once('exit', () => process.off('exit', withParent));
    this.#child.on('message', (message) => this.#told.push(message as Told));
  }

  /** Waits until it says this. @throws when it ends before */
  async hears<Kind extends Told['kind']>(kind: Kind): Promise<Extract<Told, { kind: Kind }>> {
    const isThis = (one: Told): one is Extract<Told, { kind: Kind }> => one.kind === kind;
    for (;;) {
      const found = this.#told.find(isThis);
      if (found !== undefined) return found;
      const { exitCode, signalCode } = this.#child;
      if (exitCode !== null || signalCode !== null)
        throw new Error(`a daemon ended before it said "${kind}"`);
      await Promise.race([once(this.#child, 'message'), once(this.#child, 'exit')]);
    }
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

/** Waits until the database has so many workers, and all of them run. @throws when any has ended, or there are more */
async function settled(server: PostgresqlServer, workers: number): Promise<void> {
  let seen = '';
  await until(
    () => `the database has ${workers} workers that run; it has ${seen}`,
    async () => {
      const [row] = await server.query<{ all: number; running: number }>(
        `SELECT count(*) AS all, count(*) FILTER (WHERE status = 'running') AS running FROM workers`,
        database,
      );
      seen = JSON.stringify(row);
      return row?.all === workers && row.running === workers;
    },
  );
}

/** ms UTC, by the clock of this very machine. */
async function lastRenewal(server: PostgresqlServer): Promise<number> {
  const [row] = await server.query<{ at: number }>(
    `SELECT (extract(epoch FROM expires_at) * 1000)::bigint - 15000 AS at FROM leases`,
    database,
  );
  return row?.at ?? NaN;
}

async function takenAt(server: PostgresqlServer): Promise<number> {
  const [row] = await server.query<{ at: number }>(
    'SELECT (extract(epoch FROM taken_at) * 1000)::bigint AS at FROM leases',
    database,
  );
  return row?.at ?? NaN;
}

function roundOf(
  { started, first, last }: TookOver,
  at: { readonly killedAt: number; readonly renewed: number; readonly takenAt: number },
): Round {
  const { killedAt, renewed, takenAt: taken } = at;
  return {
    sinceRenewal: killedAt - renewed,
    lease: taken - killedAt,
    reading: started - taken,
    submitting: first - started,
    first: first - killedAt,
    last: last - killedAt,
  };
}

function figuresOf(measured: readonly Round[]): Figure[] {
  const seconds = (part: keyof Round) => measured.map((one) => one[part] / 1000);
  const worst = (values: readonly number[]) => round(Math.max(...values), 1);
  const middle = (values: readonly number[]) => round(median(values), 1);
  const first = seconds('first');
  const opening = measured.map(({ reading, submitting }) => (reading + submitting) / 1000);
  const target = { unit: 's', target: 25 };
  return [
    atMost(
      'takeover-p99',
      `from SIGKILL of the leader to the first submission of the standby, 99th percentile of ${measured.length}`,
      round(percentiles(first)[99] ?? NaN, 1),
      target,
    ),
    atMost('takeover-worst', 'the same, the worst', worst(first), target),
    info('takeover-median', 'the same, the median', middle(first), 's'),
    info(
      'last-queue',
      'from SIGKILL until all ten queues have submitted, the worst',
      worst(seconds('last')),
      's',
    ),
    info('lease-median', 'until the standby has the lease, the median', middle(seconds('lease')), 's'),
    info('lease-worst', 'until the standby has the lease, the worst', worst(seconds('lease')), 's'),
    info('opening-median', 'from the lease to the first submission, the median', middle(opening), 's'),
    info('opening-worst', 'from the lease to the first submission, the worst', worst(opening), 's'),
    info(
      'reading',
      'of that until all rows are in memory, the median',
      round(median(seconds('reading')), 2),
      's',
    ),
  ];
}

interface Results {
  readonly benchmark: string;
  readonly date: string;
  readonly machine: ReturnType<typeof machine>;
  readonly postgresql: string;
  readonly loads: readonly [number, number];
  readonly figures: readonly Figure[];
  readonly measured: readonly Round[];
  readonly complaints: readonly string[];
}

function pageOf({ date, machine: on, postgresql, loads, figures, measured, complaints }: Results): string {
  const settings = Object.entries(configuration).map(([name, value]) => `\`${name}=${value}\``);
  const shown = (part: keyof Round) => measured.map((one) => (one[part] / 1000).toFixed(1)).join(' | ');
  const line = (what: string, part: keyof Round) => `| ${what} | ${shown(part)} |`;
  return [
    '# Benchmark: take-over',
    '',
    `${date}, ${on.cpu}, ${on.cores} cores, ${on.memoryGiB} GiB, ${on.system}, Node ${on.node}, databases on ${on.fileSystem}.`,
    `PostgreSQL ${postgresql} on the same machine over a Unix socket, ${settings.join(', ')}, all else by default.`,
    `Load of the machine before: ${loads[0].toFixed(1)}; after, with the benchmark's own: ${loads[1].toFixed(1)}.`,
    `${(perQueue * queues).toLocaleString('en')} live workers of ${queues} queues on 2 connections; \`database.leaseDuration\` as by default, 15 s.`,
    '',
    ...tablesOf(figures),
    '',
    '## Rounds, s',
    '',
    `| round | ${measured.map((_, index) => index + 1).join(' | ')} |`,
    `| --- |${' ---: |'.repeat(measured.length)}`,
    line('the lease was renewed before SIGKILL', 'sinceRenewal'),
    line('SIGKILL to lease', 'lease'),
    line('lease to all rows in memory', 'reading'),
    line('from there to the first submission', 'submitting'),
    line('SIGKILL to the first submission', 'first'),
    line('SIGKILL to all queues', 'last'),
    '',
    ...complaints.map((one) => `The daemon complained: ${one}`),
    '',
  ].join('\n');
}
