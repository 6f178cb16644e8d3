import { constants } from 'node:os';
import { isoSeconds } from '../../../util/clock.ts';
import { beginningFromOutside, headOf, LongText } from '../../../util/beginning.ts';
import type { Observation } from '../../../worker/observation.ts';
import type { WorkerStatus } from '../../../worker/status.ts';
import type { WorkerError } from '../../../worker/worker.ts';
import { holdRuleOf } from './hold-rules.ts';
import type { JobAd } from './types.ts';

export interface StateOptions {
  /** s a job may be held before its worker is given up. */
  readonly heldTimeout: number;
  /** s a job may be idle in the queue before its worker is given up. Default, also for 0: no limit. */
  readonly queueTimeLimit?: number;
  /** Harvester's: `atlas_pilot_wrapper` gives the wrapper's exit statuses their texts. */
  readonly payloadType?: string;
  /** It is in the queue, where a removed job stays until nothing of it lives. Default: no. */
  readonly queued?: boolean;
  /** When it was submitted, by HTCondor's clock, s. */
  readonly queuedAt?: number;
  /** Endpoint of the CE that the job was sent to. */
  readonly computingElement?: string;
  /** Why no machine of the pool takes it. Default: one does, as far as is known. */
  readonly tooLarge?: string;
}

/** Meaning of a job for its worker. */
export interface JobState {
  readonly observation: Observation;
  /**
   * The worker is given up, though HTCondor would keep its job. This is true as soon as the removal of the job was
   * accepted, and not before: until then an operator may release it.
   */
  readonly verdict?: Observation;
  /**
   * So long it must have been held for that, s, by the schedd's own clock: ours may be ahead of it. Undefined where the reason of the hold says
   * that it has ended.
   */
  readonly heldFor?: number;
  /** The same for a job that is given up since it waited: so long it must have been idle, s. */
  readonly waitedFor?: number;
}

/** The native status of a job in HTCondor's queue that asks for more than any machine of its pool has. */
export const tooLargeNative = 'too-large';

interface Row {
  /** For the table in docs/. */
  readonly seen: string;
  readonly when: (ad: JobAd, isQueued: boolean) => boolean;
  readonly status: WorkerStatus;
  readonly native: string;
}

const hasStarted = ({ JobStartDate, NumJobStarts = 0 }: JobAd) => Boolean(JobStartDate) || NumJobStarts > 0;
const is = (status: number) => (ad: JobAd) => ad.JobStatus === status;
/** It ended, and was taken out of the queue after that: the removal does not undo the end. */
const endedBefore = (ad: JobAd) =>
  ad.LastJobStatus === 4 && Boolean(ad.CompletionDate) && typeof ad.ExitBySignal === 'boolean';
/** In the queue a job that is neither completed nor removed may still run, whatever it was before. */
const completed = (ad: JobAd, queued: boolean) =>
  is(4)(ad) || (ad.JobStatus !== undefined && endedBefore(ad) && (is(3)(ad) || !queued));
/** Until it was removed. */
const hasRun = ({ LastJobStatus }: JobAd) => LastJobStatus === 2 || LastJobStatus === 6;
/** A removal is never taken back, whatever a late answer says. It is over when the job has left the queue. */
const removed = (ad: JobAd, queued: boolean) =>
  !queued && (is(3)(ad) || (ad.JobStatus !== undefined && ad.LastJobStatus === 3));
/** HTCondor holds a removed job whose remote part it cannot end. Released, it is removed further. */
const heldWhileRemoved = (ad: JobAd, queued: boolean) => queued && is(5)(ad) && ad.LastJobStatus === 3;
/** A job that was held or evicted and started again keeps the signal of its first end: only `ExitBySignal` tells. */
const bySignal = ({ ExitBySignal, ExitSignal }: JobAd): boolean => ExitBySignal ?? Boolean(ExitSignal);
const well = (ad: JobAd) => !bySignal(ad) && ad.ExitCode === 0;

