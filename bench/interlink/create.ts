import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { clientOf } from '../../test/support/htcondor.ts';
import { neverMatches } from '../htcondor/pilot.ts';
import { type BenchPool, BenchSchedd } from '../htcondor/pool.ts';
import { countsOf } from '../htcondor/programs.ts';
import { percentiles } from '../shared/statistics.ts';
import { InterlinkDaemon } from './daemon.ts';
import { recordedPod } from './pods.ts';
import { progress } from './progress.ts';

/** Requests in a second. */
const perSecond = 20;
/** Processor time counts until so long after the last answer, ms. */
const settled = 1500;
/** Submissions by hand. */
const byHand = 20;

export interface Create {
  readonly pods: number;
  /** ms, by percentile, 0 to 100: from a request to its answer. */
  readonly answers: readonly number[];
  /** Requests that had another answer than 200. */
  readonly failures: readonly string[];
  /** Jobs in the queue of the schedd at the end. */
  readonly jobs: number;
  /** `condor_submit`s that the daemon started, and the time between the starts of two of them, ms. */
  readonly submits: number;
  readonly meanGap: number;
  readonly leastGap: number;
  /** All programs that it started meanwhile, by name. */
  readonly programs: Readonly<Record<string, number>>;
  /** Processor time of the daemon for each Pod, ms. */
  readonly cpu: number;
  /** ms, by percentile: one `condor_submit -spool` of one such job by hand, one after the other. */
  readonly bare: readonly number[];
  readonly complaints: readonly string[];
}

/** Pods come at a steady rate, whatever the answers do. No slot matches their jobs: nothing but their submission is looked at. */
export async function measureCreate(bench: BenchPool, directory: string, pods: number): Promise<Create> {
  const schedd = new BenchSchedd(bench.pool, 'remote');
  const bare = await submitByHand(bench, directory);
  await schedd.empty();
  const site = { bench, factory: 'bench-create', schedd: 'spool', template: neverMatches } as const;
  const daemon = new InterlinkDaemon(join(directory, 'create'), site);
  await daemon.begin();
  const cpu = daemon.cpuSeconds();
  const begun = Date.now();
  const failures: string[] = [];
  const answers = await Promise.all(
    Array.from({ length: pods }, async (_, nth) => {
      await sleep((nth * 1000) / perSecond);
      const pod = recordedPod(nth);
      const sent = performance.now();
      await daemon.kubelet.create(pod).catch((error: unknown) => failures.push(String(error)));
      return performance.now() - sent;
    }),
  );
  await sleep(settled);
  const spent = ((daemon.cpuSeconds() - cpu) * 1000) / pods;
  const programs = daemon.programsSince(begun);
  const submits = programs.filter(({ name }) => name === 'condor_submit').map(({ at }) => at);
  const gaps = submits.slice(1).map((at, index) => at - (submits[index] ?? NaN));
  const jobs = await schedd.count();
  await daemon.end();
  await schedd.empty();
  const seen = percentiles(answers);
  progress(`  ${pods} Pods: p99 ${seen[99]?.toFixed(0) ?? ''} ms, ${submits.length} submissions`);
  return {
    pods,
    answers: seen,
    failures,
    jobs,
    submits: submits.length,
    meanGap: gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length,
    leastGap: Math.min(...gaps),
    programs: countsOf(programs),
    cpu: spent,
    bare,
    complaints: daemon.complaints(),
  };
}

/** A job with as many bytes of files, which somebody submits without thresher. */
async function submitByHand({ pool }: BenchPool, directory: string): Promise<readonly number[]> {
  const client = clientOf(pool, 'remote');
  const script = join(directory, 'bare.sh');
  writeFileSync(script, `#!/bin/sh\nexit 0\n${'# a line of the payload\n'.repeat(2500)}`, { mode: 0o755 });
  const lines = ['universe = vanilla', `executable = ${script}`, 'should_transfer_files = YES'];
  const text = [
    ...lines,
    ...['request_cpus = 1', 'request_memory = 64', 'request_disk = 1024', 'requirements = false'],
    'queue 1',
    '',
  ].join('\n');
  const times: number[] = [];
  for (let nth = 0; nth < byHand; nth++) {
    const begun = performance.now();
    await client.submit(text, { spool: true, directory }, new AbortController().signal);
    times.push(performance.now() - begun);
  }
  return percentiles(times);
}
