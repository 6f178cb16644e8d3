import { join } from 'node:path';
import { type HtcJob, htcJobs } from '../../src/clients/htcjob/resource.ts';
import { collectionPath } from '../../src/clients/kubernetes/paths.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { ControlPlane } from '../../test/support/kubernetes.ts';
import { makeClient } from '../../test/support/kubernetes-client.ts';
import { until } from '../../test/support/until.ts';
import { type BenchPool, BenchSchedd } from '../htcondor/pool.ts';
import { WaitingPilots } from '../htcondor/waiting.ts';
import { Rows } from '../shared/rows.ts';
import { percentiles } from '../shared/statistics.ts';
import { HtcJobDaemon } from './daemon.ts';
import { Resources } from './resources.ts';

const patience = 600_000;
/** The daemon has a rest before, ms. */
const rest = 5000;
/** Jobs that are told to end in a second: a slot needs several starts of programs for each, on the same processors. */
const perSecond = 2;

export interface Ends {
  readonly jobs: number;
  /** ms, by percentile, 0 to 100: from the job's last moment to the change of its status, as a watch sees it. */
  readonly endToStatus: readonly number[];
  /** The same to the row of its worker, and from there to the status. */
  readonly endToRow: readonly number[];
  readonly rowToStatus: readonly number[];
  readonly complaints: readonly string[];
}

/** Jobs of HTCJobs end in slots at a steady rate; when does a watch of the resources see each end? */
export async function measureEnds(
  { plane, bench }: { readonly plane: ControlPlane; readonly bench: BenchPool },
  directory: string,
  jobs: number,
): Promise<Ends> {
  const space = await plane.namespace('bench');
  const resources = new Resources(space);
  const site = { plane, bench, namespace: space.name, factory: 'bench-ends' };
  const daemon = new HtcJobDaemon(join(directory, 'ends'), site);
  const pilots = new WaitingPilots(daemon.jobs);
  daemon.start();
  await daemon.ready();
  const over = new AbortController();
  const seen = new Map<string, number>();
  const watched = watch(daemon, space.name, seen, over.signal);
  await resources.create(
    Array.from({ length: jobs }, (_, nth) => `job-${nth}`),
    pilots.script,
  );
  await pilots.started(jobs, patience);
  await resources.untilAll('all run', ({ reason }) => reason === 'Running');
  const rows = new Rows(daemon.database);
  const all = rows.list<{ id: number; uid: string }>(
    `SELECT worker_id AS id, origin_uid AS uid FROM workers ORDER BY worker_id`,
  );
  await systemClock.sleep(rest);
  const written = rows.untilFinished(new Set(all.map(({ id }) => id)), patience);
  const start = performance.now();
  for (const [index, { id }] of all.entries()) {
    const due = start + (index * 1000) / perSecond;
    if (due > performance.now()) await systemClock.sleep(due - performance.now());
    pilots.end(id);
  }
  const read = await written;
  await until('a watch saw all ends', () => seen.size >= jobs, patience);
  over.abort();
  await watched;
  rows.close();
  const times = all.map(({ id, uid }) => {
    return { end: pilots.lastMoment(id), row: read.get(id) ?? NaN, status: seen.get(uid) ?? NaN };
  });
  await daemon.kill('SIGTERM');
  await resources.drop();
  await new BenchSchedd(bench.pool, 'local').empty();
  return {
    jobs,
    endToStatus: percentiles(times.map(({ end, status }) => status - end)),
    endToRow: percentiles(times.map(({ end, row }) => row - end)),
    rowToStatus: percentiles(times.map(({ row, status }) => status - row)),
    complaints: daemon.complaints(),
  };
}

/** Notes by uid when a watch first saw the end of a resource, ms UTC. */
async function watch(
  daemon: HtcJobDaemon,
  namespace: string,
  seen: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const client = makeClient(join(daemon.directory, 'kubeconfig'));
  const path = collectionPath(htcJobs, namespace);
  try {
    const resourceVersion = await client.version(path, { signal });
    const how = { resourceVersion, timeoutSeconds: 3600, silence: 3_600_000, signal };
    for await (const { object } of client.watch(path, how)) {
      const { metadata, status } = object as HtcJob;
      if (status?.completionTime !== undefined && !seen.has(metadata.uid)) seen.set(metadata.uid, Date.now());
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await client.close();
  }
}
