import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../src/util/clock.ts';
import { Rows } from '../shared/rows.ts';
import { CondorDaemon, type Programs, programsBetween } from './daemon.ts';
import { bareDescription, neverMatches, pilotTemplate, writeWrapper } from './pilot.ts';
import { type BenchPool, BenchSchedd, openDirectory } from './pool.ts';
import { progress } from './progress.ts';

const run = promisify(execFile);
const patience = 300_000;
/** After the jobs of a round are gone, the schedd and the disk have their rest, ms. */
const rest = 2000;

export interface Submission {
  readonly perRound: number;
  /** In the order they ran, one of each per round, s. */
  readonly thresher: readonly number[];
  readonly bare: readonly number[];
  /** `single` submissions of one job, one after the other. */
  readonly singles: readonly number[];
  readonly single: number;
  /** All programs that thresher started in each round, from the wish to when the last worker was gone again. */
  readonly programs: readonly Programs[];
  readonly complaints: readonly string[];
}

/** The same pilots, by the daemon, by one `condor_submit`, and by many, in turns on the same schedd. */
export async function measureSubmission(
  { pool, directory: open, environment }: BenchPool,
  directory: string,
  {
    rounds,
    perRound,
    single,
  }: { readonly rounds: number; readonly perRound: number; readonly single: number },
): Promise<Submission> {
  const jobs = join(open, 'submission');
  openDirectory(pool, jobs);
  const wrapper = writeWrapper(jobs);
  const template = pilotTemplate(jobs, { ...neverMatches, initialdir: jobs });
  const factory = 'bench-submission';
  const daemon = new CondorDaemon(join(directory, 'submission'), {
    pool,
    environment,
    wrapper,
    template,
    factory,
  });
  const schedd = new BenchSchedd(pool, 'local');
  const [many, one] = [join(jobs, 'many.sub'), join(jobs, 'one.sub')];
  writeFileSync(many, bareDescription(jobs, wrapper, perRound));
  writeFileSync(one, bareDescription(jobs, wrapper, 1));
  const env = { HOME: jobs, ...environment };
  daemon.start();
  await daemon.ready();
  const rows = new Rows(daemon.database);

  const submit = async (file: string, times: number): Promise<number> => {
    const begin = performance.now();
    for (let nth = 0; nth < times; nth++) await run('condor_submit', [file], { env });
    return (performance.now() - begin) / 1000;
  };
  const ofBare = async (file: string, times: number): Promise<number> => {
    const seconds = await submit(file, times);
    await schedd.empty();
    await systemClock.sleep(rest);
    return seconds;
  };
  const programs: Programs[] = [];
  const ofThresher = async (): Promise<number> => {
    const newest = rows.value('SELECT max(worker_id) FROM workers');
    const before = daemon.programs();
    daemon.want(perRound);
    const these = `worker_id > ${newest}`;
    const end = await rows.until(`${perRound} jobs are submitted`, () => {
      return rows.count(`${these} AND status <> 'pending'`) >= perRound;
    });
    const begin = rows.value(`SELECT min(creation_time) FROM workers WHERE ${these}`);
    if ((await schedd.count()) !== perRound) throw new Error('the schedd has not the jobs of the round');
    daemon.want(0);
    await rows.until(
      'they were looked at',
      () => rows.count(`${these} AND native_status = 'idle'`) === perRound,
      patience,
    );
    await daemon.ask({ kind: 'kill-queue', queue: 'BENCH' });
    const over = `${these} AND status IN ('cancelled', 'failed', 'missed')`;
    await rows.until('they are gone', () => rows.count(over) === perRound, patience);
    programs.push(programsBetween(before, daemon.programs()));
    await schedd.empty();
    await systemClock.sleep(rest);
    return (end - begin) / 1000;
  };

  const results = { thresher: [] as number[], bare: [] as number[], singles: [] as number[] };
  // The first round warms up all of them; it is not counted.
  for (let round = 0; round <= rounds; round++) {
    const found = {
      bare: await ofBare(many, 1),
      thresher: await ofThresher(),
      singles: await ofBare(one, round === 0 ? 3 : single),
    };
    const [ours, theirs] = [found.thresher, found.bare].map((seconds) => Math.round(seconds * 1000));
    progress(`  round ${round}: ${ours ?? 0} ms beside ${theirs ?? 0} ms`);
    if (round === 0) continue;
    for (const kind of ['thresher', 'bare', 'singles'] as const) results[kind].push(found[kind]);
  }
  rows.close();
  await daemon.kill('SIGTERM');
  return { perRound, single, ...results, programs: programs.slice(1), complaints: daemon.complaints() };
}
