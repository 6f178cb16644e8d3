import type { Reason } from '../../worker/reason.ts';
import { whyOpen } from './taken-over.ts';
import type { JobFacts } from './facts.ts';
import type { LastWords } from './last-words.ts';
import type { Judged, Judgement } from './judge.ts';
import { attemptOf, toRanges } from '../../clients/htcjob/numbers.ts';
import {
  type ConditionType,
  type HtcJobCondition,
  type HtcJobSpec,
  type HtcJobStatus,
  longestJobId,
  type ReturnCode,
  type SpecProblem,
} from '../../clients/htcjob/resource.ts';
import { isoSeconds } from '../../util/clock.ts';
import { beginningOfOwn } from '../../util/beginning.ts';

/** Most return codes in a status: a resource has at most 1.5 MB. */
const mostReturnCodes = 200;
/** Longest message of a condition, characters. */
const longestMessage = 4000;

/** Our own logins are hidden first (see `writtenStatus`): a piece of one before the cut may be too short to be known. */
export function cutMessage(message: string): string {
  return beginningOfOwn(message, longestMessage);
}

export interface StatusFacts {
  readonly uid: string;
  readonly generation: number | undefined;
  readonly factory: string;
  /** Whether its jobs may have been submitted: its spec cannot change any more then. */
  readonly isClaimed: boolean;
  readonly round: number;
  readonly isSuspended: boolean;
  readonly judgement: Judgement;
  /** Why wanted jobs wait. */
  readonly waiting: Reason | undefined;
  /** HTCondor's reason for the first held job. */
  readonly holdReason: string | undefined;
  /** Why no machine takes the first job for which there is none. */
  readonly noMachine: string | undefined;
  /** Of the first failed job, where its log could be read. */
  readonly lastWords: LastWords | undefined;
  /** Why it ended before its jobs did: its deadline, or a mistake in it. */
  readonly stopped: { readonly reason: string; readonly message: string } | undefined;
  /** By job number. */
  readonly reports: ReadonlyMap<number, number>;
  readonly before: HtcJobStatus | undefined;
  /** ms UTC. */
  readonly now: number;
}

/** The whole status of a resource, from all that is known of its jobs. */
export function statusOf(facts: StatusFacts): HtcJobStatus {
  const { uid, generation, factory, isClaimed, round, judgement, before, now } = facts;
  const { jobs, isOver, retried } = judgement;
  const numbers = (outcome: Judged['outcome']) =>
    jobs.filter((job) => job.outcome === outcome).map(({ number }) => number);
  const [succeeded, failed] = [numbers('succeeded'), numbers('failed')];
  const live = jobs.filter(({ outcome }) => outcome === 'live');
  const submitted = live.filter(({ facts }) => facts !== undefined && facts.status !== 'pending');
  const held = live.filter(isHeld);
  const ids = idsOf(jobs, before?.jobIds ?? []);
  const started = before?.startTime ?? (ids.length > 0 ? isoSeconds(startOf(jobs, now)) : undefined);
  const conditions = conditionsOf(facts, held[0]);
  const reason = conditions.find(({ status }) => status === 'True')?.reason ?? ordinary(jobs);
  const failedRanges = toRanges(failed);
  const completedRanges = toRanges(succeeded);
  const [clusterId] = ids.find((id) => id !== '')?.split('.') ?? [];
  return {
    active: submitted.length,
    succeeded: succeeded.length,
    failed: failed.length,
    held: held.length,
    jobid: ids,
    jobIds: ids,
    ...((isClaimed || isOver) && { uniqId: uid }),
    factory,
    reason,
    conditions,
    returnCodes: returnCodesOf(facts),
    ...(clusterId !== undefined && { clusterId }),
    ...(before?.takenOver === true && { takenOver: true }),
    ...(round > 0 && { round }),
    ...(retried > 0 && { retried }),
    ...(completedRanges !== undefined && { completedIndexes: completedRanges }),
    ...(failedRanges !== undefined && { failedIndexes: failedRanges }),
    ...(generation !== undefined && { observedGeneration: generation }),
    ...(started !== undefined && { startTime: started }),
    ...(isOver && { completionTime: before?.completionTime || completionOf(jobs, started, now) }),
  };
}

export function isHeld({ facts }: Pick<Judged, 'facts'>): boolean {
  return facts?.native === 'held';
}

export function isTooLarge({ outcome, facts }: Pick<Judged, 'outcome' | 'facts'>): boolean {
  return outcome === 'live' && facts?.native === 'too-large';
}

/** Why a job that was submitted does not start. Machines may join that take it. */
function whyIdle(jobs: readonly Judged[], noMachine: string | undefined): Reason | undefined {
  const job = jobs.find(isTooLarge);
  if (job === undefined) return undefined;
  const why = noMachine ?? 'no machine of its pool has what it asks for';
  return { code: 'htcjob-no-machine', message: `job ${job.number} waits in the queue of HTCondor: ${why}` };
}

