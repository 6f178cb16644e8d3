import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { adText } from '../../src/clients/htcondor/ad-text.ts';
import { PoolClient } from '../../src/clients/htcondor/pool-client.ts';
import { collectionPath, pods } from '../../src/clients/kubernetes/paths.ts';
import { systemClock } from '../../src/util/clock.ts';
import { clientOf, placeOf } from '../../test/support/htcondor.ts';
import type { ControlPlane } from '../../test/support/kubernetes.ts';
import { makeClient } from '../../test/support/kubernetes-client.ts';
import { kubernetesSections } from '../kubernetes/daemon.ts';
import { jobTemplate } from '../kubernetes/job.ts';
import { type BenchPool, BenchSchedd } from '../htcondor/pool.ts';
import { RealDaemon } from '../shared/daemon.ts';
import { Rows } from '../shared/rows.ts';
import { until } from '../../test/support/until.ts';
import { progress } from './progress.ts';

/** s */
const joinTimeout = 240;
/** s between looks of the source. */
const interval = 10;
const shapes = 5;
/** ms between two jobs, on average. */
const pause = 1500;
const patience = 400_000;

export interface FirstWorker {
  readonly jobs: number;
  readonly shapes: number;
  /** s */
  readonly interval: number;
  /** Of each job, s: from the end of the first negotiation cycle that passed over it to when a watch showed the Pod of its worker. */
  readonly waits: readonly number[];
  /** The same from the end of its `condor_submit`. */
  readonly sinceSubmission: readonly number[];
  readonly complaints: readonly string[];
}

/** Jobs come one by one to a pool without machines for them; when is there a Pod for each? */
export async function measureFirstWorker(
  { plane, bench }: { readonly plane: ControlPlane; readonly bench: BenchPool },
  directory: string,
  jobs: number,
): Promise<FirstWorker> {
  const space = await plane.namespace('bench');
  const daemon = await PoolDaemon.make(join(directory, 'first-worker'), plane, space.name, bench);
  daemon.start();
  await until('the source looks at a pool that is old enough', () => daemon.mayGrow(), patience);
  const over = new AbortController();
  const created: number[][] = Array.from({ length: shapes }, () => []);
  const watched = watchPods(join(daemon.directory, 'kubeconfig'), space.name, created, over.signal);
  const submitted: number[][] = Array.from({ length: shapes }, () => []);
  const schedd = clientOf(bench.pool, 'local');
  progress(`${jobs} jobs, one after the other`);
  for (let nth = 0; nth < jobs; nth++) {
    // Not in step with the looks.
    await systemClock.sleep(Math.random() * 2 * pause);
    const shape = nth % shapes;
    await schedd.submit(jobText(shape), {}, over.signal);
    submitted[shape]?.push(Date.now());
  }
  await until('each job has a Pod', () => created.flat().length >= jobs, patience);
  over.abort();
  await watched;
  await daemon.kill('SIGTERM');
  await new BenchSchedd(bench.pool, 'local').empty();
  const cycles = cyclesOf(readFileSync(join(bench.pool.directory, 'log/NegotiatorLog'), 'utf8'));
  // Jobs of one shape are all alike, so that the first Pod is for the first of them.
  const pairs = submitted.flatMap((times, shape) =>
    times.map((time, nth) => ({
      time,
      waiting: passedOver(cycles, time),
      pod: created[shape]?.[nth] ?? NaN,
    })),
  );
  return {
    jobs,
    shapes,
    interval,
    waits: pairs.map(({ waiting, pod }) => (pod - waiting) / 1000),
    sinceSubmission: pairs.map(({ time, pod }) => (pod - time) / 1000),
    complaints: daemon.complaints(),
  };
}

/** Takes a whole machine of its shape, and no other one. */
function jobText(shape: number): string {
  const lines = [
    ...['executable = /bin/true', 'transfer_executable = false', 'request_cpus = 8', 'request_memory = 128'],
    `requirements = TARGET.BenchShape =?= ${shape}`,
  ];
  return `${lines.join('\n')}\nqueue\n`;
}

