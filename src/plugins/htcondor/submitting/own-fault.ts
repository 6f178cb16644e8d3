import type { HTCondorError } from '../../../clients/htcondor/errors.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';

/**
 * Whether `condor_submit` refused a command that the payload of these workers brought: it would refuse the same again, and the fault says
 * nothing of the template or the schedd, so other workers of the queue do not wait for it.
 * @param workers of one `condor_submit`: their payloads bring the same commands
 */
export function isOfPayload(
  { code, line, message }: Pick<HTCondorError, 'code' | 'line' | 'message'>,
  description: string,
  workers: readonly WorkerToStart[],
): boolean {
  if (code !== 'condor-submit-wrong') return false;
  const keys = Object.keys(workers[0]?.payload?.submit ?? {});
  const text = line === undefined ? undefined : description.split('\n')[line - 1];
  if (text !== undefined) {
    const [key = ''] = text.split('=', 1);
    return keys.some((one) => one.toLowerCase() === key.trim().toLowerCase());
  }
  // Some mistakes are told by the words of the command alone: "invalid concurrency limits".
  return keys.some((one) => one.length >= leastName && letters(message).includes(letters(one)));
}

/** A shorter name may be a part of any sentence. */
const leastName = 8;

function letters(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z]/g, '');
}
