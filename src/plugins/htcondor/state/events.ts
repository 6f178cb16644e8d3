import type { JobEvent } from '../../../clients/htcondor/event-types.ts';
import { keptText } from './job-state.ts';
import type { JobAd } from './types.ts';

type Kind = JobEvent['kind'];
type EventOf<K extends Kind> = Extract<JobEvent, { readonly kind: K }>;
/** @param at s */
type Apply<K extends Kind> = (ad: JobAd, event: EventOf<K>, at: number | undefined) => JobAd;

interface EventRow<K extends Kind> {
  /** ULogEventNumber, for the table in docs/. */
  readonly number: number;
  /** For that table, too. */
  readonly seen: string;
  readonly apply: Apply<K>;
}

const waiting = (ad: JobAd, _: JobEvent, at: number | undefined): JobAd => entered(without(ad), 1, at);

/**
 * Each row applies an event of a job log to the ad that the events before it made: the same table then judges both ways
 * of looking. Events that are not here change nothing. Source: ULogEventNumber, HTCondor 25.
 */
export const eventRows: { readonly [K in Kind]?: EventRow<K> } = {
  submit: {
    number: 0,
    seen: 'submitted',
    apply: (ad, _, at) => (ad.JobStatus === undefined ? entered(ad, 1, at) : ad),
  },
  execute: {
    number: 1,
    seen: 'executing: `JobStatus` 2',
    apply: (ad, { host, slot }, at) => ({
      ...entered(without(ad), 2, at),
      ...(at !== undefined && { JobStartDate: ad.JobStartDate ?? at, JobCurrentStartDate: at }),
      NumJobStarts: (ad.NumJobStarts ?? 0) + (isSameStart(ad, at) ? 0 : 1),
      // An address says less than a name, but there is not always one.
      ...((slot ?? host) !== undefined && { RemoteHost: keptText(slot ?? hostOf(host ?? '')) }),
    }),
  },
  evicted: {
    number: 4,
    seen: 'evicted: `JobStatus` 1',
    apply: (ad, event, at) => (!event.requeued && ad.JobStatus === 5 ? ad : waiting(ad, event, at)),
  },
  terminated: {
    number: 5,
    seen: 'terminated: `JobStatus` 4 with exit status or signal',
    apply: (ad, { end }, at) => ({
      ...entered(withoutEnd(ad), 4, at),
      ...(at !== undefined && { CompletionDate: at }),
      ...(end !== undefined && { ExitBySignal: end.signal !== undefined }),
      ...(end?.exitCode !== undefined && { ExitCode: end.exitCode }),
      ...(end?.signal !== undefined && { ExitSignal: end.signal }),
    }),
  },
  'shadow-exception': { number: 7, seen: 'the shadow broke: `JobStatus` 1', apply: waiting },
  aborted: {
    number: 9,
    seen: 'aborted: `JobStatus` 3',
    apply: (ad, { reason }, at) => ({
      ...entered(ad, 3, at),
      ...(reason !== undefined && { RemoveReason: keptText(reason) }),
      ...lastHold(ad),
    }),
  },
  suspended: { number: 10, seen: 'suspended: `JobStatus` 7', apply: (ad, _, at) => entered(ad, 7, at) },
  unsuspended: { number: 11, seen: 'unsuspended: `JobStatus` 2', apply: (ad, _, at) => entered(ad, 2, at) },
  held: {
    number: 12,
    seen: 'held: `JobStatus` 5 with its reason',
    apply: (ad, { reason, code, subcode }, at) => ({
      ...entered(ad, 5, at),
      ...(reason !== undefined && { HoldReason: keptText(reason) }),
      ...(code !== undefined && { HoldReasonCode: code }),
      ...(subcode !== undefined && { HoldReasonSubCode: subcode }),
    }),
  },
  released: { number: 13, seen: 'released: `JobStatus` 1', apply: waiting },
  'reconnect-failed': { number: 24, seen: 'could not be connected again: `JobStatus` 1', apply: waiting },
};

/** Whether the ad is that of a job that was completed or removed. */
export const hasEnded = ({ JobStatus }: JobAd): boolean => JobStatus === 3 || JobStatus === 4;

/**
 * Ended states are not left again, so that a log that is read twice, or out of order, changes nothing; but for a start that is later than the end:
 * a job whose shadow or schedd broke behind that word is run again. Pure.
 */
export function applyEvent(ad: JobAd, event: JobEvent): JobAd {
  const isAgain = event.kind === 'execute' && isBehindEnd(ad, event);
  if (hasEnded(ad) && !isAgain) return ad;
  const apply = eventRows[event.kind]?.apply as Apply<Kind> | undefined;
  return apply?.(isAgain ? withoutEnd(ad) : ad, event, secondsOf(event)) ?? ad;
}

/** What comes in the same second as the end tells of something before it; but a shadow breaks, or cannot be connected again, once. */
const breaks: ReadonlySet<Kind> = new Set(['shadow-exception', 'reconnect-failed']);

/** Whether the log tells of a job after it has told of its end, and so makes the end doubtful. */
export function isBehindEnd(ad: JobAd, event: JobEvent): boolean {
  const behind = (secondsOf(event) ?? -Infinity) - (ad.EnteredCurrentStatus ?? Infinity);
  return hasEnded(ad) && event.kind in eventRows && behind >= (breaks.has(event.kind) ? 0 : 1);
}

function secondsOf({ time }: JobEvent): number | undefined {
  return time === undefined ? undefined : Math.floor(time / 1000);
}

function entered(ad: JobAd, JobStatus: number, at: number | undefined): JobAd {
  return {
    ...ad,
    JobStatus,
    ...(ad.JobStatus !== undefined && { LastJobStatus: ad.JobStatus }),
    ...(at !== undefined && { EnteredCurrentStatus: at }),
  };
}

/** A hold that is over is the last one. */
function without(ad: JobAd): JobAd {
  const rest = Object.fromEntries(Object.entries(ad).filter(([key]) => !key.startsWith('HoldReason')));
  return { ...rest, ...lastHold(ad) };
}

function lastHold({ HoldReason, HoldReasonCode, HoldReasonSubCode }: JobAd): JobAd {
  if (HoldReason === undefined) return {};
  return {
    LastHoldReason: HoldReason,
    ...(HoldReasonCode !== undefined && { LastHoldReasonCode: HoldReasonCode }),
    ...(HoldReasonSubCode !== undefined && { LastHoldReasonSubCode: HoldReasonSubCode }),
  };
}

/** Drops the end that an earlier run of the same job left. */
function withoutEnd(ad: JobAd): JobAd {
  const old = new Set(['ExitCode', 'ExitSignal', 'ExitBySignal']);
  return Object.fromEntries(Object.entries(ad).filter(([key]) => !old.has(key)));
}

/** The schedd told of it before the log did. */
function isSameStart({ JobCurrentStartDate: known = 0 }: JobAd, at: number | undefined): boolean {
  return at !== undefined && at <= known;
}

/** "192.0.2.1" of "<192.0.2.1:9618?addrs=...>". */
function hostOf(address: string): string {
  return address.replace(/^<?([^:?>]+).*/s, '$1');
}
