import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { stringify } from 'yaml';
import { openStore } from '../../src/store/store.ts';
import { insertEnded } from '../../test/support/ended-workers.ts';

/** Rows of the database that commands read. */
export const rows = 100_000;
const factoryId = 'factory';

/** Settings and a queue file of one queue on the local backend. @returns the settings file. */
export function writeSite(directory: string, wanted: number): string {
  mkdirSync(directory, { recursive: true });
  const config = join(directory, 'thresher.yaml');
  writeFileSync(
    config,
    stringify({
      master: { stateDir: 'state', harvester_id: 'bench', factoryId },
      // All is kept: what retention removes would be gone before it is read.
      http: { enabled: false },
      sweeper: { keepFinished: 0 },
    }),
  );
  const pilot = { command: '/bin/sh', args: ['-c', 'echo >"$SITE_DIR/ran"; exec sleep 2'], cpu: 0 };
  writeFileSync(join(directory, 'pilot.yaml'), stringify({ ...pilot, env: { SITE_DIR: directory } }));
  const queue = {
    queueStatus: 'online',
    mapType: 'NoJob',
    demand: 'fill',
    maxWorkers: wanted,
    nQueueLimitWorker: wanted,
    submitter: { name: 'LocalSubmitter', module: 'thresher/local', templateFile: 'pilot.yaml' },
    monitor: { name: 'LocalMonitor', module: 'thresher/local' },
    sweeper: { name: 'LocalSweeper', module: 'thresher/local', killGrace: 0 },
  };
  writeFileSync(join(directory, 'panda_queueconfig.json'), JSON.stringify({ Q: queue }));
  return config;
}

/** A database as a daemon would leave it after so many workers. */
export async function fillDatabase(directory: string): Promise<void> {
  const stateDir = join(directory, 'state');
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  writeFileSync(join(stateDir, 'factory'), `${factoryId}\n`);
  const file = join(stateDir, 'thresher.db');
  const store = await openStore(file, factoryId);
  const reportTime = Date.now();
  await store.queues.report({
    queue: 'Q',
    queueStatus: 'online',
    limits: { maxWorkers: 1, nQueueLimitWorker: 1 },
    reasons: [{ code: 'max-workers', message: '1 of maxWorkers 1 are alive' }],
    reportTime,
  });
  await store.close();
  const db = new Database(file);
  const ended = { endTime: reportTime, sweptTime: reportTime };
  insertEnded(db, { from: 1, count: rows * 0.6, status: 'finished', ...ended });
  insertEnded(db, { from: 1 + rows * 0.6, count: rows * 0.4, status: 'failed', ...ended });
  db.close();
}
