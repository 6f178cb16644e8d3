import { jobIdText, parseJobId, whereJobs } from '../../../clients/htcondor/classad.ts';
import type { Worker } from '../../../worker/worker.ts';
import { inQueue, portions } from '../look-up.ts';
import type { Job } from '../marks.ts';
import type { HTCondorSchedd } from '../schedd.ts';
import type { HTCondorDaemon } from '../schema.ts';

/** So long after the log told of an end the schedd may take to write that into its queue, ms. */
const mostLag = 300_000;
/** So long the queue may say that such a job runs before the history, which says how it ended, is asked, ms. */
const usualLag = 10_000;
/** The shortest pause between two questions to the queue whether it agrees, ms. */
export const shortestPause = 500;
/** The longest part of the time that these questions take. */
const share = 0.2;
/** Ends that are asked about at once, so that the log is read on meanwhile. */
const mostAsked = 2000;
/** Workers that are kept whose number was given again. */
const mostGone = 10_000;

/**
 * Ends of jobs that the log of job events told, until the queue agrees: HTCondor runs a job again whose shadow or schedd broke behind that
 * word. Says which of them the queue is to be asked about, and when, and against which it speaks.
 */
export class LogEnds {
  readonly #schedd: HTCondorSchedd;
  readonly #daemon: HTCondorDaemon;
  /** ms */
  readonly #longestPause: () => number;
  /** By `cluster.proc`: those with which the queue does not agree yet, and when they were read, monotonic ms. */
  readonly #readAt = new Map<string, number>();
  /** When the queue may be asked about them again, monotonic ms, and the pause after that, ms. */
  #dueAt = -Infinity;
  #pause = shortestPause;
  /** Not before then, where ends are read meanwhile. */
  #soonest = -Infinity;
  /** Workers whose job has a number that was given again, the last of them. */
  readonly #gone = new Set<number>();
  /** By `cluster.proc`: those in the queue of which the log was told that they live on behind their ends. */
  readonly #toldAlive = new Set<string>();

  constructor(schedd: HTCondorSchedd, daemon: HTCondorDaemon, longestPause: () => number) {
    this.#schedd = schedd;
    this.#daemon = daemon;
    this.#longestPause = longestPause;
  }

