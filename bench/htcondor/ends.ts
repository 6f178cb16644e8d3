import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { describeBatch } from '../../src/plugins/htcondor/template/describe.ts';
import { systemClock } from '../../src/util/clock.ts';
import { workerIdFloor, workerName } from '../../src/worker/identity.ts';
import { batchOptions, templateOf } from '../../test/support/htcondor-batch.ts';
import { workerOf } from '../../test/support/samples.ts';
import { Rows } from '../shared/rows.ts';
import { percentiles } from '../shared/statistics.ts';
import { CondorDaemon } from './daemon.ts';
import { writeWrapper } from './pilot.ts';
import { type BenchPool, BenchSchedd, openDirectory } from './pool.ts';
import { progress } from './progress.ts';
import { WaitingPilots } from './waiting.ts';

const rate = 50;
const patience = 300_000;
/** The daemon has a rest before, ms. */
const rest = 5000;
const terminated = 5;

export interface Late {
  readonly jobs: number;
  /** By the jobs' own last moments. */
  readonly perSecond: number;
  /** ms, by percentile, 0 to 100: from the job's last moment to the row; from that to HTCondor's event; from there to the row. */
  readonly endToRow: readonly number[];
  readonly endToEvent: readonly number[];
  readonly eventToRow: readonly number[];
  readonly cpuMsPerEnd: number;
}

export interface Ends {
  /** Jobs that the schedd runs itself. */
  readonly scheduler: Late;
  /** Jobs in slots, which on one machine share its processors with starters and shadows. */
  readonly slots: Late;
  readonly complaints: readonly string[];
}

/** Jobs of the local schedd end at a steady rate; when can each end be read from the database? */
export async function measureEnds(
  bench: BenchPool,
  directory: string,
  { jobs, inSlots }: { readonly jobs: number; readonly inSlots: number },
): Promise<Ends> {
  progress(`  ${jobs} jobs of the schedd itself`);
  const scheduler = await inSchedd(bench, directory, jobs);
  progress(`  ${inSlots} jobs in slots`);
  const slots = await onMachine(bench, directory, inSlots);
  const complaints = [...scheduler.complaints, ...slots.complaints];
  return { scheduler: scheduler.late, slots: slots.late, complaints };
}

interface Seen {
  readonly late: Late;
  readonly complaints: readonly string[];
}

/**
 * A schedd with no machine to run on can end 50 jobs a second on two cores only in its own universe, which no site has for
 * pilots: so the daemon's own description of the jobs gets that universe, is submitted before it starts, and it adopts them.
 */
async function inSchedd(bench: BenchPool, directory: string, count: number): Promise<Seen> {
  const { pilots, daemon, factory, schedd } = site(bench, directory, 'ends-scheduler');
  const first = workerIdFloor(Date.now());
  const workers = Array.from({ length: count }, (_, index) => {
    const id = first + index;
    return workerOf(id, { name: workerName(factory, id), queue: 'BENCH', placement: 'htcondor:LOCAL' });
  });
  const template = templateOf(stringify(pilots.template), 'pilot.yaml');
  const options = { factoryId: factory, harvesterId: 'bench', queue: 'BENCH', configId: 1 };
  const { description } = describeBatch(template, workers, batchOptions(directory, options));
  const universe = /^universe = vanilla$/m;
  if (!universe.test(description)) throw new Error('the description does not name its universe');
  await schedd.submit(
    description
      .replace(universe, 'universe = scheduler')
      // Nothing is sent to where it is already.
      .replaceAll(/^(should_transfer_files|when_to_transfer_output|transfer_\w+) = .*\n/gm, ''),
  );
  await pilots.started(count, patience);
  daemon.start();
  await daemon.ready();
  return follow(bench, { pilots, daemon, schedd, count });
}

async function onMachine(bench: BenchPool, directory: string, count: number): Promise<Seen> {
  const { pilots, daemon, schedd } = site(bench, directory, 'ends-slots');
  daemon.start();
  await daemon.ready();
  daemon.want(count);
  await pilots.started(count, patience);
  return follow(bench, { pilots, daemon, schedd, count });
}

interface EndsSite {
  readonly factory: string;
  readonly pilots: WaitingPilots;
  readonly daemon: CondorDaemon;
  readonly schedd: BenchSchedd;
}

function site(
  { pool, directory: open, environment }: BenchPool,
  directory: string,
  factory: string,
): EndsSite {
  const jobs = join(open, factory);
  openDirectory(pool, jobs);
  const pilots = new WaitingPilots(jobs);
  const options = { pool, environment, wrapper: writeWrapper(jobs), template: pilots.template, factory };
  const daemon = new CondorDaemon(join(directory, factory), options);
  return { pilots, daemon, factory, schedd: new BenchSchedd(pool, 'local') };
}

async function follow(
  { pool }: BenchPool,
  { pilots, daemon, schedd, count }: Omit<EndsSite, 'factory'> & { readonly count: number },
): Promise<Seen> {
  const rows = new Rows(daemon.database);
  await rows.until('all jobs run', () => rows.count(`status = 'running'`) === count, patience);
  daemon.want(0);
  await systemClock.sleep(rest);
  const late = await measure(pool.eventLog, daemon, pilots, rows);
  rows.close();
  await daemon.kill('SIGTERM');
  await schedd.empty();
  return { late, complaints: daemon.complaints() };
}

async function measure(
  eventLog: string,
  daemon: CondorDaemon,
  pilots: WaitingPilots,
  rows: Rows,
): Promise<Late> {
  const all = rows.list<{ id: number; job: string }>(
    `SELECT worker_id AS id, batch_id AS job FROM workers WHERE status = 'running' ORDER BY worker_id`,
  );
  const ids = all.map(({ id }) => id);
  const cpu = daemon.cpuSeconds();
  const ends = rows.untilFinished(new Set(ids), patience);
  const start = performance.now();
  for (const [index, id] of ids.entries()) {
    const due = start + (index * 1000) / rate;
    if (due > performance.now()) await systemClock.sleep(due - performance.now());
    pilots.end(id);
  }
  const read = await ends;
  const cpuMsPerEnd = ((daemon.cpuSeconds() - cpu) * 1000) / ids.length;
  const events = terminations(eventLog);
  const times = all.map(({ id, job }) => {
    return { end: pilots.lastMoment(id), event: events.get(job) ?? NaN, row: read.get(id) ?? NaN };
  });
  const last = times.map(({ end }) => end);
  return {
    jobs: ids.length,
    perSecond: ((ids.length - 1) * 1000) / (Math.max(...last) - Math.min(...last)),
    endToRow: percentiles(times.map(({ end, row }) => row - end)),
    endToEvent: percentiles(times.map(({ end, event }) => event - end)),
    eventToRow: percentiles(times.map(({ event, row }) => row - event)),
    cpuMsPerEnd,
  };
}

/** By "cluster.proc": the time of its last event, ms UTC. The pool writes them as JSON, with parts of seconds. */
function terminations(file: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const text of readFileSync(file, 'utf8').split(/\n(?=\{)/)) {
    const event = JSON.parse(text) as Readonly<Record<'EventTypeNumber' | 'Cluster' | 'Proc', number>> & {
      readonly EventTime: string;
    };
    if (event.EventTypeNumber === terminated)
      found.set(`${event.Cluster}.${event.Proc}`, Date.parse(event.EventTime));
  }
  return found;
}
