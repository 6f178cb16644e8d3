import { type AdText, closureOf, literalString, stringIn } from '../../../clients/htcondor/ad-text.ts';
import { type JobId, jobIdText } from '../../../clients/htcondor/classad.ts';
import type { HTCondorClient } from '../../../clients/htcondor/client.ts';
import { isHTCondorError } from '../../../clients/htcondor/errors.ts';
import type { Matchmaker } from '../../../clients/htcondor/matchmaker.ts';
import { sign, type Signed } from './matching.ts';
import { askIdleJobs, type IdleJobs, type JobGroup, whereAmong } from './idle-jobs.ts';

/** The job that stands for all of its group. */
export interface Representative {
  readonly job: JobId;
  readonly ad: AdText;
  /** What the job asks for, by lower-case name without `request`; undefined: no number. */
  readonly asked: ReadonlyMap<string, number | undefined>;
  /** Its `ConcurrencyLimits`, evaluated. */
  readonly limits: string;
}

/** Waiting jobs of one group, with the one that stands for them. */
export interface ScheddNeed {
  readonly group: JobGroup;
  readonly representative: Representative;
}

export interface ScheddLook {
  readonly needs: readonly ScheddNeed[];
  readonly fresh: number;
  /** Jobs that have been left out, because they are of too many kinds or cannot be read. */
  readonly leftOut: number;
}

export interface ScheddQuestion {
  /** Of the schedd, s. */
  readonly startedAt: number;
  /** Start of the last finished negotiation cycle, s. */
  readonly cycle: number;
  /** Attributes of jobs that templates ask for, lower case. */
  readonly foreign: ReadonlySet<string>;
}

/** Attributes that tell jobs apart before the pool has a machine: only a negotiation with one makes autoclusters. */
const usual = [
  'requirements',
  'requestcpus',
  'requestmemory',
  'requestdisk',
  'requestgpus',
  'concurrencylimits',
];

/** Attributes by which a schedd is asked at most, so that no hostile job makes a question endless. */
const mostAttributes = 100;

/** Ads that are asked for in one question: its constraint is one argument of a command, 120 characters for each, and 128 KiB at most. */
const mostAds = 500;

/** Questions that may fail where one of many jobs cannot be sent or evaluated: a schedd that sends none is asked no further. */
const mostFailures = 300;

/** Looks that leave out a group whose job cannot be sent or evaluated. */
const looksWithout = 20;

/** How often a look may ask a schedd anew because jobs refer to attributes that it did not ask for. */
const mostRounds = 3;

/** The waiting jobs of one schedd, from look to look: ads are asked for once, for jobs that stand for a new group. */
export class ScheddNeeds {
  readonly #client: Pick<HTCondorClient, 'queueLines' | 'queueAds'>;
  readonly #matchmaker: Matchmaker;
  #startedAt = 0;
  #known = new Map<string, Representative>();
  /** Groups whose job cannot be sent or evaluated, and for how many looks they are left out. */
  #hopeless = new Map<string, number>();
  #extra: readonly string[] = [];
  /** Undefined while every job has its autocluster. */
  #signature: readonly string[] | undefined;

  constructor(client: Pick<HTCondorClient, 'queueLines' | 'queueAds'>, matchmaker: Matchmaker) {
    this.#client = client;
    this.#matchmaker = matchmaker;
  }

