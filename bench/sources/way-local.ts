/**
 * The way of single requests on the local backend, as a child of the benchmark: `way-local.ts DIRECTORY REQUESTS`. Beside it the
 * bare call of the backend's submitter, which the daemon itself times.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { report, sleep, startDaemon, until } from '../core/site.ts';
import { asker } from './asker.ts';
import { timeTheWays, type Ways } from './ways.ts';
import { writeSite } from './site.ts';

const [directory = '', count = ''] = process.argv.slice(2);
const pilot = { command: '/bin/true', cpu: 0 };
const local = { module: 'thresher/local' };
const queue = {
  queueStatus: 'online',
  mapType: 'NoJob',
  demand: 'none',
  maxWorkers: 1000,
  submitter: { ...local, name: 'LocalSubmitter', templateFile: 'pilot.yaml' },
  monitor: { ...local, name: 'LocalMonitor' },
  sweeper: { ...local, name: 'LocalSweeper' },
};
writeSite(directory, { queues: { BENCH: queue }, asks: true });
writeFileSync(join(directory, 'pilot.yaml'), stringify(pilot));
const { daemon, complaints } = await startDaemon(directory);
await until('the source lives', () => asker.desk !== undefined);
await sleep(3000);
const result: Ways = { ...(await timeTheWays(daemon, Number(count))), complaints };
await report(result);
await sleep(60_000);
