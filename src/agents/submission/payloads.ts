import type { Request, SubmitOutcome } from '../../plugins/contracts/index.ts';
import type { PayloadStore } from '../../store/payloads.ts';
import type { Payload } from '../../worker/payload.ts';
import type { Reason } from '../../worker/reason.ts';
import type { WorkerToStart } from '../../worker/worker.ts';
import type { Entry } from './entries.ts';
import type { Waiting } from './why-waiting.ts';

/** A request with its payload; or no worker can have it, or it was left for another pass. */
export type BroughtRequest = Request | 'refused' | 'left';

/** The requests whose payloads no worker can have. */
export interface Refused {
  readonly refused: readonly Waiting[];
  /** Why some have none. */
  readonly reasons: readonly Reason[];
  /** One was refused that was not refused before: others can have its room at once. */
  readonly isNews: boolean;
}

/** Payloads that were there, for workers that are about to be made. */
export interface JudgedRequests extends Refused {
  /** Those that were looked at. */
  readonly judged: ReadonlySet<Request>;
}

/** The payloads that followed, for workers that are about to be made. */
export interface Brought extends Refused {
  /** By the request as the source asked for it. */
  readonly outcomes: ReadonlyMap<Request, BroughtRequest>;
}

/** The named workers that an entry counts. */
export function namedIn({ requests = [], count }: Entry): readonly Request[] {
  return requests.slice(0, count);
}

export function lacksPayload({ payload, payloadFollows = false }: Request): boolean {
  return payloadFollows && payload === undefined;
}

/** A request may be of any class: all that it has beside its payload. */
export function partsOf({ origin, requirements, groupId }: Request): Request {
  return {
    origin,
    ...(requirements !== undefined && { requirements }),
    ...(groupId !== undefined && { groupId }),
  };
}

/** The entries with the payloads that came, and without the requests whose payload was asked for in vain. */
export function completed(entries: readonly Entry[], { outcomes }: Pick<Brought, 'outcomes'>): Entry[] {
  if (outcomes.size === 0) return [...entries];
  return replaced(entries, (request) => {
    const outcome = outcomes.get(request) ?? request;
    return typeof outcome === 'string' ? undefined : outcome;
  });
}

/**
 * The entries without the requests whose payload has not been asked for, or looked at: the limits may let others through than they did
 * before, whose turn comes in another pass.
 */
export function complete(entries: readonly Entry[], judged: ReadonlySet<Request>): Entry[] {
  const isReady = (request: Request) =>
    !lacksPayload(request) && (request.payload === undefined || judged.has(request));
  return replaced(entries, (request) => (isReady(request) ? request : undefined));
}

function replaced(entries: readonly Entry[], by: (request: Request) => Request | undefined): Entry[] {
  return entries.flatMap((entry) => {
    if (entry.requests === undefined) return [entry];
    const requests = namedIn(entry).flatMap((request) => by(request) ?? []);
    return requests.length === 0 ? [] : [{ ...entry, count: requests.length, requests }];
  });
}

/**
 * Gives each payload of these workers a name for the store: the id of the first worker that has it. Workers that share one
 * payload object share its name. Ids are never used twice, and a name made of the content would tell of secrets.
 */
export function withPayloadIds(workers: readonly WorkerToStart[]): readonly WorkerToStart[] {
  if (workers.every(({ payload }) => payload === undefined)) return workers;
  const ids = new Map<Payload, string>();
  return workers.map((worker) => {
    const { workerId, payload } = worker;
    if (payload === undefined || worker.payloadId !== undefined) return worker;
    const payloadId = ids.get(payload) ?? String(workerId);
    ids.set(payload, payloadId);
    return { ...worker, payloadId };
  });
}

/** The outcome of a worker whose payload is gone: nothing was sent, and no later attempt can send it. */
export const payloadLost: SubmitOutcome = {
  kind: 'rejected',
  permanent: true,
  error: {
    code: 'payload-lost',
    message: 'the database does not have the payload of this worker any more, so it can never be started',
  },
};

/** Brings the payloads along for workers that are sent again: only new ones have theirs in memory. `lost`: ids of those without. */
export async function withPayloads(
  payloads: Pick<PayloadStore, 'byIds'>,
  workers: readonly WorkerToStart[],
): Promise<{ readonly workers: readonly WorkerToStart[]; readonly lost: readonly number[] }> {
  const ids = workers.flatMap((worker) => (isIncomplete(worker) ? [worker.payloadId] : []));
  if (ids.length === 0) return { workers, lost: [] };
  const known = await payloads.byIds([...new Set(ids)]);
  const complete: WorkerToStart[] = [];
  const lost: number[] = [];
  for (const worker of workers) {
    if (!isIncomplete(worker)) {
      complete.push(worker);
      continue;
    }
    const payload = known.get(worker.payloadId);
    if (payload === undefined) lost.push(worker.workerId);
    else complete.push({ ...worker, payload });
  }
  return { workers: complete, lost };
}

function isIncomplete(worker: WorkerToStart): worker is WorkerToStart & { readonly payloadId: string } {
  return worker.payloadId !== undefined && worker.payload === undefined;
}
