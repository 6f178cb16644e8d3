import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { controlPlane } from '../../test/support/kubernetes.ts';
import { startBenchPool } from '../htcondor/pool.ts';
import { fullSize, measureParts, type Options } from '../shared/parts.ts';
import { measureAsked } from './asked.ts';
import { measureDecision } from './decision.ts';
import { measureFirstWorker } from './first-worker.ts';
import { type Measured, type MeasuredWith, parts } from './measured.ts';
import { measurePacking } from './packing.ts';
import { pageOf } from './page.ts';
import { progress } from './progress.ts';

export { parts } from './measured.ts';

/** The demand of a real pool; the results go to `results/pools.json` and `results/pools.md`. */
export async function benchPools(options: Options): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  chmodSync(directory, 0o755);
  const remove = () => {
    if (process.env.BENCH_KEEP === undefined) rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  progress('the control plane, and a pool of its own');
  const plane = await controlPlane();
  // Its log says when a cycle ended.
  const bench = await startBenchPool(['NEGOTIATOR_DEBUG = D_SUB_SECOND']);
  const { workers = fullSize } = options;
  try {
    await measureParts<Measured, MeasuredWith>({
      benchmark: 'pools',
      options,
      parts,
      pageOf,
      progress,
      measuredWith: { htcondor: bench.version },
      measure: {
        decision: () => measureDecision(bench, directory, workers * 2),
        packing: () => measurePacking(workers * 10),
        asked: () => measureAsked(bench, directory, workers * 10),
        worker: () => measureFirstWorker({ plane, bench }, directory, Math.ceil(workers * 0.01)),
      },
    });
  } finally {
    await bench.stop();
    remove();
    process.off('exit', remove);
  }
}