/**
 * The status of a worker, by its job's ad. Order matters: the first match counts. An ad with another `JobStatus`, or
 * none, says nothing, and the worker stays as it was. Source: Harvester's htcondor_monitor.
 */
export const stateRows: readonly Row[] = [
  {
    seen: '`JobStatus` 4, or `LastJobStatus` 4 with a `CompletionDate`: ended with `ExitCode` 0 and without a signal',
    when: (ad, queued) => completed(ad, queued) && well(ad),
    status: 'finished',
    native: 'completed',
  },
  {
    seen: '`JobStatus` 4, or `LastJobStatus` 4 with a `CompletionDate`: `ExitBySignal`, another `ExitCode`, or none',
    when: completed,
    status: 'failed',
    native: 'completed',
  },
  {
    seen: '`JobStatus` 3 in the queue, after 2 or 6: it was removed, and its machine has not ended it yet',
    when: (ad, queued) => queued && is(3)(ad) && hasRun(ad),
    status: 'running',
    native: 'removing',
  },
  {
    seen: '`JobStatus` 3 in the queue, with a `JobStartDate`',
    when: (ad, queued) => queued && is(3)(ad) && hasStarted(ad),
    status: 'idle',
    native: 'removing',
  },
  {
    seen: '`JobStatus` 3 in the queue',
    when: (ad, queued) => queued && is(3)(ad),
    status: 'submitted',
    native: 'removing',
  },
  {
    seen: '`JobStatus` 5 in the queue after 3, with a `JobStartDate`: HTCondor could not end its remote part, which may run',
    when: (ad, queued) => heldWhileRemoved(ad, queued) && hasStarted(ad),
    status: 'idle',
    native: 'removing',
  },
  {
    seen: '`JobStatus` 5 in the queue after 3',
    when: heldWhileRemoved,
    status: 'submitted',
    native: 'removing',
  },
  {
    seen: '`JobStatus` 3, or `LastJobStatus` 3, and not in the queue any more, whatever its exit status',
    when: removed,
    status: 'cancelled',
    native: 'removed',
  },
  { seen: '`JobStatus` 2', when: is(2), status: 'running', native: 'running' },
  {
    seen: '`JobStatus` 6: the pilot has ended, its output is on the way',
    when: is(6),
    status: 'running',
    native: 'transferring_output',
  },
  {
    seen: '`JobStatus` 7: the machine stopped it for a while; it had started',
    when: (ad) => is(7)(ad) && hasStarted(ad),
    status: 'idle',
    native: 'suspended',
  },
  { seen: '`JobStatus` 7, without a start', when: is(7), status: 'submitted', native: 'suspended' },
  {
    seen: '`JobStatus` 1 with a `JobStartDate`: it was evicted, or released, and waits for another start',
    when: (ad) => is(1)(ad) && hasStarted(ad),
    status: 'idle',
    native: 'idle',
  },
  { seen: '`JobStatus` 1', when: is(1), status: 'submitted', native: 'idle' },
  {
    seen: '`JobStatus` 5 with a `JobStartDate`, until it is given up',
    when: (ad) => is(5)(ad) && hasStarted(ad),
    status: 'idle',
    native: 'held',
  },
  { seen: '`JobStatus` 5, until it is given up', when: is(5), status: 'submitted', native: 'held' },
];

/**
 * Judges a job at `now` (ms UTC). Pure.
 * @returns undefined where the ad does not say: unknown is not zero, and no status either.
 */