  /** @throws HTCondorError: then the jobs of this schedd are unknown */
  async look(question: ScheddQuestion, signal: AbortSignal): Promise<ScheddLook> {
    // Numbers of autoclusters begin anew with each start of a schedd.
    if (question.startedAt !== this.#startedAt) {
      this.#known.clear();
      this.#hopeless.clear();
    }
    this.#startedAt = question.startedAt;
    for (const [key, pause] of this.#hopeless)
      if (pause > 1) this.#hopeless.set(key, pause - 1);
      else this.#hopeless.delete(key);
    for (let round = 1; ; round++) {
      const jobs = await this.#ask(question, signal);
      if (jobs.loose > 0 && this.#signature === undefined && round < mostRounds) {
        this.#signature = usual;
        continue;
      }
      if (jobs.loose === 0) this.#signature = undefined;
      await this.#represent(jobs, question.foreign, signal);
      if (!this.#learn(jobs, question.foreign) || round >= mostRounds) return this.#result(jobs);
    }
  }

  #ask({ cycle }: ScheddQuestion, signal: AbortSignal): Promise<IdleJobs> {
    const known = (key: string) => this.#known.get(key)?.job;
    return askIdleJobs(
      this.#client,
      { cycle, extra: this.#extra, signature: this.#signature, known },
      signal,
    );
  }

  /** Asks for the ads of jobs that stand for new groups, and forgets groups that are gone. */
  async #represent({ groups }: IdleJobs, foreign: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const wanted: JobGroup[] = [];
    const kept = new Map<string, Representative>();
    const hopeless = new Map<string, number>();
    for (const group of groups.values()) {
      const before = this.#known.get(group.key);
      const pause = this.#hopeless.get(group.key);
      // Another job may have come under the number of the autocluster, for instance because its attributes have changed.
      if (before !== undefined && group.hasKnown) kept.set(group.key, before);
      else if (pause !== undefined) hopeless.set(group.key, pause);
      else wanted.push(group);
    }
    this.#known = kept;
    this.#hopeless = hopeless;
    for (let at = 0; at < wanted.length; at += mostAds) {
      const part = wanted.slice(at, at + mostAds);
      const byJob = new Map(part.map((group) => [jobIdText(group.last), group]));
      const sent = await adsAmong(
        this.#client,
        part.map(({ last }) => last),
        signal,
        kept.size > 0,
      );
      // A job that has started or ended since stands for nothing: its group gets another one at the next look.
      const found = new Map(
        sent.answers.flatMap((ad) => {
          const group = byJob.get(`${ad.get('clusterid') ?? ''}.${ad.get('procid') ?? ''}`);
          return group === undefined ? [] : [[ad, group] as const];
        }),
      );
      const evaluated = await this.#evaluate([...found.keys()], foreign, signal, kept.size > 0);
      for (const [ad, sizes] of evaluated.answers) {
        const group = found.get(ad);
        if (group !== undefined) kept.set(group.key, { job: group.last, ad, ...sizes });
      }
      const failed = [
        ...sent.failed.map((job) => byJob.get(jobIdText(job))),
        ...evaluated.failed.map((ad) => found.get(ad)),
      ];
      for (const group of failed) if (group !== undefined) hopeless.set(group.key, looksWithout);
    }
  }

  /** What each of them asks for; nothing of a job that HTCondor cannot evaluate. */
  async #evaluate(
    all: readonly AdText[],
    foreign: ReadonlySet<string>,
    signal: AbortSignal,
    othersAreKnown: boolean,
  ): Promise<Halved<AdText, readonly [AdText, Pick<Representative, 'asked' | 'limits'>]>> {
    const names = mostNamed(all.map(requestsOf), [...usual, ...foreign]);
    const evaluate = async (ads: readonly AdText[]) => {
      const rows = await this.#matchmaker.withJobs(ads, (laid) =>
        laid.values([...names, 'ConcurrencyLimits'], signal),
      );
      return rows.flatMap((row, at) => {
        const ad = ads[at];
        if (row === undefined || ad === undefined) return [];
        const asked = new Map(
          names.map((name, index) => [name.slice('request'.length), numberOf(row[index])]),
        );
        return [[ad, { asked, limits: literalString(row.at(-1)) ?? '' }] as const];
      });
    };
    return halving(all, evaluate, othersAreKnown);
  }

  /** @returns whether there are attributes by which the jobs have to be told apart, and were not */
  #learn({ groups }: IdleJobs, foreign: ReadonlySet<string>): boolean {
    const extra = new Set<string>();
    const signatures: Iterable<string>[] = [this.#signature ?? []];
    for (const [key, { ad }] of this.#known) {
      const isLoose = (groups.get(key)?.values.length ?? 0) > 0;
      const own = relevantNames(ad, foreign);
      if (isLoose) signatures.push(own);
      else {
        const told = new Set((stringIn(ad, 'autoclusterattrs') ?? '').toLowerCase().split(/[\s,]+/));
        for (const name of foreign) if (!told.has(name)) extra.add(name);
      }
    }
    const before = this.#extra.length + (this.#signature?.length ?? 0);
    this.#extra = [...extra].toSorted().slice(0, mostAttributes);
    if (this.#signature !== undefined) {
      const names = mostNamed(signatures, [...usual, ...foreign]).filter(
        (name) => !usual.includes(name) && !extra.has(name),
      );
      this.#signature = [...usual, ...names.slice(0, mostAttributes - usual.length).toSorted()];
    }
    return this.#extra.length + (this.#signature?.length ?? 0) > before;
  }

  #result({ groups, fresh, dropped }: IdleJobs): ScheddLook {
    const needs: ScheddNeed[] = [];
    let leftOut = dropped;
    for (const group of groups.values()) {
      const representative = this.#known.get(group.key);
      if (representative === undefined) leftOut += group.count;
      else needs.push({ group, representative });
    }
    return { needs, fresh, leftOut };
  }
}

