import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import type { ControlPlane, Namespace } from '../../test/support/kubernetes.ts';
import type { Memory } from '../shared/daemon.ts';
import { BenchDaemon } from './daemon.ts';
import { endPod, endPods, podsOf } from './pods.ts';
import { objectRequests, type RequestCounts, requestsBetween } from './requests.ts';
import { progress } from './progress.ts';
import { Rows } from '../shared/rows.ts';
import { percentiles } from '../shared/statistics.ts';

/** Time until a daemon has done what it has to do, and V8 has collected what nobody asked it to, ms. */
const rest = 30_000;
/** Changes per second. */
const rate = 50;
/** Pods that end while no daemon runs. */
const endedMeanwhile = 50;
/** The cluster may take so long to bring all workers to life, ms. */
const patience = 900_000;

export interface Live {
  readonly workers: number;
  readonly fillSeconds: number;
  readonly memory: { readonly idle: Memory; readonly live: Memory; readonly afterChanges: Memory };
  readonly quiet: {
    readonly seconds: number;
    readonly cpuSeconds: number;
    /** Requests for Jobs and Pods by all clients of the API server together, the cluster's own included. */
    readonly requests: RequestCounts;
    /** Rows of history that were written. */
    readonly rowsChanged: number;
  };
  readonly changes: {
    readonly perSecond: number;
    /** ms from when the patch was sent, and from when it was answered, to when the row could be read: by percentile, 0 to 100. */
    readonly sinceSent: readonly number[];
    readonly sinceAnswered: readonly number[];
    readonly cpuMsPerChange: number;
  };
  readonly restarts: readonly Restart[];
  readonly complaints: readonly string[];
}

export interface Restart {
  /** ms since the process was asked for: what ended meanwhile is known, and a new worker is on the cluster. */
  readonly seenMs: number;
  readonly submittedMs: number;
  readonly readyMs: number;
  readonly memory: Memory;
}

export interface LiveOptions {
  readonly workers: number;
  readonly changes: number;
  readonly restarts: number;
  /** Length of the quiet time, s. */
  readonly quietSeconds: number;
}

/** Many live workers: what they cost while nothing happens, how late a change is, and how a restart goes. */
export async function measureLive(
  plane: ControlPlane,
  directory: string,
  options: LiveOptions,
): Promise<Live> {
  const { workers, changes, restarts, quietSeconds } = options;
  const space = await plane.namespace('bench');
  const daemon = new BenchDaemon(join(directory, 'live'), plane, space, {});
  daemon.start();
  await daemon.ready();
  await systemClock.sleep(rest);
  const idle = daemon.memory();
  const rows = new Rows(daemon.database);
  const begun = performance.now();
  daemon.want(workers);
  const allRun = () => rows.count(`status = 'running'`) === workers;
  await rows.until('all workers run', allRun, patience);
  const fillSeconds = (performance.now() - begun) / 1000;
  progress(`  all run after ${Math.round(fillSeconds)} s`);
  daemon.want(0);
  await systemClock.sleep(rest);
  const live = daemon.memory();
  const quiet = await measureQuiet(plane, daemon, rows, quietSeconds);
  progress('  changes');
  const late = await measureChanges(daemon, space, rows, changes);
  await systemClock.sleep(rest);
  const memory = { idle, live, afterChanges: daemon.memory() };
  daemon.want(workers);
  await rows.until('all workers run again', allRun, patience);
  const results: Restart[] = [];
  for (let round = 1; round <= restarts; round++) {
    results.push(await measureRestart(daemon, space, rows, workers));
    progress(`  restart ${round}: ${results.at(-1)?.readyMs ?? 0} ms`);
    await rows.until('all workers run again', allRun, patience);
  }
  rows.close();
  await daemon.kill('SIGTERM');
  const complaints = daemon.complaints();
  return { workers, fillSeconds, memory, quiet, changes: late, restarts: results, complaints };
}

