import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import { neverMatches } from '../htcondor/pilot.ts';
import { type BenchPool, BenchSchedd } from '../htcondor/pool.ts';
import { Rows } from '../shared/rows.ts';
import { applyFinalizerPolicy } from '../../test/support/htcjobs.ts';
import type { ControlPlane } from '../../test/support/kubernetes.ts';
import { HtcJobDaemon } from './daemon.ts';
import { progress } from './progress.ts';
import { requestsFor, Resources } from './resources.ts';

/** After the jobs of a round are gone, schedd, server and disk have their rest, ms. */
const rest = 3000;
/** Processor time counts until so long after the last status, ms. */
const settled = 1500;

export interface Submission {
  readonly jobs: number;
  /** In the order they ran, one of each per round: from the first moment to the last row, s. */
  readonly htcjob: readonly number[];
  readonly plain: readonly number[];
  /** From the first moment to the last status with the id of its job, s. */
  readonly status: readonly number[];
  /** ms of the daemon's processor time for each HTCJob, status included. */
  readonly cpu: readonly number[];
  readonly plainCpu: readonly number[];
  /** Requests for HTCJobs, for each of them. */
  readonly requests: readonly number[];
  /** A client that changes the status of each twice, and does nothing else, s. */
  readonly bare: readonly number[];
  readonly complaints: readonly string[];
}

/** So many HTCJobs at once, and so many workers of a queue without HTCJobs, in turns on the same schedd. */
export async function measureSubmission(
  parts: { readonly plane: ControlPlane; readonly bench: BenchPool },
  directory: string,
  { rounds, jobs }: { readonly rounds: number; readonly jobs: number },
): Promise<Submission> {
  const schedd = new BenchSchedd(parts.bench.pool, 'local');
  const results = {
    htcjob: [] as number[],
    plain: [] as number[],
    status: [] as number[],
    cpu: [] as number[],
    plainCpu: [] as number[],
    requests: [] as number[],
    bare: [] as number[],
  };
  const complaints: string[] = [];
  // The first round warms up both; it is not counted.
  for (let round = 0; round <= rounds; round++) {
    const plain = await plainRound(parts, join(directory, `plain-${round}`), jobs, `bench-p${round}`);
    await schedd.empty();
    await systemClock.sleep(rest);
    const ours = await htcJobRound(parts, join(directory, `htcjob-${round}`), jobs, `bench-h${round}`);
    await schedd.empty();
    await systemClock.sleep(rest);
    progress(
      `  round ${round}: ${ours.seconds.toFixed(2)} s (status ${ours.status.toFixed(2)} s, ${ours.cpu.toFixed(2)} ms each, ${ours.requests.toFixed(1)} requests) beside ${plain.seconds.toFixed(2)} s (${plain.cpu.toFixed(2)} ms)`,
    );
    complaints.push(...ours.complaints, ...plain.complaints);
    if (round === 0) continue;
    results.htcjob.push(ours.seconds);
    results.plain.push(plain.seconds);
    results.status.push(ours.status);
    results.cpu.push(ours.cpu);
    results.plainCpu.push(plain.cpu);
    results.requests.push(ours.requests);
    results.bare.push(ours.bare);
  }
  return { jobs, ...results, complaints };
}

type Parts = Parameters<typeof measureSubmission>[0];

async function plainRound({ plane, bench }: Parts, directory: string, jobs: number, factory: string) {
  const site = { plane, bench, namespace: 'none', factory, template: neverMatches, plain: true } as const;
  const daemon = new HtcJobDaemon(directory, site);
  daemon.start();
  await daemon.ready();
  const rows = new Rows(daemon.database);
  const cpu = daemon.cpuSeconds();
  const begun = Date.now();
  daemon.serve(jobs);
  const ended = await rows.until(`${jobs} workers are submitted`, () => submitted(rows) >= jobs);
  await systemClock.sleep(settled);
  const spent = ((daemon.cpuSeconds() - cpu) * 1000) / jobs;
  rows.close();
  await daemon.kill('SIGTERM');
  return { seconds: (ended - begun) / 1000, cpu: spent, complaints: daemon.complaints() };
}

/** The daemon is stopped while they are created: all are there at the first moment. */
async function htcJobRound({ plane, bench }: Parts, directory: string, jobs: number, factory: string) {
  const space = await plane.namespace('bench');
  const removePolicy = await applyFinalizerPolicy(space);
  const resources = new Resources(space);
  const site = { plane, bench, namespace: space.name, factory, template: neverMatches };
  const daemon = new HtcJobDaemon(directory, site);
  daemon.start();
  await daemon.ready();
  const rows = new Rows(daemon.database);
  process.kill(daemon.pid, 'SIGSTOP');
  await resources.create(
    Array.from({ length: jobs }, (_, nth) => `job-${nth}`),
    'echo "A"\n',
  );
  const before = await requestsFor(plane);
  const cpu = daemon.cpuSeconds();
  const begun = Date.now();
  process.kill(daemon.pid, 'SIGCONT');
  const ended = await rows.until(`the jobs of ${jobs} HTCJobs are submitted`, () => submitted(rows) >= jobs);
  await resources.untilAll('each status has the id of its job', ({ active }) => active === 1);
  const status = (Date.now() - begun) / 1000;
  await systemClock.sleep(settled);
  const spent = ((daemon.cpuSeconds() - cpu) * 1000) / jobs;
  const after = await requestsFor(plane);
  const patches = (['PATCH', 'APPLY'] as const).reduce(
    (sum, verb) => sum + (after[verb] ?? 0) - (before[verb] ?? 0),
    0,
  );
  rows.close();
  await daemon.kill('SIGTERM');
  const bareBegun = Date.now();
  await resources.changeTwice();
  const bare = (Date.now() - bareBegun) / 1000;
  await resources.drop();
  await removePolicy();
  const seconds = (ended - begun) / 1000;
  return { seconds, status, cpu: spent, requests: patches / jobs, bare, complaints: daemon.complaints() };
}

function submitted(rows: Rows): number {
  return rows.count(`status <> 'pending'`);
}
