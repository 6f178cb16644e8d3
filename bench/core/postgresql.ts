import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PostgresqlServer } from '../../test/support/postgresql.ts';
import { runChild } from '../shared/children.ts';
import { atLeast, atMost, type Figure, info, tablesOf } from '../shared/figure.ts';
import { machine } from '../shared/machine.ts';
import { progressOf } from '../shared/progress.ts';
import { median, round } from '../shared/statistics.ts';
import type { PostgresqlLive } from './postgresql-live.ts';
import type { RestartResult } from './restart.ts';
import { liveWorkers, writeSite } from './site.ts';

/** What differs from PostgreSQL's own defaults. A commit is on disk before it is answered. */
export const configuration = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  shared_buffers: '256MB',
  max_wal_size: '2GB',
} as const;
const restarts = 3;
const progress = progressOf('core on PostgreSQL');
const programOf = (name: string) => join(import.meta.dirname, name);

/** The core on a PostgreSQL server of its own; the results go to `results/core-postgresql.{json,md}`. */
export async function benchCoreOnPostgresql(resultsDirectory: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const server = new PostgresqlServer(configuration);
  try {
    await server.start();
    const [about] = await server.query<{ version: string }>(
      `SELECT current_setting('server_version') AS version`,
    );
    await server.query('CREATE DATABASE live');
    const original = join(directory, 'live');
    mkdirSync(original);
    writeSite(original, server.url('live'));
    const before = loadavg()[0] ?? NaN;
    progress('a daemon with 100,000 live workers');
    const live = await runChild<PostgresqlLive>(programOf('postgresql-live.ts'), original, server.directory);
    const results: RestartResult[] = [];
    const save = () => {
      const measured = { live, restarts: results };
      const figures = figuresOf(live, results);
      const circumstances = {
        date: new Date().toISOString(),
        machine: machine(),
        postgresql: about?.version ?? 'unknown',
        configuration,
        loads: [before, loadavg()[0] ?? NaN] as const,
      };
      mkdirSync(resultsDirectory, { recursive: true });
      const all = { benchmark: 'core-postgresql', ...circumstances, figures, measured };
      writeFileSync(join(resultsDirectory, 'core-postgresql.json'), `${JSON.stringify(all, null, 2)}\n`);
      writeFileSync(join(resultsDirectory, 'core-postgresql.md'), pageOf(all));
      return pageOf(all);
    };
    // The rates stay, whatever becomes of the restarts.
    save();
    for (let one = 1; one <= restarts; one++) {
      progress(`restart ${one} of ${restarts}`);
      await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'live'`);
      // Each finds the very state that the killed daemon left.
      const name = `restart_${one}`;
      await server.query(`CREATE DATABASE ${name} TEMPLATE live`);
      const copy = join(directory, name);
      cpSync(original, copy, { recursive: true });
      writeSite(copy, server.url(name));
      results.push(await runChild<RestartResult>(programOf('restart.ts'), copy, String(Date.now())));
      save();
    }
    process.stdout.write(save());
  } finally {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

function figuresOf(live: PostgresqlLive, restarted: readonly RestartResult[]): Figure[] {
  const perWorker = (bytes: number) => Math.round((bytes - live.rss.idle) / liveWorkers);
  const ratio = median(live.daemon.map((rate, index) => rate / (live.bare[index] ?? NaN)));
  const bytes = { unit: 'B/worker', target: 2048 };
  return [
    atLeast(
      'write-rate',
      'state changes written, seen by a monitor all at once',
      Math.round(median(live.daemon)),
      {
        unit: '1/s',
        target: 10_000,
      },
    ),
    atLeast(
      'write-ratio',
      'daemon against a bare pg loop with arrays, median of the rounds',
      round(ratio, 2),
      {
        unit: 'ratio',
        target: 0.5,
      },
    ),
    info('write-bare', 'the same rows from that loop', Math.round(median(live.bare)), '1/s'),
    atMost(
      'memory-live',
      'resident above the idle daemon, all submitted and observed',
      perWorker(live.rss.live),
      bytes,
    ),
    atMost('memory-after-all', 'the same after all rounds of changes', perWorker(live.rss.afterAll), bytes),
    atMost(
      'idle-writes',
      'SQL that writes during 20 passes over 100,000 unchanged workers',
      live.idleWrites,
      {
        unit: 'statements',
        target: 0,
      },
    ),
    info(
      'idle-background',
      'SQL of all loops meanwhile',
      round(live.idleStatements / live.idleSeconds, 1),
      '1/s',
    ),
    info(
      'idle-control',
      'SQL that writes in a pass in which one worker changed',
      live.controlWrites,
      'statements',
    ),
    info('idle-pass', 'time of one pass over 100,000 unchanged workers', round(live.passMs, 1), 'ms'),
    info('fill', 'time to submit 100,000 workers', round(live.fillSeconds, 1), 's'),
    ...(restarted.length === 0
      ? []
      : [
          atMost(
            'restart-ready',
            'restart after SIGKILL: from the process to new submissions in every queue',
            Math.round(median(restarted.map(({ ready }) => ready))),
            { unit: 'ms', target: 10_000 },
          ),
        ]),
  ];
}

interface Results {
  readonly date: string;
  readonly machine: ReturnType<typeof machine>;
  readonly postgresql: string;
  readonly loads: readonly [number, number];
  readonly figures: readonly Figure[];
  readonly measured: { readonly live: PostgresqlLive; readonly restarts: readonly RestartResult[] };
}

function pageOf({ date, machine: on, postgresql, loads, figures, measured }: Results): string {
  const { live, restarts: restarted } = measured;
  const settings = Object.entries(configuration).map(([name, value]) => `\`${name}=${value}\``);
  const complaints = [...live.complaints, ...restarted.flatMap((one) => one.complaints)];
  return [
    '# Benchmark: core on PostgreSQL',
    '',
    `${date}, ${on.cpu}, ${on.cores} cores, ${on.memoryGiB} GiB, ${on.system}, Node ${on.node}, databases on ${on.fileSystem}.`,
    `PostgreSQL ${postgresql} on the same machine over a Unix socket, ${settings.join(', ')}, all else by default.`,
    `Load of the machine before: ${loads[0].toFixed(1)}; after, with the benchmark's own: ${loads[1].toFixed(1)}.`,
    '',
    ...tablesOf(figures),
    '',
    `Changes a second, daemon: ${live.daemon.map(Math.round).join(', ')}.`,
    `Changes a second, bare loop: ${live.bare.map(Math.round).join(', ')}.`,
    `Restart to ready, ms: ${restarted.map(({ ready }) => ready).join(', ') || 'not measured'}.`,
    '',
    '## SQL while the passes were made',
    '',
    ...live.byText.map(([text, count]) => `- ${count} x \`${text}\``),
    '',
    ...complaints.map((one) => `The daemon complained: ${one}`),
    '',
  ].join('\n');
}
