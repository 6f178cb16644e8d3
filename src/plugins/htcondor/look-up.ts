import { type JobId, jobIdText, whereJobs } from '../../clients/htcondor/classad.ts';
import { markedId } from '../../worker/marked.ts';
import type { Worker, WorkerError } from '../../worker/worker.ts';
import type { HTCondorSchedd } from './schedd.ts';
import { type Job, jobOf, marks } from './marks.ts';
import { jobAttributes } from './state/types.ts';

/** Attributes that thresher asks for each job that it follows. */
export const followed: readonly string[] = [
  ...new Set([...jobAttributes, 'QDate', 'GridResource', marks.queue, marks.config, marks.ce]),
];

/** Workers or jobs of one query: an argument has its longest. */
const atOnce = 500;

/** So many as one argument can name. */
export function portions<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(all.length / atOnce) }, (_, at) =>
    all.slice(at * atOnce, (at + 1) * atOnce),
  );
}

/** Jobs in the queue of the schedd by a constraint beside that they are ours. @throws HTCondorError */
export async function inQueue(
  schedd: HTCondorSchedd,
  constraint: string,
  signal: AbortSignal,
  attributes: readonly string[] = followed,
): Promise<Job[]> {
  return schedd.client.queueAs(
    (ad) => jobOf(ad, true),
    `${schedd.mine} && (${constraint})`,
    attributes,
    signal,
  );
}

/** The jobs of workers. */
export function whereWorkers(workerIds: readonly number[]): string {
  // A string, as Harvester has it.
  const list = workerIds.map((id) => `"${id}"`).join(',');
  return workerIds.length === 0 ? 'false' : `member(${marks.worker}, {${list}})`;
}

/** Jobs of workers in the queue, each with its worker. @param which of them @throws HTCondorError */
export async function queuedOf(
  schedd: HTCondorSchedd,
  workerIds: readonly number[],
  which: string,
  signal: AbortSignal,
  attributes: readonly string[] = followed,
): Promise<Job[]> {
  const constraint = `${whereWorkers(workerIds)} && ${which}`;
  const jobs = await inQueue(schedd, constraint, signal, attributes);
  return withWorkers(schedd, jobs, { where: 'queue', constraint, workerIds }, signal);
}

/**
 * HTCondor evaluates a mark that it compares, and shows it as it is: a job whose mark became an expression (by `condor_qedit`, a
 * transform or the job itself) answers a question about workers, and its ad does not say which worker it is. HTCondor says that when
 * it is asked for the value. A mark that has another value then is the mark of no worker.
 * @param jobs the answer
 * @param asked the question: where, for which jobs of ours, and for which workers
 * @throws HTCondorError
 */
async function withWorkers(
  schedd: HTCondorSchedd,
  jobs: readonly Job[],
  asked: {
    readonly where: 'queue' | 'history';
    readonly constraint: string;
    readonly workerIds: readonly number[];
  },
  signal: AbortSignal,
): Promise<Job[]> {
  const workers = new Map<string, number>();
  for (const some of portions(jobs.filter(({ workerId }) => workerId === undefined))) {
    const these = `${schedd.mine} && ${asked.constraint} && (${whereJobs(some.map(({ id }) => id))})`;
    const attributes = ['ClusterId', 'ProcId', marks.worker];
    const values = await schedd.client.evaluated(asked.where, these, attributes, some.length, signal);
    for (const [cluster = '', proc = '', mark = ''] of values) {
      const workerId = markedId(mark.replaceAll('"', ''));
      if (workerId !== undefined && asked.workerIds.includes(workerId))
        workers.set(`${cluster}.${proc}`, workerId);
    }
  }
  return jobs.map((job) => ({ ...job, workerId: job.workerId ?? workers.get(jobIdText(job.id)) }));
}

export interface LookedUp {
  /** By worker. */
  readonly jobs: ReadonlyMap<number, readonly Job[]>;
  /** By worker: why it cannot be said whether it has a job. */
  readonly unsaid: ReadonlyMap<number, WorkerError>;
}

