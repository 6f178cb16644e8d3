import { type Ad } from '../../clients/htcondor/json-objects.ts';
import type { JobId } from '../../clients/htcondor/classad.ts';
import { markedId, type MarkedWorker, markedWorker } from '../../worker/marked.ts';
import type { Worker } from '../../worker/worker.ts';
import { gridEndpoint } from './place/grid-endpoint.ts';
import { keptText, longestShown } from './state/job-state.ts';
import type { JobAd } from './state/types.ts';

/** Attributes that say whose a job is. `harvesterWorkerID` is Harvester's own, a string there, too. */
export const marks = {
  factory: 'thresherFactory',
  worker: 'harvesterWorkerID',
  queue: 'thresherQueue',
  config: 'thresherConfig',
  ce: 'thresherCe',
  identity: 'thresherIdentity',
} as const;

/** JSON, in which no character is left that a submit description or a ClassAd reads as anything else. */
export function identityText(worker: Worker): string {
  const { workerId, name, queue, computingSite, origin, requirements, attempt, accessPoint } = worker;
  const { groupId, payloadId } = worker;
  const who = { workerId, name, queue, computingSite, origin, requirements, attempt };
  const text = JSON.stringify({ ...who, accessPoint, groupId, payloadId });
  // JSON has a way to write each of them, so that neither side has to know of the other's quoting.
  return text.replaceAll(
    /[ $\u007f-\uffff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A job of ours, as a query shows it. */
export interface Job {
  readonly id: JobId;
  /** Undefined where its mark is no id: a copy made by hand. */
  readonly workerId: number | undefined;
  readonly queue: string | undefined;
  /** The user whose job it is, by the word of the schedd. Undefined where it was not asked for. */
  readonly owner: string | undefined;
  readonly configId: number | undefined;
  /** Endpoint of its CE: by its mark, or else by the template's own `grid_resource`. */
  readonly ce: string | undefined;
  /** s */
  readonly queuedAt: number | undefined;
  readonly identity: MarkedWorker | undefined;
  readonly ad: JobAd;
  /** It is in the queue, and not in the history alone. */
  readonly queued: boolean;
  /** It is of a user who is not thresher, and is kept without what is shown of jobs of ours. */
  readonly isStranger?: true;
}

/** Columns of 64 bits, and dates of JavaScript, take all of these. */
const highestSeconds = 8.64e12;

/** Whether a number of an ad is one that its attribute can have: no expression gives another one, but an edit may. */
const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && Math.abs(value) <= highestSeconds;

const types: Readonly<Record<keyof JobAd, 'number' | 'string' | 'boolean'>> = {
  ClusterId: 'number',
  ProcId: 'number',
  JobStatus: 'number',
  LastJobStatus: 'number',
  EnteredCurrentStatus: 'number',
  JobStartDate: 'number',
  JobCurrentStartDate: 'number',
  NumJobStarts: 'number',
  CompletionDate: 'number',
  ExitCode: 'number',
  ExitBySignal: 'boolean',
  ExitSignal: 'number',
  HoldReason: 'string',
  HoldReasonCode: 'number',
  HoldReasonSubCode: 'number',
  LastHoldReason: 'string',
  LastHoldReasonCode: 'number',
  LastHoldReasonSubCode: 'number',
  StageInFinish: 'number',
  RemoveReason: 'string',
  RemoteHost: 'string',
  LastRemoteHost: 'string',
  GridJobId: 'string',
  GridJobStatus: 'string',
};

const typed = Object.entries(types);

/**
 * @returns undefined for what is no job at all. What has another type than it should is left out: an expression is no number, and no half is. Of
 * a reason its beginning is kept: users can make it as long as they like.
 */
export function jobOf(raw: Ad, queued: boolean): Job | undefined {
  const { ClusterId: cluster, ProcId: proc } = raw;
  if (!isNumber(cluster) || !isNumber(proc)) return undefined;
  const ad: Record<string, unknown> = {};
  for (const [key, type] of typed) {
    const value = raw[key];
    if (typeof value === 'string' && value.length > longestShown) {
      if (type === 'string') ad[key] = keptText(value);
    } else if (type === 'number' ? isNumber(value) : typeof value === type) ad[key] = value;
  }
  const workerId = markedId(raw[marks.worker]);
  const { queue, config, ce, identity } = marks;
  return {
    id: { cluster, proc },
    workerId,
    queue: textOf(raw[queue]),
    owner: textOf(raw['Owner']),
    configId: numberOf(raw[config]),
    // Jobs of earlier versions have an empty mark where the queue names `ceHostname` alone.
    ce: textOf(raw[ce]) || gridEndpoint(textOf(raw['GridResource'])),
    queuedAt: numberOf(raw['QDate']),
    identity: identityOf(raw[identity], workerId),
    ad,
    queued,
  };
}

/** As much of a job of another user as says that there is one: he may have very many, with very long texts. */
export function strangerOf({ id, workerId, owner, queued, ad: { JobStatus } }: Job): Job {
  const nothing = { queue: undefined, configId: undefined, ce: undefined, queuedAt: undefined };
  const ad = JobStatus === undefined ? {} : { JobStatus };
  return { ...nothing, id, workerId, owner, identity: undefined, ad, queued, isStranger: true };
}

/** No mark, and no name of a user, is longer than what is shown. */
const textOf = (value: unknown) =>
  typeof value === 'string' && value.length <= longestShown ? value : undefined;
const numberOf = (value: unknown) => (isNumber(value) ? value : undefined);

/** Undefined where it does not fit the job's own mark: an edited copy must not be taken for the worker. */
function identityOf(text: unknown, workerId: number | undefined): MarkedWorker | undefined {
  const read = markedWorker(text);
  return read?.workerId === workerId ? read : undefined;
}
