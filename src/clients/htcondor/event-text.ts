import type { EventAd } from './event-types.ts';

/** "005 (123.000.000) 2026-11-21 19:40:42 Job terminated."; old versions write "11/21 19:40:42". */
const classicHead =
  /^(\d{3}) \((-?\d+)\.(-?\d+)\.(-?\d+)\) (\d{4}-\d\d-\d\d|\d\d\/\d\d(?:\/\d\d)?)[ T](\d\d:\d\d:\d\d(?:\.\d+)?Z?)(?: (.*))?$/;

/** An event may be this much later than now, as clocks differ; a later one is from an earlier year. ms */
const day = 86_400_000;

/**
 * An event of the classic text format, as its ClassAd would be.
 * @param record without the line of three dots
 * @param now ms UTC: which year a date without one is in
 * @returns undefined if it is none
 */
export function parseClassic(record: string, now: number): EventAd | undefined {
  const [first = '', ...lines] = record.split('\n').map((line) => line.replace(/\r$/, ''));
  const [, type, cluster, proc, subproc, date = '', time = '', title = ''] = classicHead.exec(first) ?? [];
  if (type === undefined) return undefined;
  const number = Number(type);
  return {
    EventTypeNumber: number,
    Cluster: Number(cluster),
    Proc: Number(proc),
    Subproc: Number(subproc),
    EventTime: fullTime(date, time, now),
    ...bodies[number]?.(title, lines),
  };
}

function fullTime(date: string, time: string, now: number): string {
  const [, month, dayOfMonth, year] = /^(\d\d)\/(\d\d)(?:\/(\d\d))?$/.exec(date) ?? [];
  if (month === undefined || dayOfMonth === undefined) return `${date}T${time}`;
  if (year !== undefined) return `20${year}-${month}-${dayOfMonth}T${time}`;
  const inYear = (full: number) => `${full}-${month}-${dayOfMonth}T${time}`;
  const thisYear = new Date(now).getFullYear();
  return Date.parse(inYear(thisYear)) > now + day ? inYear(thisYear - 1) : inYear(thisYear);
}

type Body = (title: string, lines: readonly string[]) => EventAd;

const first = (lines: readonly string[]) => lines[0]?.trim();
/** An indented line that is a sentence: figures and counters have forms of their own. */
const sentence = (lines: readonly string[]) =>
  lines
    .map((line) => /^(?:\t| {4})(?![\s(\d])(.+)$/.exec(line)?.[1]?.trim())
    .find((line) => line !== undefined && !/^(Usr |Partitionable Resources|\w+ +(\(\w+\) *)?:)/.test(line));
const some = (name: string, value: string | undefined): EventAd =>
  value === undefined || value === '' ? {} : { [name]: value };
const count = (name: string, value: string | undefined): EventAd =>
  value === undefined ? {} : { [name]: Number(value) };

function ending(lines: readonly string[]): EventAd {
  const all = lines.join('\n');
  const [, value] = /\(1\) Normal termination \(return value (-?\d+)\)/.exec(all) ?? [];
  if (value !== undefined) return { TerminatedNormally: true, ReturnValue: Number(value) };
  const [, signal] = /\(0\) Abnormal termination \(signal (\d+)\)/.exec(all) ?? [];
  return signal === undefined ? {} : { TerminatedNormally: false, TerminatedBySignal: Number(signal) };
}

/** The text behind the head, by the number of the event. Source: `formatBody` in `condor_utils/condor_event.cpp`. */
const bodies: Readonly<Record<number, Body>> = {
  0: (title, lines) => ({
    ...some('SubmitHost', /from host: (.*)/.exec(title)?.[1]),
    ...some('LogNotes', first(lines)),
  }),
  1: (title, lines) => ({
    ...some('ExecuteHost', /on host: (.*)/.exec(title)?.[1]),
    ...some('SlotName', lines.map((line) => /^\tSlotName: (.*)/.exec(line)?.[1]).find(Boolean)),
  }),
  4: (_, lines) => {
    const requeued = lines.some((line) => /^\t\(\d\) Job terminated and was requeued/.test(line));
    return {
      TerminatedAndRequeued: requeued,
      ...some('Reason', sentence(lines)?.replace(/^Reason: /, '')),
      ...ending(lines),
    };
  },
  5: (_, lines) => ending(lines),
  6: (title, lines) => {
    const figure = (what: RegExp) =>
      lines.map((line) => (what.test(line) ? /^\t(\d+) +-/.exec(line)?.[1] : undefined)).find(Boolean);
    return {
      ...count('Size', /updated: (\d+)/.exec(title)?.[1]),
      ...count('MemoryUsage', figure(/MemoryUsage of job/)),
      ...count('ResidentSetSize', figure(/ResidentSetSize of job/)),
    };
  },
  7: (_, lines) => some('Message', first(lines)),
  9: (_, lines) => some('Reason', first(lines)),
  10: (_, lines) => count('NumberOfPIDs', /suspended: (\d+)/.exec(first(lines) ?? '')?.[1]),
  12: (_, lines) => {
    const [, code, subcode] = /^\tCode (\d+) Subcode (-?\d+)/m.exec(lines.join('\n')) ?? [];
    const reason = first(lines);
    return {
      ...some('HoldReason', reason?.startsWith('Code ') ? undefined : reason),
      ...count('HoldReasonCode', code),
      ...count('HoldReasonSubCode', subcode),
    };
  },
  13: (_, lines) => some('Reason', first(lines)),
  22: (_, lines) => ({
    ...some('DisconnectReason', first(lines)),
    ...some('StartdName', /Trying to reconnect to (\S+)/.exec(lines.join('\n'))?.[1]),
  }),
  23: (title) => some('StartdName', /reconnected to (\S+)/.exec(title)?.[1]),
  24: (_, lines) => ({
    ...some('Reason', first(lines)),
    ...some('StartdName', /Can not reconnect to ([^\s,]+)/.exec(lines.join('\n'))?.[1]),
  }),
  27: (_, lines) => ({
    ...some('GridResource', /^ *GridResource: (.*)$/m.exec(lines.join('\n'))?.[1]?.trim()),
    ...some('GridJobId', /^ *GridJobId: (.*)$/m.exec(lines.join('\n'))?.[1]?.trim()),
  }),
  40: (title) => count('Type', transferPhases.find(([title_]) => title.startsWith(title_))?.[1]),
};

/** The numbers of `FileTransferEvent::FileTransferEventType`. */
const transferPhases: readonly (readonly [title: string, phase: string])[] = [
  ['Entered queue to transfer input files', '1'],
  ['Started transferring input files', '2'],
  ['Finished transferring input files', '3'],
  ['Entered queue to transfer output files', '4'],
  ['Started transferring output files', '5'],
  ['Finished transferring output files', '6'],
];