/**
 * The jobs of these workers, past every cache: first the queue, then the history, since a job is written there before
 * it leaves the queue. @throws HTCondorError where the schedd gives no whole answer
 */
export async function lookUp(
  schedd: HTCondorSchedd,
  workerIds: readonly number[],
  signal: AbortSignal,
  options: { readonly history: boolean },
): Promise<LookedUp> {
  const found = new Map<number, Job[]>();
  const unsaid = new Map<number, WorkerError>();
  const add = (jobs: readonly Job[]) => {
    for (const job of jobs) {
      if (job.workerId !== undefined) found.set(job.workerId, [...(found.get(job.workerId) ?? []), job]);
    }
  };
  for (const some of portions(workerIds)) {
    add(await queuedOf(schedd, some, 'true', signal));
    let missing = some.filter((id) => !found.has(id));
    while (options.history && missing.length > 0) {
      // One job for each is the rule; where one has several, they take the places of others, who are asked for again.
      const limit = missing.length;
      const { jobs, count } = await inHistory(schedd, missing, limit, signal);
      add(jobs);
      if (count < limit) break;
      const left = missing.filter((id) => !found.has(id));
      // The same question would get the same answer, again and again.
      if (left.length === limit) {
        for (const id of left) unsaid.set(id, hidden(schedd, jobs));
        break;
      }
      missing = left;
    }
  }
  return { jobs: found, unsaid };
}

async function inHistory(
  schedd: HTCondorSchedd,
  workerIds: readonly number[],
  limit: number,
  signal: AbortSignal,
): Promise<{ readonly jobs: readonly Job[]; readonly count: number }> {
  const constraint = whereWorkers(workerIds);
  const ads = await schedd.client.history(`${schedd.mine} && ${constraint}`, followed, limit, signal);
  const jobs = ads.flatMap((ad) => jobOf(ad, false) ?? []);
  return {
    jobs: await withWorkers(schedd, jobs, { where: 'history', constraint, workerIds }, signal),
    count: ads.length,
  };
}

/** Why nothing can be said of workers: these jobs fill the answer of the history, and are nobody's. */
function hidden({ submissionHost }: HTCondorSchedd, jobs: readonly Job[]): WorkerError {
  const [first] = jobs;
  const which = first === undefined ? 'ads without a job id' : `jobs such as ${jobIdText(first.id)}`;
  const message = `the history of ${submissionHost} answers with ${which}, whose ${marks.worker} is another one at each look, and hides others behind them: right is a string in digits, such as "12"`;
  return { code: 'condor-answer', message };
}

/**
 * The job that a worker is, of those that carry its mark: the one that it was confirmed with, else the last one. A half
 * that an attempt left and its fence removed may stand beside it.
 */
export function jobOfWorker({ handle }: Pick<Worker, 'handle'>, jobs: readonly Job[] = []): Job | undefined {
  const own = jobs.find(({ id }) => jobIdText(id) === handle?.batchID);
  return own ?? jobs.filter((job) => !wasNeverWhole(job)).toSorted((a, b) => byId(b.id, a.id))[0];
}

const spooling = 16;

/** Submitted with `-spool`, but its files never came: it waits for them, and only its submission can bring them. */
export function isHalf({ ad }: Job): boolean {
  return ad.JobStatus === 5 && ad.HoldReasonCode === spooling;
}

/** A half that is no more. */
export function wasNeverWhole({ ad }: Job): boolean {
  const {
    JobStatus,
    HoldReasonCode,
    LastHoldReasonCode,
    JobStartDate,
    StageInFinish,
    RemoveReason = '',
  } = ad;
  if (JobStatus !== 3 || JobStartDate) return false;
  if (RemoveReason.includes(halfReason)) return true;
  // The schedd gives up some of them itself.
  return !StageInFinish && (HoldReasonCode === spooling || LastHoldReasonCode === spooling);
}

/** Why halves are removed. */
export const halfReason = 'its submission was cut off';

export function byId(a: JobId, b: JobId): number {
  return a.cluster - b.cluster || a.proc - b.proc;
}
