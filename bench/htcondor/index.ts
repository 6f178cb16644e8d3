import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fullSize, measureParts, type Options } from '../shared/parts.ts';
import { measureEnds } from './ends.ts';
import { type Measured, type MeasuredWith, parts } from './measured.ts';
import { pageOf } from './page.ts';
import { measurePoll } from './poll.ts';
import { startBenchPool } from './pool.ts';
import { progress } from './progress.ts';
import { measureSubmission } from './submission.ts';

export { parts } from './measured.ts';

/** Against a real pool; the results go to `results/htcondor.json` and `results/htcondor.md`. */
export async function benchHTCondor(options: Options): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const remove = () => {
    if (process.env.BENCH_KEEP === undefined) rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  progress('a pool of its own');
  const pool = await startBenchPool();
  const { workers = fullSize } = options;
  const share = (of: number) => Math.ceil(workers * of);
  try {
    await measureParts<Measured, MeasuredWith>({
      benchmark: 'htcondor',
      options,
      parts,
      pageOf,
      progress,
      measuredWith: { htcondor: pool.version },
      measure: {
        submission: () =>
          measureSubmission(pool, directory, { rounds: 5, perRound: share(0.1), single: share(0.01) }),
        poll: () => measurePoll(pool, directory, { workers, rounds: 7 }),
        ends: () => measureEnds(pool, directory, { jobs: share(0.05), inSlots: share(0.01) }),
      },
    });
  } finally {
    await pool.stop();
    remove();
    process.off('exit', remove);
  }
}
