import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { machine } from '../core/machine.ts';
import { startCluster } from './cluster.ts';
import { figuresOf } from './figures.ts';
import { Limit } from './limit.ts';
import { measureLive } from './live.ts';
import type { Measured } from './measured.ts';
import { pageOf } from './page.ts';
import { measureSubmission } from './submission.ts';
import { measureSweep } from './sweep.ts';

export interface Options {
  readonly resultsDirectory: string;
  /** Live workers, for a quick try: less than its full size, nothing is kept of it. */
  readonly workers: number | undefined;
}

/** Live workers of the figures that are kept. */
const fullSize = 10_000;

/** Against a real control plane; the results go to `results/kubernetes.json` and `results/kubernetes.md`. */
export async function benchKubernetes({ resultsDirectory, workers = fullSize }: Options): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const remove = () => {
    if (process.env.BENCH_KEEP === undefined) rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  progress('a control plane of its own, and the client-go loop');
  const cluster = await startCluster();
  try {
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

async function measure(
  { plane }: Awaited<ReturnType<typeof startCluster>>,
  directory: string,
  workers: number,
): Promise<Measured> {
  const limit = await Limit.build(directory, plane.status.kubeconfig);
  const part = (share: number) => Math.ceil(workers * share);
  const loads: number[] = [];
  const noteLoad = () => loads.push(loadavg()[0] ?? NaN);
  noteLoad();
  const rounds = 5;
  progress('submission');
  const submission = await measureSubmission(plane, limit, directory, { rounds, perRound: part(0.2) });
  noteLoad();
  progress('sweep');
  const sweep = await measureSweep(plane, limit, directory, { rounds, workers: part(0.1) });
  noteLoad();
  progress(`${workers} live workers`);
  const live = await measureLive(plane, directory, {
    ...{ workers, changes: part(0.1), restarts: 3, quietSeconds: 60 },
  });
  noteLoad();
  return { submission, sweep, live, loads };
}

/** Of the loop that is compared with. */
function versionOfClientGo(): string {
  const text = readFileSync(join(import.meta.dirname, '../limit/go.mod'), 'utf8');
  return /client-go (\S+)/.exec(text)?.[1] ?? 'unknown';
}

function progress(what: string): void {
  process.stderr.write(`bench kubernetes: ${what}\n`);
}