/** The word for a resource that nothing holds back. */
function ordinary(jobs: readonly Judged[]): string {
  if (jobs.some(({ facts }) => facts?.status === 'running')) return 'Running';
  const isSubmitted = ({ outcome, facts }: Judged) => outcome === 'live' && facts?.status !== 'pending';
  return jobs.some(isSubmitted) ? 'Submitted' : 'Pending';
}

/** Ids by job number, as far as the first job without one; an id that was known stays, whatever its row became. */
function idsOf(jobs: readonly Judged[], before: readonly string[]): readonly string[] {
  const ids = jobs.map(({ number, facts }) =>
    (jobIdOf(facts) ?? before[number] ?? '').slice(0, longestJobId),
  );
  return ids.slice(0, ids.findLastIndex((id) => id !== '') + 1);
}

/** "CLUSTER.PROC" of HTCondor's id, which may name the schedd before it; ids of other backends as they are. */
function jobIdOf(facts: Pick<JobFacts, 'batchId'> | undefined): string | undefined {
  const id = facts?.batchId ?? undefined;
  return id === undefined ? undefined : (/(?<!\d)(\d+\.\d+)$/.exec(id)?.[1] ?? id);
}

function returnCodesOf({ judgement, reports, before }: StatusFacts): readonly ReturnCode[] {
  const known = new Map((before?.returnCodes ?? []).map((code) => [code.index, code]));
  const codes = judgement.jobs.flatMap(({ number, index, facts }): ReturnCode[] => {
    // The database may have forgotten a first attempt, and an earlier status has its code.
    const isFirst = attemptOf(index).attempt === 0;
    const exitCode = facts?.exitCode ?? (isFirst ? known.get(number)?.exitCode : undefined);
    const reported = reports.get(number) ?? known.get(number)?.reported;
    if (!exitCode && (reported === undefined || (exitCode === 0 && reported === 0))) return [];
    const code: ReturnCode = { index: number };
    return [
      {
        ...code,
        ...(exitCode !== undefined && { exitCode }),
        ...(reported !== undefined && { reported }),
      },
    ];
  });
  if (codes.length <= mostReturnCodes) return codes;
  const isBad = ({ exitCode = 0, reported = 0 }: ReturnCode) => exitCode !== 0 || reported !== 0;
  const first = [...codes.filter(isBad), ...codes.filter((code) => !isBad(code))].slice(0, mostReturnCodes);
  return first.sort((one, other) => one.index - other.index);
}

/** What a deleted resource waits for, beside its jobs. `usual`: where no reason is known. */
const waits = {
  read: {
    reason: 'NotRead',
    message: 'it goes, and its jobs end, once its API server lets thresher read it',
    usual: '',
  },
  listing: {
    reason: 'JobsUnknown',
    message: 'it goes when its backend has told which of its jobs live',
    usual: '',
  },
  outputs: {
    reason: 'OutputsLeft',
    message: 'it goes when its outputs are removed',
    usual: ' (they are being removed, or are about to be, after those of others)',
  },
  finalizer: {
    reason: 'FinalizerLeft',
    message: 'nothing of its jobs is left; it goes once its API server lets thresher take its finalizer away',
    usual: '',
  },
} as const;

export interface Leftover {
  /** How many of its jobs live, or have left something; else what is awaited. */
  readonly left: number | keyof typeof waits;
  readonly whys: readonly (Reason | undefined)[];
}

function leftover(left: Leftover['left']): {
  readonly reason: string;
  readonly message: string;
  readonly usual: string;
} {
  if (typeof left !== 'number') return waits[left];
  const message = `it goes when nothing of its jobs is left: ${left} of them live, or have left something on their backend`;
  return { reason: 'JobsLeft', message, usual: ' (those that live are asked to end)' };
}

function whyNamed(whys: Leftover['whys'], usual: string): string {
  const named = new Set(whys.flatMap((why) => (why === undefined ? [] : `${why.code}: ${why.message}`)));
  return named.size > 0 ? ` (${[...named].join('; ')})` : usual;
}

/** The last status of one whose deletion waits for what its jobs left. */
export function whileDeleting(before: HtcJobStatus, { left, whys }: Leftover, now: number): HtcJobStatus {
  const { conditions = [] } = before;
  const last = conditions.find(({ type }) => type === 'Deleting');
  const { reason, message, usual } = leftover(left);
  const condition: HtcJobCondition = {
    type: 'Deleting',
    status: 'True',
    reason,
    message: cutMessage(message + whyNamed(whys, usual)),
    lastTransitionTime: last?.lastTransitionTime ?? isoSeconds(now),
  };
  const others = conditions.filter(({ type }) => type !== 'Deleting');
  return { ...before, reason, conditions: [...others, condition] };
}

interface Wish {
  readonly type: ConditionType;
  /** Undefined: it does not hold. */
  readonly because: { readonly reason: string; readonly message: string } | undefined;
}

