import { isStorable, whatIsWrongWithOrigin } from './origin.ts';
import type { Worker } from './worker.ts';

/** The identity of a worker, as its mark on the backend's object has it: from this its row is made again. */
export type MarkedWorker = Omit<Worker, 'handle' | 'placement' | 'configId'>;

/** The id in a mark. Undefined for what is none: objects are copied and edited by hand. */
export function markedId(text: unknown): number | undefined {
  if (typeof text !== 'string' || !/^\d{1,15}$/.test(text)) return undefined;
  return Number(text) > 0 ? Number(text) : undefined;
}

/** The worker in a mark, whatever else stands there. Undefined for what is none, or lacks something. */
export function markedWorker(text: unknown): (MarkedWorker & Readonly<Record<string, unknown>>) | undefined {
  if (typeof text !== 'string') return undefined;
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isMarked(read) ? read : undefined;
}

/** Attempts at one worker: a larger number is no count of them. */
export const mostAttempts = 10_000;
/** Characters of a text. */
const longest = 4096;

/** Bytes of a text that an index has, beside two others at most. PostgreSQL's have room for 2,704. */
const longestKey = 800;

const names = ['queue', 'computingSite'];
const optional = ['accessPoint', 'groupId'];
const texts = ['resourceType', 'jobType', 'pilotType', 'prodSourceLabel'];
const amounts = ['nCore', 'minRamCount', 'maxDiskCount', 'maxWalltime'];

/** Whoever can edit an object can write anything here, and one row that the database does not take would keep all others from theirs. */
function isMarked(value: unknown): value is MarkedWorker & Readonly<Record<string, unknown>> {
  if (!isRecord(value)) return false;
  const { origin, requirements } = value;
  const all = (of: Record<string, unknown>, keys: readonly string[], fits: (value: unknown) => boolean) =>
    keys.every((key) => fits(of[key]));
  return (
    isCount(value['workerId'], 1) &&
    // A job that an import found was never submitted by thresher: its attempt is 0.
    isCount(value['attempt'], 0, mostAttempts) &&
    isText(value['name']) &&
    all(value, names, isKey) &&
    all(value, optional, (one) => one === undefined || isText(one)) &&
    (value['payloadId'] === undefined || isKey(value['payloadId'])) &&
    isRecord(origin) &&
    isKey(origin['kind']) &&
    origin['kind'] !== '' &&
    whatIsWrongWithOrigin(origin) === undefined &&
    isRecord(requirements) &&
    all(requirements, texts, isKey) &&
    all(requirements, amounts, isAmount)
  );
}

/** As a database gives it back: PostgreSQL takes no NUL, and half a character comes back as another one. */
function isText(value: unknown): boolean {
  return isStorable(value) && value.length <= longest;
}

function isKey(value: unknown): boolean {
  return isText(value) && Buffer.byteLength(String(value)) <= longestKey;
}

function isCount(value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): boolean {
  return Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most;
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
