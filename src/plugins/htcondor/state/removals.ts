import { jobIdText } from '../../../clients/htcondor/classad.ts';
import { HTCondorError } from '../../../clients/htcondor/errors.ts';
import type { WorkerError } from '../../../worker/worker.ts';
import type { Job } from '../marks.ts';
import { givenUpBecause, whyRemoving } from './job-state.ts';

/** A removed job that is in the queue for so long has a reason, and one that was held meanwhile is removed again, ms. */
const late = 600_000;
const [removed, held] = [3, 5];

/** Also one that HTCondor put on hold because it could not end its remote part. */
export const isRemoved = ({ JobStatus, LastJobStatus }: Job['ad']): boolean =>
  JobStatus === removed || (JobStatus === held && LastJobStatus === removed);

/** HTCondor keeps the last reason alone, and after a restart it is what tells that a job was given up. @param otherwise the reason of others */
export function removalReasonOf({ ad }: Job, otherwise: string): string {
  return givenUpBecause(ad) ?? otherwise;
}

/** By both clocks of this process, ms. */
interface Moment {
  readonly now: number;
  readonly monotonic: number;
}

/** Removed jobs that are still in the queue of one schedd. HTCondor counts anew whenever one is removed again: here its first removal counts. */
export class Removals {
  /** By `cluster.proc`: ms UTC. */
  readonly #since = new Map<string, number>();
  /**
   * By `cluster.proc`: when this process removed one that was held, or saw it held first, monotonic ms. Infinity: it was not held when it
   * was seen or removed last, so that it is held since the look that sees it so.
   */
  readonly #toldAt = new Map<string, number>();
  readonly #submissionHost: string;

  constructor(submissionHost: string) {
    this.#submissionHost = submissionHost;
  }

  /** Takes note of a job as it is in the queue. @returns why it is still there, once that is late */
  see({ id, ad }: Job, now: number): WorkerError | undefined {
    const name = jobIdText(id);
    if (!isRemoved(ad)) {
      this.#since.delete(name);
      this.#toldAt.delete(name);
      return undefined;
    }
    const since = Math.min(this.#since.get(name) ?? Infinity, enteredAt(ad, now));
    this.#since.set(name, since);
    if (ad.JobStatus !== held) this.#toldAt.set(name, Infinity);
    if (now - since < late) return undefined;
    const message = `job ${name} of ${this.#submissionHost} was ${whyRemoving(ad, since)}`;
    return { code: 'htcondor-removing', message };
  }

  /**
   * Whether it was held while it was removed, and so long ago that its CE may take the removal now. The clock of the schedd tells of what was
   * before the first look alone: one that is behind would have a job removed again at each look, and one that is ahead never.
   */
  isToRepeat({ id, ad }: Job, { now, monotonic }: Moment): boolean {
    if (!isRemoved(ad) || ad.JobStatus !== held) return false;
    const name = jobIdText(id);
    const since = Math.min(this.#toldAt.get(name) ?? monotonic - (now - enteredAt(ad, now)), monotonic);
    this.#toldAt.set(name, since);
    return monotonic - since >= late;
  }

  /**
   * Has this process remove these jobs, and takes note of it. One whose answer is lost counts too: it may have been done. One whose removal
   * never began is due at the next look.
   * @throws HTCondorError
   */
  async remove(jobs: readonly Job[], monotonic: number, act: () => Promise<unknown>): Promise<void> {
    const before = new Map(jobs.map(({ id }) => [jobIdText(id), this.#toldAt.get(jobIdText(id))]));
    // Before the answer: another call may look at the same jobs meanwhile.
    for (const { id, ad } of jobs)
      this.#toldAt.set(jobIdText(id), ad.JobStatus === held ? monotonic : Infinity);
    try {
      await act();
    } catch (error) {
      if (error instanceof HTCondorError && !error.maybeDone)
        for (const [name, at] of before)
          if (at !== undefined && this.#toldAt.get(name) === monotonic) this.#toldAt.set(name, at);
      throw error;
    }
  }

  /** Forgets the jobs that have left the queue. @param queued all that are there */
  keepOnly(queued: ReadonlySet<string>): void {
    for (const names of [this.#since, this.#toldAt])
      for (const name of names.keys()) if (!queued.has(name)) names.delete(name);
  }
}

/** When it became what it is by the schedd, ms UTC: at the latest now, whatever its clock says. */
function enteredAt({ EnteredCurrentStatus: entered = 0 }: Job['ad'], now: number): number {
  return entered > 0 ? Math.min(entered * 1000, now) : now;
}
