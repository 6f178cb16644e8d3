import type { Container, Pod } from '../../../clients/interlink/wire.ts';
import type { Payload } from '../../../plugins/contracts/index.ts';
import { payloadBounds, payloadProblems as wrongIn } from '../../../worker/payload-check.ts';
import { mostDollars, type Room } from './environment.ts';
import { type PodProblem, problem } from './problem.ts';

/** Of one Pod. An API server takes 1.5 MiB in an object. */
const podBounds = {
  bytes: 2 * 1024 * 1024,
  /** Each has two files in its job. */
  containers: payloadBounds.files / 2,
  volumes: 500,
  /** Each `--bind` is one of every container. */
  mounts: 500,
  items: 10_000,
  imagePullSecrets: 500,
};

/** What is looked at before anything is made of a Pod: some of that takes the square of a count. */
export function tooMuchIn({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>): readonly PodProblem[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const counts = {
    containers: containers.length,
    volumes: (spec.volumes ?? []).length,
    mounts: mountsOf(containers),
    items: (spec.volumes ?? []).reduce(
      (sum, { configMap, secret }) => sum + (configMap?.items ?? secret?.items ?? []).length,
      0,
    ),
    imagePullSecrets: (spec.imagePullSecrets ?? []).length,
  };
  const wrong = (['containers', 'volumes', 'mounts', 'items', 'imagePullSecrets'] as const).flatMap((what) =>
    counts[what] > podBounds[what] ? [tooMany(what, counts[what])] : [],
  );
  const bytes = Buffer.byteLength(JSON.stringify([metadata, spec]));
  if (bytes <= podBounds.bytes) return wrong;
  return [...wrong, problem('/pod', `the Pod has ${bytes} bytes; it may have ${podBounds.bytes} (2 MiB)`)];
}

function tooMany(what: Exclude<keyof typeof podBounds, 'bytes'>, count: number): PodProblem {
  return problem('/pod/spec', `the Pod has ${count} ${what}; a job has ${podBounds[what]} at most`);
}

function mountsOf(containers: readonly Pick<Container, 'volumeMounts'>[]): number {
  return containers.reduce((sum, { volumeMounts }) => sum + (volumeMounts ?? []).length, 0);
}

/** Each container of a job has all places that the Pod's annotations bind, and each place is compared with those of the others. */
export function tooManyBinds(
  containers: readonly Pick<Container, 'volumeMounts'>[],
  binds: number,
): readonly PodProblem[] {
  const mounts = mountsOf(containers) + binds * containers.length;
  return mounts > podBounds.mounts ? [tooMany('mounts', mounts)] : [];
}

/** The files of a Pod become more than a job takes: the rest of them is not made. */
export class TooLarge extends RangeError {}

/** Takes bytes of a job's files before they are made. @throws TooLarge */
export function take(room: Room, bytes: number): void {
  room.left -= bytes;
  if (room.left < 0) throw new TooLarge();
}

/** Its texts grow with each name of a variable in them. */
export const tooLong = problem(
  '/pod/spec',
  `commands and paths of the Pod have more than ${mostDollars} dollar signs, or their variables stand for more than a job takes: ${payloadBounds.bytes} bytes (1 MiB)`,
);

export const tooLarge = problem(
  '/container',
  `the Pod has more ConfigMaps, Secrets, variables and arguments than a job takes: ${payloadBounds.bytes} bytes (1 MiB), and ${payloadBounds.files} files with two for each container`,
);

/** A job takes only so much: its user reads of the Pod, and not of the payload that it became. */
export function payloadProblems(payload: Payload): readonly PodProblem[] {
  const [first] = wrongIn(payload);
  if (first === undefined) return [];
  if (first.code === 'payload-too-large') return [tooLarge];
  return [problem('/pod', `the Pod cannot become a job: ${first.message}`)];
}
