import pMap from 'p-map';
import type { AdText } from '../../../clients/htcondor/ad-text.ts';
import type { LaidOutJobs, Matchmaker } from '../../../clients/htcondor/matchmaker.ts';
import { toReason } from '../../../worker/errors.ts';
import type { Reason } from '../../../worker/reason.ts';
import { Answers, type Signed } from './answers.ts';
import { Costs, excessOf, LeftOut, type Suspect, Suspects } from './suspects.ts';

/** A job to be matched. */
export interface Matched extends Signed {
  /** Who answers for it: the same name on two schedds is two users. */
  readonly owner: string;
}

export interface Filled {
  /** Why there is no answer, by signature of the slot. */
  readonly failures: ReadonlyMap<string, Reason>;
  /** Signatures of jobs that HTCondor cannot match with some template. */
  readonly hopeless: ReadonlySet<string>;
  /** Signatures of jobs that were not asked about, because others of their owners have cost too much. */
  readonly unasked: ReadonlySet<string>;
}

/** A job, by its signature. */
type MatchedSuspect = Suspect & Pick<Signed, 'ad'>;

/** Slots that the same jobs are matched with. */
interface Side {
  readonly slots: readonly Signed[];
  /** What a job that fails with one of them is left out by. */
  readonly keyOf: (slot: string, job: string) => string;
  readonly suspects: Suspects<MatchedSuspect>;
  readonly failing: LeftOut;
}

/** ms that questions about a slot may have taken that fails whatever the job, while HTCondor works, before it waits until looks have forgiven them. */
const mostOfSlot = 30_000;

/** Slots of one look that fail whatever the job, until no others are tried. */
const mostBad = 3;

/** A job that HTCondor judges for every slot that is not at fault itself. */
const harmlessJob: AdText = new Map([
  ['requirements', 'true'],
  ['owner', '"thresher"'],
  ['user', '"thresher@thresher"'],
  ['jobuniverse', '5'],
  ['requestcpus', '1'],
  ['requestmemory', '1'],
  ['requestdisk', '1'],
]);

const harmlessSlot: AdText = new Map([
  ['start', 'true'],
  ['requirements', 'true'],
]);

const endless: Reason = {
  code: 'condor-timeout',
  message:
    'the matching of some slots with jobs fails or has no end, whatever the job; thresher goes on with this one in a later look',
};

const codes = ['condor-failed', 'condor-answer', 'condor-timeout'] as const;

/**
 * HTCondor's answers, which job matches which slot. It is asked once for each pair, with all new jobs of a slot in one call. A user can write a
 * job with which that crashes or has no end, with some slots or with all. With a template, which is the administrator's, it is the job's fault;
 * with a slot of the pool it may be the slot's, and nothing that happens there is held against a job where templates are asked about.
 */
export class MatchTable {
  readonly #matchmaker: Matchmaker;
  readonly #now: () => number;
  readonly #answers = new Answers();
  readonly #ofTemplates: Omit<Side, 'slots'>;
  readonly #ofPool: Omit<Side, 'slots'>;
  /** Slots with which something has failed: they are asked about after all others. */
  readonly #suspectSlots = new LeftOut();
  /** Of slots that failed whatever the job. */
  readonly #costs = new Costs();
  #looks = -1;
  /** Why nothing at all can be matched in this look. */
  #broken: Reason | undefined;

  /** @param now ms since any time */
  constructor(matchmaker: Matchmaker, now: () => number) {
    this.#matchmaker = matchmaker;
    this.#now = now;
    const side = (keyOf: Side['keyOf']) => ({
      keyOf,
      suspects: new Suspects<MatchedSuspect>(now, codes),
      failing: new LeftOut(),
    });
    this.#ofTemplates = side((_, job) => job);
    this.#ofPool = side((slot, job) => `${slot} ${job}`);
  }

