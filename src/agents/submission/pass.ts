import type { Allowed } from '../../limits/limiters.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Entry } from './entries.ts';
import type { Wanted } from './source-asker.ts';

/**
 * One submission pass: what it looks at, and when.
 *
 * 1. Settle. Unknown outcomes of earlier passes come before anything new, or their workers would be counted twice or lost.
 * 2. `wanted`: the sources are asked. Where none of them wants anything, the pass ends.
 * 3. `first`: the limits are looked at before any call of the backend, so that a full queue costs the backend nothing.
 * 4. The backend's preflight says what would stop a submission, and how much room there is.
 *    Payloads are looked at, and those that follow are brought, for as many workers.
 * 5. `final`: the limits are looked at again, right before the intents are recorded. The calls may have taken long: an operator's
 *    word and the workers of other queues count as they are by then. Where queues share a limit, one at a time looks and records.
 *    A queue that has another configuration by then gets none, and neither does a request of a source that was made anew meanwhile: it
 *    does not know of them.
 * 6. The operator's control is read a last time, between the intents and their submission.
 * 7. `closing`: after the submission the limits say what holds back the next worker. Requests that were served wait no more.
 *
 * A pass ends early where a look allows no worker; later looks are then not there.
 */
export interface Pass {
  readonly wanted: Wanted;
  readonly first: Allowed<Entry>;
  readonly final?: Allowed<Entry>;
  readonly closing?: Allowed<Entry>;
  /** Origins whose intents the database refused: others could have had their room. */
  readonly conflicts?: readonly unknown[];
}

export interface Conclusion {
  readonly reasons: readonly Reason[];
  /** In how many ms the next pass is due, where that is sooner than usual. */
  readonly nextIn: number | undefined;
}

/**
 * Concludes a pass. If a rate cut deepest, the next pass is due as soon as the rate lets one more worker through (`rateNextIn`,
 * ms). If another limit cut deeper, that limit would hold this worker back, and pass would follow pass without a pause. If the
 * rate cut before the submission and not after it, the time for the next worker came meanwhile: the next pass is due at once.
 * @param notes stand beside the reasons
 */
export function concludePass(
  { wanted, first, final, closing, conflicts = [] }: Pass,
  notes: readonly Reason[],
  rateNextIn: number | undefined,
): Conclusion {
  // After a submission the queue is described as it is now; its sources spoke of it as it was before.
  const limits = closing?.reasons ?? [...(final?.reasons ?? []), ...first.reasons];
  const asking = closing === undefined ? wanted.reasons : [];
  const cuts = (reasons: readonly Reason[]) => reasons[0]?.code === 'submission-rate';
  const cameMeanwhile = closing !== undefined && cuts([...(final?.reasons ?? []), ...first.reasons]);
  const byRate = cuts(limits) ? (rateNextIn ?? 0) : cameMeanwhile ? 0 : undefined;
  // Such requests are left out of the next pass, so that it cannot go on like this.
  const nextIn = wanted.again || conflicts.length > 0 ? 0 : byRate;
  return { reasons: [...limits, ...asking, ...wanted.standing, ...notes], nextIn };
}
