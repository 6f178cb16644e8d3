import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fullSize, measureParts, type Options } from '../shared/parts.ts';
import { startCluster } from './cluster.ts';
import { Limit } from './limit.ts';
import { measureLive } from './live.ts';
import { type Measured, type MeasuredWith, parts } from './measured.ts';
import { pageOf } from './page.ts';
import { progress } from './progress.ts';
import { measureSubmission } from './submission.ts';
import { measureSweep } from './sweep.ts';

export { parts } from './measured.ts';

/** Against a real control plane; the results go to `results/kubernetes.json` and `results/kubernetes.md`. */
export async function benchKubernetes(options: Options): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const remove = () => {
    if (process.env.BENCH_KEEP === undefined) rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  progress('a control plane of its own, and the client-go loop');
  const cluster = await startCluster();
  const { plane, version } = cluster;
  const { workers = fullSize } = options;
  const share = (of: number) => Math.ceil(workers * of);
  try {
    const limit = await Limit.build(directory, plane.status.kubeconfig);
    await measureParts<Measured, MeasuredWith>({
      benchmark: 'kubernetes',
      options,
      parts,
      pageOf,
      progress,
      measuredWith: { kubernetes: version, clientGo: versionOfClientGo() },
      measure: {
        submission: () => measureSubmission(plane, limit, directory, { rounds: 5, perRound: share(0.2) }),
        sweep: () => measureSweep(plane, limit, directory, { rounds: 3, workers: share(0.1) }),
        live: () =>
          measureLive(plane, directory, { workers, changes: share(0.1), restarts: 3, quietSeconds: 60 }),
      },
    });
  } finally {
    plane.client.close();
    cluster.stop();
    remove();
    process.off('exit', remove);
  }
}

/** The client-go of the loop that thresher is compared with. */
function versionOfClientGo(): string {
  const text = readFileSync(join(import.meta.dirname, '../limit/go.mod'), 'utf8');
  return /client-go (\S+)/.exec(text)?.[1] ?? 'unknown';
}
