import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { readSettings } from '../../src/config/settings/settings.ts';
import { Daemon } from '../../src/daemon/daemon.ts';
import { saveMemory } from '../../src/daemon/supervision/memory.ts';
import type { Log } from '../../src/plugins/contracts/index.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';

export const liveWorkers = 100_000;
export const queues = 10;
export const connections = 2;
export const workersPerQueue = liveWorkers / queues;

export const paths = (directory: string) => ({
  config: join(directory, 'thresher.yaml'),
  queueFile: join(directory, 'panda_queueconfig.json'),
  stateDir: join(directory, 'state'),
  database: join(directory, 'state', 'thresher.db'),
  backend: join(directory, 'backend.json'),
});

export interface SiteOptions {
  /** Of each queue. Default: one more than the benchmark's number, so that a daemon that may submit does so as soon as the backend has room. */
  readonly maxWorkers?: number;
  /** The factory that several sites share. Default: each is a factory of its own. */
  readonly factoryId?: string;
}

/** Ten queues on two connections. */
export function writeSite(directory: string, databaseUrl?: string, options: SiteOptions = {}): void {
  const { maxWorkers = workersPerQueue + 1, factoryId } = options;
  const { config, queueFile } = paths(directory);
  const settings = {
    master: { stateDir: 'state', harvester_id: 'bench', ...(factoryId !== undefined && { factoryId }) },
    ...(databaseUrl !== undefined && { database: { url: databaseUrl, sslmode: 'disable' } }),
    // Passes of submitters come every second; they are part of every figure. The rest is as delivered, but for
    // listings and the age of statuses: the benchmark says when something is shown.
    submitter: { sleepTime: 1 },
    monitor: { maxStatusAge: 3600 },
    sweeper: { listInterval: 3600 },
  };
  writeFileSync(config, stringify(settings));
  const module = join(import.meta.dirname, 'fake-backend.ts');
  const sections = {
    submitter: { name: 'FakeSubmitter', module },
    monitor: { name: 'FakeMonitor', module },
    sweeper: { name: 'FakeSweeper', module },
  };
  const all = Array.from({ length: queues }, (_, index) => [
    `BENCH_${index}`,
    {
      ...sections,
      common: { connection: `cluster-${index % connections}` },
      queueStatus: 'online',
      mapType: 'NoJob',
      demand: 'fill',
      maxWorkers,
    },
  ]);
  writeFileSync(queueFile, JSON.stringify(Object.fromEntries(all), null, 2));
}

export interface RunningDaemon {
  readonly daemon: Daemon;
  /** Warnings and errors it logged, "message: facts". */
  readonly complaints: readonly string[];
}

/** Starts the daemon of this site in this process. @param waiting hears again and again that another daemon has the factory */
export async function startDaemon(
  directory: string,
  clock: Clock = systemClock,
  waiting?: () => void,
): Promise<RunningDaemon> {
  const read = readSettings(paths(directory).config);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const complaints: string[] = [];
  const complain = (message: string, facts: Readonly<Record<string, unknown>> = {}) => {
    if (complaints.length < 20) complaints.push(`${message}: ${JSON.stringify(facts)}`);
  };
  const log: Log = { debug: () => undefined, info: () => undefined, warn: complain, error: complain };
  const daemon = await Daemon.start({
    settings: read.settings,
    clock,
    random: Math.random,
    log,
    ...(waiting && { waiting }),
  });
  saveMemory(daemon, clock);
  return { daemon, complaints };
}

export const sleep = (ms: number) => systemClock.sleep(ms);

export async function until(what: string, holds: () => boolean, patience = 120_000): Promise<void> {
  const start = performance.now();
  while (!holds()) {
    if (performance.now() - start > patience) throw new Error(`in vain waited for: ${what}`);
    await sleep(20);
  }
}

/** Hands the result to the parent process. */
export async function report(result: unknown): Promise<void> {
  await new Promise<void>((resolve) =>
    process.send?.(result, undefined, {}, () => {
      resolve();
    }),
  );
}
