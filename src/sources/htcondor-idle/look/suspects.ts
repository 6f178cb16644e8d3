import { type CondorCode, type HTCondorError, isHTCondorError } from '../../../clients/htcondor/errors.ts';

/** ms that questions about the jobs of one owner may take for nothing before he is asked about no further in this look. */
const mostTaken = 300_000;

/** The same where what failed may be no job's fault. */
const mostTakenElsewhere = 200_000;

/** ms of it that each look forgives: less than a command that does not end takes. */
const forgiven = 10_000;

/** ms that a question may take, beside what the machine itself takes now, without being held against anybody. */
const unnoticed = { together: 2000, apart: 500 };

/** Owners with whose jobs one question fails, each by himself: with more it is at fault itself. */
const mostBlamed = 5;

/** ms that a failure counts at least. */
const leastOfFailure = 1000;

/** Looks for which nobody is asked about what has failed alone. */
const looksWithout = 20;

/** Jobs in one question, by the doubt of them: each time that one fails it is about fewer. With the last one a job is the one. */
const sizes = [Infinity, 64, 8, 1] as const;

/** Doubts that are kept. */
const mostDoubts = 50_000;

/** A question to HTCondor about many jobs at once. */
export interface Question<One, Answer> {
  readonly ask: (some: readonly One[]) => Promise<readonly Answer[]>;
  /** The same about something harmless: where that fails as well, no job is at fault. */
  readonly harmless: () => Promise<unknown>;
  /** It may be at fault itself: not all that an owner's jobs may cost is spent on it. */
  readonly isSuspect?: () => boolean;
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

/** What is asked about no more for some looks. */
export class LeftOut {
  readonly #looks = new Map<string, number>();

  next(): void {
    for (const [key, left] of this.#looks)
      if (left > 1) this.#looks.set(key, left - 1);
      else this.#looks.delete(key);
  }

  add(key: string): void {
    this.#looks.set(key, looksWithout);
  }

  has(key: string): boolean {
    return this.#looks.has(key);
  }
}

/** ms that questions took for nothing, by whom or what they were about, without what was forgiven. */
export class Costs {
  readonly #taken = new Map<string, number>();

  /** Another look begins. */
  forgive(): void {
    for (const [key, taken] of this.#taken)
      if (taken > forgiven) this.#taken.set(key, taken - forgiven);
      else this.#taken.delete(key);
  }

  add(key: string, took: number): void {
    if (took > 0) this.#taken.set(key, this.of(key) + took);
  }

  of(key: string): number {
    return this.#taken.get(key) ?? 0;
  }
}

/** ms that an answer took too long; 0 on a machine that takes as long for anything. @param took ms */
export async function excessOf(
  took: number,
  now: () => number,
  harmless: () => Promise<unknown>,
  limit = unnoticed.together,
): Promise<number> {
  if (took <= limit) return 0;
  const begun = now();
  const isBusy = await harmless().then(
    () => false,
    () => true,
  );
  const excess = took - 2 * (now() - begun);
  return isBusy || excess <= limit ? 0 : excess;
}

/** How a question ended, and the ms of it that it took for nothing. */
interface Outcome {
  readonly error?: HTCondorError;
  readonly cost: number;
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
  /** By owner. */
  readonly #costs = new Costs();
  /** Owners who are asked about apart once, because a question about all took long. */
  readonly #noted = new Set<string>();
  /** Index of the size of the next question about a job, by its key. */
  readonly #doubts = new Map<string, number>();

  /** @param codes of failures that a job can make */
  constructor(now: () => number, codes: readonly CondorCode[]) {
    this.#now = now;
    this.#codes = codes;
  }

