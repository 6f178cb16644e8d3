import { type CondorCode, type HTCondorError, isHTCondorError } from '../../../clients/htcondor/errors.ts';

/** ms that questions about the jobs of one owner may take for nothing before he is asked about no further in this look. */
const mostTaken = 300_000;

/** ms of it that each look forgives: less than a command that does not end takes. */
const forgiven = 10_000;

/** ms that a question may take without being held against anybody, and that a failure counts at least. */
const [unnoticed, leastOfFailure] = [5000, 1000];

/** Jobs in one question, by the doubt of them: each time that one fails it is about fewer, and a job that fails alone is the one. */
const sizes = [Infinity, 64, 8, 1] as const;

/** Doubts that are kept. */
const mostDoubts = 50_000;

/** A question to HTCondor about many jobs at once. */
export interface Question<One, Answer> {
  readonly ask: (some: readonly One[]) => Promise<readonly Answer[]>;
  /** The same about something harmless: where that fails as well, no job is at fault. */
  readonly harmless: () => Promise<unknown>;
}

/** A job, by what tells it from others, and its owner. */
export interface Suspect {
  readonly key: string;
  readonly owner: string;
}

export interface Answered<One, Answer> {
  readonly answers: readonly Answer[];
  /** Jobs with which the question fails also if it is about them alone. */
  readonly failed: readonly One[];
}

/**
 * Whose jobs HTCondor cannot be asked about together with others: a user can write a job that makes its commands crash, or run without end. All
 * jobs are asked about at once. Where that fails, each owner's are asked about apart, and those of one with whom it fails again in smaller and
 * smaller parts. What an owner's jobs cost is bounded for each look; where his search has ended for one look, it goes on with the next.
 */
export class Suspects<One extends Suspect> {
  /** ms since any time. */
  readonly #now: () => number;
  readonly #codes: readonly CondorCode[];
  /** ms that questions about an owner's jobs took for nothing, without what was forgiven. */
  readonly #taken = new Map<string, number>();
  /** Index of the size of the next question about a job, by its key. */
  readonly #doubts = new Map<string, number>();

  /** @param codes of failures that a job can make */
  constructor(now: () => number, codes: readonly CondorCode[]) {
    this.#now = now;
    this.#codes = codes;
  }

  /** Another look begins. */
  forgive(): void {
    for (const [owner, taken] of this.#taken)
      if (taken > forgiven) this.#taken.set(owner, taken - forgiven);
      else this.#taken.delete(owner);
    if (this.#doubts.size > mostDoubts) this.#doubts.clear();
  }

  /** Whether his jobs are asked about apart. */
  isApart(owner: string): boolean {
    return this.#taken.has(owner);
  }

  /**
   * @returns without jobs that were not asked about, because their owner's have cost too much
   * @throws HTCondorError where no job is at fault, and for all failures that are of no job's making
   */
  async ask<Answer>(all: readonly One[], question: Question<One, Answer>): Promise<Answered<One, Answer>> {
    const answers: Answer[] = [];
    const failed: One[] = [];
    const attempt = async (some: readonly One[]): Promise<HTCondorError | undefined> => {
      try {
        for (const answer of await question.ask(some)) answers.push(answer);
        for (const { key } of some) this.#doubts.delete(key);
        return undefined;
      } catch (error) {
        if (!isHTCondorError(error, ...this.#codes)) throw error;
        // Each time: a machine may have become too busy for anything meanwhile.
        await question.harmless().catch(() => {
          throw error;
        });
        return error;
      }
    };
    const together = all.filter(({ owner }) => !this.isApart(owner));
    let apart = all.filter(({ owner }) => this.isApart(owner));
    const begun = this.#now();
    const why = together.length === 0 ? undefined : await attempt(together);
    // Whose jobs take long, the next questions show: each owner is asked about apart until the look after this one.
    if (why === undefined && this.#now() - begun > unnoticed)
      for (const { owner } of together) this.#taken.set(owner, forgiven + leastOfFailure);
    if (why !== undefined) {
      const [{ owner: first }, second] = together as [One, ...One[]];
      const isOfOne = together.every(({ owner }) => owner === first);
      // For jobs of one owner this was the first question about him alone.
      if (isOfOne) this.#hold(first, together, leastOfFailure);
      if (second === undefined) failed.push(...together);
      else apart = [...apart, ...together];
    }
    for (const [owner, own] of Map.groupBy(apart, ({ owner }) => owner))
      for (const one of await this.#search(owner, own, attempt)) failed.push(one);
    return { answers, failed };
  }

  /** Asks about one owner's jobs, those first of which there is least doubt. @returns those with which it fails alone */
  async #search(
    owner: string,
    own: readonly One[],
    attempt: (some: readonly One[]) => Promise<HTCondorError | undefined>,
  ): Promise<One[]> {
    const failed: One[] = [];
    let open = own;
    for (const [level, size] of sizes.entries()) {
      const isNow = ({ key }: One) => (this.#doubts.get(key) ?? 0) <= level;
      const now = open.filter(isNow);
      open = open.filter((one) => !isNow(one));
      for (let at = 0; at < now.length; at += size) {
        if ((this.#taken.get(owner) ?? 0) >= mostTaken) return failed;
        const some = now.slice(at, at + size);
        const begun = this.#now();
        const why = await attempt(some);
        const took = this.#now() - begun;
        if (why === undefined && took <= unnoticed) continue;
        this.#hold(owner, why === undefined ? [] : some, Math.max(took, leastOfFailure));
        if (why === undefined) continue;
        if (some.length === 1) failed.push(...some);
        else open = [...open, ...some];
      }
    }
    return failed;
  }

  #hold(owner: string, jobs: readonly One[], took: number): void {
    this.#taken.set(owner, (this.#taken.get(owner) ?? 0) + took);
    const smaller = sizes.findIndex((size) => size < jobs.length);
    const level = smaller === -1 ? sizes.length - 1 : smaller;
    for (const { key } of jobs) this.#doubts.set(key, level);
  }
}
