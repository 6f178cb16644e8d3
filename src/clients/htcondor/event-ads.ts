import type { EndOfJob, EventAd, EventHead, JobEvent } from './event-types.ts';

/**
 * The meanings of an event's attributes, by its number. Source: `condor_utils/condor_event.cpp` of HTCondor 23
 * (`toClassAd` of each event), and "Job Event Log Codes" of its manual.
 */
const kinds: Readonly<Record<number, (ad: EventAd, head: EventHead) => JobEvent>> = {
  0: (ad, head) => ({
    ...head,
    kind: 'submit',
    ...text(ad, 'host', 'SubmitHost'),
    ...text(ad, 'notes', 'LogNotes'),
  }),
  1: (ad, head) => ({
    ...head,
    kind: 'execute',
    ...text(ad, 'host', 'ExecuteHost'),
    ...text(ad, 'slot', 'SlotName'),
  }),
  2: (_, head) => ({ ...head, kind: 'executable-error' }),
  4: (ad, head) => {
    const requeued = ad['TerminatedAndRequeued'] === true;
    const end = requeued ? endOf(ad) : undefined;
    return { ...head, kind: 'evicted', requeued, ...text(ad, 'reason', 'Reason'), ...(end && { end }) };
  },
  5: (ad, head) => ({ ...head, kind: 'terminated', end: endOf(ad) }),
  6: (ad, head) => ({
    ...head,
    kind: 'image-size',
    size: integer(ad['Size']),
    ...number(ad, 'memory', 'MemoryUsage'),
    ...number(ad, 'resident', 'ResidentSetSize'),
  }),
  7: (ad, head) => ({ ...head, kind: 'shadow-exception', ...text(ad, 'message', 'Message') }),
  9: (ad, head) => ({ ...head, kind: 'aborted', ...text(ad, 'reason', 'Reason') }),
  10: (ad, head) => ({ ...head, kind: 'suspended', ...number(ad, 'processes', 'NumberOfPIDs') }),
  11: (_, head) => ({ ...head, kind: 'unsuspended' }),
  12: (ad, head) => ({
    ...head,
    kind: 'held',
    ...text(ad, 'reason', 'HoldReason'),
    ...number(ad, 'code', 'HoldReasonCode'),
    ...number(ad, 'subcode', 'HoldReasonSubCode'),
  }),
  13: (ad, head) => ({ ...head, kind: 'released', ...text(ad, 'reason', 'Reason') }),
  22: (ad, head) => ({
    ...head,
    kind: 'disconnected',
    ...text(ad, 'reason', 'DisconnectReason'),
    ...text(ad, 'slot', 'StartdName'),
  }),
  23: (ad, head) => ({ ...head, kind: 'reconnected', ...text(ad, 'slot', 'StartdName') }),
  24: (ad, head) => ({
    ...head,
    kind: 'reconnect-failed',
    ...text(ad, 'reason', 'Reason'),
    ...text(ad, 'slot', 'StartdName'),
  }),
  27: (ad, head) => ({
    ...head,
    kind: 'grid-submit',
    ...text(ad, 'resource', 'GridResource'),
    ...text(ad, 'gridJob', 'GridJobId'),
  }),
  40: (ad, head) => ({ ...head, kind: 'file-transfer', ...number(ad, 'phase', 'Type') }),
};

/** The event of an ad, undefined if it is none. Events without a job (the head of a global log) are of job 0.0. */
export function eventOf(ad: EventAd): JobEvent | undefined {
  const type = integer(ad['EventTypeNumber']);
  if (type === undefined) return undefined;
  const time = parseEventTime(ad['EventTime']);
  const head: EventHead = { cluster: integer(ad['Cluster']) ?? 0, proc: integer(ad['Proc']) ?? 0, time };
  return kinds[type]?.(ad, head) ?? { ...head, kind: 'other', number: type };
}

/** A job that was ended by a signal has a return value, too, in some versions: the signal counts. */
function endOf(ad: EventAd): EndOfJob | undefined {
  const signal = integer(ad['TerminatedBySignal']);
  const exitCode = integer(ad['ReturnValue']);
  if (ad['TerminatedNormally'] === false) return signal === undefined ? undefined : { signal };
  if (signal !== undefined && exitCode === undefined) return { signal };
  return exitCode === undefined ? undefined : { exitCode };
}

const integer = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? Math.trunc(value) : undefined;

function text<Key extends string>(ad: EventAd, key: Key, attribute: string): Partial<Record<Key, string>> {
  const value = ad[attribute];
  return typeof value === 'string' && value !== '' ? ({ [key]: value } as Record<Key, string>) : {};
}

function number<Key extends string>(ad: EventAd, key: Key, attribute: string): Partial<Record<Key, number>> {
  const value = integer(ad[attribute]);
  return value === undefined ? {} : ({ [key]: value } as Record<Key, number>);
}

/** "2026-11-21T19:40:39.134Z"; without the Z it is the time of this machine. ms UTC. */
export function parseEventTime(value: unknown): number | undefined {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d/.test(value)) return undefined;
  const time = Date.parse(value.replace(' ', 'T'));
  return Number.isNaN(time) ? undefined : time;
}
