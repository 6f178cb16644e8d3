import { jobIdText } from '../../../clients/htcondor/classad.ts';
import type { WorkerError } from '../../../worker/worker.ts';
import type { Job } from '../marks.ts';
import { givenUpReason, whyRemoving } from './job-state.ts';

/** A removed job that is in the queue for so long has a reason, and one that was held meanwhile is removed again, ms. */
const late = 600_000;
const [removed, held] = [3, 5];

/** Also one that HTCondor put on hold because it could not end its remote part. */
export const isRemoved = ({ JobStatus, LastJobStatus }: Job['ad']): boolean =>
  JobStatus === removed || (JobStatus === held && LastJobStatus === removed);

/** HTCondor keeps the last reason alone, and after a restart it is what tells that a job was given up. @param otherwise the reason of others */
export function removalReasonOf({ ad: { RemoveReason = '' } }: Job, otherwise: string): string {
  return RemoveReason.includes(givenUpReason) ? givenUpReason : otherwise;
}

/** Removed jobs that are still in the queue of one schedd. HTCondor counts anew whenever one is removed again: here its first removal counts. */
export class Removals {
  /** By `cluster.proc`: ms UTC. */
  readonly #since = new Map<string, number>();
  readonly #submissionHost: string;

  constructor(submissionHost: string) {
    this.#submissionHost = submissionHost;
  }

  /** Takes note of a job as it is in the queue. @returns why it is still there, once that is late */
  see({ id, ad }: Job, now: number): WorkerError | undefined {
    const name = jobIdText(id);
    if (!isRemoved(ad)) {
      this.#since.delete(name);
      return undefined;
    }
    const entered = (ad.EnteredCurrentStatus ?? 0) * 1000;
    const since = Math.min(this.#since.get(name) ?? Infinity, entered > 0 ? entered : now);
    this.#since.set(name, since);
    if (now - since < late) return undefined;
    const message = `job ${name} of ${this.#submissionHost} was ${whyRemoving(ad, since)}`;
    return { code: 'htcondor-removing', message };
  }

  /** Whether it was held while it was removed, and so long ago that its CE may take the removal now. */
  isToRepeat({ ad }: Job, now: number): boolean {
    const entered = (ad.EnteredCurrentStatus ?? 0) * 1000;
    return isRemoved(ad) && ad.JobStatus === held && entered > 0 && now - entered >= late;
  }

  /** Forgets the jobs that have left the queue. @param queued all that are there */
  keepOnly(queued: ReadonlySet<string>): void {
    for (const name of this.#since.keys()) if (!queued.has(name)) this.#since.delete(name);
  }
}
