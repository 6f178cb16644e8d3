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

const texts = ['resourceType', 'jobType', 'pilotType', 'prodSourceLabel'];
const optional = ['accessPoint', 'groupId', 'payloadId'];
const numbers = ['nCore', 'minRamCount', 'maxDiskCount', 'maxWalltime'];

function isMarked(value: unknown): value is MarkedWorker & Readonly<Record<string, unknown>> {
  if (!isRecord(value)) return false;
  const { origin, requirements } = value;
  const all = (of: Record<string, unknown>, keys: readonly string[], type: string) =>
    keys.every((key) => typeof of[key] === type);
  return (
    all(value, ['workerId', 'attempt'], 'number') &&
    all(value, ['name', 'queue', 'computingSite'], 'string') &&
    optional.every((key) => ['string', 'undefined'].includes(typeof value[key])) &&
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
