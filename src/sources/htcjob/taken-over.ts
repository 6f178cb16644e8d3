import type { Reason } from '../../worker/reason.ts';
import type { JobFacts } from './facts.ts';

const states = { unadopted: 'not listed yet', unreported: 'return code unknown' } as const;

const unadopted: JobFacts = {
  workerId: null,
  status: 'submitted',
  native: states.unadopted,
  exitCode: null,
  message: null,
  batchId: null,
  submitTime: null,
  endTime: null,
  isSwept: false,
};

export interface TakenOver {
  /** Number of jobs. */
  readonly count: number;
  /** By index of the origin. */
  readonly attempts: ReadonlyMap<number, JobFacts>;
  /** Numbers of the jobs that ended, by the resource itself, where the import writes them. */
  readonly completed: ReadonlySet<number>;
  readonly failed: ReadonlySet<number>;
}

/**
 * The facts of the jobs that htc-operator submitted. Each of them counts as submitted from the beginning, so that none is submitted
 * again before the listing that adopts it. HTCondor's "ended well" is not the word of the script: the job ends with the exit status of
 * the program that sends its event. It has not ended until the import brings the result.
 */
export function takenOverFacts({ count, attempts, completed, failed }: TakenOver): Map<number, JobFacts> {
  const facts = new Map(attempts);
  for (let number = 0; number < count; number++) {
    // The index of the first attempt is the number of the job.
    const known = attempts.get(number);
    if (completed.has(number) || (known !== undefined && known.status !== 'finished')) continue;
    if (!failed.has(number))
      facts.set(
        number,
        known === undefined ? unadopted : { ...known, status: 'running', native: states.unreported },
      );
    else if (known !== undefined)
      facts.set(number, {
        ...known,
        status: 'failed',
        exitCode: null,
        message: 'by the table of htc-operator',
      });
  }
  return facts;
}

/** Why jobs that were taken over have no end. */
export function whyOpen(
  jobs: readonly { readonly number: number; readonly facts: JobFacts | undefined }[],
): Reason | undefined {
  const first = (native: string) => jobs.find(({ facts }) => facts?.native === native);
  const silent = first(states.unreported);
  if (silent !== undefined)
    return {
      code: 'htcjob-unreported',
      message: `job ${silent.number} has ended, and the table of htc-operator had no return code of it: run "thresher htcjob import" again`,
    };
  const waiting = first(states.unadopted);
  if (waiting === undefined) return undefined;
  const message = `job ${waiting.number} was submitted by htc-operator: the next listing of its schedd adopts it`;
  return { code: 'htcjob-not-adopted', message };
}