export function stateOf(
  workerId: number,
  ad: JobAd,
  now: number,
  options: StateOptions,
): JobState | undefined {
  const queued = options.queued ?? false;
  const row = stateRows.find(({ when }) => when(ad, queued));
  if (row === undefined) return undefined;
  const { status } = row;
  const isWaiting = queued && row.native === 'idle';
  // One that ran before waits for a machine like that which it had.
  const tooLarge = isWaiting && status === 'submitted' ? options.tooLarge : undefined;
  const native = tooLarge === undefined ? row.native : tooLargeNative;
  const over = status === 'finished' || status === 'failed' || status === 'cancelled';
  const host = nodeOf(ad);
  const isCompleted = completed(ad, queued);
  const { startTime, endTime } = timesOf(ad, { over, isCompleted, now, queuedAt: options.queuedAt });
  const waiting = isWaiting ? whyWaiting(ad, now, tooLarge) : undefined;
  const detail = {
    ...detailOf(ad),
    ...(native === 'removing' && { Removing: whyRemoving(ad) }),
    ...(waiting !== undefined && { Waiting: waiting }),
  };
  const common = {
    workerId,
    observedAt: now,
    nativeStatus: native,
    ...(host !== undefined && { node: host }),
    ...(options.computingElement !== undefined && { computingElement: options.computingElement }),
    ...(startTime !== undefined && { startTime }),
    ...(Object.keys(detail).length > 0 && { detail }),
  };
  const exitCode = isCompleted ? exitCodeOf(ad) : undefined;
  const fate = status === 'cancelled' ? fateOfRemoved(ad) : undefined;
  const observation: Observation = {
    ...common,
    status: fate?.status ?? status,
    ...(exitCode !== undefined && { exitCode }),
    ...(endTime !== undefined && { endTime }),
    ...(status === 'failed' && { error: failureOf(ad, options) }),
    ...(fate !== undefined && { error: fate.error }),
  };
  if (native === 'held') return judgeHold(ad, observation, options, now);
  return isWaiting ? judgeWait(ad, observation, options, now) : { observation };
}

interface Judging {
  readonly over: boolean;
  readonly isCompleted: boolean;
  /** ms UTC. */
  readonly now: number;
  readonly queuedAt: number | undefined;
}

/**
 * The clock of a schedd may be wrong, and an attribute edited: no job has ended before it was submitted and began, or later than now. Where
 * all times are ahead, the time for which it ran stays.
 */
function timesOf(ad: JobAd, { over, isCompleted, now, queuedAt }: Judging) {
  const startTime = msOf(ad.JobStartDate) ?? msOf(ad.JobCurrentStartDate);
  const told = (isCompleted ? msOf(ad.CompletionDate) : undefined) ?? msOf(ad.EnteredCurrentStatus);
  if (!over || told === undefined) return { startTime, endTime: undefined };
  const endTime = Math.max(told, startTime ?? 0, msOf(queuedAt) ?? 0);
  const ahead = Math.max(0, endTime - now);
  return { startTime: startTime === undefined ? undefined : startTime - ahead, endTime: endTime - ahead };
}

function judgeHold(ad: JobAd, observation: Observation, options: StateOptions, now: number): JobState {
  const rule = holdRuleOf(ad);
  const since = msOf(ad.EnteredCurrentStatus);
  if (rule === undefined || rule.after === 'wait') return { observation };
  const { after = options.heldTimeout, status, code } = rule;
  // The start of the hold is unknown: thresher gives up the worker only if waiting would not help.
  if (since === undefined && rule.after === undefined) return { observation };
  const at = (since ?? now) + after * 1000;
  if (now < at) return { observation };
  const message = heldText(ad);
  const verdict: Observation = { ...observation, status, endTime: now, error: { code, message } };
  return { observation, verdict, ...(rule.after === undefined && { heldFor: after }) };
}

/** A job that started counts from its return to the queue, and one of a grid universe is idle while it waits in the queue of its CE. */
function judgeWait(
  ad: JobAd,
  observation: Observation,
  { queueTimeLimit: limit = 0 }: StateOptions,
  now: number,
): JobState {
  const since = msOf(ad.EnteredCurrentStatus);
  if (limit === 0 || since === undefined || now < since + limit * 1000) return { observation };
  const { GridJobStatus: remote } = ad;
  const atCe = remote === undefined ? '' : `; GridJobStatus is ${shortened(remote)}`;
  const message = `${waitedText(limit)}: idle for ${Math.round((now - since) / 1000)} s${atCe}`;
  const error = { code: 'htcondor-queue-time', message };
  return {
    observation,
    verdict: { ...observation, status: 'failed', endTime: now, error },
    waitedFor: limit,
  };
}

