import { modeOf } from '../../../worker/payload-check.ts';
import type { Payload, PayloadFile } from '../../../worker/payload.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';
import { inert } from './environment.ts';
import type { ContainerShape, EnvEntry, PodSpecShape } from './template-shape.ts';

/** The files of a payload are mounted here, and a worker with arguments starts here. */
export const payloadDirectory = '/thresher/payload';
export const payloadVolumeName = 'thresher-payload';

/** Strings of a template, wherever they stand in it. */
export function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null)
    for (const inner of Object.values(value)) yield* textsIn(inner);
}

/** The object that holds the files of a payload: one per attempt, so that no Pod of an earlier Job ever mounts it. */
export interface PayloadObject {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  /** By key, base64. Names of files are odd, and keys must not be: `f0`, `f1`, ... */
  readonly data: Readonly<Record<string, string>>;
}

/** Undefined for a payload without files, which needs no object. */
export function payloadObjectOf({ name, attempt, payload }: WorkerToStart): PayloadObject | undefined {
  const { files = [] } = payload ?? {};
  if (files.length === 0) return undefined;
  return {
    // One object for all: a Pod would wait for two.
    kind: files.some(({ secret }) => secret) ? 'Secret' : 'ConfigMap',
    name: `${name}-payload-${attempt}`,
    data: Object.fromEntries(files.map(({ content }, index) => [keyOf(index), content])),
  };
}

/** A volume of a Pod: its name, and where its content comes from. */
export type Volume = Readonly<Record<string, unknown>> & { readonly name: string };

/** The volume of a worker's payload; undefined where it needs no directory. */
export function payloadVolume(
  worker: WorkerToStart,
  pod: PodSpecShape,
  pilot: ContainerShape | undefined,
): Volume | undefined {
  const { files = [], argv = [] } = worker.payload ?? {};
  const object = payloadObjectOf(worker);
  const name = payloadVolumeName;
  if (object === undefined) return argv.length === 0 ? undefined : { name, emptyDir: {} };
  const shared = isReadByAnother(pod, pilot);
  const items = files.map((file, index) => ({
    key: keyOf(index),
    path: file.name,
    mode: shared ? forAll(modeOf(file)) : modeOf(file),
  }));
  return object.kind === 'Secret'
    ? { name, secret: { secretName: object.name, items } }
    : { name, configMap: { name: object.name, items } };
}

/** The pilot's container with the arguments and variables of a payload. Its values reach the worker as they are. */
export function withPayload(
  container: ContainerShape,
  payload: Payload | undefined,
  hasDirectory: boolean,
): ContainerShape {
  if (payload === undefined) return container;
  const { argv = [], env = {} } = payload;
  const given: EnvEntry[] = [
    ...Object.entries(env).map(([name, value]) => ({ name, value: inert(value) })),
    ...(hasDirectory ? [{ name: 'THRESHER_PAYLOAD_DIR', value: payloadDirectory }] : []),
  ];
  const names = new Set(given.map(({ name }) => name));
  const kept = (container.env ?? []).filter(({ name }) => !names.has(name));
  const changed = { ...container, env: [...kept, ...given] };
  if (argv.length === 0) return changed;
  return { ...changed, command: argv.map(inert), args: [], workingDir: payloadDirectory };
}

function keyOf(index: number): string {
  return `f${index}`;
}

/**
 * Whether the files, which root owns, are read by another user. With `fsGroup` the kubelet lets a group read them; without it
 * a file for its owner alone could be read by no process of the worker.
 */
function isReadByAnother(pod: PodSpecShape, pilot: ContainerShape | undefined): boolean {
  const contextOf = (of: object | undefined) =>
    ((of as { readonly securityContext?: object } | undefined)?.securityContext ?? {}) as {
      readonly runAsUser?: unknown;
      readonly runAsNonRoot?: unknown;
      readonly fsGroup?: unknown;
    };
  const [own, ofPod] = [contextOf(pilot), contextOf(pod)];
  if (ofPod.fsGroup !== undefined) return false;
  const user = own.runAsUser ?? ofPod.runAsUser;
  if (user !== undefined) return user !== 0;
  return (own.runAsNonRoot ?? ofPod.runAsNonRoot) === true;
}

/** Its owner's rights to read and to run it, for all. */
function forAll(mode: PayloadFile['mode']): number {
  const owner = (mode >> 6) & 0o5;
  return mode | (owner << 3) | owner;
}
