import { type Amounts, holdsOne, jobsIn, type JobSize, less } from './sizes.ts';

/**
 * Machines that are alike to the last job in them. 100,000 jobs fill a few hundred piles, so that work is counted by piles, never by
 * jobs. A pile does not change: filling it gives others.
 */
export interface Pile<Job, Machine> {
  readonly machine: Machine;
  /** How many machines. */
  readonly count: number;
  /** Left in each of them. */
  readonly free: Amounts;
  /** Jobs in each of them. */
  readonly jobs: ReadonlyMap<Job, number>;
  /** One job at a time, however small: a static slot. */
  readonly oneJob: boolean;
  /** HTCondor said of the machine as it is that a job matches, so that one fits, whatever the amounts say. */
  readonly certain: boolean;
}

/** How many of `most` jobs of a size each machine of the pile takes further. */
export function roomOf<Job, Machine>(pile: Pile<Job, Machine>, size: JobSize, most: number): number {
  if (most < 1 || (pile.oneJob && pile.jobs.size > 0)) return 0;
  if (!holdsOne(size.exact, pile.free)) return pile.certain && pile.jobs.size === 0 ? 1 : 0;
  return pile.oneJob ? 1 : jobsIn(size, pile.free, most).all;
}

/** `count` machines of the pile with `times` more jobs in each. */
export function withJobs<Job, Machine>(
  pile: Pile<Job, Machine>,
  count: number,
  job: Job,
  size: JobSize,
  times: number,
): Pile<Job, Machine> {
  const { rounded } = jobsIn(size, pile.free, times);
  const free = less(less(pile.free, size.rounded, rounded), size.exact, times - rounded);
  const jobs = new Map(pile.jobs);
  jobs.set(job, (jobs.get(job) ?? 0) + times);
  return { ...pile, count, free, jobs };
}

/** What came of an attempt to put jobs into piles. */
export interface Filled<Job, Machine> {
  readonly piles: readonly Pile<Job, Machine>[];
  /** Jobs that found no room. */
  readonly left: number;
}

/** Puts `count` jobs into the first machines that have room, as many as each takes. At most two piles more come of it. */
export function fill<Job, Machine>(
  piles: readonly Pile<Job, Machine>[],
  job: Job,
  size: JobSize,
  count: number,
  takes: (machine: Machine) => boolean,
): Filled<Job, Machine> {
  const filled: Pile<Job, Machine>[] = [];
  let left = count;
  let copied = 0;
  for (let at = 0; at < piles.length && left > 0; at++) {
    const pile = piles[at];
    if (pile === undefined) continue;
    const room = roomOf(pile, size, left);
    // The amounts first: they are cheaper than the question.
    if (room === 0 || !takes(pile.machine)) continue;
    // Not spread: there may be more piles than a call may have arguments.
    for (const before of piles.slice(copied, at)) filled.push(before);
    copied = at + 1;
    const whole = Math.min(pile.count, Math.floor(left / room));
    if (whole > 0) filled.push(withJobs(pile, whole, job, size, room));
    left -= whole * room;
    const partly = whole < pile.count && left > 0 ? 1 : 0;
    if (partly === 1) {
      filled.push(withJobs(pile, 1, job, size, left));
      left = 0;
    }
    const rest = pile.count - whole - partly;
    if (rest > 0) filled.push({ ...pile, count: rest });
  }
  // Nothing is copied where nothing changed: most groups find no room in most piles.
  return { piles: filled.length === 0 ? piles : [...filled, ...piles.slice(copied)], left };
}