function heldText({
  HoldReason = 'no reason',
  HoldReasonCode: code,
  HoldReasonSubCode: subcode,
}: Hold): string {
  return `held: ${shortened(HoldReason)} (code ${code ?? '?'}, subcode ${subcode ?? '?'})`;
}

/** The reason with which thresher removes a job that was held for too long. */
export const givenUpReason = 'held for too long: given up by thresher';
/** The reason with which thresher removes a job whose hold says that it has ended. */
export const endedReason = 'held with a reason by which it has ended: given up by thresher';

const waitedText = (limit: number | string) => `queueTimeLimit of ${limit} s is over`;

/** The reason with which thresher removes a job that was idle for this limit, s. */
export const waitedReason = (limit: number): string => `${waitedText(limit)}: given up by thresher`;
const waitedPattern = /queueTimeLimit of (\d+) s is over: given up by thresher/;

/** The reason with which thresher itself removed a job to give it up. Undefined for a job that was removed for any other reason. */
export function givenUpBecause({ RemoveReason = '' }: JobAd): string | undefined {
  const held = [givenUpReason, endedReason].find((reason) => RemoveReason.includes(reason));
  return held ?? waitedPattern.exec(RemoveReason)?.[0];
}

interface Fate {
  readonly status: WorkerStatus;
  readonly error: WorkerError;
}

/** The removal may take long, and a restart may come in between: the job itself says why its worker was given up. */
function fateOfRemoved(ad: JobAd): Fate {
  const because = givenUpBecause(ad);
  const [, limit] = waitedPattern.exec(because ?? '') ?? [];
  if (limit !== undefined)
    return { status: 'failed', error: { code: 'htcondor-queue-time', message: waitedText(limit) } };
  const rule = because === undefined ? undefined : holdRuleOf(lastHoldOf(ad));
  if (rule === undefined) return { status: 'cancelled', error: removalOf(ad) };
  return { status: rule.status, error: { code: rule.code, message: heldText(lastHoldOf(ad)) } };
}

type Hold = Pick<JobAd, 'HoldReason' | 'HoldReasonCode' | 'HoldReasonSubCode'>;

/** The hold before the removal; one that came while it was removed says nothing of why. */
function lastHoldOf({ LastHoldReason, LastHoldReasonCode, LastHoldReasonSubCode }: JobAd): Hold {
  return {
    ...(LastHoldReason !== undefined && { HoldReason: LastHoldReason }),
    ...(LastHoldReasonCode !== undefined && { HoldReasonCode: LastHoldReasonCode }),
    ...(LastHoldReasonSubCode !== undefined && { HoldReasonSubCode: LastHoldReasonSubCode }),
  };
}

/** Why a removed job is still in the queue, and since when (by default, since its last removal or hold). For operators. */
export function whyRemoving(
  { JobStatus, EnteredCurrentStatus, HoldReason = 'no reason' }: JobAd,
  at: number | undefined = msOf(EnteredCurrentStatus),
): string {
  const since = at === undefined ? '' : ` since ${isoSeconds(at)}`;
  return JobStatus === 5
    ? `removed, then held${since} (${beginningFromOutside(HoldReason.trim(), 200)}): its remote part may run; condor_release has HTCondor remove it further`
    : `removed${since}, and still in the queue: HTCondor has not ended its machine or its remote part yet`;
}

/** A job that has been idle for an hour shows since when: most jobs start before, and need no further change of their worker. */
const longWait = 3_600_000;

