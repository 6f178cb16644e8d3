import {
  classAdString,
  type JobId,
  jobIdText,
  parseJobId,
  whereJobs,
  whereShort,
} from '../../clients/htcondor/classad.ts';
import { HTCondorError, isHTCondorError } from '../../clients/htcondor/errors.ts';
import type { Ad } from '../../clients/htcondor/json-objects.ts';
import { markedId } from '../../worker/marked.ts';
import { beginningFromOutside } from '../../util/beginning.ts';
import type { Worker, WorkerError } from '../../worker/worker.ts';
import type { Ownership, Parted } from './owners.ts';
import type { HTCondorSchedd } from './schedd.ts';
import { type Job, jobOf, marks, strangerOf } from './marks.ts';
import { jobAttributes } from './state/types.ts';

/** Attributes that thresher asks for each job that it follows. */
export const followed: readonly string[] = [
  ...new Set([...jobAttributes, 'QDate', 'GridResource', 'Owner', marks.queue, marks.config, marks.ce]),
];

/** Workers or jobs of one query: an argument has its longest. */
const atOnce = 500;

/**
 * These jobs, and none that has the number of one of them in another queue: the schedd itself compares when they were submitted, where that is
 * known, at the moment in which it acts.
 */
export function whereSame(jobs: readonly Pick<Job, 'id' | 'queuedAt'>[]): string {
  const terms = [...Map.groupBy(jobs, ({ queuedAt }) => queuedAt)].map(([queuedAt, some]) => {
    const these = whereJobs(some.map(({ id }) => id));
    return queuedAt === undefined ? these : `((${these}) && QDate == ${queuedAt})`;
  });
  return terms.length === 0 ? 'false' : terms.join(' || ');
}

/** The same as long as none has changed its status since, where its ad says since when it has it. */
export function whereUnchanged(jobs: readonly Pick<Job, 'id' | 'queuedAt' | 'ad'>[]): string {
  const terms = [...Map.groupBy(jobs, ({ ad }) => ad.EnteredCurrentStatus)].map(([entered, some]) =>
    entered === undefined ? whereSame(some) : `((${whereSame(some)}) && EnteredCurrentStatus == ${entered})`,
  );
  return terms.length === 0 ? 'false' : terms.join(' || ');
}

/** So many as one argument can name. */
export function portions<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(all.length / atOnce) }, (_, at) =>
    all.slice(at * atOnce, (at + 1) * atOnce),
  );
}

/** Attributes that may be long in jobs of ours, too: in reasons are words of users. */
const wordy = new Set([
  ...['HoldReason', 'LastHoldReason', 'RemoveReason', 'RemoteHost', 'LastRemoteHost'],
  ...['GridJobId', 'GridJobStatus', 'GridResource'],
]);

/**
 * Asks for jobs. Where one of them keeps HTCondor from an answer, jobs with long values are told of without their reasons, and not at all
 * where their marks are long: those are not ours.
 * @throws HTCondorError
 */
export async function sparing<One>(
  constraint: string,
  attributes: readonly string[],
  ask: (constraint: string, attributes: readonly string[]) => Promise<readonly One[]>,
  idOf: (one: One) => string,
): Promise<readonly One[]> {
  try {
    return await ask(constraint, attributes);
  } catch (error) {
    if (!isHTCondorError(error, 'condor-failed', 'condor-answer')) throw error;
    const bare = attributes.filter((name) => !wordy.has(name));
    const found = new Map<string, One>();
    // All of them first: one whose values change between both questions must not be missing.
    for (const some of [bare, attributes])
      for (const one of await ask(`(${constraint}) && ${whereShort(some)}`, some)) found.set(idOf(one), one);
    return [...found.values()];
  }
}

/**
 * Jobs in the queue of the schedd with our marks, whosever they are, by a further constraint. Little is kept of those that are of other users, by
 * what is known of thresher: `owners.part` says it for certain.
 * @param confirmed `cluster.proc` of jobs that are ours whosever they are
 * @throws HTCondorError
 */
export async function inQueue(
  schedd: HTCondorSchedd,
  constraint: string,
  signal: AbortSignal,
  attributes: readonly string[] = followed,
  confirmed: ReadonlySet<string> = new Set(),
): Promise<readonly Job[]> {
  const read = (ad: Ad) => {
    const job = jobOf(ad, true) ?? unnamed(schedd);
    return schedd.owners.isOther(job) && !confirmed.has(jobIdText(job.id)) ? strangerOf(job) : job;
  };
  let isAgain = false;
  const ask = async (which: string, some: readonly string[]) => {
    // Jobs that were too many may be those of others: who thresher is has to be known to tell.
    if (isAgain) await schedd.owners.now(signal);
    isAgain = true;
    return schedd.client.queueAs(read, which, some, signal);
  };
  return sparing(`${schedd.mine} && (${constraint})`, attributes, ask, ({ id }) => jobIdText(id));
}