  /** Takes in what the log told of a job. @returns whether it is its end, which waits for the queue to agree */
  take(id: string, job: Job): boolean {
    this.#readAt.delete(id);
    if (this.#schedd.jobs.endOf(id) !== job) return false;
    this.#readAt.set(id, this.#daemon.clock.monotonic());
    this.#pause = shortestPause;
    this.#dueAt = Math.min(this.#dueAt, this.#soonest);
    return true;
  }

  /** The queue, or the history, has said how it is. */
  settle(id: string): void {
    this.#readAt.delete(id);
  }

  /** Forgets those that the log does not call ended any more. */
  keepOpen(): void {
    for (const id of this.#readAt.keys()) if (!this.#schedd.jobs.ended.has(id)) this.#readAt.delete(id);
  }

  /** Those with which the queue does not agree yet. */
  open(): readonly Job[] {
    return [...this.#schedd.jobs.ended].flatMap(([id, job]) => (this.#readAt.has(id) ? [job] : []));
  }

  /** Whether the schedd had all the time that it may take to write this end down. @param at monotonic ms */
  isLate(id: string, at: number): boolean {
    return this.#waited(id, at) >= mostLag;
  }

  #waited(id: string, at: number): number {
    return at - (this.#readAt.get(id) ?? -Infinity);
  }

  /** Those that the queue is to be asked about now; then `asked` is to be called. @param at monotonic ms */
  due(at: number): readonly Job[] {
    if (at < this.#dueAt) return [];
    const waiting = [...this.#schedd.jobs.ended].flatMap(([id, job]) => (this.isLate(id, at) ? [] : [job]));
    // The last ones: what the queue does not agree with for long is left to the looks.
    return waiting.slice(-mostAsked);
  }

  /** @param begun when the queue was asked about those that were due, monotonic ms */
  asked(begun: number): void {
    const now = this.#daemon.clock.monotonic();
    const rest = (now - begun) * (1 / share - 1);
    this.#soonest = now + Math.max(shortestPause, rest);
    this.#dueAt = now + Math.max(this.#pause, rest);
    this.#pause = Math.min(2 * this.#pause, Math.max(shortestPause, this.#longestPause()));
  }

  /** @param job as it lives in the queue, though the log told its end @param begun when the queue was asked, monotonic ms */
  doubt({ id, ad }: Job, begun: number): void {
    const { jobs } = this.#schedd;
    const name = jobIdText(id);
    // A shadow writes the end of a job that runs or brings back its output; the schedd that of one it has marked as removed.
    const usual = jobs.endOf(name)?.ad.JobStatus === 3 ? [3] : [2, 6];
    if (this.#waited(name, begun) >= usualLag || !usual.includes(ad.JobStatus ?? 0)) jobs.doubt(name);
  }

  /** Ends that were read while the schedd has another queue may be those of other jobs. */
  doubtOfOther(): void {
    const { jobs, jobQueue } = this.#schedd;
    if (jobQueue.logsAreOfOther) for (const id of this.#readAt.keys()) jobs.doubt(id);
  }

  /** Jobs that ended by the log, as the queue has them now; one that is not there any more as it ended by the log. @throws HTCondorError, ThresherError */
  async byQueue(ended: readonly Job[], signal: AbortSignal): Promise<readonly Job[]> {
    const schedd = this.#schedd;
    if (ended.length === 0) return [];
    const started = await schedd.jobQueue.started(signal);
    const queued = new Map<string, Job>();
    for (const some of portions(ended)) {
      const these = whereJobs(some.map(({ id }) => id));
      for (const job of await inQueue(schedd, these, signal)) queued.set(jobIdText(job.id), job);
    }
    await schedd.jobQueue.require(started, signal);
    return ended.map((job) => {
      const now = queued.get(jobIdText(job.id));
      // A schedd that was set up anew gives a number again, to the job of another worker.
      const isOther = now?.workerId !== undefined && now.workerId !== job.workerId;
      return now === undefined || isOther ? job : { ...job, ad: now.ad, queued: true };
    });
  }

  /** The number of its job was given again: nothing that the log says of that number is about it. */
  numberGone(workerId: number): void {
    this.#gone.add(workerId);
    const [oldest] = this.#gone;
    if (this.#gone.size > mostGone && oldest !== undefined) this.#gone.delete(oldest);
  }

  /** The job of a worker whose end the log told, though the schedd has forgotten it. */
  of({ workerId, queue, configId, handle }: Worker): Job | undefined {
    const { jobs } = this.#schedd;
    const id = handle && parseJobId(handle.batchID);
    if (id === undefined || this.#gone.has(workerId)) return undefined;
    const known = jobs.endOf(jobIdText(id));
    if (known !== undefined)
      return (known.workerId ?? workerId) === workerId ? { ...known, workerId } : undefined;
    const ad = jobs.adOf(jobIdText(id));
    if (ad?.JobStatus !== 3 && ad?.JobStatus !== 4) return undefined;
    const unknown = { owner: undefined, ce: undefined, queuedAt: undefined, identity: undefined };
    return { ...unknown, id, workerId, queue, configId, ad, queued: false };
  }

  /** Says once of jobs that the log called ended, and the queue does not, that their workers live on. */
  tellAlive(contradicting: readonly Job[], queued: ReadonlySet<string>): void {
    for (const id of this.#toldAlive) if (!queued.has(id)) this.#toldAlive.delete(id);
    const fresh = contradicting.filter(({ id }) => !this.#toldAlive.has(jobIdText(id)));
    for (const { id } of fresh) this.#toldAlive.add(jobIdText(id));
    const [first] = fresh;
    if (first === undefined) return;
    const name = jobIdText(first.id);
    const end = this.#schedd.jobs.endOf(name)?.ad.JobStatus === 3 ? 'was removed' : 'has ended';
    const reason = `by the log of job events job ${name} of ${this.#schedd.submissionHost} ${end}, and it is in the queue with the JobStatus ${first.ad.JobStatus ?? '?'}: its worker lives on`;
    this.#daemon.log.warn('the queue contradicts ends in the log of job events', {
      code: 'htcondor-end-contradicted',
      workers: fresh.length,
      workerIds: fresh.slice(0, 10).map(({ workerId }) => workerId),
      reason,
    });
  }
}
