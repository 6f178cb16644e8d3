import type { WorkerToStart } from '../../worker/worker.ts';
import { asPrepared } from './payload-objects.ts';
import type { FilledJob } from './template/fill.ts';
import type { FillJob, JobTexts } from './template/job-texts.ts';
import { type PayloadObject, payloadObjectOf } from './template/payload.ts';

/** The Job that a submission creates. */
export interface Creation {
  /** JSON. */
  readonly text: string;
  /** Present for a worker with files, which that Job alone does not begin. */
  readonly beginning?: { readonly job: FilledJob; readonly payload: PayloadObject };
}

/** @param texts of the same Jobs as `fill` */
export function creationOf(worker: WorkerToStart, fill: FillJob, texts: JobTexts): Creation {
  const payload = payloadObjectOf(worker);
  if (payload === undefined) return { text: texts.of(worker) };
  const job = fill(worker);
  return { text: JSON.stringify(asPrepared(job, worker.attempt, payload)), beginning: { job, payload } };
}
