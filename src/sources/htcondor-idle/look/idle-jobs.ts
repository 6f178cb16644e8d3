import { createHash } from 'node:crypto';
import { literalString, ownCopy } from '../../../clients/htcondor/ad-text.ts';
import { type JobId, whereShort } from '../../../clients/htcondor/classad.ts';
import type { HTCondorClient } from '../../../clients/htcondor/client.ts';
import { isHTCondorError } from '../../../clients/htcondor/errors.ts';

/** Idle jobs of one schedd that are alike to the matchmaking. */
export interface JobGroup {
  readonly key: string;
  /** Jobs that a negotiation cycle has passed over. */
  count: number;
  readonly owners: Map<string, OwnedJobs>;
  /** The job that stood for the group before is still one of it. */
  hasKnown: boolean;
  /** Jobs without an autocluster, told apart by values of their attributes. */
  readonly isLoose: boolean;
}

/** Jobs that one owner has in a group. */
export interface OwnedJobs {
  count: number;
  readonly first: JobId;
  /** It stands for the group rather than the first, because a schedd starts its oldest jobs first. */
  last: JobId;
}

export interface IdleJobs {
  readonly groups: ReadonlyMap<string, JobGroup>;
  /** Jobs over which no cycle has passed, or which the last one has matched. */
  readonly fresh: number;
  /** Jobs that have no autocluster, although a cycle has passed. */
  readonly loose: number;
  /** Jobs of more groups and owners than are kept, and those whose values cannot be read. */
  readonly dropped: number;
}

export interface IdleQuestion {
  /** Start of the last finished negotiation cycle, s. */
  readonly cycle: number;
  /** Attributes that tell apart jobs of one autocluster: templates ask for them, and the machines of the pool do not. */
  readonly extra: readonly string[];
  /** Attributes that tell apart jobs without an autocluster; undefined: such jobs are only counted. */
  readonly signature: readonly string[] | undefined;
  /** The job that stands for a group until now. */
  readonly known: (key: string) => JobId | undefined;
}

/**
 * Universes whose jobs a machine of any kind takes: vanilla (containers as well), java and vm. Those of the others run on the schedd's own
 * machine (scheduler, local), elsewhere (grid), or on several machines that a dedicated scheduler has reserved (parallel).
 */
const universes = [5, 10, 13];

/** A job that is held, runs, or has ended has another status. */
const idleJobs = `JobStatus =?= 1 && (${universes.map((one) => `JobUniverse =?= ${one}`).join(' || ')})`;

/** Groups of one schedd that are kept: jobs of further ones are said to be unknown. */
const mostGroups = 5000;

/** Owners of all groups of one schedd together, each counted once in each group: jobs of further ones are said to be unknown. */
const mostOwned = 100_000;

/** Characters of an owner: a job of one that has more cannot be read. */
const longestOwner = 1000;

/** Characters of a key; a longer one is kept as its digest, because a user can make a value of megabytes. */
const longestKey = 200;

const fixed = ['ClusterId', 'ProcId', 'AutoClusterId', 'EnteredCurrentStatus', 'LastMatchTime', 'Owner'];

/**
 * Asks a schedd once for all its idle jobs, and counts them as their lines arrive: none is kept. Where a job with very long values keeps
 * HTCondor from an answer, such jobs are left out.
 * @throws HTCondorError
 */
export async function askIdleJobs(
  client: Pick<HTCondorClient, 'queueLines'>,
  question: IdleQuestion,
  signal: AbortSignal,
): Promise<IdleJobs> {
  const attributes = [...fixed, ...question.extra, ...(question.signature ?? [])];
  try {
    return await countIdle(client, question, attributes, idleJobs, signal);
  } catch (error) {
    if (!isHTCondorError(error, 'condor-failed', 'condor-answer')) throw error;
    const others = `${idleJobs} && ${whereShort(attributes)}`;
    return countIdle(client, question, attributes, others, signal);
  }
}

