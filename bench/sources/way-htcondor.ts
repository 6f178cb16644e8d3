/** The way of single requests on a real schedd, as a child of the benchmark: `way-htcondor.ts DIRECTORY REQUESTS QUEUE-AS-JSON`. */
import { report, sleep, startDaemon, until } from '../core/site.ts';
import { asker } from './asker.ts';
import { writeSite } from './site.ts';
import { timeTheWays, type Ways } from './ways.ts';

const [directory = '', count = '', queue = ''] = process.argv.slice(2);
writeSite(directory, { queues: { BENCH: JSON.parse(queue) as object }, asks: true });
const { daemon, complaints } = await startDaemon(directory);
await until('the source lives', () => asker.desk !== undefined);
await until('the schedd was listed', () => daemon.heard);
await sleep(3000);
const ways = await timeTheWays(daemon, Number(count));
// The log of a new pool begins with the first job.
const unexpected = complaints.filter((line) => !line.includes('of eventLog does not exist'));
const result: Ways = { ...ways, complaints: unexpected };
await report(result);
await sleep(60_000);
