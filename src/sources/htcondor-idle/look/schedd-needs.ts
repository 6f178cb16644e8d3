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

/** Questions that may fail where one of many ads cannot be sent: a schedd that sends none is asked no further. */
const mostQuestions = 300;

/** How often a look may ask a schedd anew because jobs refer to attributes that it did not ask for. */
const mostRounds = 3;

/** The waiting jobs of one schedd, from look to look: ads are asked for once, for jobs that stand for a new group. */
export class ScheddNeeds {
  readonly #client: Pick<HTCondorClient, 'queueLines' | 'queueAds'>;
  readonly #matchmaker: Matchmaker;
  #startedAt = 0;
  #known = new Map<string, Representative>();
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
    if (question.startedAt !== this.#startedAt) this.#known.clear();
    this.#startedAt = question.startedAt;
    for (let round = 1; ; round++) {
      const jobs = await this.#ask(question, signal);
      if (jobs.loose > 0 && this.#signature === undefined && round < mostRounds) {
        this.#signature = usual;
        continue;
      }
      if (jobs.loose === 0) this.#signature = undefined;
      await this.#represent(jobs, signal);
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
  async #represent({ groups }: IdleJobs, signal: AbortSignal): Promise<void> {
    const wanted: JobGroup[] = [];
    const kept = new Map<string, Representative>();
    for (const group of groups.values()) {
      const before = this.#known.get(group.key);
      // Another job may have come under the number of the autocluster, for instance because its attributes have changed.
      if (before !== undefined && group.hasKnown) kept.set(group.key, before);
      else wanted.push(group);
    }
    this.#known = kept;
    for (let at = 0; at < wanted.length; at += mostAds) {
      const part = wanted.slice(at, at + mostAds);
      const byJob = new Map(part.map((group) => [jobIdText(group.last), group]));
      const ads = await adsAmong(
        this.#client,
        part.map(({ last }) => last),
        signal,
      );
      // A job that has started or ended since stands for nothing: its group gets another one at the next look.
      const found = ads.flatMap((ad) => {
        const group = byJob.get(`${ad.get('clusterid') ?? ''}.${ad.get('procid') ?? ''}`);
        return group === undefined ? [] : [{ group, ad }];
      });
      const evaluated = await this.#evaluate(
        found.map(({ ad }) => ad),
        signal,
      );
      for (const [index, { group, ad }] of found.entries()) {
        const sizes = evaluated[index];
        if (sizes !== undefined) kept.set(group.key, { job: group.last, ad, ...sizes });
      }
    }
  }

  async #evaluate(
    ads: readonly AdText[],
    signal: AbortSignal,
  ): Promise<(Pick<Representative, 'asked' | 'limits'> | undefined)[]> {
    const names = [...new Set(ads.flatMap(requestsOf))].slice(0, mostAttributes);
    const rows = await this.#matchmaker.withJobs(ads, (laid) =>
      laid.values([...names, 'ConcurrencyLimits'], signal),
    );
    return rows.map((row) => {
      if (row === undefined) return undefined;
      const asked = new Map(names.map((name, index) => [name.slice('request'.length), numberOf(row[index])]));
      return { asked, limits: literalString(row.at(-1)) ?? '' };
    });
  }

  /** @returns whether there are attributes by which the jobs have to be told apart, and were not */
  #learn({ groups }: IdleJobs, foreign: ReadonlySet<string>): boolean {
    const extra = new Set<string>();
    const signature = new Set(this.#signature);
    for (const [key, { ad }] of this.#known) {
      const isLoose = (groups.get(key)?.values.length ?? 0) > 0;
      const own = relevantNames(ad, foreign);
      if (isLoose) for (const name of own) signature.add(name);
      else {
        const told = new Set((stringIn(ad, 'autoclusterattrs') ?? '').toLowerCase().split(/[\s,]+/));
        for (const name of foreign) if (!told.has(name)) extra.add(name);
      }
    }
    const before = this.#extra.length + (this.#signature?.length ?? 0);
    this.#extra = [...extra].toSorted().slice(0, mostAttributes);
    if (this.#signature !== undefined) {
      const more = [...signature].filter((name) => !usual.includes(name) && !extra.has(name)).toSorted();
      this.#signature = [...usual, ...more].slice(0, mostAttributes);
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

/**
 * The ads of these jobs, without those that the schedd cannot send or thresher not read: a user can make an ad larger than HTCondor's own messages, and
 * that keeps no other job from its machine.
 * @throws HTCondorError where it is not a single one that fails
 */
export async function adsAmong(
  client: Pick<HTCondorClient, 'queueAds'>,
  jobs: readonly JobId[],
  signal: AbortSignal,
): Promise<readonly AdText[]> {
  let failure: unknown;
  let questions = 0;
  const ask = async (some: readonly JobId[]): Promise<readonly AdText[]> => {
    try {
      return await client.queueAds(whereAmong(some), signal);
    } catch (error) {
      failure ??= error;
      if (!isHTCondorError(error, 'condor-failed', 'condor-answer') || ++questions > mostQuestions)
        throw error;
      if (some.length === 1) return [];
      const middle = Math.ceil(some.length / 2);
      return [...(await ask(some.slice(0, middle))), ...(await ask(some.slice(middle)))];
    }
  };
  const ads = await ask(jobs);
  if (ads.length === 0 && jobs.length > 1 && failure !== undefined) throw failure as Error;
  return ads;
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
