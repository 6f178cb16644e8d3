/**
 * The way of orders on the local backend, as a child of the benchmark: `orders.ts DIRECTORY ORDERS ID`. Each order is for a queue of
 * its own, at a random phase of the poll.
 */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { PandaEnvironment } from '../../test/support/panda.ts';
import { report, sleep, startDaemon, until } from '../core/site.ts';
import { Rows } from '../shared/rows.ts';
import { writeSite } from './site.ts';

const [directory = '', count = '', id = ''] = process.argv.slice(2);
const orders = Number(count);
/** Workers of one order. */
const each = 5;
const run = promisify(execFile);
const testEnv = resolve(import.meta.dirname, '../../scripts/test-env');

export interface Orders {
  /** From the command in the server's table to the acceptance of its last worker by the backend, ms. */
  readonly whole: readonly number[];
  /** The same from the poll that brought the command. */
  readonly afterPoll: readonly number[];
  readonly complaints: readonly string[];
}

const panda = new PandaEnvironment();
const names = Array.from({ length: orders }, (_, index) => `${id}-Q${index}`);
const local = { module: 'thresher/local' };
const queue = {
  queueStatus: 'online',
  mapType: 'NoJob',
  runMode: 'slave',
  maxWorkers: 100,
  nQueueLimitWorker: 100,
  submitter: { ...local, name: 'LocalSubmitter', templateFile: 'pilot.yaml', maxMemory: 1_000_000 },
  monitor: { ...local, name: 'LocalMonitor', pollInterval: 5 },
  sweeper: { ...local, name: 'LocalSweeper' },
};
writeSite(directory, {
  id,
  server: panda.server(),
  queues: Object.fromEntries(names.map((name) => [name, queue])),
});
writeFileSync(join(directory, 'pilot.yaml'), stringify({ command: '/bin/true', cpu: 0 }));
const { complaints } = await startDaemon(directory);
const zeros = `SELECT 1 AS one FROM harvester_worker_stats WHERE harvester_id = '${id}'`;
while ((await panda.rows(zeros)).length < orders) await sleep(500);
await sleep(6000);

const rows = new Rows(join(directory, 'state', 'thresher.db'));
for (const name of names) {
  const params = JSON.stringify({ managed: { SCORE: each } });
  // Not in this process: it must not wait for a program.
  await run(testEnv, ['panda', 'admin', 'command', id, `SET_N_WORKERS_JOBTYPE:${name}`, params]);
  await sleep(500 + Math.random() * 1500);
}
const submitted = () =>
  rows.value('SELECT count(*) FROM workers WHERE submit_time IS NOT NULL') === orders * each;
await until('all workers are submitted', submitted);
const ends = new Map(
  rows
    .list<{ queue: string; at: number }>('SELECT queue, max(submit_time) AS at FROM workers GROUP BY queue')
    .map(({ queue: name, at }) => [name, at]),
);
const given = await panda.rows<{ name: string; made: number; got: number }>(
  `SELECT split_part(command, ':', 2) AS name, extract(epoch FROM creation_date) * 1000 AS made,
     extract(epoch FROM status_date) * 1000 AS got
   FROM harvester_commands WHERE harvester_id = '${id}'`,
);
rows.close();
const result: Orders = {
  whole: given.map(({ name, made }) => (ends.get(name) ?? NaN) - made),
  afterPoll: given.map(({ name, got }) => (ends.get(name) ?? NaN) - got),
  complaints,
};
await report(result);
await sleep(60_000);
