import { type AdText, closureOf, literalString, ownCopy } from '../../../clients/htcondor/ad-text.ts';
import { type JobId, jobIdText } from '../../../clients/htcondor/classad.ts';
import type { HTCondorClient } from '../../../clients/htcondor/client.ts';
import type { Matchmaker } from '../../../clients/htcondor/matchmaker.ts';
import { type JobGroup, whereAmong } from './idle-jobs.ts';
import { alwaysShown, mostNamed, requestsOf, usual } from './job-names.ts';
import { LeftOut, type Suspect, Suspects } from './suspects.ts';

/** A job that may stand for its group. */
export interface Candidate extends Suspect {
  readonly job: JobId;
  /** Key of the group. */
  readonly group: string;
}

interface Spared {
  readonly ad: AdText;
  /** Attributes of the job that the ad is without, because they are long and no match rested on them. */
  readonly without: readonly string[];
  /** What is kept of it, in characters; some for each attribute. */
  readonly length: number;
}

interface Sizes {
  /** What the job asks for, by lower-case name without `request`; undefined: no number. */
  readonly asked: ReadonlyMap<string, number | undefined>;
  /** Its `ConcurrencyLimits`, evaluated. */
  readonly limits: string;
}

type LaidOut = Candidate & Spared;

/** The job that stands for all of its group. */
export type Representative = LaidOut & Sizes;

export interface AdTerms {
  /** Attributes of jobs for which slots look, lower case. */
  readonly names: ReadonlySet<string>;
  /** Those for which templates look. */
  readonly foreign: ReadonlySet<string>;
}

/** Ads that are asked for in one question: its constraint is one argument of a command, 120 characters for each, and 128 KiB at most. */
export const mostAds = 500;

/** Characters of an ad that is kept as it is. A usual one has 5,000; of a longer one, no long value is kept on which no match rests. */
const usualAd = 10_000;

/** Characters of such a value. */
const longValue = 200;

/** Characters of an ad at most: a job whose conditions are longer is left out. */
const longestAd = 50_000;

/** What is kept of all ads of one owner's jobs, in characters: as much as the usual ads of all groups. A user's further jobs are left out. */
const longestOfOwner = 100_000_000;

/** Characters that an attribute counts beside its text: an ad of very many short ones takes more memory than its text. */
const attribute = 50;

/** Characters of the `ConcurrencyLimits` of a job; one with longer ones is left out. */
const longestLimits = 1000;

/** Asks for the ads of jobs that are to stand for a group. */
export class JobAds {
  readonly #client: Pick<HTCondorClient, 'queueAds'>;
  readonly #matchmaker: Matchmaker;
  readonly #sending: Suspects<Candidate>;
  readonly #evaluating: Suspects<LaidOut>;
  /** Jobs by id that stand for no group. */
  readonly #hopeless = new LeftOut();
  /** Their owners: a job of another one stands for a group rather than the next one of theirs. */
  readonly #owners = new LeftOut();
  /** Owners whose jobs are not asked about where they are matched. */
  readonly #passedOver = new LeftOut();
  /** Characters of the ads that are kept, by owner. */
  readonly #kept = new Map<string, number>();

  /** @param now ms since any time */
  constructor(client: Pick<HTCondorClient, 'queueAds'>, matchmaker: Matchmaker, now: () => number) {
    this.#client = client;
    this.#matchmaker = matchmaker;
    // A schedd that takes long is busy: it evaluates nothing for us. HTCondor's matchmaking on this machine does nothing else.
    this.#sending = new Suspects(now, ['condor-failed', 'condor-answer']);
    this.#evaluating = new Suspects(now, ['condor-failed', 'condor-answer', 'condor-timeout']);
  }

  /** Another look begins. */
  next(): void {
    this.#sending.forgive();
    this.#evaluating.forgive();
    this.#hopeless.next();
    this.#owners.next();
    this.#passedOver.next();
  }

