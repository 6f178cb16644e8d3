import type { Payload } from '../../../plugins/contracts/index.ts';
import { payloadBounds, payloadProblems as wrongIn } from '../../../worker/payload-check.ts';
import { type PodProblem, problem } from './problem.ts';

/** A job takes only so much: its user reads of the Pod, and not of the payload that it became. */
export function payloadProblems(payload: Payload): readonly PodProblem[] {
  const [first] = wrongIn(payload);
  if (first === undefined) return [];
  const { files, bytes } = payloadBounds;
  if (first.code === 'payload-too-large')
    return [
      problem(
        '/container',
        `the Pod has more ConfigMaps, Secrets, variables and arguments than a job takes: ${bytes} bytes (1 MiB), and ${files} files with two for each container`,
      ),
    ];
  return [problem('/pod', `the Pod cannot become a job: ${first.message}`)];
}
