import { createHash } from 'node:crypto';
import pMap from 'p-map';
import type { AdText } from '../../../clients/htcondor/ad-text.ts';
import type { Matchmaker } from '../../../clients/htcondor/matchmaker.ts';
import { toReason } from '../../../worker/errors.ts';
import type { Reason } from '../../../worker/reason.ts';

/** A job ad, by the part of it that a match may rest on. */
export interface Signed {
  /** Equal for jobs that every slot treats alike. */
  readonly signature: string;
  readonly ad: AdText;
}

/** Answers that are kept. */
const mostAnswers = 500_000;

/** An answer to this holds for a moment only. */
const timely = /\b(?:time|formattime|absTime|random)\s*\(|\bcurrenttime\b/i;

/** @param attributes those that may matter, by name */
export function sign(attributes: AdText): Signed {
  const lines = [...attributes].map(([name, value]) => `${name}=${value}`).toSorted();
  return { signature: createHash('sha256').update(lines.join('\n')).digest('base64'), ad: attributes };
}

/** HTCondor's answers, which job matches which slot. It is asked once for each pair, with all new jobs of a slot in one call. */
export class MatchTable {
  readonly #matchmaker: Matchmaker;
  /** By signature of the slot, then of the job. */
  readonly #answers = new Map<string, Map<string, boolean>>();

  constructor(matchmaker: Matchmaker) {
    this.#matchmaker = matchmaker;
  }

  /**
   * Asks for all pairs that have no answer yet.
   * @returns why there is none, by signature of the slot
   */
  async fill(
    jobs: readonly Signed[],
    slots: readonly Signed[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Reason>> {
    this.#forget(jobs, slots);
    const byJob = new Map(jobs.map((job) => [job.signature, job.ad]));
    const lacking = new Map<string, Set<string>>();
    for (const { signature } of slots) {
      const known = this.#answers.get(signature);
      const missing = new Set([...byJob.keys()].filter((job) => known?.has(job) !== true));
      if (missing.size > 0) lacking.set(signature, missing);
    }
    // Mostly all slots lack the same jobs, those that came since: they share one file.
    const groups = Map.groupBy(
      slots.filter(({ signature }) => lacking.has(signature)),
      ({ signature }) => [...(lacking.get(signature) ?? [])].join(' '),
    );
    const failures = new Map<string, Reason>();
    for (const members of groups.values()) {
      const [first] = members;
      const asked = [...(lacking.get(first?.signature ?? '') ?? [])];
      const ads = asked.flatMap((one) => byJob.get(one) ?? []);
      await this.#matchmaker.withJobs(ads, async (laid) => {
        const ask = async ({ signature, ad }: Signed) => {
          try {
            this.#keep(signature, asked, await laid.matches(ad, signal));
          } catch (error) {
            signal.throwIfAborted();
            failures.set(signature, toReason(error));
          }
        };
        await pMap(members, ask, { concurrency: 4 });
      });
    }
    return failures;
  }

  /** @returns undefined where HTCondor gave no answer */
  answer(slot: string, job: string): boolean | undefined {
    return this.#answers.get(slot)?.get(job);
  }

  #keep(slot: string, jobs: readonly string[], answers: readonly (boolean | undefined)[]): void {
    const own = this.#answers.get(slot) ?? new Map<string, boolean>();
    this.#answers.set(slot, own);
    for (const [index, job] of jobs.entries()) {
      const answer = answers[index];
      if (answer !== undefined) own.set(job, answer);
    }
  }

  /** Drops answers that hold no longer, and all that are not needed now once there are too many. */
  #forget(jobs: readonly Signed[], slots: readonly Signed[]): void {
    const isTimely = ({ ad }: Signed) => [...ad.values()].some((value) => timely.test(value));
    for (const { signature } of slots.filter(isTimely)) this.#answers.delete(signature);
    const momentary = jobs.filter(isTimely);
    let size = 0;
    for (const answers of this.#answers.values()) {
      for (const { signature } of momentary) answers.delete(signature);
      size += answers.size;
    }
    if (size + jobs.length * slots.length <= mostAnswers) return;
    const needed = new Set(jobs.map(({ signature }) => signature));
    const slotsNow = new Set(slots.map(({ signature }) => signature));
    for (const [slot, answers] of this.#answers) {
      if (!slotsNow.has(slot)) this.#answers.delete(slot);
      else for (const job of answers.keys()) if (!needed.has(job)) answers.delete(job);
    }
  }
}