/** Left out, a job would count as gone. */
function unnamed({ submissionHost }: HTCondorSchedd): never {
  const message = `the queue of ${submissionHost} answers with a job without a ClusterId and ProcId that are numbers`;
  throw new HTCondorError({ code: 'condor-answer', message, maybeDone: false });
}

/** The id of a job that may have none. */
export function idTextOf({ ClusterId, ProcId }: Ad): string {
  return `${String(ClusterId)}.${String(ProcId)}`;
}

/** The jobs of workers. */
export function whereWorkers(workerIds: readonly number[]): string {
  // A string, as Harvester has it.
  const list = workerIds.map((id) => `"${id}"`).join(',');
  return workerIds.length === 0 ? 'false' : `member(${marks.worker}, {${list}})`;
}

type Confirmed = Pick<Worker, 'workerId' | 'handle'>;

/** The jobs of workers by their marks, and by the numbers that they were confirmed with: a mark may be edited, or be gone. */
function whereConfirmed(workers: readonly Confirmed[]): string {
  const marked = whereWorkers(workers.map(({ workerId }) => workerId));
  const ids = workers.flatMap(({ handle }) => (handle && parseJobId(handle.batchID)) ?? []);
  // What has no mark makes an error of the first, and HTCondor takes `error || true` for an error.
  return ids.length === 0 ? marked : `(${whereJobs(ids)} || ${marked})`;
}

/** Jobs of workers in the queue, each with its worker. @param which of them @throws HTCondorError */
export async function queuedOf(
  schedd: HTCondorSchedd,
  workers: readonly Confirmed[],
  which: string,
  signal: AbortSignal,
  attributes: readonly string[] = followed,
): Promise<Parted<Job>> {
  const constraint = `${whereConfirmed(workers)} && ${which}`;
  const asked = [...new Set([...attributes, 'Owner'])];
  const confirmed = new Set(workers.flatMap(({ handle }) => handle?.batchID ?? []));
  const jobs = await inQueue(schedd, constraint, signal, asked, confirmed);
  const marked = await withWorkers(schedd, jobs, { where: 'queue', constraint, workers }, signal);
  // A schedd that was set up anew gives a number again, to the job of another worker.
  const ids = new Set(workers.map(({ workerId }) => workerId));
  const theirs = marked.filter(({ workerId }) => workerId === undefined || ids.has(workerId));
  return partedFor(schedd, workers, theirs, signal);
}

/** The number of a job is the word of `condor_submit`, so the job that a worker was confirmed with is ours, whosever it is. */
export async function partedFor<J extends Pick<Job, 'id' | 'owner' | 'workerId' | 'isStranger'>>(
  { owners }: Pick<HTCondorSchedd, 'owners'>,
  workers: readonly Confirmed[],
  jobs: readonly J[],
  signal: AbortSignal,
): Promise<Parted<J>> {
  const numbers = new Map(workers.map(({ workerId, handle }) => [workerId, handle?.batchID]));
  const isConfirmed = ({ id, workerId = 0 }: J) => numbers.get(workerId) === jobIdText(id);
  const { ours, others } = await owners.part(
    jobs.filter((job) => !isConfirmed(job)),
    signal,
  );
  return { ours: [...jobs.filter(isConfirmed), ...ours], others };
}

/**
 * Why nothing can be said of a worker that was never confirmed: thresher may have submitted such a job as another user before. One that was
 * removed is no reason, since it runs no more; but as long as the schedd does not say who thresher is, it may be the worker's own end.
 */
