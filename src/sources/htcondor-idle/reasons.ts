import type { Reason } from '../../plugins/contracts/index.ts';
import type { Decision, Step } from './demand.ts';
import type { Joining } from './joining.ts';
import type { PoolLook } from './look/result.ts';

/** `n -> (n, why)` as an operator reads it: one reason for each number. */
function stepReason({ n, unit, reason }: Step): Reason {
  const word = n === 1 ? unit.slice(0, -1) : unit;
  return { code: reason.code, message: `-> ${n} ${word}: ${reason.message}` };
}

export function decisionReasons(decision: Decision, queue: string): Reason[] {
  return (decision.reasons.get(queue) ?? []).map(stepReason);
}

/** Workers of a queue that run and never joined. */
export function notJoined(joining: Joining | undefined, queue: string, joinTimeout: number): Reason[] {
  const late = (joining?.late ?? []).filter((worker) => worker.queue === queue);
  const [oldest] = late;
  if (oldest === undefined) return [];
  const count = late.length === 1 ? '1 worker runs' : `${late.length} workers run`;
  const message = `${count} for longer than ${joinTimeout / 1000} s (joinTimeout) and never joined the pool; the oldest is ${oldest.workerId}: see \`thresher logs ${oldest.workerId}\` for a wrong token, a wrong CONDOR_HOST, or no route`;
  return [{ code: 'htcondor-idle-not-joined', message }];
}

/** A part of the pool that gave no answer, as a reason of queues. */
export function unknownReason({ part, name, reason }: PoolLook['unknown'][number]): Reason {
  // The look's own reasons are whole sentences on the pool; others are words of a command.
  if (reason.code.startsWith('htcondor-idle-')) return reason;
  const what = name === '' ? `the ${part}` : `${part} ${name}`;
  const message = `${what} gave no answer: nothing grows or shrinks because of what it would have said: ${reason.message}`;
  return { code: 'htcondor-idle-unknown', message };
}

/** Silent schedds, and a collector without machines, stand in the decision itself. */
export function unknownParts({ unknown }: PoolLook): Reason[] {
  return unknown
    .filter(({ part }) => part === 'negotiator' || part === 'template' || part === 'limits')
    .map(unknownReason);
}
