import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBenchPool } from '../htcondor/pool.ts';
import { fullSize, measureParts, type Options } from '../shared/parts.ts';
import { measureCreate } from './create.ts';
import { measureEnds } from './ends.ts';
import { type Measured, type MeasuredWith, parts } from './measured.ts';
import { pageOf } from './page.ts';
import { progress } from './progress.ts';
import { measureStatus } from './status.ts';

export { parts } from './measured.ts';

/** Pods of interLink on real schedds; the results go to `results/interlink.json` and `results/interlink.md`. */
export async function benchInterlink(options: Options): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  // A daemon is another user, and has its files below it.
  chmodSync(directory, 0o755);
  const remove = () => {
    if (process.env.BENCH_KEEP === undefined) rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  progress('a pool of its own');
  const bench = await startBenchPool();
  const { workers = fullSize } = options;
  const share = (of: number) => Math.ceil(workers * of);
  try {
    await measureParts<Measured, MeasuredWith>({
      benchmark: 'interlink',
      options,
      parts,
      pageOf,
      progress,
      measuredWith: { htcondor: bench.version },
      measure: {
        create: () => measureCreate(bench, directory, share(0.05)),
        status: () => measureStatus(bench, directory, share(0.05)),
        end: () => measureEnds(bench, directory, share(0.01)),
      },
    });
  } finally {
    await bench.stop();
    remove();
    process.off('exit', remove);
  }
}