  /**
   * Asks for all pairs that have no answer yet. Jobs that HTCondor cannot match with a template are asked about for no slot of the pool.
   * @param slots of the pool
   */
  async fill(
    jobs: readonly Matched[],
    templates: readonly Signed[],
    slots: readonly Signed[],
    signal: AbortSignal,
  ): Promise<Filled> {
    this.#answers.forget(jobs, [...templates, ...slots]);
    this.#broken = undefined;
    this.#looks++;
    this.#suspectSlots.next();
    this.#costs.forgive();
    for (const { suspects, failing } of [this.#ofTemplates, this.#ofPool]) {
      suspects.forgive();
      failing.next();
    }
    const first = { ...this.#ofTemplates, slots: templates };
    const all = suspectsOf(jobs, first.suspects);
    const failures = new Map<string, Reason>();
    await this.#fill(all, first, failures, signal);
    const judging = templates.filter(({ signature }) => !failures.has(signature));
    const lacking = judging.flatMap((slot) => this.#lacking(slot, all, first));
    const unasked = new Set(lacking.map(({ key }) => key));
    const hopeless = new Set(all.flatMap(({ key }) => (first.failing.has(key) ? [key] : [])));
    const second = { ...this.#ofPool, slots };
    const judged = suspectsOf(jobs, second.suspects).filter(
      ({ key }) => !hopeless.has(key) && !unasked.has(key),
    );
    await this.#fill(judged, second, failures, signal);
    return { failures, hopeless, unasked };
  }

  /** @param failures gets why there is no answer, by signature of the slot; nothing is asked while HTCondor itself does not work */
  async #fill(
    jobs: readonly MatchedSuspect[],
    side: Side,
    failures: Map<string, Reason>,
    signal: AbortSignal,
  ): Promise<void> {
    const rank = ({ signature }: Signed) => Number(this.#suspectSlots.has(signature));
    const openOf = (slots: readonly Signed[]) => {
      const all = this.#open(jobs, { ...side, slots });
      // Another one is the first at each look: where a part of them is enough to end the look, they are not always the same.
      const at = this.#looks % Math.max(1, all.length);
      return [...all.slice(at), ...all.slice(0, at)].toSorted((one, other) => rank(one) - rank(other));
    };
    const isCostly = ({ signature }: Signed) => this.#costs.of(signature) >= mostOfSlot;
    const open = openOf(side.slots);
    for (const { signature } of open.filter(isCostly)) failures.set(signature, endless);
    const [first, ...rest] = open.filter((slot) => !isCostly(slot));
    let bad = 0;
    const search = async (slot: Signed) => {
      const begun = this.#now();
      const why = this.#broken ?? (await this.#search(slot, this.#lacking(slot, jobs, side), side, signal));
      if (why === undefined) return;
      failures.set(slot.signature, why);
      if (this.#broken !== undefined) return;
      const took = this.#now() - begun;
      if (await this.#works(signal)) {
        bad++;
        this.#costs.add(slot.signature, took);
      } else this.#broken = why;
    };
    if (first === undefined) return;
    // What is wrong with a job mostly shows with every slot: so the first one alone.
    await search(first);
    if (this.#broken === undefined) await this.#askTogether(jobs, { ...side, slots: rest }, signal);
    for (const slot of openOf(rest))
      if (bad < mostBad) await search(slot);
      else failures.set(slot.signature, endless);
  }

  /** Slots that lack an answer. */
  #open(jobs: readonly MatchedSuspect[], side: Side): Signed[] {
    return side.slots.filter((slot) => this.#lacking(slot, jobs, side).length > 0);
  }

  /** Jobs without an answer for a slot. */
  #lacking(
    { signature }: Signed,
    jobs: readonly MatchedSuspect[],
    { failing, keyOf }: Omit<Side, 'slots'>,
  ): MatchedSuspect[] {
    return jobs.filter(
      ({ key }) => this.#answers.of(signature, key) === undefined && !failing.has(keyOf(signature, key)),
    );
  }

  /** Asks about all jobs at once, for four slots at a time, until that fails or takes long for one: what is left is asked about by one question at a time. */
  async #askTogether(jobs: readonly MatchedSuspect[], side: Side, signal: AbortSignal): Promise<void> {
    const together = jobs.filter(({ owner }) => !side.suspects.isApart(owner));
    // Mostly all slots lack the same jobs, those that came since: they share one file.
    const groups = Map.groupBy(side.slots, (slot) =>
      this.#lacking(slot, together, side)
        .map(({ key }) => key)
        .join(' '),
    );
    let isOver = false;
    const ask = async ({ signature, ad }: Signed, asked: readonly MatchedSuspect[], laid: LaidOutJobs) => {
      if (isOver || this.#suspectSlots.has(signature)) return;
      const begun = this.#now();
      try {
        this.#answers.keep(signature, asked, await laid.matches(ad, signal));
        const harmless = () => this.#matches([harmlessJob], ad, signal);
        if ((await excessOf(this.#now() - begun, this.#now, harmless)) > 0) isOver = true;
      } catch {
        signal.throwIfAborted();
        this.#suspectSlots.add(signature);
        isOver = true;
      }
    };
    for (const [keys, members] of groups) {
      const [first] = members;
      if (first === undefined || keys === '') continue;
      const asked = this.#lacking(first, together, side);
      const ads = asked.map(({ ad }) => ad);
      // Why it fails, the questions one by one say.
      await this.#matchmaker
        .withJobs(ads, (laid) => pMap(members, (slot) => ask(slot, asked, laid), { concurrency: 4 }))
        .catch(() => {
          signal.throwIfAborted();
        });
    }
  }

  /** Asks about jobs for one slot, and finds those with which that fails. @returns why there is no answer */
  async #search(
    { signature, ad }: Signed,
    jobs: readonly MatchedSuspect[],
    { suspects, failing, keyOf }: Omit<Side, 'slots'>,
    signal: AbortSignal,
  ): Promise<Reason | undefined> {
    const ask = async (some: readonly MatchedSuspect[]) => {
      try {
        this.#answers.keep(
          signature,
          some,
          await this.#matches(
            some.map((one) => one.ad),
            ad,
            signal,
          ),
        );
        return some;
      } catch (error) {
        this.#suspectSlots.add(signature);
        throw error;
      }
    };
    try {
      const isSuspect = () => this.#suspectSlots.has(signature);
      const { failed } = await suspects.ask(jobs, {
        isSuspect,
        ask,
        harmless: () => this.#matches([harmlessJob], ad, signal),
      });
      for (const { key } of failed) failing.add(keyOf(signature, key));
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return toReason(error);
    }
  }

  #matches(jobs: readonly AdText[], slot: AdText, signal: AbortSignal): Promise<readonly boolean[]> {
    return this.#matchmaker.withJobs(jobs, (laid) => laid.matches(slot, signal));
  }

  /** Whether HTCondor matches anything at all. */
  async #works(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#matches([harmlessJob], harmlessSlot, signal);
      return true;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  /** @returns undefined where HTCondor gave no answer; false also for a pair that HTCondor cannot match */
  answer(slot: string, job: string): boolean | undefined {
    const known = this.#answers.of(slot, job);
    if (known !== undefined) return known;
    const { failing, keyOf } = this.#ofPool;
    return failing.has(keyOf(slot, job)) ? false : undefined;
  }
}

/** Each job once. Of several owners of what slots treat alike, he answers for it whose jobs have cost least. */
function suspectsOf(jobs: readonly Matched[], suspects: Suspects<MatchedSuspect>): MatchedSuspect[] {
  const all = jobs.map(({ signature, owner, ad }) => ({ key: signature, owner, ad }));
  const costly = all.toSorted((one, other) => suspects.costOf(other.owner) - suspects.costOf(one.owner));
  return [...new Map(costly.map((one) => [one.key, one])).values()];
}