async function countIdle(
  client: Pick<HTCondorClient, 'queueLines'>,
  question: IdleQuestion,
  attributes: readonly string[],
  which: string,
  signal: AbortSignal,
): Promise<IdleJobs> {
  const { cycle, extra, signature, known } = question;
  const groups = new Groups();
  const names = new Map<string, string>();
  // One name for all jobs of an owner: the one in a row keeps the row in memory, whatever else is in it.
  const ownerNamed = (name: string) => {
    const known = names.get(name) ?? ownCopy(name);
    names.set(known, known);
    return known;
  };
  let fresh = 0;
  let loose = 0;
  const onJob = (values: readonly string[] | undefined) => {
    if (values === undefined) {
      groups.dropped++;
      return;
    }
    const [cluster = '', proc = '', autocluster = '', since, matched, owner] = values;
    // Seconds of two clocks: a job of the same second may have come after the start of the cycle.
    if (!(Number(since) < cycle) || Number(matched) >= cycle) {
      fresh++;
      return;
    }
    const isLoose = !/^\d+$/.test(autocluster);
    if (isLoose) loose++;
    if (isLoose && signature === undefined) return;
    const told = isLoose
      ? values.slice(fixed.length)
      : values.slice(fixed.length, fixed.length + extra.length);
    const key = shortKey([isLoose ? '' : autocluster, ...told].join('\t'));
    const job: JobId = { cluster: Number(cluster), proc: Number(proc) };
    const before = known(key);
    const isKnown = before !== undefined && before.cluster === job.cluster && before.proc === job.proc;
    const name = literalString(owner) ?? 'unknown';
    if (name.length > longestOwner || (names.size >= mostOwned && !names.has(name))) groups.dropped++;
    else groups.add({ key, job, owner: ownerNamed(name), isLoose, isKnown });
  };
  await client.queueLines(which, attributes, onJob, signal);
  return { groups: groups.all, fresh, loose, dropped: groups.dropped };
}

const shortKey = (key: string) =>
  key.length > longestKey ? `x${createHash('sha256').update(key).digest('base64')}` : key;

/** A waiting job, by what tells it from others. */
interface IdleJob extends Pick<JobGroup, 'key' | 'isLoose'> {
  readonly job: JobId;
  readonly owner: string;
  /** It is the one that stood for its group until now. */
  readonly isKnown: boolean;
}

/** As many groups as are kept. Where there are more, the owners who have the most of them lose some: none takes all for himself. */
class Groups {
  readonly all = new Map<string, JobGroup>();
  /** Jobs of groups that are not kept, and those that cannot be read. */
  dropped = 0;
  /** By owner, the groups that are his alone. */
  readonly #own = new Map<string, Set<string>>();
  /** Owners of all groups, each as often as he has one. */
  #owned = 0;
  /** No owner has more groups for himself. */
  #most = 0;

  add({ key, job, owner, isLoose, isKnown }: IdleJob): void {
    let group = this.all.get(key);
    if (this.#owned >= mostOwned && group?.owners.has(owner) !== true) {
      this.dropped++;
      return;
    }
    if (group === undefined) {
      if (this.all.size >= mostGroups && !this.#makeRoom(owner)) {
        this.dropped++;
        return;
      }
      group = { key, count: 0, owners: new Map(), hasKnown: false, isLoose };
      this.all.set(key, group);
      const own = this.#own.get(owner) ?? new Set();
      this.#own.set(owner, own.add(key));
      this.#most = Math.max(this.#most, own.size);
    }
    group.count++;
    const owned = group.owners.get(owner) ?? { count: 0, first: job, last: job };
    owned.count++;
    owned.last = job;
    if (owned.count === 1) this.#owned++;
    group.owners.set(owner, owned);
    if (group.owners.size === 2) for (const one of group.owners.keys()) this.#own.get(one)?.delete(key);
    group.hasKnown ||= isKnown;
  }

  /** Drops a group of the owner who has the most, if he has more than this one would have. */
  #makeRoom(owner: string): boolean {
    const has = this.#own.get(owner)?.size ?? 0;
    // Of an upper bound: the jobs of somebody who fills the list alone are passed over without a search.
    if (this.#most <= has + 1) return false;
    let largest: Set<string> = new Set();
    for (const own of this.#own.values()) if (own.size > largest.size) largest = own;
    this.#most = largest.size;
    const [key] = largest;
    if (key === undefined || largest.size <= has + 1) return false;
    largest.delete(key);
    this.dropped += this.all.get(key)?.count ?? 0;
    this.all.delete(key);
    this.#owned--;
    return true;
  }
}

/**
 * These jobs alone, as a schedd finds them fast among very many: it compares each job of its queue with some ten of them, instead of all.
 * @param jobs at least one
 */
export function whereAmong(jobs: readonly JobId[]): string {
  const sorted = jobs.toSorted((one, other) => one.cluster - other.cluster || one.proc - other.proc);
  return amongSorted(sorted);
}

function amongSorted(jobs: readonly JobId[]): string {
  const middle = jobs[jobs.length >> 1];
  if (middle === undefined) return 'false';
  const { cluster, proc } = middle;
  if (jobs.length === 1) return `ClusterId == ${cluster} && ProcId == ${proc}`;
  const isBefore = `ClusterId < ${cluster} || ClusterId == ${cluster} && ProcId < ${proc}`;
  const [before, after] = [jobs.slice(0, jobs.length >> 1), jobs.slice(jobs.length >> 1)];
  return `ifThenElse(${isBefore}, ${amongSorted(before)}, ${amongSorted(after)})`;
}
