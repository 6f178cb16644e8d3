import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ControlPlane } from '../../test/support/kubernetes.ts';
import { BenchDaemon } from './daemon.ts';
import { filledJob } from './job.ts';
import type { Limit } from './limit.ts';
import { endPods, left, podsOf, untilComplete, untilRunning } from './pods.ts';
import { roundDone } from './progress.ts';
import { Rows } from '../shared/rows.ts';

/** The cluster may take so long for what is prepared, ms. */
const patience = 300_000;

export interface SweepRate {
  readonly perSecond: number;
  readonly cpuMsPerWorker: number;
}

export interface Sweep {
  readonly workers: number;
  readonly thresher: readonly SweepRate[];
  readonly limit: readonly SweepRate[];
  readonly complaints: readonly string[];
}

/** Ended workers, each a Job and its Pod, deleted by both in turns. */
export async function measureSweep(
  plane: ControlPlane,
  limit: Limit,
  directory: string,
  { rounds, workers }: { readonly rounds: number; readonly workers: number },
): Promise<Sweep> {
  const space = await plane.namespace('bench');
  const other = await plane.namespace('limit');
  const daemon = new BenchDaemon(join(directory, 'sweep'), plane, space, {});
  const job = join(directory, 'sweep-job.json');
  writeFileSync(job, JSON.stringify(await filledJob(daemon.directory, other.name)));
  daemon.start();
  await daemon.ready();
  const rows = new Rows(daemon.database);

  const ofThresher = async (): Promise<SweepRate> => {
    const before = rows.count('1');
    daemon.want(workers);
    await rows.until('the workers run', () => rows.count(`status = 'running'`) === workers, patience);
    daemon.want(0);
    const pods = await podsOf(space);
    await endPods(
      space,
      pods.map(({ metadata }) => metadata.name),
    );
    await untilComplete(space, workers, patience);
    await rows.until('their end is known', () => rows.count(`status = 'finished'`) === before + workers);
    const cpu = daemon.cpuSeconds();
    const id = await daemon.ask({ kind: 'sweep', orphans: false });
    const end = await rows.until('all are swept', () => rows.count('swept_time IS NULL') === 0, patience);
    const begin = rows.value(`SELECT taken_time FROM commands WHERE id = ${id}`);
    const cpuSeconds = daemon.cpuSeconds() - cpu;
    const remaining = await left(space);
    if (remaining > 0) throw new Error(`thresher says that all is swept: there are ${remaining} objects`);
    return rateOf(workers, (end - begin) / 1000, cpuSeconds);
  };
  const ofLimit = async (round: number): Promise<SweepRate> => {
    const whole = { namespace: other.name, job, prefix: `sweep-${round}`, count: workers };
    await limit.create(whole);
    await untilRunning(other, workers, patience);
    const pods = await podsOf(other);
    await endPods(
      other,
      pods.map(({ metadata }) => metadata.name),
    );
    await untilComplete(other, workers, patience);
    const { seconds, cpuSeconds } = await limit.delete(whole);
    return rateOf(workers, seconds, cpuSeconds);
  };

  const results = { thresher: [] as SweepRate[], limit: [] as SweepRate[] };
  for (let round = 1; round <= rounds; round++) {
    const [theirs, ours] = [await ofLimit(round), await ofThresher()];
    results.limit.push(theirs);
    results.thresher.push(ours);
    roundDone(round, ours, theirs);
  }
  rows.close();
  await daemon.kill('SIGTERM');
  return { workers, ...results, complaints: daemon.complaints() };
}

function rateOf(workers: number, seconds: number, cpuSeconds: number): SweepRate {
  return { perSecond: workers / seconds, cpuMsPerWorker: (cpuSeconds * 1000) / workers };
}
