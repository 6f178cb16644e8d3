/**
 * One of two daemons on one database: `node --expose-gc takeover-daemon.ts DIRECTORY SNAPSHOT WORKERS`, as a child of the benchmark,
 * which ends it with SIGKILL. The backend lives in the process of the daemon: the file SNAPSHOT hands it on to the next daemon, while
 * nothing changes on it. A daemon that finds no such file is the first.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { backend, type Snapshot } from './fake-backend.ts';
import { connections, queues, report, sleep, startDaemon, until } from './site.ts';

/** What a daemon tells the benchmark. */
export type Told =
  /** Another daemon has the factory. */
  | { readonly kind: 'standby' }
  /** All wanted workers are there and run, and the file has them. */
  | { readonly kind: 'filled'; readonly workers: number; readonly complaints: readonly string[] }
  | ({ readonly kind: 'took' } & TookOver);

/** ms UTC. */
export interface TookOver {
  /** All rows are in memory, the loops run. */
  readonly started: number;
  /** Every connection showed all its workers. */
  readonly shown: number;
  /** The backend got the first new worker. */
  readonly first: number;
  /** The last queue has submitted a new worker. */
  readonly last: number;
  readonly liveWorkers: number;
}

const [directory = '', snapshot = '', wanted = ''] = process.argv.slice(2);
const isNext = existsSync(snapshot);
if (isNext) backend.load(JSON.parse(readFileSync(snapshot, 'utf8')) as Snapshot);
// The limits of the queues alone say how many are submitted: a daemon that forgot a worker would submit too many.
backend.room = Number(wanted);
const submitted = new Set<string>();
let first = 0;
let last = 0;
let shown = 0;
backend.onSubmit = (queue) => {
  first ||= Date.now();
  submitted.add(queue);
  if (submitted.size === queues) last ||= Date.now();
};
backend.onShown = () => {
  if (backend.watched === connections) shown ||= Date.now();
};
let isStandby = false;
const { daemon, complaints } = await startDaemon(directory, undefined, () => {
  if (isStandby) return;
  isStandby = true;
  report({ kind: 'standby' } satisfies Told).catch(() => undefined);
});
const started = Date.now();
const { liveWorkers } = daemon;
await until('every queue has submitted', () => last > 0);
if (isNext) await report({ kind: 'took', started, shown, first, last, liveWorkers } satisfies Told);
await until('all workers are known', () => daemon.liveWorkers === Number(wanted));
// Their submissions are answered a moment later; until then nothing is shown of them.
await sleep(2000);
backend.change(0, backend.save().count, 'running');
backend.show();
writeFileSync(snapshot, JSON.stringify(backend.save()));
await report({ kind: 'filled', workers: backend.workers, complaints } satisfies Told);
await sleep(600_000);
