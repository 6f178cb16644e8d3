import type { Clock } from '../../util/clock.ts';
import type { Outcome, TrackedPod } from './pods/tracked-pod.ts';
import { Refusal } from './refusal.ts';

export interface Patience {
  readonly clock: Pick<Clock, 'sleep'>;
  /** ms. */
  readonly limit: number;
  /** Aborts when thresher stops, and no job will come. */
  readonly over: AbortSignal;
  /** Why there is no job yet. */
  readonly whyLate: () => string | undefined;
}

/** Waits until the job of a Pod has an id, will never have one, or is late. @param signal the caller has gone @throws Refusal */
export async function awaitOutcome(
  pod: TrackedPod,
  { clock, limit, over, whyLate }: Patience,
  signal: AbortSignal,
): Promise<Outcome> {
  const done = new AbortController();
  const late = new AbortController();
  const timer = clock.sleep(limit, AbortSignal.any([signal, done.signal])).then(() => {
    late.abort();
  });
  pod.waitingRequests++;
  try {
    for (;;) {
      const { outcome } = pod;
      if (outcome !== undefined) return outcome;
      if (signal.aborted) throw new Refusal(503, 'the caller has gone before the job had an id');
      if (late.signal.aborted) {
        const why = whyLate() ?? 'the backend has not answered';
        return { ok: false, message: `the job was not submitted within ${limit / 1000} s: ${why}` };
      }
      if (over.aborted)
        return { ok: false, message: 'thresher stopped before the job of the Pod was submitted' };
      await pod.changed(AbortSignal.any([signal, late.signal, over]));
    }
  } finally {
    pod.waitingRequests--;
    done.abort();
    await timer;
  }
}
