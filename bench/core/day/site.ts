import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { connectionOf, queueName, queues, type Replay } from './replay.ts';

/** Simulated hours that traces of ended workers are kept on the backend. */
export const keptHours = 0.2;

const queueFile = 'panda_queueconfig.json';

export interface SiteParts extends Pick<Replay, 'speed'> {
  readonly member: string;
  readonly databaseUrl: string;
  readonly simulator: string;
}

/**
 * Writes the settings of one member, beside the queue file that all have: queues with files at other paths would be other
 * queues to the next member. Intervals of loops are those by default, at the speed of the replay; leases and time-outs
 * are as by default.
 */
export function writeSite(
  directory: string,
  { member, databaseUrl, simulator, speed }: SiteParts,
): { readonly config: string } {
  mkdirSync(directory, { recursive: true });
  const config = join(directory, 'thresher.yaml');
  const kept = keptHours / speed;
  const settings = {
    master: { stateDir: 'state', harvester_id: 'bench', factoryId: 'day' },
    qconf: { configFile: `../${queueFile}` },
    database: { url: databaseUrl, sslmode: 'disable', shareQueues: true, member },
    submitter: { sleepTime: 10 / speed, blackHoleLifetime: 10 / speed },
    sweeper: {
      sleepTime: 60 / speed,
      listInterval: 600 / speed,
      keepFinished: kept,
      keepFailed: kept,
      keepCancelled: kept,
      keepMissed: kept,
    },
    http: { port: 0 },
    log: { format: 'json' },
  };
  writeFileSync(config, stringify(settings));
  const module = join(import.meta.dirname, 'backend.ts');
  const sections = {
    submitter: { name: 'DaySubmitter', module },
    monitor: { name: 'DayMonitor', module },
    sweeper: { name: 'DaySweeper', module },
  };
  const all = Array.from({ length: queues }, (_, index) => [
    queueName(index),
    {
      ...sections,
      common: { connection: connectionOf(index), simulator },
      queueStatus: 'online',
      mapType: 'NoJob',
      demand: 'fill',
      // The room that the backend has says how many are submitted.
      maxWorkers: 100_000,
    },
  ]);
  writeFileSync(join(directory, '..', queueFile), JSON.stringify(Object.fromEntries(all), null, 2));
  return { config };
}