/** What many were asked about at once, and which of them can be asked nothing. */
interface Halved<One, Answer> {
  readonly answers: readonly Answer[];
  readonly failed: readonly One[];
}

/**
 * The ads of these jobs, without those that the schedd cannot send or thresher not read: a user can make an ad larger than HTCondor's own messages, and
 * that keeps no other job from its machine.
 * @param othersAreKnown whether other jobs of the schedd have been read
 * @throws HTCondorError where it fails whatever it is asked
 */
export async function adsAmong(
  client: Pick<HTCondorClient, 'queueAds'>,
  jobs: readonly JobId[],
  signal: AbortSignal,
  othersAreKnown = false,
): Promise<Halved<JobId, AdText>> {
  return halving(jobs, (some) => client.queueAds(whereAmong(some), signal), othersAreKnown);
}

/**
 * Asks about many at once, and where that fails about each half of them, so that one that cannot be answered hides no other. Those that are
 * left when it has failed too often have no answer this time.
 * @throws HTCondorError where nothing is answered, and nothing else is known
 */
async function halving<One, Answer>(
  all: readonly One[],
  question: (some: readonly One[]) => Promise<readonly Answer[]>,
  othersAreKnown: boolean,
): Promise<Halved<One, Answer>> {
  const answers: Answer[] = [];
  const failed: One[] = [];
  let failure: unknown;
  let failures = 0;
  const open = [all];
  for (let some = open.pop(); some !== undefined && failures < mostFailures; some = open.pop()) {
    try {
      for (const answer of await question(some)) answers.push(answer);
    } catch (error) {
      if (!isHTCondorError(error, 'condor-failed', 'condor-answer')) throw error;
      failure ??= error;
      failures++;
      const middle = Math.ceil(some.length / 2);
      if (some.length === 1) failed.push(...some);
      else open.push(some.slice(middle), some.slice(0, middle));
    }
  }
  if (answers.length === 0 && all.length > 1 && failure !== undefined && !othersAreKnown)
    throw failure as Error;
  return { answers, failed };
}

/**
 * Names that jobs have, so many as a schedd is asked by: those of `first` before all others, and then those that most jobs have. A job with
 * names of its own takes none away from the others.
 */
function mostNamed(byJob: readonly Iterable<string>[], first: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const names of byJob) for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const preferred = new Set(first);
  const rank = (name: string) => (preferred.has(name) ? Infinity : (counts.get(name) ?? 0));
  return [...counts.keys()]
    .toSorted((one, other) => (rank(one) === rank(other) ? 0 : rank(other) - rank(one)))
    .slice(0, mostAttributes);
}

/** Attributes of a job on which a match may rest. @param foreign those for which slots look */
function relevantNames(ad: AdText, foreign: ReadonlySet<string>): ReadonlySet<string> {
  const { own, other, any } = closureOf(ad, ['requirements', ...requestsOf(ad), ...foreign]);
  if (any) return new Set([...ad.keys(), ...other]);
  // Those that it lacks as well: another job may have them.
  return new Set([...own, ...other]);
}

/** Attributes that HTCondor's analysis itself reads. */
const alwaysShown = new Set(['mytype', 'targettype', 'jobuniverse', 'owner', 'user', 'requirements']);

/** A job by what a match may rest on. @param foreign attributes for which slots look */
export function signedJob(ad: AdText, foreign: ReadonlySet<string>): Signed {
  const relevant = relevantNames(ad, foreign);
  return sign(new Map([...ad].filter(([name]) => relevant.has(name) || alwaysShown.has(name))));
}

const requestsOf = (ad: AdText): string[] => [...ad.keys()].filter((name) => /^request[a-z]\w*$/.test(name));

function numberOf(text: string | undefined): number | undefined {
  if (text === 'true') return 1;
  if (text === 'false') return 0;
  const value = text === undefined || text === '' ? NaN : Number(text);
  return Number.isNaN(value) ? undefined : value;
}