/** The real program with one queue of several shapes. */
class PoolDaemon extends RealDaemon {
  static async make(
    directory: string,
    plane: ControlPlane,
    namespace: string,
    { pool, environment }: BenchPool,
  ): Promise<PoolDaemon> {
    const place = placeOf(pool, 'local');
    const daemon = new PoolDaemon(directory, {
      settings: {
        master: { factoryId: 'bench-pools' },
        sources: {
          'htcondor-idle': {
            condorConfig: place.configFile,
            tokenDirectory: place.tokenDirectory,
            schedds: [pool.local.schedd],
            interval,
            // None of these workers ever joins: longer than all jobs take. The pool has to be as old before it gets any.
            joinTimeout,
          },
        },
      },
      environment,
    });
    plane.writeKubeconfig(join(directory, 'kubeconfig'));
    writeFileSync(join(directory, 'job.yaml'), stringify(jobTemplate({})));
    const client = new PoolClient({ place, clock: systemClock, environment: process.env });
    const { signal } = new AbortController();
    const [machine] = await client.adTexts('slots', { attributes: [] }, (ad) => ad, signal);
    const all = Array.from({ length: shapes }, (_, shape) => {
      const size: [string, string][] = ['cpus', 'totalslotcpus', 'totalcpus'].map((name) => [name, '8']);
      const ad = new Map([...(machine ?? []), ...size, ['benchshape', String(shape)] as const]);
      writeFileSync(join(directory, `${shape}.ad`), adText(ad));
      return { name: String(shape), slotAd: `${shape}.ad` };
    });
    const queue = {
      queueStatus: 'online',
      mapType: 'NoJob',
      maxWorkers: 10_000,
      nQueueLimitWorker: 10_000,
      demand: { name: 'htcondor-idle', shapes: all },
      ...kubernetesSections(namespace),
    };
    writeFileSync(join(directory, 'panda_queueconfig.json'), JSON.stringify({ BENCH: queue }, null, 2));
    return daemon;
  }

  mayGrow(): boolean {
    try {
      const rows = new Rows(this.database);
      try {
        const [report] = rows.list<{ reasons: string }>('SELECT reasons FROM queues');
        return (
          report !== undefined && /htcondor-idle-jobs/.test(report.reasons) && !/young/.test(report.reasons)
        );
      } finally {
        rows.close();
      }
    } catch {
      // Its tables are being made.
      return false;
    }
  }
}

/** A Pod as its watch shows it. */
interface PodOfWorker {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly containers: readonly {
      readonly env?: readonly { readonly name: string; readonly value?: string }[];
    }[];
  };
}

/** Notes by shape when a watch first showed each Pod, ms UTC. */
async function watchPods(
  kubeconfig: string,
  namespace: string,
  seen: readonly number[][],
  signal: AbortSignal,
): Promise<void> {
  const client = makeClient(kubeconfig);
  const path = collectionPath(pods, namespace);
  const known = new Set<string>();
  try {
    const resourceVersion = await client.version(path, { signal });
    const how = { resourceVersion, timeoutSeconds: 3600, silence: 3_600_000, signal };
    for await (const { type, object } of client.watch(path, how)) {
      if (type === 'BOOKMARK') continue;
      const { metadata, spec } = object as unknown as PodOfWorker;
      if (known.has(metadata.name)) continue;
      known.add(metadata.name);
      const shape = spec.containers[0]?.env?.find(({ name }) => name === 'POOL_SHAPE')?.value ?? '';
      seen[Number(shape)]?.push(Date.now());
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await client.close();
  }
}

interface Cycle {
  /** ms UTC */
  readonly start: number;
  readonly end: number;
}

/** The cycles in a negotiator's log, in their order. */
function cyclesOf(log: string): Cycle[] {
  const cycles: Cycle[] = [];
  let start = NaN;
  for (const [, time = '', what = ''] of log.matchAll(
    /^(\S+ \S+).*-{5,} (Started|Finished) Negotiation Cycle/gm,
  )) {
    const at = Date.parse(time.replace(/^(\d\d)\/(\d\d)\/(\d\d) /, '20$3-$1-$2T'));
    if (what === 'Started') start = at;
    else cycles.push({ start, end: at });
  }
  return cycles;
}

/** When the first cycle ended that began in a later second than a job came: before it, no job counts. */
function passedOver(cycles: readonly Cycle[], submitted: number): number {
  const second = Math.floor(submitted / 1000) * 1000 + 1000;
  return cycles.find(({ start }) => start >= second)?.end ?? NaN;
}
