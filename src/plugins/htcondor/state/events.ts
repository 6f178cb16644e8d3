import type { JobAd, JobEvent } from './types.ts';

interface EventRow {
  readonly number: number;
  /** For the table in docs/. */
  readonly seen: string;
  readonly apply: (ad: JobAd, event: JobEvent) => JobAd;
}

/** Ended states are not left again: a log that is read twice, or out of order, changes nothing. */
const waiting = (ad: JobAd, { at }: JobEvent): JobAd => entered(without(ad), 1, at);

/**
 * What an event of the job log makes of the ad that the events before it made: the same table then judges both ways of
 * looking. Events that are not here change nothing. Source: ULogEventNumber, HTCondor 25.
 */
export const eventRows: readonly EventRow[] = [
  {
    number: 0,
    seen: 'submitted',
    apply: (ad, { at }) => (ad.JobStatus === undefined ? entered(ad, 1, at) : ad),
  },
  {
    number: 1,
    seen: 'executing: `JobStatus` 2',
    apply: (ad, { at, ExecuteHost, SlotName }) => ({
      ...entered(without(ad), 2, at),
      ...(at !== undefined && { JobStartDate: ad.JobStartDate ?? at, JobCurrentStartDate: at }),
      NumJobStarts: (ad.NumJobStarts ?? 0) + 1,
      // An address says less than a name, but there is not always one.
      ...((SlotName ?? ExecuteHost) !== undefined && { RemoteHost: SlotName ?? hostOf(ExecuteHost ?? '') }),
    }),
  },
  {
    number: 4,
    seen: 'evicted: `JobStatus` 1',
    apply: (ad, event) =>
      event.TerminatedAndRequeued === undefined && ad.JobStatus === 5 ? ad : waiting(ad, event),
  },
  {
    number: 5,
    seen: 'terminated: `JobStatus` 4 with exit status or signal',
    apply: (ad, { at, TerminatedNormally, ReturnValue, TerminatedBySignal }) => ({
      ...entered(ad, 4, at),
      ...(at !== undefined && { CompletionDate: at }),
      ...(TerminatedNormally !== undefined && { ExitBySignal: !TerminatedNormally }),
      ...(ReturnValue !== undefined && { ExitCode: ReturnValue }),
      ...(TerminatedBySignal !== undefined && { ExitSignal: TerminatedBySignal }),
    }),
  },
  { number: 7, seen: 'the shadow broke: `JobStatus` 1', apply: waiting },
  {
    number: 9,
    seen: 'aborted: `JobStatus` 3',
    apply: (ad, { at, Reason }) => ({
      ...entered(ad, 3, at),
      ...(Reason !== undefined && { RemoveReason: Reason }),
      ...(ad.HoldReason !== undefined && { LastHoldReason: ad.HoldReason }),
    }),
  },
  { number: 10, seen: 'suspended: `JobStatus` 7', apply: (ad, { at }) => entered(ad, 7, at) },
  { number: 11, seen: 'unsuspended: `JobStatus` 2', apply: (ad, { at }) => entered(ad, 2, at) },
  {
    number: 12,
    seen: 'held: `JobStatus` 5 with its reason',
    apply: (ad, { at, HoldReason, HoldReasonCode, HoldReasonSubCode }) => ({
      ...entered(ad, 5, at),
      ...(HoldReason !== undefined && { HoldReason }),
      ...(HoldReasonCode !== undefined && { HoldReasonCode }),
      ...(HoldReasonSubCode !== undefined && { HoldReasonSubCode }),
    }),
  },
  { number: 13, seen: 'released: `JobStatus` 1', apply: waiting },
  { number: 24, seen: 'could not be connected again: `JobStatus` 1', apply: waiting },
];

const rows = new Map(eventRows.map((row) => [row.number, row]));

/** The ad after an event. Pure. */
export function applyEvent(ad: JobAd, event: JobEvent): JobAd {
  if (ad.JobStatus === 3 || ad.JobStatus === 4) return ad;
  return rows.get(event.EventTypeNumber)?.apply(ad, event) ?? ad;
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
  const { HoldReason } = ad;
  const rest = Object.fromEntries(Object.entries(ad).filter(([key]) => !key.startsWith('HoldReason')));
  return { ...rest, ...(HoldReason !== undefined && { LastHoldReason: HoldReason }) };
}

/** "192.0.2.1" of "<192.0.2.1:9618?addrs=...>". */
function hostOf(address: string): string {
  return address.replace(/^<?([^:?>]+).*$/, '$1');
}
