import { createHash } from 'node:crypto';
import type { AdText } from '../../../clients/htcondor/ad-text.ts';

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

/** What HTCondor has said of pairs of slots and jobs, by their signatures. */
export class Answers {
  /** By slot, then by job. */
  readonly #all = new Map<string, Map<string, boolean>>();

  /** @returns undefined where there is none */
  of(slot: string, job: string): boolean | undefined {
    return this.#all.get(slot)?.get(job);
  }

  /** @param answers by the jobs' order */
  keep(slot: string, jobs: readonly { readonly key: string }[], answers: readonly boolean[]): void {
    const own = this.#all.get(slot) ?? new Map<string, boolean>();
    this.#all.set(slot, own);
    for (const [index, { key }] of jobs.entries()) own.set(key, answers[index] ?? false);
  }

  /** Drops answers that hold no longer, and all that are not needed now once there are too many. */
  forget(jobs: readonly Signed[], slots: readonly Signed[]): void {
    const isTimely = ({ ad }: Signed) => [...ad.values()].some((value) => timely.test(value));
    for (const { signature } of slots.filter(isTimely)) this.#all.delete(signature);
    const momentary = jobs.filter(isTimely);
    let size = 0;
    for (const answers of this.#all.values()) {
      for (const { signature } of momentary) answers.delete(signature);
      size += answers.size;
    }
    if (size + jobs.length * slots.length <= mostAnswers) return;
    const needed = new Set(jobs.map(({ signature }) => signature));
    const slotsNow = new Set(slots.map(({ signature }) => signature));
    for (const [slot, answers] of this.#all) {
      if (!slotsNow.has(slot)) this.#all.delete(slot);
      else for (const job of answers.keys()) if (!needed.has(job)) answers.delete(job);
    }
  }
}
