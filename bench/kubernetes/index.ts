import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { machine } from '../core/machine.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { figuresOf } from './figures.ts';
import { Limit } from './limit.ts';
import { measureLive } from './live.ts';
import type { Measured } from './measured.ts';
import { pageOf } from './page.ts';
import { progress } from './progress.ts';
import { measureSubmission } from './submission.ts';
import { measureSweep } from './sweep.ts';

export interface Options {
  readonly resultsDirectory: string;
  /** Live workers, for a quick try: less than its full size, nothing is kept of it. */
  readonly workers: number | undefined;
  /** Only this part, for a quick try. */
  readonly part: Part | undefined;
}

export const parts = ['submission', 'sweep', 'live'] as const;
export type Part = (typeof parts)[number];

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
  try {
    if (part !== undefined) {
      const limit = await Limit.build(directory, cluster.plane.status.kubeconfig);
      const found = await partsOf(cluster, directory, workers)[part](limit);
      process.stdout.write(`${JSON.stringify(found, null, 2)}\n`);
      return;
    }
    const measured = await measure(cluster, directory, workers);
    const date = new Date().toISOString();
    const clientGo = versionOfClientGo();
    const results = {
      ...{ benchmark: 'kubernetes', date, machine: machine(), kubernetes: cluster.version, clientGo },
      ...{ figures: figuresOf(measured), measured },
    };
    const page = pageOf(results);
    process.stdout.write(page);
    if (workers < fullSize) return;
    mkdirSync(resultsDirectory, { recursive: true });
    writeFileSync(join(resultsDirectory, 'kubernetes.json'), `${JSON.stringify(results, null, 2)}\n`);
    writeFileSync(join(resultsDirectory, 'kubernetes.md'), page);
  } finally {
    cluster.plane.client.close();
    cluster.stop();
    remove();
    process.off('exit', remove);
  }
}

/** What can be measured alone, in the order in which all are. */
function partsOf(
  { plane }: Cluster,
  directory: string,
  workers: number,
): {
  readonly [One in Part]: (limit: Limit) => Promise<Measured[One]>;
} {
  const share = (of: number) => Math.ceil(workers * of);
  return {
    submission: (limit) => measureSubmission(plane, limit, directory, { rounds: 5, perRound: share(0.2) }),
    sweep: (limit) => measureSweep(plane, limit, directory, { rounds: 3, workers: share(0.1) }),
    live: () =>
      measureLive(plane, directory, { ...{ workers, changes: share(0.1), restarts: 3, quietSeconds: 60 } }),
  };
}

async function measure(cluster: Cluster, directory: string, workers: number): Promise<Measured> {
  const limit = await Limit.build(directory, cluster.plane.status.kubeconfig);
  const all = partsOf(cluster, directory, workers);
  const loads: number[] = [];
  const next = (part: string) => {
    progress(part);
    loads.push(loadavg()[0] ?? NaN);
  };
  next('submission');
  const submission = await all.submission(limit);
  next('sweep');
  const sweep = await all.sweep(limit);
  next(`${workers} live workers`);
  const live = await all.live(limit);
  loads.push(loadavg()[0] ?? NaN);
  return { submission, sweep, live, loads };
}

/** Of the loop that is compared with. */
function versionOfClientGo(): string {
  const text = readFileSync(join(import.meta.dirname, '../limit/go.mod'), 'utf8');
  return /client-go (\S+)/.exec(text)?.[1] ?? 'unknown';
}