/** In the order in which they give the printed reason. A condition that never held is left out. */
function conditionsOf(facts: StatusFacts, held: Judged | undefined): readonly HtcJobCondition[] {
  const { judgement, isSuspended, stopped, before, now } = facts;
  const { jobs, isOver } = judgement;
  const waiting = facts.waiting ?? whyOpen(jobs) ?? whyIdle(jobs, facts.noMachine);
  const failed = jobs.filter(({ outcome }) => outcome === 'failed');
  const wishes: readonly Wish[] = [
    {
      type: 'Failed',
      because:
        isOver && failed.length > 0
          ? (stopped ?? failedBefore(before) ?? whyFailed(failed, jobs.length, facts.lastWords))
          : undefined,
    },
    {
      type: 'Complete',
      because:
        isOver && failed.length === 0
          ? { reason: 'Succeeded', message: `all ${jobs.length} jobs ended with return code 0` }
          : undefined,
    },
    {
      type: 'Suspended',
      because:
        !isOver && isSuspended
          ? { reason: 'Suspended', message: 'spec.suspend is true: no job runs until it is false' }
          : undefined,
    },
    {
      type: 'Held',
      because: held && {
        reason: 'Held',
        message: `HTCondor holds job ${held.number}: ${facts.holdReason ?? 'it gives no reason'}`,
      },
    },
    {
      type: 'Waiting',
      because: !isOver && waiting ? { reason: camelCase(waiting.code), message: waiting.message } : undefined,
    },
  ];
  return wishes.flatMap(({ type, because }): HtcJobCondition[] => {
    const last = before?.conditions?.find((condition) => condition.type === type);
    if (because === undefined && last === undefined) return [];
    const status = because === undefined ? 'False' : 'True';
    const { reason, message } = because ?? { reason: 'Over', message: '' };
    const lastTransitionTime = last?.status === status ? last.lastTransitionTime : isoSeconds(now);
    return [{ type, status, reason, message: cutMessage(message), lastTransitionTime }];
  });
}

/** An end has one reason for good. */
function failedBefore(before: HtcJobStatus | undefined): HtcJobCondition | undefined {
  if (!before?.completionTime) return undefined;
  const failed = before.conditions?.find(({ type, status }) => type === 'Failed' && status === 'True');
  // Another writer may have left anything in them.
  return failed && { ...failed, reason: textOf(failed.reason), message: textOf(failed.message) };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function whyFailed(
  failed: readonly Judged[],
  count: number,
  words: LastWords | undefined,
): { reason: string; message: string } {
  const [first] = failed;
  const beginning = `${failed.length} of ${count} jobs failed; job ${first?.number ?? 0}`;
  if (words?.notRun !== undefined)
    return { reason: 'JobsFailed', message: `${beginning} cannot be run: ${words.notRun}` };
  const { exitCode, message } = first?.facts ?? {};
  const how = exitCode === null || exitCode === undefined ? '' : ` with return code ${exitCode}`;
  const why = message === null || message === undefined ? '' : `: ${message}`;
  const end = words === undefined ? '' : `; the end of its ${words.stream}:\n${words.text}`;
  return { reason: 'JobsFailed', message: `${beginning} ended${how}${why}${end}` };
}

/** `credential-expired` becomes `CredentialExpired`, as reasons of conditions are written. */
export function camelCase(code: string): string {
  const words = code.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return /^[A-Za-z]/.test(joined) ? joined : 'Waiting';
}

function times(jobs: readonly Judged[], of: (facts: JobFacts) => number | null): number[] {
  return jobs.flatMap(({ facts }) => (facts === undefined ? [] : (of(facts) ?? [])));
}

/** The submission is by the clock of the daemon that made it, which may have run ahead of the one of the status: it was not in the future. */
function startOf(jobs: readonly Judged[], now: number): number {
  return Math.min(now, ...times(jobs, ({ submitTime }) => submitTime));
}

function latest(jobs: readonly Judged[]): number | undefined {
  const all = times(jobs, ({ endTime }) => endTime);
  return all.length === 0 ? undefined : Math.max(...all);
}

/** The end times are by clocks of others: none counts that is before the start, or in the future. */
function completionOf(jobs: readonly Judged[], started: string | undefined, now: number): string {
  const ended = Math.min(latest(jobs) ?? now, now);
  return isoSeconds(Math.max(ended, Date.parse(started ?? '') || ended));
}

/** Why a resource ends before its jobs do. */
export function stoppedBy(
  { activeDeadlineSeconds = 0 }: Pick<HtcJobSpec, 'activeDeadlineSeconds'>,
  problems: readonly SpecProblem[],
  isLate: boolean,
): StatusFacts['stopped'] {
  if (problems.length > 0)
    return {
      reason: 'Invalid',
      message: problems.map(({ at, message }) => `${at}: ${message}`).join('; '),
    };
  if (!isLate) return undefined;
  return {
    reason: 'DeadlineExceeded',
    message: `its jobs did not end within activeDeadlineSeconds ${activeDeadlineSeconds}`,
  };
}
