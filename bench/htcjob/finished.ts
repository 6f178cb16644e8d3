import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import type { ControlPlane } from '../../test/support/kubernetes.ts';
import { until } from '../../test/support/until.ts';
import { neverMatches } from '../htcondor/pilot.ts';
import { type BenchPool, BenchSchedd } from '../htcondor/pool.ts';
import { Rows } from '../shared/rows.ts';
import { HtcJobDaemon } from './daemon.ts';
import { progress } from './progress.ts';
import { requestsFor, Resources } from './resources.ts';

/** How long an idle daemon is looked at, s. */
const idleSeconds = 60;
/** After its start it has a rest, ms. */
const rest = 10_000;
/** Starts with and without resources. */
const starts = 3;

export interface Idle {
  /** Processor time, ms per second. */
  readonly cpu: number;
  /** Requests for HTCJobs that the API server answered meanwhile, but for those of the benchmark. */
  readonly requests: number;
}

export interface Finished {
  readonly resources: number;
  /** From the start of the program to when the job of a HTCJob was submitted that was there already, s. */
  readonly restart: readonly number[];
  readonly restartEmpty: readonly number[];
  readonly idle: Idle;
  readonly idleEmpty: Idle;
  /** Resident memory after the idle time, bytes. */
  readonly memory: number;
  readonly memoryEmpty: number;
  readonly complaints: readonly string[];
}

/** A daemon that starts beside finished HTCJobs, and idles beside them; and one without. */
export async function measureFinished(
  parts: { readonly plane: ControlPlane; readonly bench: BenchPool },
  directory: string,
  resources: number,
): Promise<Finished> {
  const empty = await measure(parts, join(directory, 'empty'), 0);
  const full = await measure(parts, join(directory, 'finished'), resources);
  return {
    resources,
    restart: full.restart,
    restartEmpty: empty.restart,
    idle: full.idle,
    idleEmpty: empty.idle,
    memory: full.memory,
    memoryEmpty: empty.memory,
    complaints: [...empty.complaints, ...full.complaints],
  };
}

async function measure(
  { plane, bench }: Parameters<typeof measureFinished>[0],
  directory: string,
  count: number,
) {
  const space = await plane.namespace('bench');
  const resources = new Resources(space);
  const factory = `bench-f${count}`;
  const daemon = new HtcJobDaemon(directory, {
    plane,
    bench,
    namespace: space.name,
    factory,
    template: neverMatches,
  });
  progress(`  ${count} finished HTCJobs`);
  await resources.createFinished(
    Array.from({ length: count }, (_, nth) => `done-${nth}`),
    factory,
  );
  daemon.start();
  await daemon.ready();
  const restart: number[] = [];
  for (let start = 0; start < starts; start++) {
    await daemon.kill();
    await resources.create([`new-${start}`], 'true');
    const begun = performance.now();
    daemon.start();
    const rows = new Rows(daemon.database);
    await until('its job is submitted', () => rows.count(`status <> 'pending'`) > start);
    rows.close();
    restart.push((performance.now() - begun) / 1000);
  }
  await systemClock.sleep(rest);
  const before = { requests: await requestsFor(plane), cpu: daemon.cpuSeconds() };
  await systemClock.sleep(idleSeconds * 1000);
  const cpu = ((daemon.cpuSeconds() - before.cpu) * 1000) / idleSeconds;
  const after = await requestsFor(plane);
  const sum = (counts: Readonly<Record<string, number>>) =>
    Object.values(counts).reduce((all, one) => all + one, 0);
  const idle: Idle = { cpu, requests: sum(after) - sum(before.requests) };
  const { rss: memory } = daemon.memory();
  await daemon.kill('SIGTERM');
  await resources.drop();
  await new BenchSchedd(bench.pool, 'local').empty();
  return { restart, idle, memory, complaints: daemon.complaints() };
}