export function disputed(
  { submissionHost, owners }: Pick<HTCondorSchedd, 'submissionHost' | 'owners'>,
  { workerId, handle }: Confirmed,
  others: readonly Job[],
): WorkerError | undefined {
  if (handle !== undefined) return undefined;
  const { unanswered } = owners;
  const counts = ({ queued, ad }: Job) => queued || ad.JobStatus !== 3 || unanswered !== undefined;
  const job = others.find((one) => one.workerId === workerId && counts(one));
  if (job === undefined) return undefined;
  const owner = beginningFromOutside(job.owner ?? '', 200);
  const why =
    unanswered === undefined
      ? 'who is not the one as whom thresher submits'
      : `and condor_ping does not say as whom thresher submits: ${unanswered.message}`;
  const message = `job ${jobIdText(job.id)} on ${submissionHost} has the mark of worker ${workerId}, and is of user ${owner}, ${why}`;
  return { code: 'htcondor-owner', message };
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
    readonly workers: readonly Confirmed[];
  },
  signal: AbortSignal,
): Promise<Job[]> {
  const ids = new Set(asked.workers.map(({ workerId }) => workerId));
  const confirmed = new Map(asked.workers.map(({ handle, workerId }) => [handle?.batchID, workerId]));
  const workers = new Map<string, number>();
  const evaluated = (constraint: string, limit: number) => {
    const attributes = ['ClusterId', 'ProcId', marks.worker];
    return schedd.client.evaluated(asked.where, constraint, attributes, limit, signal);
  };
  const marksOf = (some: readonly Job[]) => {
    const these = whereJobs(some.map(({ id }) => id));
    return evaluated(`${schedd.mine} && ${asked.constraint} && (${these})`, some.length);
  };
  for (const some of portions(jobs.filter(({ workerId }) => workerId === undefined))) {
    const values = await marksOf(some).catch(async (error: unknown) => {
      if (!isHTCondorError(error, 'condor-failed', 'condor-answer', 'condor-timeout')) throw error;
      // The schedd evaluates private attributes that its answers lack. So another user can write a mark that the schedd finds, and with which
      // the command crashes, has no end, or writes millions of characters. It is no worker's.
      const owned = new Set((await schedd.owners.part(some, signal)).ours);
      const own = some.filter((job) => owned.has(job) || confirmed.has(jobIdText(job.id)));
      if (own.length === some.length) throw error;
      if (own.length > 0) return marksOf(own);
      await evaluated('false', 1);
      return [];
    });
    for (const [cluster = '', proc = '', mark = ''] of values) {
      const workerId = markedId(mark.replaceAll('"', ''));
      const id = `${cluster}.${proc}`;
      if (workerId !== undefined && (ids.has(workerId) || confirmed.has(id))) workers.set(id, workerId);
    }
  }
  return jobs.flatMap((job) => {
    const id = jobIdText(job.id);
    // The mark of another worker says more than a number.
    const marked = job.workerId ?? workers.get(id);
    return marked === undefined && isLater(schedd, job)
      ? []
      : [{ ...job, workerId: marked ?? confirmed.get(id) }];
  });
}

/** Whether the look before saw another job by this number: a schedd whose queue is restored gives numbers again. */
function isLater({ fresh, jobs }: HTCondorSchedd, { id, queuedAt }: Job): boolean {
  const name = jobIdText(id);
  // Until it was seen, when it was submitted is told by the clock of this machine.
  const before = fresh.has(name) ? undefined : jobs.living?.get(name)?.queuedAt;
  return before !== undefined && queuedAt !== undefined && before !== queuedAt;
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
  workers: readonly Confirmed[],
  signal: AbortSignal,
  options: { readonly history: boolean },
): Promise<LookedUp> {
  const found = new Map<number, Job[]>();
  const unsaid = new Map<number, WorkerError>();
  const add = ({ ours, others }: Parted<Job>, some: readonly Confirmed[]) => {
    for (const job of ours) {
      if (job.workerId === undefined) continue;
      const known = found.get(job.workerId);
      if (known === undefined) found.set(job.workerId, [job]);
      else known.push(job);
    }
    // One user may have very many jobs, and give all of them the marks of these workers.
    const disputing = Map.groupBy(others, ({ workerId }) => workerId);
    for (const worker of some) {
      const error = disputed(schedd, worker, disputing.get(worker.workerId) ?? []);
      if (error !== undefined) unsaid.set(worker.workerId, error);
    }
  };
  const isFound = ({ workerId, handle }: Confirmed) => {
    const isIt = (job: Job) => isWholeJob(job) || jobIdText(job.id) === handle?.batchID;
    return found.get(workerId)?.some(isIt) === true;
  };
  /** What was found is not the job that the worker was confirmed with. */
  const isOther = ({ workerId, handle }: Confirmed) =>
    handle !== undefined && found.get(workerId)?.some(({ id }) => jobIdText(id) === handle.batchID) !== true;
  type Which = (asked: readonly Confirmed[], now: Ownership) => string;
  const ask = async (asked: readonly Confirmed[], which: Which) => {
    // Where thresher becomes known between two parts of the question, a job of its own would be in neither.
    const question = which(asked, await schedd.owners.now(signal));
    const { jobs, isWhole } = await inHistory(schedd, asked, question, signal);
    add(jobs, asked);
    return { isWhole, jobs: [...jobs.ours, ...jobs.others] };
  };
  /** One job for each is the rule; where one has several, they take the places of others, who are asked for again. */
  const askOn = async (which: Which, missing: () => readonly Confirmed[]) => {
    for (let asked = missing(); asked.length > 0;) {
      const { isWhole, jobs } = await ask(asked, which);
      if (isWhole) return;
      const left = missing();
      // The same question would get the same answer, again and again.
      if (left.length === asked.length)
        for (const { workerId } of left)
          if (!unsaid.has(workerId)) unsaid.set(workerId, hidden(schedd, jobs));
      asked = left.length === asked.length ? [] : left;
    }
  };
  for (const some of portions(workers)) {
    add(await queuedOf(schedd, some, 'true', signal), some);
    // Beside a half that is still in the queue the history may have the whole job of a later attempt, and beside another job its own one.
    const missing = some.filter((worker) => !isFound(worker) || isOther(worker));
    // One question is enough, but where somebody has filled its answer: that must hide no job of ours.
    if (!options.history || missing.length === 0 || (await ask(missing, whereEither)).isWhole) continue;
    // By its number no job of the same worker is before it.
    const numbered = missing.filter(isOther);
    if (numbered.length > 0) await ask(numbered, whereNumbered);
    await askOn(whereOurs, () => missing.filter((worker) => !isFound(worker)));
    const isOpen = (worker: Confirmed) =>
      worker.handle === undefined && !isFound(worker) && !unsaid.has(worker.workerId);
    await askOn(whereDisputed, () => missing.filter(isOpen));
  }
  // A half is no reason to be sure: the job of another user may be the whole one, of an earlier credential.
  for (const worker of workers) if (isFound(worker)) unsaid.delete(worker.workerId);
  return { jobs: found, unsaid };
}

