import type { ErrorCode } from '../../codes/codes.ts';
import { ThresherError } from '../../worker/errors.ts';
import { modeOf, payloadProblems } from '../../worker/payload-check.ts';
import type { WorkerToStart } from '../../worker/worker.ts';

/** Why a worker can never be started. */
export interface PayloadRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

/**
 * Why no attempt at this worker can succeed, by its payload and the values that its queue's template names; undefined: nothing
 * speaks against it. A submitter rejects such a worker for good, before anything is written or sent.
 * @param imageKeys those of them by which the template names the image that the whole worker runs in; absent: every worker runs in an image
 */
export function payloadRefusal(
  { payload, queue }: WorkerToStart,
  templateKeys: ReadonlySet<string>,
  imageKeys?: ReadonlySet<string>,
): PayloadRefusal | undefined {
  const [problem] = payload === undefined ? [] : payloadProblems(payload);
  if (problem !== undefined) return { code: problem.code, message: problem.message };
  // Outside of an image it would see the files of other users.
  if (payload?.image === true && imageKeys?.has('image') === false)
    return {
      code: 'payload-value-missing',
      message: `the worker is to run in the image of its payload, and the template of ${queue} has no image \${payload.image}`,
    };
  const missing = [...templateKeys].filter((key) => !Object.hasOwn(payload?.values ?? {}, key));
  if (missing.length === 0) return undefined;
  const has = payload === undefined ? 'the worker has no payload' : 'the payload has no such value';
  return {
    code: 'payload-value-missing',
    message: `the template of ${queue} names ${placeholders(missing)}, and ${has}`,
  };
}

/**
 * Sentences of `thresher render` on the payload: it shows names and modes of files, and no content. A worker without a payload is
 * shown with the placeholders of its template.
 * @throws ThresherError as a submitter would reject a worker with this payload
 */
export function payloadNotes(worker: WorkerToStart, templateKeys: ReadonlySet<string>): readonly string[] {
  if (worker.payload === undefined) {
    if (templateKeys.size === 0) return [];
    return [`${placeholders([...templateKeys])}: each worker gets it with its payload`];
  }
  const refusal = payloadRefusal(worker, templateKeys);
  if (refusal !== undefined) throw new ThresherError(refusal.code, refusal.message);
  return (worker.payload.files ?? []).map((file) => {
    const size = Buffer.byteLength(file.content, 'base64');
    const secret = file.secret === true ? ', secret' : '';
    return `file of the payload: ${JSON.stringify(file.name)}, mode ${modeOf(file).toString(8).padStart(4, '0')}, ${size} bytes${secret}`;
  });
}

function placeholders(keys: readonly string[]): string {
  return keys.map((key) => `\${payload.${key}}`).join(', ');
}
