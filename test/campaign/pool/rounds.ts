import { setTimeout as sleep } from 'node:timers/promises';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { untilSaid } from '../../support/site.ts';
import { until } from '../../support/until.ts';
import { Dice } from '../dice.ts';
import type { PoolBed } from './bed.ts';
import { JobBook } from './book.ts';
import type { Caps } from './caps-kept.ts';
import { Census } from './census.ts';
import { Mover } from './moves.ts';

export interface RoundsReport {
  readonly broken: readonly string[];
  readonly rounds: number;
  /** Those among them that reached no schedd. */
  readonly inVain: number;
  readonly jobs: number;
  /** Workers that ever lived. */
  readonly workers: number;
  /** Of the census. */
  readonly looks: number;
  readonly made: ReadonlyMap<string, number>;
}

export interface RoundsOptions {
  readonly seed: number;
  readonly rounds: number;
  /** Those at the begin and in the end. */
  readonly caps: Caps;
  /** ms, of one round. */
  readonly pace: number;
  /** Called with each move as it is made. */
  readonly say?: (line: string) => void;
}

/** How long all jobs, and then all workers, may take to end, ms. */
const longestEnds = { jobs: 90_000, workers: 45_000 };

/** Changes something at random again and again, then lets all end, and says which promises were broken. */
export async function playRounds(bed: PoolBed, options: RoundsOptions): Promise<RoundsReport> {
  const { seed, rounds, caps, pace, say } = options;
  const dice = new Dice(seed);
  const book = new JobBook(bed);
  const census = new Census(bed);
  const mover = new Mover(bed, book, caps);
  const made = new Map<string, number>();
  const broken: string[] = [];
  const last = new Map<string, number>();
  let played = 0;
  let inVain = 0;
  try {
    // Before, there may be no database to read.
    await untilSaid(mover.daemon, /INFO +started/);
    census.begin();
    for (let round = 0; round < rounds; round++) {
      const begun = performance.now();
      const open = mover.moves.filter(({ name, apart = 1 }) => round - (last.get(name) ?? -apart) >= apart);
      const move = dice.pickByWeight(open);
      if (move === undefined) continue;
      last.set(move.name, round);
      made.set(move.name, (made.get(move.name) ?? 0) + 1);
      say?.(`${round + 1}: ${move.name}`);
      try {
        await move.make(dice);
      } catch (error) {
        // The collector may be gone by an earlier move: then this one reaches no schedd.
        if (!(error instanceof HTCondorError)) throw error;
        inVain++;
      }
      played++;
      await sleep(Math.max(0, pace - (performance.now() - begun)));
    }
    broken.push(...(await settle(bed, book, mover, caps)));
  } finally {
    await mover.end();
    await census.end();
  }
  broken.push(...(await census.broken()), ...(await book.broken()));
  const { looks, workers } = census;
  return { broken, rounds: played, inVain, jobs: book.jobs.size, workers: workers.size, looks, made };
}

/** Nothing is wrong any more: all jobs run, and then all workers leave. @returns what does not end */
async function settle(bed: PoolBed, book: JobBook, mover: Mover, caps: Caps): Promise<string[]> {
  const broken: string[] = [];
  mover.setCaps(caps);
  await until('the pool is healed', async () => {
    await mover.heal();
    return true;
  });
  const unended = async () => {
    const ended = await book.ended();
    return [...book.jobs.values()].filter(
      ({ servable, removed, cluster }) => servable && !removed && !ended.has(cluster),
    );
  };
  let left = await unended();
  const told = () =>
    `all jobs that can run have ended; left are ${left.map(({ cluster }) => cluster).join(', ')}`;
  const wait = (what: string | (() => string), isOver: () => boolean | Promise<boolean>, longest: number) =>
    until(what, isOver, longest).catch((error: unknown) => {
      broken.push(String(error));
    });
  await wait(told, async () => (left = await unended()).length === 0, longestEnds.jobs);
  await wait('all workers have left', () => bed.site.liveShims().size === 0, longestEnds.workers);
  return broken;
}
