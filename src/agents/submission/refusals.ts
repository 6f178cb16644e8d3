import type { Request } from '../../plugins/contracts/index.ts';
import { type PayloadProblem, payloadProblems } from '../../worker/payload-check.ts';
import { partsOf } from '../../worker/payload.ts';
import type { Reason } from '../../worker/reason.ts';
import type { QueueRuntime } from '../queue-runtime.ts';
import { whatIsWrong } from './check-wanted.ts';

export interface Refusal {
  readonly request: unknown;
  readonly reason: Reason;
}

/** The first mistake of each payload: thousands of requests may share one of 1 MiB, and are asked for in each pass. */
const judged = new WeakMap<object, PayloadProblem | 'good'>();

/** Why a request can never get a worker, its payload aside; undefined where it can. */
export function whyMalformed(request: unknown): Reason | undefined {
  const wrong = whatIsWrong(request);
  return wrong === undefined ? undefined : { code: 'request-refused', message: wrong };
}

/** Why no worker of this queue can have the payload of a request; undefined where one can, and where it follows. */
export function whyRefused(
  { payload }: Pick<Request, 'payload'>,
  { config, payload: given }: Pick<QueueRuntime, 'config' | 'payload'>,
): Reason | undefined {
  if (payload === undefined) return undefined;
  const problem = problemOf(payload);
  if (problem !== undefined) return { code: problem.code, message: problem.message };
  const lacking = partsOf(payload).filter((part) => !given.includes(part));
  if (lacking.length === 0) return undefined;
  const { name = 'the submitter' } = config.plugins.submitter ?? {};
  const message = `${name} of ${config.name} gives its workers no ${lacking.join(', ')} of a payload`;
  return { code: 'payload-unsupported', message };
}

function problemOf(payload: unknown): PayloadProblem | undefined {
  if (typeof payload !== 'object' || payload === null) return payloadProblems(payload)[0];
  const known = judged.get(payload) ?? payloadProblems(payload)[0] ?? 'good';
  judged.set(payload, known);
  return known === 'good' ? undefined : known;
}

/** One reason for each code, however many requests it is about. */
export function summaryOf(kind: string, refusals: readonly Refusal[]): Reason[] {
  const byCode = Map.groupBy(refusals, ({ reason }) => reason.code);
  return [...byCode].map(([code, some]) => {
    const first = some[0]?.reason.message ?? '';
    const many = some.length === 1 ? 'a request' : `${some.length} requests`;
    return { code, message: `${many} of source ${kind} refused: ${first}` };
  });
}
