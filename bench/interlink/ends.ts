import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../test/support/until.ts';
import { type BenchPool, BenchSchedd, openDirectory } from '../htcondor/pool.ts';
import { countsOf } from '../htcondor/programs.ts';
import { WaitingPilots } from '../htcondor/waiting.ts';
import { percentiles } from '../shared/statistics.ts';
import { InterlinkDaemon, type InterlinkSite } from './daemon.ts';
import { type BenchPod, scriptPod } from './pods.ts';
import { progress } from './progress.ts';

const patience = 600_000;
/** The daemon has a rest before, ms. */
const rest = 5000;
/** Pods that are told to end in a second: a slot needs several starts of programs for each, on the same processors. */
const perSecond = 2;
/** Between two questions for a Pod that was told to end, ms. */
const lookEvery = 50;

/** How the state of a job reaches the daemon. */
const ways = {
  /** The schedd of this machine: its log tells the end, and its shadow brings the files. */
  local: { schedd: 'local' },
  /** A schedd of another name, which keeps the files of its jobs: the job sends its state itself. */
  reports: { schedd: 'spool', reports: true },
  /** The same schedd, which is asked as often as the command says it. */
  asked: { schedd: 'spool' },
} as const satisfies Readonly<Record<string, Partial<InterlinkSite>>>;
type Way = keyof typeof ways;

export interface EndsOfWay {
  /** ms, by percentile, 0 to 100: from the container's last moment to the first status that says that it has ended. */
  readonly late: readonly number[];
  /** Ends that a status showed with another exit code than 0. */
  readonly wrong: number;
  /** Programs that the daemon started from the first /create to the removal of all that was left, by name. */
  readonly programs: Readonly<Record<string, number>>;
  readonly complaints: readonly string[];
}

export interface Ends extends Readonly<Record<Way, EndsOfWay>> {
  readonly pods: number;
  readonly complaints: readonly string[];
}

/** Containers end in slots at a steady rate; which status shows each end first? */
export async function measureEnds(bench: BenchPool, directory: string, pods: number): Promise<Ends> {
  const local = await measure(bench, directory, 'local', pods);
  const reports = await measure(bench, directory, 'reports', pods);
  const asked = await measure(bench, directory, 'asked', pods);
  const complaints = [local, reports, asked].flatMap((one) => one.complaints);
  return { pods, local, reports, asked, complaints };
}

async function measure(bench: BenchPool, directory: string, way: Way, pods: number): Promise<EndsOfWay> {
  const factory = `bench-end-${way}`;
  const gates = join(bench.directory, factory);
  openDirectory(bench.pool, gates);
  const pilots = new WaitingPilots(gates);
  const daemon = new InterlinkDaemon(join(directory, factory), { bench, factory, ...ways[way] });
  await daemon.begin();
  const begun = Date.now();
  const all = Array.from({ length: pods }, (_, nth) => scriptPod(nth, pilots.script));
  await Promise.all(all.map((pod) => daemon.kubelet.create(pod)));
  await pilots.started(pods, patience);
  await sleep(rest);
  let wrong = 0;
  const times = await Promise.all(
    all.map(async (pod, nth) => {
      await sleep((nth * 1000) / perSecond);
      pilots.end(nth);
      const { at, exitCode } = await firstEnd(daemon, pod);
      if (exitCode !== 0) wrong++;
      return at - pilots.lastMoment(nth);
    }),
  );
  await Promise.all(all.map((pod) => daemon.kubelet.remove(pod)));
  await until('nothing is left of the Pods', () => daemon.recordedPods() === 0, patience);
  const programs = countsOf(daemon.programsSince(begun));
  await daemon.end();
  await new BenchSchedd(bench.pool, ways[way].schedd === 'local' ? 'local' : 'remote').empty();
  const late = percentiles(times);
  progress(`  ${way}: p99 ${late[99]?.toFixed(0) ?? ''} ms`);
  return { late, wrong, programs, complaints: daemon.complaints() };
}

/** The first status of a Pod that says that its container has ended; ms UTC. */
async function firstEnd({ kubelet }: InterlinkDaemon, pod: BenchPod) {
  return until(
    'a status shows the end',
    async () => {
      await sleep(lookEvery);
      const [main] = (await kubelet.status(pod)).containers;
      const { terminated } = main?.state ?? {};
      return terminated && { at: Date.now(), exitCode: terminated.exitCode };
    },
    patience,
  );
}
