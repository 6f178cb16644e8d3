import type { Pod } from '../../../clients/interlink/wire.ts';
import type { Payload } from '../../../plugins/contracts/index.ts';
import { payloadBounds, payloadProblems as wrongIn } from '../../../worker/payload-check.ts';
import { type PodProblem, problem } from './problem.ts';

/** Of one Pod. An API server takes 1.5 MiB in an object; containers have two files each. */
const podBounds = { bytes: 2 * 1024 * 1024, containers: payloadBounds.files / 2, volumes: 500, mounts: 500 };

/** What is looked at before anything is made of a Pod: some of that takes the square of a count. */
export function tooMuchIn({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>): readonly PodProblem[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const counts = {
    containers: containers.length,
    volumes: (spec.volumes ?? []).length,
    mounts: containers.reduce((sum, { volumeMounts }) => sum + (volumeMounts ?? []).length, 0),
  };
  const wrong = (['containers', 'volumes', 'mounts'] as const).flatMap((what) =>
    counts[what] > podBounds[what]
      ? [problem('/pod/spec', `the Pod has ${counts[what]} ${what}; a job has ${podBounds[what]} at most`)]
      : [],
  );
  const bytes = Buffer.byteLength(JSON.stringify([metadata, spec]));
  if (bytes <= podBounds.bytes) return wrong;
  return [...wrong, problem('/pod', `the Pod has ${bytes} bytes; it may have ${podBounds.bytes} (2 MiB)`)];
}

/** Its texts grow with each name of a variable in them. */
export const tooLong = problem(
  '/pod/spec',
  `the variables in commands and paths of the Pod stand for more than a job takes: ${payloadBounds.bytes} bytes (1 MiB)`,
);

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