  /** Another look begins. */
  forgive(): void {
    this.#costs.forgive();
    if (this.#doubts.size > mostDoubts) this.#doubts.clear();
  }

  /** ms that his jobs have cost; more than 0: they are asked about apart. */
  costOf(owner: string): number {
    return this.#costs.of(owner);
  }

  /** Whether his jobs are asked about apart. */
  isApart(owner: string): boolean {
    return this.costOf(owner) > 0 || this.#noted.has(owner);
  }

  /**
   * @returns without jobs that were not asked about, because their owner's have cost too much
   * @throws HTCondorError where no job is at fault, or those of very many owners, and for all failures that are of no job's making
   */
  async ask<Answer>(all: readonly One[], question: Question<One, Answer>): Promise<Answered<One, Answer>> {
    const answers: Answer[] = [];
    const attempt = async (some: readonly One[], limit = unnoticed.apart): Promise<Outcome> => {
      const begun = this.#now();
      try {
        for (const answer of await question.ask(some)) answers.push(answer);
        for (const { key } of some) this.#doubts.delete(key);
        return { cost: await excessOf(this.#now() - begun, this.#now, question.harmless, limit) };
      } catch (error) {
        if (!isHTCondorError(error, ...this.#codes)) throw error;
        const cost = Math.max(this.#now() - begun, leastOfFailure);
        // Each time: a machine may have become too busy for anything meanwhile.
        await question.harmless().catch(() => {
          throw error;
        });
        return { error, cost };
      }
    };
    const together = all.filter(({ owner }) => !this.isApart(owner));
    const apart = all.filter(({ owner }) => this.isApart(owner));
    const most = () => (question.isSuspect?.() === true ? mostTakenElsewhere : mostTaken);
    const search = (some: readonly One[]) => this.#search(some, attempt, most);
    if (together.length === 0) return { answers, failed: (await search(apart)).failed };
    const first = await attempt(together, unnoticed.together);
    const owners = new Set(together.map(({ owner }) => owner));
    if (first.error === undefined) {
      // Whose jobs take long, the next questions show.
      if (first.cost > 0) for (const owner of owners) this.#noted.add(owner);
      return { answers, failed: (await search(apart)).failed };
    }
    // For jobs of one owner this was the first question about him alone.
    if (owners.size === 1) this.#doubt(together);
    const { failed, blamed } = await search([...apart, ...together]);
    const guilty = [...blamed].filter((owner) => owners.has(owner));
    for (const owner of guilty) this.#costs.add(owner, first.cost / guilty.length);
    return { answers, failed };
  }

  /**
   * Asks about each owner's jobs, those first of which there is least doubt.
   * @returns the jobs with which it fails alone, and the owners with whose jobs it failed
   */
  async #search(
    jobs: readonly One[],
    attempt: (some: readonly One[]) => Promise<Outcome>,
    most: () => number,
  ): Promise<{ readonly failed: One[]; readonly blamed: ReadonlySet<string> }> {
    const failed: One[] = [];
    const blamed = new Set<string>();
    let open = jobs;
    for (const [level, size] of sizes.entries()) {
      const isNow = ({ key }: One) => (this.#doubts.get(key) ?? 0) <= level;
      const now = Map.groupBy(open.filter(isNow), ({ owner }) => owner);
      open = open.filter((one) => !isNow(one));
      // All owners' undoubted jobs before the search goes on with anybody's.
      for (const [owner, own] of now)
        for (let at = 0; at < own.length && this.#costs.of(owner) < most(); at += size) {
          const some = own.slice(at, at + size);
          const { error, cost } = await attempt(some);
          this.#costs.add(owner, cost);
          this.#noted.delete(owner);
          if (error === undefined) continue;
          if (blamed.add(owner).size > mostBlamed) throw error;
          this.#doubt(some);
          // One command may have been killed for another reason: a job must fail twice.
          if (some.length === 1 && level === sizes.length - 1) failed.push(...some);
          else open = [...open, ...some];
        }
    }
    return { failed, blamed };
  }

  /** The next question about them is about fewer. */
  #doubt(jobs: readonly One[]): void {
    const smaller = sizes.findIndex((size) => size < jobs.length);
    const level = smaller === -1 ? sizes.length - 1 : smaller;
    for (const { key } of jobs) this.#doubts.set(key, level);
  }
}