  /** The job that is to stand for a group: of an owner with no job that was left out or is asked about apart, if there is one. Undefined: none can. */
  choose({ key, owners }: JobGroup): Candidate | undefined {
    const rank = (owner: string) =>
      this.#passedOver.has(owner)
        ? 2
        : Number(this.#owners.has(owner) || this.#sending.isApart(owner) || this.#evaluating.isApart(owner));
    const sorted = [...owners].toSorted(([one], [other]) => rank(one) - rank(other));
    for (const [owner, { first, last }] of sorted)
      for (const job of [last, first])
        if (!this.#hopeless.has(jobIdText(job))) return { key: jobIdText(job), owner, job, group: key };
    return undefined;
  }

  /** These are kept, and no others. */
  keep(kept: Iterable<Representative>): void {
    this.#kept.clear();
    for (const { owner, length } of kept) this.#kept.set(owner, (this.#kept.get(owner) ?? 0) + length);
  }

  /**
   * Reads and evaluates the ads of at most `mostAds` jobs. Those with which that fails, and those that are too long, stand for no group for a while.
   * @throws HTCondorError
   */
  async read(
    some: readonly Candidate[],
    { names, foreign }: AdTerms,
    signal: AbortSignal,
  ): Promise<readonly Representative[]> {
    const sent = await this.#send(some, names, signal);
    const short = sent.filter((one) => {
      const { owner, length } = one;
      const sum = (this.#kept.get(owner) ?? 0) + length;
      if (sum > longestOfOwner) this.leaveOut(one);
      else this.#kept.set(owner, sum);
      return sum <= longestOfOwner;
    });
    return this.#evaluate(short, foreign, signal);
  }

  /** This job stands for no group for a while. */
  leaveOut({ key, owner }: Candidate): void {
    this.#hopeless.add(key);
    this.#owners.add(owner);
  }

  /** A job of another owner stands for a group rather than one of this owner, for a while. @returns whether there is one */
  passOver({ owner }: Candidate, owners: Iterable<string>): boolean {
    this.#passedOver.add(owner);
    return [...owners].some((one) => !this.#passedOver.has(one));
  }

  /** Their ads; none of a job that is not in the queue any more. */
  async #send(
    all: readonly Candidate[],
    names: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<readonly LaidOut[]> {
    const ask = async (some: readonly Candidate[]) => {
      const byJob = new Map(some.map((one) => [one.key, one]));
      return this.#client.queueAds(whereAmong(some.map(({ job }) => job)), signal, (ad) => {
        const one = byJob.get(`${ad.get('clusterid') ?? ''}.${ad.get('procid') ?? ''}`);
        return one && { ...one, spared: sparedOf(ad, names) };
      });
    };
    const harmless = () => this.#client.queueAds('false', signal, () => undefined);
    const { answers, failed } = await this.#sending.ask(all, { ask, harmless });
    for (const one of failed) this.leaveOut(one);
    return answers.flatMap(({ spared, ...one }) => {
      if (spared === undefined) this.leaveOut(one);
      return spared === undefined ? [] : [{ ...one, ...spared }];
    });
  }

  /** What each of them asks for. */
  async #evaluate(
    all: readonly LaidOut[],
    foreign: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<readonly Representative[]> {
    const names = mostNamed(
      all.map(({ ad, owner }) => ({ names: requestsOf(ad), owner })),
      [...usual, ...foreign],
    );
    const fields = [...names, 'ConcurrencyLimits'];
    const read = (row: readonly string[]): Sizes | undefined => {
      const asked = new Map(names.map((name, index) => [name.slice('request'.length), numberOf(row[index])]));
      const limits = literalString(row.at(-1)) ?? '';
      return limits.length > longestLimits ? undefined : { asked, limits: ownCopy(limits) };
    };
    const valuesOf = (ads: readonly AdText[]) =>
      this.#matchmaker.withJobs(ads, (laid) => laid.values(fields, read, signal));
    const ask = async (some: readonly LaidOut[]) => {
      const sizes = await valuesOf(some.map(({ ad }) => ad));
      return some.map((one, at) => ({ one, sizes: sizes[at] }));
    };
    const { answers, failed } = await this.#evaluating.ask(all, {
      ask,
      harmless: () => valuesOf([new Map()]),
    });
    for (const one of failed) this.leaveOut(one);
    return answers.flatMap(({ one, sizes }) => {
      if (sizes === undefined) this.leaveOut(one);
      return sizes === undefined ? [] : [{ ...one, ...sizes }];
    });
  }
}

/** An ad, if it is long without those long values on which nothing rests. @param names for which slots look; undefined: it is too long */
function sparedOf(ad: AdText, names: ReadonlySet<string>): Spared | undefined {
  const start = ['requirements', 'concurrencylimits', 'autoclusterattrs', ...requestsOf(ad), ...names];
  const { own, any } = lengthOf(ad) > usualAd ? closureOf(ad, start) : { own: names, any: true };
  const kept = new Map<string, string>();
  const without: string[] = [];
  let length = 0;
  for (const [name, value] of ad) {
    const isKept = any || value.length <= longValue || own.has(name) || alwaysShown.has(name);
    length += attribute + name.length + (isKept ? value.length : 0);
    if (length > longestAd) return undefined;
    if (isKept) kept.set(ownCopy(name), ownCopy(value));
    else without.push(ownCopy(name));
  }
  return { ad: kept, without, length };
}

function lengthOf(ad: AdText): number {
  let length = 0;
  for (const [name, value] of ad) length += name.length + value.length;
  return length;
}

function numberOf(text: string | undefined): number | undefined {
  if (text === 'true') return 1;
  if (text === 'false') return 0;
  const value = text === undefined || text === '' ? NaN : Number(text);
  return Number.isNaN(value) ? undefined : value;
}
