import { payloadProblems } from '../../worker/payload-check.ts';
import type { WorkerError, WorkerToStart } from '../../worker/worker.ts';

/**
 * Why no attempt at this worker can succeed, by its payload and the values that its queue's template names; undefined: nothing
 * speaks against it. A submitter rejects such a worker for good, before anything is written or sent.
 */
export function payloadRefusal(
  { payload, queue }: WorkerToStart,
  templateKeys: ReadonlySet<string>,
): WorkerError | undefined {
  const [problem] = payload === undefined ? [] : payloadProblems(payload);
  if (problem !== undefined) return { code: problem.code, message: problem.message };
  const missing = [...templateKeys].filter((key) => !Object.hasOwn(payload?.values ?? {}, key));
  if (missing.length === 0) return undefined;
  const names = missing.map((key) => `\${payload.${key}}`).join(', ');
  const has = payload === undefined ? 'the worker has no payload' : 'the payload has no such value';
  return { code: 'payload-value-missing', message: `the template of ${queue} names ${names}, and ${has}` };
}
