/**
 * One daemon on the backend that answers at once, as a child of the benchmark: `report-load.ts DIRECTORY WORKERS linked|alone ID
 * QUEUE`. `linked`: the real server ordered the workers and hears of each change; `alone`: the queue is filled.
 */
import { join } from 'node:path';
import { PandaEnvironment } from '../../test/support/panda.ts';
import { backend } from '../core/fake-backend.ts';
import { report, sleep, startDaemon, until } from '../core/site.ts';
import { Rows } from '../shared/rows.ts';
import { CallCounter } from './calls.ts';
import { fakeQueue, writeSite } from './site.ts';

const [directory = '', count = '', mode = '', id = '', queue = ''] = process.argv.slice(2);
const workers = Number(count);
const linked = mode === 'linked';
const idleFor = 60_000;
/** The server takes a minute or more for 10,000 workers. */
const patience = 220_000;

export interface ReportLoad {
  /** From the changes at the backend to the server's answer to the last report of them, ms; without a link to their commit. */
  readonly time: number;
  /** Processor time of the daemon meanwhile, ms. */
  readonly cpu: number;
  readonly idle: {
    /** By call. */
    readonly calls: Readonly<Record<string, number>>;
    readonly seconds: number;
    /** Share of one core. */
    readonly cpuShare: number;
  };
  readonly complaints: readonly string[];
}

const calls = new CallCounter().install();
writeSite(directory, {
  id,
  ...(linked && { server: new PandaEnvironment().server() }),
  queues: fakeQueue(queue, workers, linked),
});
backend.room = workers;
const { daemon, complaints } = await startDaemon(directory);
await until('all workers are submitted', () => backend.workers === workers, patience);
await until('all workers are known', () => daemon.liveWorkers === workers);
const rows = new Rows(join(directory, 'state', 'thresher.db'));
const told = () => rows.value('SELECT count(*) FROM (SELECT 1 FROM news LIMIT 1)') === 0;
await until('the server heard of all', told, patience);
await sleep(3000);

calls.reset();
const idleCpu = process.cpuUsage();
const idleStart = performance.now();
await sleep(idleFor);
const idleSpent = process.cpuUsage(idleCpu);
const idle = {
  calls: calls.all,
  seconds: (performance.now() - idleStart) / 1000,
  cpuShare: (idleSpent.user + idleSpent.system) / 1000 / (performance.now() - idleStart),
};

const running = () => rows.count("status = 'running'") === workers;
const cpu = process.cpuUsage();
const start = performance.now();
backend.change(0, workers, 'running');
backend.announce(0, workers);
await until('all changes are written', running);
// The looks are no part of the daemon: few of them cost nothing that counts.
while (linked && !told()) await sleep(200);
const time = performance.now() - start;
const spent = process.cpuUsage(cpu);
rows.close();
const result: ReportLoad = { time, cpu: (spent.user + spent.system) / 1000, idle, complaints };
await report(result);
await sleep(60_000);
