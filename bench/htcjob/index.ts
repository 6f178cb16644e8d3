import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyCrd } from '../../test/support/htcjobs.ts';
import { controlPlane } from '../../test/support/kubernetes.ts';
import { startBenchPool } from '../htcondor/pool.ts';
import { fullSize, measureParts, type Options } from '../shared/parts.ts';
import { measureEnds } from './ends.ts';
import { measureFinished } from './finished.ts';
import { type Measured, type MeasuredWith, parts } from './measured.ts';
import { pageOf } from './page.ts';
import { progress } from './progress.ts';
import { measureSubmission } from './submission.ts';

export { parts } from './measured.ts';

/** HTCJobs from a real API server to a real schedd; the results go to `results/htcjob.json` and `results/htcjob.md`. */
export async function benchHtcJob(options: Options): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  // The jobs are another user's, and read their payloads below it.
  chmodSync(directory, 0o755);
  const remove = () => {
    if (process.env.BENCH_KEEP === undefined) rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  progress('the control plane, and a pool of its own');
  const plane = await controlPlane();
  await applyCrd(plane);
  const bench = await startBenchPool();
  const { gitVersion } = await plane.client.request<{ readonly gitVersion: string }>('GET', '/version');
  const { workers = fullSize } = options;
  const share = (of: number) => Math.ceil(workers * of);
  const systems = { plane, bench };
  try {
    await measureParts<Measured, MeasuredWith>({
      benchmark: 'htcjob',
      options,
      parts,
      pageOf,
      progress,
      measuredWith: { htcondor: bench.version, kubernetes: gitVersion },
      measure: {
        submission: () => measureSubmission(systems, directory, { rounds: 3, jobs: share(0.1) }),
        ends: () => measureEnds(systems, directory, share(0.01)),
        finished: () => measureFinished(systems, directory, share(0.5)),
      },
    });
  } finally {
    await bench.stop();
    remove();
    process.off('exit', remove);
  }
}
