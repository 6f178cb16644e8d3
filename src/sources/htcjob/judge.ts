import { hasEnded, type JobFacts } from './facts.ts';
import { attemptOf, indexOf } from '../../clients/htcjob/numbers.ts';

export interface Judged {
  readonly number: number;
  /** `wanted`: to be asked for. `waits`: suspended. */
  readonly outcome: 'wanted' | 'waits' | 'live' | 'succeeded' | 'failed';
  /** Index of its last attempt, or of the one that is wanted. */
  readonly index: number;
  readonly facts: JobFacts | undefined;
}

export interface Judgement {
  /** By job number. */
  readonly jobs: readonly Judged[];
  /** Origins of living attempts that have to end. */
  readonly toEnd: readonly number[];
  /** How many failed jobs were run again. Those that are only wanted again are counted once they have a worker. */
  readonly retried: number;
  readonly isOver: boolean;
}

export interface ToJudge {
  readonly count: number;
  readonly round: number;
  readonly isSuspended: boolean;
  /** Its active deadline is over, or it is refused: nothing more is run. */
  readonly isExpired: boolean;
  readonly backoffLimit: number;
  /** By index of the origin. */
  readonly attempts: ReadonlyMap<number, JobFacts>;
  /** Numbers of the jobs that ended, by the resource itself: the database may have lost them. */
  readonly completed: ReadonlySet<number>;
  readonly failed: ReadonlySet<number>;
  /** By the resource itself: the database forgets attempts in time. */
  readonly retried: number;
  /** Attempts that were asked for and have no worker yet, by index. */
  readonly asked: ReadonlySet<number>;
}

/** Decides what becomes of each job of a resource. A job has at most one living attempt. */
export function judge(resource: ToJudge): Judgement {
  const { count, round, isSuspended, isExpired, backoffLimit, attempts, completed, failed } = resource;
  const byNumber = Map.groupBy([...attempts.keys()], (index) => attemptOf(index).number);
  const again = [...attempts.keys()].filter((index) => attemptOf(index).attempt > 0);
  const retried = Math.max(resource.retried, again.length);
  const isAskedAgain = (index: number) => attemptOf(index).attempt > 0 && attemptOf(index).round === round;
  // A retry that was asked for keeps its place, whichever job fails next.
  let left = backoffLimit - retried - [...resource.asked].filter(isAskedAgain).length;
  const toEnd: number[] = [];
  const first = (number: number) => indexOf({ round, attempt: 0, number });

  const decide = (number: number): Judged => {
    const indexes = byNumber.get(number)?.toSorted((one, other) => one - other) ?? [];
    const factsOf = (index: number | undefined) => (index === undefined ? undefined : attempts.get(index));
    const last = indexes.at(-1);
    const judged = (outcome: Judged['outcome'], index = last ?? first(number)): Judged => ({
      number,
      outcome,
      index,
      facts: factsOf(index),
    });
    const living = indexes.filter((index) => !hasEnded(factsOf(index) ?? { status: 'withdrawn' }));
    for (const index of living)
      if (isSuspended || isExpired || attemptOf(index).round < round) toEnd.push(index);
    if (completed.has(number)) return judged('succeeded');
    const succeeded = indexes.find((index) => factsOf(index)?.status === 'finished');
    if (succeeded !== undefined) return judged('succeeded', succeeded);
    if (living.length > 0) return judged('live', living.at(-1));
    // Attempts that the database knows decide: `backoffLimit` may have been raised.
    if (isExpired || (last === undefined && failed.has(number))) return judged('failed');
    if (last === undefined || attemptOf(last).round < round)
      return judged(isSuspended ? 'waits' : 'wanted', first(number));
    const { status } = factsOf(last) ?? {};
    const mayRunAgain = status === 'failed' || status === 'missed';
    const { attempt } = attemptOf(last);
    const next = indexOf({ round, attempt: attempt + 1, number });
    const isAsked = resource.asked.has(next);
    if (!mayRunAgain || (!isAsked && left <= 0)) return judged('failed');
    if (!isAsked) left--;
    return judged(isSuspended ? 'waits' : 'wanted', next);
  };

  const jobs = Array.from({ length: count }, (_, number) => decide(number));
  const isOver = jobs.every(hasEndedForGood);
  return { jobs, toEnd, retried, isOver };
}

/** No further attempt at the job follows. */
export function hasEndedForGood({ outcome }: Pick<Judged, 'outcome'>): boolean {
  return outcome === 'succeeded' || outcome === 'failed';
}