/** Since when a job waits in the queue, and why no machine takes it. For operators. */
function whyWaiting({ EnteredCurrentStatus }: JobAd, now: number, tooLarge?: string): string | undefined {
  const since = msOf(EnteredCurrentStatus);
  const isLong = since !== undefined && now - since >= longWait;
  const parts = [
    ...(isLong ? [`idle since ${isoSeconds(since)}`] : []),
    ...(tooLarge === undefined ? [] : [tooLarge]),
  ];
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** Source: Harvester's monitor_common. */
const wrapperTexts: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  atlas_pilot_wrapper: {
    1: 'wrapper fault',
    2: 'wrapper killed stuck pilot',
    64: 'wrapper got cvmfs repos issue',
    80: 'pilot proxy invalid or with insufficient timeleft',
  },
};

function failureOf(ad: JobAd, { payloadType = '' }: StateOptions): WorkerError {
  const { ExitSignal, ExitCode } = ad;
  if (bySignal(ad)) {
    const message = ExitSignal
      ? `ended by signal ${ExitSignal}${signalName(ExitSignal)}`
      : 'ended by a signal';
    return { code: 'exit-status', message };
  }
  if (ExitCode === undefined) {
    return {
      code: 'exit-status-lost',
      message: 'HTCondor says that it ended, and not with which exit status',
    };
  }
  const text = Object.hasOwn(wrapperTexts, payloadType) ? wrapperTexts[payloadType]?.[ExitCode] : undefined;
  const message = `ended with exit status ${ExitCode}${text === undefined ? '' : `: ${text}`}`;
  return { code: 'exit-status', message };
}

function removalOf({ RemoveReason, LastHoldReason, HoldReason }: JobAd): WorkerError {
  const hold = LastHoldReason ?? HoldReason;
  const parts = [
    `removed: ${RemoveReason === undefined ? 'HTCondor gives no reason' : shortened(RemoveReason)}`,
    ...(hold === undefined ? [] : [`it was held before: ${shortened(hold)}`]),
  ];
  return { code: 'htcondor-removed', message: parts.join('; ') };
}

/** As a shell gives it: 128+n for signal n. */
function exitCodeOf(ad: JobAd): number | undefined {
  const { ExitSignal, ExitCode } = ad;
  if (bySignal(ad)) return ExitSignal ? 128 + ExitSignal : undefined;
  return ExitCode;
}

function signalName(number: number): string {
  const [name] = Object.entries(constants.signals).find(([, value]) => value === number) ?? [];
  return name === undefined ? '' : ` (${name})`;
}

/** "node1" of "slot1_2@node1". */
function nodeOf({ RemoteHost, LastRemoteHost }: JobAd): string | undefined {
  const host = (RemoteHost ?? LastRemoteHost)?.replace(/^[^@]*@/, '');
  return host === '' ? undefined : host;
}

/** HTCondor writes 0 for what has not been yet. */
function msOf(seconds: number | undefined): number | undefined {
  return seconds !== undefined && seconds > 0 ? seconds * 1000 : undefined;
}

/** Characters of a reason in a sentence that has more to say behind it. */
const longestReason = 400;

/** What is short is masked with the sentence. */
function shortened(reason: string): string {
  const text = reason.trim();
  return text.length > longestReason ? beginningFromOutside(text, longestReason) : text;
}

/** Characters of a text of a job that its worker shows. */
export const longestShown = 1000;

/** As much of a text as tells what is shown of it. A copy: V8 keeps a part of a text together with the whole, which may be megabytes. */
export function keptText(text: string): string {
  return Buffer.from(headOf(text, longestShown)).toString();
}

const kept = [
  ...(['HoldReason', 'HoldReasonCode', 'HoldReasonSubCode', 'RemoveReason'] as const),
  ...(['ExitSignal', 'NumJobStarts', 'GridJobId', 'GridJobStatus'] as const),
];

function detailOf(ad: JobAd): Record<string, unknown> {
  const detail: Record<string, unknown> = {};
  for (const key of kept) {
    const value = ad[key];
    if (value === undefined) continue;
    const isLong = typeof value === 'string' && value.length > longestShown;
    detail[key] = isLong ? new LongText(value, longestShown) : value;
  }
  return detail;
}
