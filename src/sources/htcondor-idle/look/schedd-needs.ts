import { closureOf, stringIn } from '../../../clients/htcondor/ad-text.ts';
import type { HTCondorClient } from '../../../clients/htcondor/client.ts';
import type { Matchmaker } from '../../../clients/htcondor/matchmaker.ts';
import { askIdleJobs, type IdleJobs, type JobGroup } from './idle-jobs.ts';
import { type Candidate, JobAds, mostAds, type Representative } from './job-ads.ts';
import { mostAttributes, mostNamed, type OwnedNames, relevantNames, usual } from './job-names.ts';
import type { Unknown } from './result.ts';

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
  /** Those that slots of the pool ask for. */
  readonly ofSlots: ReadonlySet<string>;
}

/** How often a look may ask a schedd anew because jobs refer to attributes that it did not ask for. */
const mostRounds = 3;

/** The waiting jobs of one schedd, from look to look: ads are asked for once, for jobs that stand for a new group. */
export class ScheddNeeds {
  readonly #client: Pick<HTCondorClient, 'queueLines'>;
  readonly #ads: JobAds;
  #startedAt = 0;
  #known = new Map<string, Representative>();
  #extra: readonly string[] = [];
  /** Undefined while every job has its autocluster. */
  #signature: readonly string[] | undefined;

  /** @param now ms since any time */
  constructor(
    client: Pick<HTCondorClient, 'queueLines' | 'queueAds'>,
    matchmaker: Matchmaker,
    now: () => number,
  ) {
    this.#client = client;
    this.#ads = new JobAds(client, matchmaker, now);
  }

  /** @throws HTCondorError: then the jobs of this schedd are unknown */
  async look(question: ScheddQuestion, signal: AbortSignal): Promise<ScheddLook> {
    // Numbers of autoclusters begin anew with each start of a schedd.
    if (question.startedAt !== this.#startedAt) {
      this.#known.clear();
    }
    this.#startedAt = question.startedAt;
    this.#ads.next();
    for (let round = 1; ; round++) {
      const jobs = await this.#ask(question, signal);
      if (jobs.loose > 0 && this.#signature === undefined && round < mostRounds) {
        this.#signature = usual;
        continue;
      }
      if (jobs.loose === 0) this.#signature = undefined;
      await this.#represent(jobs, question, signal);
      if (!this.#learn(jobs, question.foreign) || round >= mostRounds) return this.#result(jobs);
    }
  }

  /** Another job is to stand for the group of this one, or none. */
  leaveOut(one: Representative): void {
    this.#ads.leaveOut(one);
    this.#known.delete(one.group);
  }

  /**
   * A job of another owner is to stand for the group of this one: other jobs of its owner have cost so much that it is not asked about.
   * @param owners of the group
   */
  passOver(one: Representative, owners: Iterable<string>): void {
    if (this.#ads.passOver(one, owners)) this.#known.delete(one.group);
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
  async #represent({ groups }: IdleJobs, question: ScheddQuestion, signal: AbortSignal): Promise<void> {
    const wanted: Candidate[] = [];
    const kept = new Map<string, Representative>();
    const names = new Set([...question.foreign, ...question.ofSlots]);
    for (const group of groups.values()) {
      const before = this.#known.get(group.key);
      // Another job may have come under the number of the autocluster, for instance because its attributes have changed.
      if (before !== undefined && group.hasKnown && isWhole(before, names)) kept.set(group.key, before);
      else {
        const candidate = this.#ads.choose(group);
        if (candidate !== undefined) wanted.push(candidate);
      }
    }
    this.#known = kept;
    this.#ads.keep(kept.values());
    // A job that has started or ended since stands for nothing: its group gets another one at the next look.
    for (let at = 0; at < wanted.length; at += mostAds) {
      const some = wanted.slice(at, at + mostAds);
      for (const one of await this.#ads.read(some, { names, foreign: question.foreign }, signal))
        kept.set(one.group, one);
    }
  }

  /** @returns whether there are attributes by which the jobs have to be told apart, and were not */
  #learn({ groups }: IdleJobs, foreign: ReadonlySet<string>): boolean {
    const extra = new Set<string>();
    const signatures: OwnedNames[] = [];
    for (const [key, { ad, owner }] of this.#known) {
      const isLoose = groups.get(key)?.isLoose === true;
      const own = relevantNames(ad, foreign);
      if (isLoose) signatures.push({ owner, names: own });
      else {
        const told = new Set((stringIn(ad, 'autoclusterattrs') ?? '').toLowerCase().split(/[\s,]+/));
        for (const name of foreign) if (!told.has(name) && /^[a-z_]\w*$/.test(name)) extra.add(name);
      }
    }
    const before = this.#extra.length + (this.#signature?.length ?? 0);
    this.#extra = [...extra].toSorted().slice(0, mostAttributes);
    if (this.#signature !== undefined) {
      signatures.push({ owner: '', names: this.#signature });
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

/** Whether the ad lacks nothing on which a match may rest. */
function isWhole({ ad, without }: Representative, names: ReadonlySet<string>): boolean {
  if (without.length === 0) return true;
  const { own, any } = closureOf(new Map([...ad, ...without.map((name) => [name, ''] as const)]), [...names]);
  return !any && !without.some((name) => own.has(name));
}

/** Says that jobs of a schedd are left out. */
export function leftOut(name: string, jobs: number): Unknown {
  const message = `${jobs} waiting jobs of schedd ${name} are left out: they are of more kinds than thresher compares, their ads are too large, or HTCondor cannot evaluate them or others of their owners`;
  return { part: 'schedd', name, reason: { code: 'htcondor-idle-left-out', message } };
}
