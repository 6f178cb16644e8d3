import pMap from 'p-map';
import { isKubernetesError } from '../../../clients/kubernetes/errors.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { K8sNamespace } from '../namespace.ts';
import { workerIdLabel } from '../marks.ts';
import { keepJob, keepPod, type Kept, type KeptPod } from './records.ts';
import { Following } from './following.ts';

/** Workers in one request: their ids stand in its URL. */
const perRequest = 200;
/** Such requests side by side. */
const partsAtOnce = 4;

export interface LookUpOptions {
  /** Look up which objects are there, not their state: enough to delete them. */
  readonly namesOnly?: boolean;
}

/** From so many on one listing of everything costs the server less: for each selection by ids it looks at all objects. */
const listedWhole = 1000;

/** Looks up the objects of these workers, or of more, now, past every cache: for callers that ask for many. */
export async function lookUpMany(
  namespace: K8sNamespace,
  workerIds: readonly number[],
  signal: AbortSignal,
): Promise<Following> {
  if (workerIds.length < listedWhole) return lookUp(namespace, workerIds, signal);
  return followed(namespace, [await select(namespace, namespace.selector, signal, {})]);
}

/** Looks up the objects of these workers now, past every cache. @throws KubernetesError when it cannot see all. */
export async function lookUp(
  namespace: K8sNamespace,
  workerIds: readonly number[],
  signal: AbortSignal,
  options: LookUpOptions = {},
): Promise<Following> {
  const parts = Array.from({ length: Math.ceil(workerIds.length / perRequest) }, (_, part) =>
    workerIds.slice(part * perRequest, (part + 1) * perRequest),
  );
  // Side by side: a server that lists from its cache waits each time until that is fresh.
  const selectorOf = (ids: readonly number[]) =>
    `${namespace.selector},${workerIdLabel} in (${ids.join(',')})`;
  const listed = (ids: readonly number[]) => select(namespace, selectorOf(ids), signal, options);
  return followed(namespace, await pMap(parts, listed, { concurrency: partsAtOnce }));
}

function followed(namespace: K8sNamespace, found: readonly (readonly [Kept[], KeptPod[]])[]): Following {
  const following = new Following(namespace);
  for (const [jobs, pods] of found) {
    for (const job of jobs) following.putJob(job);
    for (const pod of pods) following.putPod(pod);
  }
  return following;
}

/** Jobs and Pods with these labels. */
async function select(
  namespace: K8sNamespace,
  labelSelector: string,
  signal: AbortSignal,
  { namesOnly = false }: LookUpOptions,
): Promise<readonly [Kept[], KeptPod[]]> {
  const { client, factoryId } = namespace;
  const options = { labelSelector, signal, metadataOnly: namesOnly };
  const [jobs, pods] = await Promise.all([
    client.list(namespace.jobs, options, (object) => keepJob(object, factoryId)),
    client.list(namespace.pods, options, (object) => keepPod(object, factoryId)),
  ]);
  return [jobs.items, pods.items];
}

/** Uid of the Job that was made for the worker, as far as that is known. */
export function jobUidOf({ handle }: Pick<Worker, 'handle'>): string | undefined {
  return typeof handle?.uid === 'string' ? handle.uid : undefined;
}

/** Whether a Job of this name and uid is there, whatever became of its labels. @throws KubernetesError */
export async function isThere(
  namespace: K8sNamespace,
  worker: Worker,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const { metadata } = await namespace.client.get(namespace.job(worker.name), { signal });
    return worker.handle?.uid !== undefined && metadata?.uid === worker.handle.uid;
  } catch (error) {
    if (isKubernetesError(error, 'kubernetes-not-found')) return false;
    throw error;
  }
}
