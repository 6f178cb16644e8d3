import { type Ad } from '../../clients/htcondor/json-objects.ts';
import type { JobId } from '../../clients/htcondor/classad.ts';
import type { Worker } from '../../worker/worker.ts';
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

/** What a worker's row is made of again: all of it but where it is and what HTCondor calls it. */
export type Identity = Omit<Worker, 'handle' | 'placement' | 'configId'>;

/** JSON, in which no character is left that a submit description or a ClassAd reads as anything else. */
export function identityText(worker: Worker): string {
  const { workerId, name, queue, computingSite, origin, requirements, attempt, accessPoint } = worker;
  const who = { workerId, name, queue, computingSite, origin, requirements, attempt };
  const text = JSON.stringify({ ...who, ...(accessPoint !== undefined && { accessPoint }) });
  // JSON has a way to write each of them, so that neither side has to know of the other's quoting.
  return text.replaceAll(
    /[ $\u007f-\uffff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A job of ours, as a query shows it. */
export interface Job {
  readonly id: JobId;
  /** Undefined where its mark is no id: somebody's copy. */
  readonly workerId: number | undefined;
  readonly queue: string | undefined;
  readonly configId: number | undefined;
  readonly ce: string | undefined;
  /** s */
  readonly queuedAt: number | undefined;
  readonly identity: Identity | undefined;
  readonly ad: JobAd;
  /** It is in the queue, and not in the history alone. */
  readonly queued: boolean;
}

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
  StageInFinish: 'number',
  RemoveReason: 'string',
  RemoteHost: 'string',
  LastRemoteHost: 'string',
  GridJobId: 'string',
  GridJobStatus: 'string',
};

const typed = Object.entries(types);

/** @returns undefined for what is no job at all. What has another type than it should is left out: an expression is no number. */
export function jobOf(raw: Ad, queued: boolean): Job | undefined {
  const { ClusterId: cluster, ProcId: proc } = raw;
  if (typeof cluster !== 'number' || typeof proc !== 'number') return undefined;
  const ad: Record<string, unknown> = {};
  for (const [key, type] of typed) {
    const value = raw[key];
    if (typeof value === type) ad[key] = value;
  }
  const workerId = workerIdOf(raw[marks.worker]);
  const { queue, config, ce, identity } = marks;
  return {
    id: { cluster, proc },
    workerId,
    queue: textOf(raw[queue]),
    configId: numberOf(raw[config]),
    ce: textOf(raw[ce]),
    queuedAt: numberOf(raw['QDate']),
    identity: identityOf(raw[identity], workerId),
    ad,
    queued,
  };
}

function workerIdOf(value: unknown): number | undefined {
  if (typeof value !== 'string' || !/^\d{1,15}$/.test(value)) return undefined;
  return Number(value) > 0 ? Number(value) : undefined;
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined);
const numberOf = (value: unknown) => (typeof value === 'number' ? value : undefined);

const texts = ['resourceType', 'jobType', 'pilotType', 'prodSourceLabel'];
const numbers = ['nCore', 'minRamCount', 'maxDiskCount', 'maxWalltime'];

/** Undefined where it does not fit the job's own mark: an edited copy must not be taken for the worker. */
function identityOf(text: unknown, workerId: number | undefined): Identity | undefined {
  if (typeof text !== 'string') return undefined;
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isIdentity(read) && read.workerId === workerId ? read : undefined;
}

function isIdentity(value: unknown): value is Identity {
  if (!isRecord(value)) return false;
  const { origin, requirements, accessPoint } = value;
  const all = (of: Record<string, unknown>, keys: readonly string[], type: string) =>
    keys.every((key) => typeof of[key] === type);
  return (
    all(value, ['workerId', 'attempt'], 'number') &&
    all(value, ['name', 'queue', 'computingSite'], 'string') &&
    ['string', 'undefined'].includes(typeof accessPoint) &&
    isRecord(origin) &&
    all(origin, ['kind', 'uid'], 'string') &&
    all(origin, ['index'], 'number') &&
    isRecord(requirements) &&
    all(requirements, texts, 'string') &&
    all(requirements, numbers, 'number')
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