/** As many as there are workers, at most. */
async function inHistory(
  schedd: HTCondorSchedd,
  workers: readonly Confirmed[],
  which: string,
  signal: AbortSignal,
): Promise<{ readonly jobs: Parted<Job>; readonly isWhole: boolean }> {
  const workerIds = workers.map(({ workerId }) => workerId);
  const constraint = `${whereWorkers(workerIds)} && ${which}`;
  const limit = workers.length;
  // What is no job counts, too: it takes the place of one.
  const read = (ad: Ad) => ({ id: idTextOf(ad), job: jobOf(ad, false) });
  const ask = (which: string, some: readonly string[]) =>
    schedd.client.historyAs(read, which, some, limit, signal);
  const ads = await sparing(`${schedd.mine} && ${constraint}`, followed, ask, ({ id }) => id);
  const jobs = ads.flatMap(({ job }) => job ?? []);
  const marked = await withWorkers(schedd, jobs, { where: 'history', constraint, workers }, signal);
  return { jobs: await partedFor(schedd, workers, marked, signal), isWhole: ads.length < limit };
}

/** Of the jobs of these workers those that are ours, without halves: a limited answer is not filled by those of other users. */
export function whereOurs(workers: readonly Confirmed[], { where }: Ownership): string {
  return `(${whereNumbered(workers)} || (${wasWhole} && ${where}))`;
}

/** The jobs that these workers were confirmed with. */
function whereNumbered(workers: readonly Confirmed[]): string {
  return `(${whereJobs(workers.flatMap(({ handle }) => (handle && parseJobId(handle.batchID)) ?? []))})`;
}

/** Both. An owner that is not there makes an error of the second, and HTCondor takes `error || true` for an error. */
export function whereEither(workers: readonly Confirmed[], now: Ownership): string {
  return `(${whereDisputed(workers, now)} || ${whereOurs(workers, now)})`;
}

/** Jobs that make it doubtful whether a worker has one, as `disputed` says it. */
function whereDisputed(workers: readonly Confirmed[], { unanswered }: Ownership): string {
  const open = workers.filter(({ handle }) => handle === undefined).map(({ workerId }) => workerId);
  return `(${whereWorkers(open)} && ${unanswered === undefined ? 'JobStatus =!= 3' : wasWhole})`;
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
export function jobOfWorker<J extends Job>(
  { handle }: Pick<Worker, 'handle'>,
  jobs: readonly J[] = [],
): J | undefined {
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

/** Neither a half nor what is left of one. */
function isWholeJob(job: Job): boolean {
  return !isHalf(job) && !wasNeverWhole(job);
}

/** Why halves are removed. */
export const halfReason = 'its submission was cut off';

/** `!wasNeverWhole` of a job in the history, as a constraint. */
export const wasWhole = [
  '(JobStatus =!= 3 || (JobStartDate ?: 0) =!= 0',
  `|| !(regexp(${classAdString(halfReason)}, RemoveReason ?: "")`,
  `|| ((StageInFinish ?: 0) =?= 0 && (HoldReasonCode =?= ${spooling} || LastHoldReasonCode =?= ${spooling}))))`,
].join(' ');

export function byId(a: JobId, b: JobId): number {
  return a.cluster - b.cluster || a.proc - b.proc;
}
