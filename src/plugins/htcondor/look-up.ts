import { type JobId, jobIdText, parseJobId } from '../../clients/htcondor/classad.ts';
import type { Ad } from '../../clients/htcondor/json-objects.ts';
import type { Worker } from '../../worker/worker.ts';
import type { HTCondorSchedd } from './schedd.ts';
import { type Job, jobOf, marks } from './marks.ts';
import { jobAttributes } from './state/types.ts';

/** Attributes that thresher asks for each job that it follows. */
export const followed: readonly string[] = [
  ...new Set([...jobAttributes, 'QDate', 'GridResource', 'Owner', marks.queue, marks.config, marks.ce]),
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
  await schedd.owners.know(signal);
  return schedd.client.queueAs(
    (ad) => ownJobOf(schedd, ad, true),
    `${schedd.mine} && (${constraint})`,
    [...new Set([...attributes, 'Owner'])],
    signal,
  );
}

/** A job that fulfils the constraint of ours; undefined for what is none, and for that of another user. The owners must be known. */
export function ownJobOf(
  { owners }: Pick<HTCondorSchedd, 'owners'>,
  ad: Ad,
  queued: boolean,
): Job | undefined {
  const job = jobOf(ad, queued);
  return job !== undefined && owners.isOurs(job.id, job.owner) ? job : undefined;
}

/** The jobs of workers. */
export function whereWorkers(workerIds: readonly number[]): string {
  // A string, as Harvester has it.
  const list = workerIds.map((id) => `"${id}"`).join(',');
  return workerIds.length === 0 ? 'false' : `member(${marks.worker}, {${list}})`;
}

/**
 * The jobs of these workers, past every cache: first the queue, then the history, since a job is written there before
 * it leaves the queue. @throws HTCondorError where not all of it can be said.
 */
export async function lookUp(
  schedd: HTCondorSchedd,
  workers: readonly Pick<Worker, 'workerId' | 'handle'>[],
  signal: AbortSignal,
  options: { readonly history: boolean },
): Promise<ReadonlyMap<number, readonly Job[]>> {
  const found = new Map<number, Job[]>();
  const add = (jobs: readonly Job[]) => {
    for (const job of jobs) {
      if (job.workerId !== undefined) found.set(job.workerId, [...(found.get(job.workerId) ?? []), job]);
    }
  };
  schedd.owners.expect(workers);
  for (const some of portions(workers)) {
    const ids = some.map(({ workerId }) => workerId);
    add(await inQueue(schedd, whereWorkers(ids), signal));
    let missing = ids.filter((id) => !found.has(id));
    const handles = some.flatMap(({ handle }) => (handle && parseJobId(handle.batchID)) ?? []);
    while (options.history && missing.length > 0) {
      // One job for each is the rule; where one has several, they take the places of others, who are asked for again.
      const limit = missing.length;
      const constraint = `${schedd.mine} && ${schedd.owners.constraint(handles)} && ${whereWorkers(missing)}`;
      const ads = await schedd.client.history(constraint, followed, limit, signal);
      add(ads.flatMap((ad) => ownJobOf(schedd, ad, false) ?? []));
      missing = ads.length < limit ? [] : missing.filter((id) => !found.has(id));
    }
  }
  return found;
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