async function measureQuiet(
  plane: ControlPlane,
  daemon: BenchDaemon,
  rows: Rows,
  seconds: number,
): Promise<Live['quiet']> {
  const newest = () => rows.value('SELECT max(id) FROM transitions');
  const before = { requests: await objectRequests(plane), cpu: daemon.cpuSeconds(), rows: newest() };
  await systemClock.sleep(seconds * 1000);
  const requests = requestsBetween(before.requests, await objectRequests(plane));
  const cpuSeconds = daemon.cpuSeconds() - before.cpu;
  return { seconds, cpuSeconds, requests, rowsChanged: newest() - before.rows };
}

/** Pods end at a steady rate; when can each end be read from the database? */
async function measureChanges(
  daemon: BenchDaemon,
  space: Namespace,
  rows: Rows,
  count: number,
): Promise<Live['changes']> {
  const pods = (await podsOf(space)).slice(0, count);
  const ids = new Map(
    pods.map(({ metadata }) => [Number(metadata.labels?.['thresher/worker-id']), metadata.name]),
  );
  const sent = new Map<number, number>();
  const answered = new Map<number, number>();
  const cpu = daemon.cpuSeconds();
  const ends = rows.untilFinished(new Set(ids.keys()), 120_000);
  const start = performance.now();
  const patches: Promise<void>[] = [];
  for (const [index, [workerId, name]] of [...ids].entries()) {
    const due = start + (index * 1000) / rate;
    if (due > performance.now()) await systemClock.sleep(due - performance.now());
    sent.set(workerId, Date.now());
    patches.push(
      endPod(space.client, space, name).then((at) => {
        answered.set(workerId, at);
      }),
    );
  }
  const perSecond = (ids.size * 1000) / (performance.now() - start);
  await Promise.all(patches);
  const read = await ends;
  const since = (from: ReadonlyMap<number, number>) =>
    percentiles([...read].map(([workerId, at]) => at - (from.get(workerId) ?? NaN)));
  return {
    perSecond,
    sinceSent: since(sent),
    sinceAnswered: since(answered),
    cpuMsPerChange: ((daemon.cpuSeconds() - cpu) * 1000) / ids.size,
  };
}

/**
 * The daemon is killed, some Pods end, it starts again: it is ready when it knows of every end, has lost no other worker,
 * and has submitted new ones instead, which it may only when it has seen all that is there.
 */
async function measureRestart(
  daemon: BenchDaemon,
  space: Namespace,
  rows: Rows,
  workers: number,
): Promise<Restart> {
  await daemon.kill();
  const running = (await podsOf(space)).filter(({ status }) => status.phase === 'Running');
  await endPods(
    space,
    running.slice(0, endedMeanwhile).map(({ metadata }) => metadata.name),
  );
  const before = {
    finished: rows.count(`status = 'finished'`),
    newest: rows.value('SELECT max(worker_id) FROM workers'),
  };
  const begun = Date.now();
  daemon.start();
  const seen = rows.until('what ended is known', () => {
    return rows.count(`status = 'finished'`) >= before.finished + endedMeanwhile;
  });
  const submitted = rows.until('a new worker is submitted', () => {
    return rows.count(`worker_id > ${before.newest} AND status <> 'pending'`) > 0;
  });
  const [seenAt, submittedAt] = await Promise.all([seen, submitted]);
  const alive = rows.count(`status = 'running' AND worker_id <= ${before.newest}`);
  if (alive !== workers - endedMeanwhile || rows.count(`status IN ('missed', 'failed', 'cancelled')`) > 0)
    throw new Error(`after a restart ${alive} of ${workers - endedMeanwhile} workers are alive`);
  await systemClock.sleep(rest);
  return {
    seenMs: seenAt - begun,
    submittedMs: submittedAt - begun,
    readyMs: Math.max(seenAt, submittedAt) - begun,
    memory: daemon.memory(),
  };
}
