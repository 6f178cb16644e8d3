import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { neverMatches } from '../htcondor/pilot.ts';
import { type BenchPool, BenchSchedd } from '../htcondor/pool.ts';
import { percentiles } from '../shared/statistics.ts';
import { InterlinkDaemon } from './daemon.ts';
import { recordedPod } from './pods.ts';
import { progress } from './progress.ts';

/** The daemon has a rest before, ms. */
const rest = 5000;
/** Rounds over all Pods after one that warms up. */
const rounds = 5;

export interface Statuses {
  readonly pods: number;
  /** How many questions were asked. */
  readonly asked: number;
  /** ms, by percentile, 0 to 100: from a question to its answer. */
  readonly answers: readonly number[];
  /** Processor time of the daemon for each question, ms: with all that it does beside. */
  readonly cpu: number;
  /** Programs that it started meanwhile. The queue's own looks at the schedd and the pool were put off until afterwards. */
  readonly programs: number;
  readonly complaints: readonly string[];
}

/** Later than the benchmark takes, s. */
const never = 3600;

/** All Pods one by one, one in each request, as the virtual kubelet asks. */
export async function measureStatus(bench: BenchPool, directory: string, pods: number): Promise<Statuses> {
  const daemon = new InterlinkDaemon(join(directory, 'status'), {
    bench,
    factory: 'bench-status',
    schedd: 'spool',
    template: neverMatches,
    monitor: { pollInterval: never },
    options: { capacityInterval: never },
  });
  await daemon.begin();
  const all = Array.from({ length: pods }, (_, nth) => recordedPod(nth));
  await Promise.all(all.map((pod) => daemon.kubelet.create(pod)));
  await sleep(rest);
  for (const pod of all) await daemon.kubelet.status(pod);
  const begun = Date.now();
  const cpu = daemon.cpuSeconds();
  const answers: number[] = [];
  for (let round = 0; round < rounds; round++)
    for (const pod of all) {
      const asked = performance.now();
      await daemon.kubelet.status(pod);
      answers.push(performance.now() - asked);
    }
  const spent = ((daemon.cpuSeconds() - cpu) * 1000) / answers.length;
  const programs = daemon.programsSince(begun);
  await daemon.end();
  await new BenchSchedd(bench.pool, 'remote').empty();
  const seen = percentiles(answers);
  progress(
    `  ${answers.length} questions: p99 ${seen[99]?.toFixed(1) ?? ''} ms, ${spent.toFixed(2)} ms each`,
  );
  return {
    pods,
    asked: answers.length,
    answers: seen,
    cpu: spent,
    programs: programs.length,
    complaints: daemon.complaints(),
  };
}
