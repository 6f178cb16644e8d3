import { type Clock, eachGivingWay, givingWay, isTime } from '../../util/clock.ts';
import { beginningFromOutside } from '../../util/beginning.ts';
import { factsFromOutside } from '../../util/own-secrets.ts';
import type { FindOutcome, SubmitOutcome } from '../../plugins/contracts/index.ts';
import type { Observation } from '../../worker/observation.ts';
import { endedUnseen } from '../../worker/ended-unseen.ts';
import { mayBecome, type WorkerStatus } from '../../worker/status.ts';
import type { WorkerError } from '../../worker/worker.ts';
import type { Change } from './ledger.ts';

/** A worker that the backend has. */
type Placed = Pick<Extract<SubmitOutcome, { kind: 'accepted' }>, 'handle' | 'computingElement'>;

/**
 * The outcomes of a call for these workers as they may be stored and shown, so far as it gave any. Apart from the changes that are made of them:
 * the present status of a worker is read when all this is done.
 */
export async function outcomesFromOutside<Outcome extends SubmitOutcome | FindOutcome>(
  workers: readonly { readonly workerId: number }[],
  outcomes: ReadonlyMap<number, Outcome>,
  clock: Pick<Clock, 'monotonic'>,
): Promise<ReadonlyMap<number, Outcome>> {
  const shown = await eachGivingWay(givingWay(clock), workers, ({ workerId }) => {
    const outcome = outcomes.get(workerId);
    return outcome === undefined ? [] : [[workerId, outcomeFromOutside(outcome)] as const];
  });
  return new Map(shown.flat());
}

/** The same for one. */
export function outcomeFromOutside<Outcome extends SubmitOutcome | FindOutcome>(outcome: Outcome): Outcome {
  if ('error' in outcome) return { ...outcome, error: saidOutside(outcome.error) };
  if (!('computingElement' in outcome)) return outcome;
  return { ...outcome, computingElement: nameFromOutside(outcome.computingElement) };
}

/**
 * Makes a submission's outcome a change of the worker's row. `status` is the present one: a monitor may be faster.
 * @param outcome as `outcomeFromOutside` gives it
 * @param maxAttempts Infinity: no number of refusals ends the worker
 */
export function submitChange(
  worker: { readonly workerId: number; readonly attempt: number },
  status: WorkerStatus,
  outcome: SubmitOutcome,
  maxAttempts: number,
  now: number,
): Change {
  const { workerId, attempt } = worker;
  switch (outcome.kind) {
    case 'accepted':
      return accepted(workerId, status, outcome, now);
    case 'rejected': {
      const { permanent, error } = outcome;
      const to = permanent || attempt >= maxAttempts ? 'missed' : 'pending';
      return { workerId, to, source: 'submitter', error, ...(to === 'missed' && { endTime: now }) };
    }
    case 'unknown':
      return { workerId, to: status, source: 'submitter', error: outcome.error };
  }
}

/**
 * Makes the search for an unconfirmed intent a change of its row; undefined: the intent is to be tried again.
 * @param outcome as `outcomeFromOutside` gives it
 */
export function findChange(
  worker: { readonly workerId: number; readonly attempt: number },
  status: WorkerStatus,
  outcome: FindOutcome,
  retry: {
    readonly allowed: boolean;
    /** The attempts that count. */
    readonly spent: number;
    readonly maxAttempts: number;
    readonly lastError: WorkerError | undefined;
  },
  now: number,
): Change | undefined {
  const { workerId, attempt } = worker;
  switch (outcome.kind) {
    case 'found':
      return accepted(workerId, status, outcome, now);
    case 'unknown':
      return { workerId, to: status, source: 'submitter', error: outcome.error };
    case 'absent': {
      if (retry.allowed && retry.spent < retry.maxAttempts) return undefined;
      const message = `not on the backend after attempt ${attempt}; nothing of it can start any more`;
      const error = retry.lastError ?? { code: 'never-started', message };
      return { workerId, to: 'missed', source: 'submitter', error, endTime: now };
    }
  }
}

function accepted(
  workerId: number,
  status: WorkerStatus,
  { handle, computingElement }: Placed,
  now: number,
): Change {
  return {
    workerId,
    to: mayBecome(status, 'submitted') ? 'submitted' : status,
    source: 'submitter',
    submitTime: now,
    handle: JSON.stringify(handle),
    batchId: handle.batchID,
    error: null,
    ...(computingElement !== undefined && { computingElement }),
  };
}

/** Longest `detail` that is kept, characters of JSON. */
const maxDetail = 20_000;
/** Longest sentence that is kept; PanDA takes 500 characters. */
const maxMessage = 500;
/** Longest name, address or status that is kept, characters. */
const maxName = 300;

/** Makes an observation a change of the worker's row. A worker whose end was asked for is cancelled, not failed. */
export function observationChange(observation: Observation, killed: boolean): Change {
  const { workerId, status, nativeStatus, error, node, computingElement, detail } = observation;
  // One that no column takes would keep all others of its batch from being written.
  const exitCode = Number.isSafeInteger(observation.exitCode) ? observation.exitCode : undefined;
  const [startTime, endTime] = [timeOf(observation.startTime), timeOf(observation.endTime)];
  const json = detail === undefined ? undefined : JSON.stringify(factsFromOutside(detail));
  return {
    workerId,
    to: endOf(status, killed),
    source: 'monitor',
    nativeStatus: nameFromOutside(nativeStatus),
    ...(exitCode !== undefined && { exitCode }),
    ...(error !== undefined && {
      error: saidOutside(error),
    }),
    ...(node !== undefined && { node: nameFromOutside(node) }),
    ...(computingElement !== undefined && { computingElement: nameFromOutside(computingElement) }),
    ...(startTime !== undefined && { startTime }),
    ...(endTime !== undefined && { endTime }),
    ...(json !== undefined && json.length <= maxDetail && { detail: json }),
  };
}

/** What an observed status is of a worker whose end was asked for, or was not. */
export function endOf(status: WorkerStatus, killed: boolean): WorkerStatus {
  return killed && status === 'failed' ? 'cancelled' : status;
}

/** Whole ms. @returns undefined for what is no time */
function timeOf(ms: number | undefined): number | undefined {
  return typeof ms === 'number' && isTime(ms) ? Math.round(ms) : undefined;
}

/** A name, an address or a status: a machine that says what it is called may say anything. */
function nameFromOutside(text: string): string {
  return beginningFromOutside(text, maxName);
}

function saidOutside({ code, message }: WorkerError): WorkerError {
  return { code, message: beginningFromOutside(message, maxMessage) };
}

/**
 * A worker that the backend does not know any more.
 * @param seen whether the backend showed it since the start of this daemon, or this daemon submitted it
 */
export function absenceChange(workerId: number, killed: boolean, seen: boolean, now: number): Change {
  const common = { workerId, source: 'monitor', endTime: now };
  if (killed) return { ...common, to: 'cancelled', error: { code: 'killed', message: 'ended on request' } };
  if (!seen) {
    const message =
      'the backend did not know the worker at the start of this daemon: the worker ended, or another client removed it from the backend, while no daemon ran or after the backup that the database is of';
    return { ...common, to: 'missed', error: { ...endedUnseen, message } };
  }
  return {
    ...common,
    to: 'missed',
    error: { code: 'lost', message: 'the backend does not know the worker any more' },
  };
}

/** Stands for the outcome that a plugin gave no word of. */
export const noOutcome = {
  kind: 'unknown',
  error: { code: 'plugin-failed', message: 'the plugin gave no outcome for this worker' },
} as const;
