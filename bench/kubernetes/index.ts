import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { machine } from '../core/machine.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { Limit } from './limit.ts';
import { measureLive } from './live.ts';
import { type Kept, type Measured, type Part, parts } from './measured.ts';
import { pageOf } from './page.ts';
import { progress } from './progress.ts';
import { measureSubmission } from './submission.ts';
import { measureSweep } from './sweep.ts';

export { parts } from './measured.ts';

export interface Options {
  readonly resultsDirectory: string;
  /** Live workers, for a quick try: less than its full size, nothing is kept of it. */
  readonly workers: number | undefined;
  /** Only this part; the others stay as they were measured last. */
  readonly part: Part | undefined;
}

/** Live workers of the figures that are kept. */
const fullSize = 10_000;

/** Against a real control plane; the results go to `results/kubernetes.json` and `results/kubernetes.md`. */
export async function benchKubernetes({
  resultsDirectory,
  workers = fullSize,
  part,
}: Options): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const remove = () => {
    if (process.env.BENCH_KEEP === undefined) rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  progress('a control plane of its own, and the client-go loop');
  const cluster = await startCluster();
  const results = join(resultsDirectory, 'kubernetes.json');
  let kept: Kept = workers < fullSize ? {} : readKept(results);
  try {
    const limit = await Limit.build(directory, cluster.plane.status.kubeconfig);
    for (const one of part === undefined ? parts : [part]) {
      kept = { ...kept, [one]: await measurePart(one, cluster, limit, directory, workers) };
      if (workers < fullSize) continue;
      // What was measured stays, whatever becomes of the rest.
      mkdirSync(resultsDirectory, { recursive: true });
      writeFileSync(results, `${JSON.stringify(kept, null, 2)}\n`);
      writeFileSync(join(resultsDirectory, 'kubernetes.md'), pageOf(kept));
    }
    process.stdout.write(pageOf(kept));
  } finally {
    cluster.plane.client.close();
    cluster.stop();
    remove();
    process.off('exit', remove);
  }
}

async function measurePart(
  part: Part,
  cluster: Cluster,
  limit: Limit,
  directory: string,
  workers: number,
): Promise<Kept[Part]> {
  progress(part);
  const { plane, version } = cluster;
  const share = (of: number) => Math.ceil(workers * of);
  const before = loadavg()[0] ?? NaN;
  const measure: { readonly [One in Part]: () => Promise<Measured[One]> } = {
    submission: () => measureSubmission(plane, limit, directory, { rounds: 5, perRound: share(0.2) }),
    sweep: () => measureSweep(plane, limit, directory, { rounds: 3, workers: share(0.1) }),
    live: () =>
      measureLive(plane, directory, { ...{ workers, changes: share(0.1), restarts: 3, quietSeconds: 60 } }),
  };
  const measured = await measure[part]();
  return {
    ...{ date: new Date().toISOString(), machine: machine(), kubernetes: version },
    ...{ clientGo: versionOfClientGo(), loads: [before, loadavg()[0] ?? NaN] },
    measured,
  } as Kept[Part];
}

function readKept(file: string): Kept {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Kept;
  } catch {
    // Nothing was kept yet.
    return {};
  }
}

/** Of the loop that is compared with. */
function versionOfClientGo(): string {
  const text = readFileSync(join(import.meta.dirname, '../limit/go.mod'), 'utf8');
  return /client-go (\S+)/.exec(text)?.[1] ?? 'unknown';
}
