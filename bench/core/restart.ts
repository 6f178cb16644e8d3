/** A daemon that starts on what a killed one left: `node --expose-gc restart.ts DIRECTORY SPAWNED_AT`. */
import { readFileSync } from 'node:fs';
import { backend, type Snapshot } from './fake-backend.ts';
import {
  connections,
  liveWorkers,
  paths,
  queues,
  report,
  sleep,
  startDaemon,
  until,
  workersPerQueue,
} from './site.ts';
import { Stalls } from './stalls.ts';

/** ms since the process was asked for. */
export interface RestartResult {
  /** The program's modules are loaded. */
  readonly loaded: number;
  /** All rows are in memory, the loops run. */
  readonly started: number;
  /** The backend gave its list of everything; matching it to rows comes after that. */
  readonly listed: number;
  /** Every connection showed all its workers. */
  readonly shown: number;
  /** Every queue has submitted a new worker: nothing holds it back any more. */
  readonly ready: number;
  readonly liveWorkers: number;
  readonly blockedMs: number;
  readonly rss: number;
  readonly peak: number;
  readonly complaints: readonly string[];
}

const [directory = '', spawnedAt = ''] = process.argv.slice(2);
const since = () => Date.now() - Number(spawnedAt);
const loaded = since();
const stalls = new Stalls();
stalls.start();
backend.load(JSON.parse(readFileSync(paths(directory).backend, 'utf8')) as Snapshot);
backend.room = workersPerQueue + 1;
const lists = new Set<string>();
const submitted = new Set<string>();
let listed = 0;
let shown = 0;
let ready = 0;
backend.onList = (connection) => {
  lists.add(connection);
  if (lists.size === connections) listed ||= since();
};
backend.onSubmit = (queue) => {
  submitted.add(queue);
  if (submitted.size === queues) ready ||= since();
};
backend.onShown = () => {
  if (backend.watched === connections) shown ||= since();
};
const { daemon, complaints } = await startDaemon(directory);
const started = since();
const atStart = daemon.liveWorkers;
if (atStart < liveWorkers) throw new Error(`only ${atStart} workers were loaded`);
await until('every queue has submitted', () => ready > 0, 60_000);
const blockedMs = stalls.stop();
const peak = process.resourceUsage().maxRSS * 1024;
await sleep(1500);
for (let round = 0; round < 4; round++) {
  globalThis.gc?.();
  await sleep(250);
}
const result: RestartResult = {
  loaded,
  started,
  listed,
  shown,
  ready,
  complaints,
  peak,
  liveWorkers: atStart,
  blockedMs,
  rss: process.memoryUsage().rss,
};
await report(result);
await sleep(60_000);
