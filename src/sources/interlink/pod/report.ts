/**
 * The file that the runner keeps in the scratch directory of the job, replaced in one step at each change. HTCondor brings it back
 * with the files `NAME.log` and `NAME.log.times` of each container.
 *
 * A line of `NAME.log.times` is "BYTES SECONDS": the log had so many bytes at this time, in seconds since 1970. Bytes after those of
 * the line before were written up to then.
 */
import type { Static } from 'typebox';
import Type from '../../../util/type.ts';
import { checkFirst } from '../../../util/schema.ts';
import { beginningOfOwn } from '../../../util/beginning.ts';
import { bounds } from '../bounds.ts';
import { isContainerName } from './names.ts';

export const reportFile = 'pod-status.json';
/** Volumes, logins and images of the Pod: a job that writes into the directory of its Pod has them there while it runs. */
export const privateDirectory = '.pod';
/** Reason of a container that ended because the job was told to end: the job may start again on another machine. */
export const toldToEnd = 'Terminated';

const time = Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$' });

const ContainerReportSchema = Type.Object({
  init: Type.Boolean(),
  state: Type.Union([Type.Literal('waiting'), Type.Literal('running'), Type.Literal('terminated')]),
  reason: Type.Optional(Type.String({ maxLength: 200 })),
  message: Type.Optional(Type.String({ maxLength: 4096 })),
  startedAt: Type.Optional(time),
  finishedAt: Type.Optional(time),
  exitCode: Type.Optional(Type.Integer({ minimum: 0, maximum: 255 })),
  signal: Type.Optional(Type.Integer({ minimum: 1, maximum: 127 })),
  ready: Type.Boolean(),
  restarts: Type.Integer({ minimum: 0 }),
});

const PodReportSchema = Type.Object({
  version: Type.Literal(1),
  containers: Type.Record(Type.String(), ContainerReportSchema),
});

export type ContainerReport = Static<typeof ContainerReportSchema>;
export type PodReport = Static<typeof PodReportSchema>;

/** @returns the report, or one sentence why the text is none */
export function readReport(text: string): PodReport | string {
  if (Buffer.byteLength(text) > bounds.reportBytes)
    return `the report has more than ${bounds.reportBytes} bytes`;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'the report is no JSON';
  }
  const checked = checkFirst(PodReportSchema, json);
  if (!checked.ok) {
    const [first] = checked.problems;
    return `${first?.pointer.slice(0, 200) ?? ''}: ${first?.message ?? ''}`;
  }
  const wrong = Object.entries(checked.value.containers).find(
    ([name, { state, exitCode }]) =>
      !isContainerName(name) || (state === 'terminated' && exitCode === undefined),
  );
  if (wrong !== undefined)
    return 'a container of the report has a wrong name, or has ended without an exit code';
  const times = Object.values(checked.value.containers).flatMap(({ startedAt, finishedAt }) => [
    startedAt,
    finishedAt,
  ]);
  // interLink could read nothing of the Pod's status then.
  if (times.some((text) => text !== undefined && !isTime(text))) return 'a time of the report is none';
  return withShortMessages(checked.value);
}

/** What a job wrote in the place of the runner's report must not be shown with each question; how its containers ended counts all the same. */
function withShortMessages(report: PodReport): PodReport {
  const all = Object.entries(report.containers);
  const characters = all.reduce((sum, [, { message = '' }]) => sum + message.length, 0);
  if (characters <= bounds.podMessages) return report;
  const most = Math.floor(bounds.podMessages / all.length);
  const short = ({ message, ...others }: ContainerReport): ContainerReport =>
    message === undefined ? others : { ...others, message: beginningOfOwn(message, most) };
  return { ...report, containers: Object.fromEntries(all.map(([name, one]) => [name, short(one)])) };
}

/** Whether the digits are those of a day and an hour that there are. */
function isTime(text: string): boolean {
  const ms = Date.parse(text);
  return Number.isFinite(ms) && new Date(ms).toISOString() === text.replace('Z', '.000Z');
}

/** Time of each byte of a log, by `NAME.log.times`. Lines that are none are left out. */
export function readLogTimes(text: string): readonly { readonly bytes: number; readonly seconds: number }[] {
  const times: { bytes: number; seconds: number }[] = [];
  // A job may leave a million lines: an expression for each would take seconds.
  for (const line of text.split('\n')) {
    const blank = line.indexOf(' ');
    const bytes = digitsOf(line, 0, blank, 15);
    const seconds = digitsOf(line, blank + 1, line.length, 12);
    if (bytes !== undefined && seconds !== undefined) times.push({ bytes, seconds });
  }
  return times;
}

/** A number of so many digits at most; undefined: there is something else. */
function digitsOf(text: string, from: number, to: number, most: number): number | undefined {
  if (to <= from || to - from > most) return undefined;
  let number = 0;
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    number = number * 10 + digit;
  }
  return number;
}
