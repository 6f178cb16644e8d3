import { literalString } from '../../../clients/htcondor/ad-text.ts';
import { type JobId, whereShort } from '../../../clients/htcondor/classad.ts';
import type { HTCondorClient } from '../../../clients/htcondor/client.ts';
import { isHTCondorError } from '../../../clients/htcondor/errors.ts';

/** Idle jobs of one schedd that are alike to the matchmaking. */
export interface JobGroup {
  readonly key: string;
  /** Jobs that a negotiation cycle has passed over. */
  count: number;
  readonly owners: Map<string, number>;
  /** The job that stood for the group before is still one of it. */
  hasKnown: boolean;
  /** Another one that could: the last, because a schedd starts its oldest jobs first. */
  last: JobId;
  /** Values of the attributes by which jobs without an autocluster are told apart; empty for an autocluster. */
  readonly values: readonly string[];
}

export interface IdleJobs {
  readonly groups: ReadonlyMap<string, JobGroup>;
  /** Jobs over which no cycle has passed, or which the last one has matched. */
  readonly fresh: number;
  /** Jobs that have no autocluster, although a cycle has passed. */
  readonly loose: number;
  /** Jobs of more groups than are kept, and those whose values cannot be read. */
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
  const groups = new Map<string, JobGroup>();
  let fresh = 0;
  let loose = 0;
  let dropped = 0;
  const onJob = (values: readonly string[] | undefined) => {
    if (values === undefined) {
      dropped++;
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
    const key = [isLoose ? '' : autocluster, ...told].join('\t');
    let group = groups.get(key);
    const job: JobId = { cluster: Number(cluster), proc: Number(proc) };
    if (group === undefined) {
      if (groups.size >= mostGroups) {
        dropped++;
        return;
      }
      group = { key, count: 0, owners: new Map(), hasKnown: false, last: job, values: isLoose ? told : [] };
      groups.set(key, group);
    }
    group.count++;
    const name = literalString(owner) ?? 'unknown';
    group.owners.set(name, (group.owners.get(name) ?? 0) + 1);
    group.last = job;
    const before = known(key);
    if (before !== undefined && before.cluster === job.cluster && before.proc === job.proc)
      group.hasKnown = true;
  };
  await client.queueLines(which, attributes, onJob, signal);
  return { groups, fresh, loose, dropped };
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
