import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type { KubernetesObject } from '../../clients/kubernetes/objects.ts';
import { collectionPath } from '../../clients/kubernetes/paths.ts';
import { toReason } from '../../worker/errors.ts';
import type { WorkerError, WorkerToStart } from '../../worker/worker.ts';
import { fenceAnnotation, payloadAnnotation } from './fence.ts';
import { marksOf } from './marks.ts';
import type { K8sNamespace } from './namespace.ts';
import type { FilledJob } from './template/fill.ts';
import type { PayloadObject } from './template/payload.ts';

const resources = { ConfigMap: 'configmaps', Secret: 'secrets' } as const;

/** The result of steps that follow the creation of a Job. */
export type BeginOutcome =
  | { readonly kind: 'begun' }
  /** The server said no, and nothing of this attempt is left. */
  | { readonly kind: 'refused'; readonly error: WorkerError }
  | { readonly kind: 'unknown'; readonly error: WorkerError };

/**
 * A worker with files begins in three steps: (1) its Job as a fence of the attempts before, with no Pod; (2) the object with
 * the files, which that Job owns; (3) one change of the Job, which makes it the worker. So
 *
 * - no Pod ever waits for files that do not come: the worker begins with the third step, or not at all;
 * - a crash after any step leaves a fence, which `find` replaces by one of this attempt, and which no monitor and no listing
 *   takes for a worker;
 * - Kubernetes removes the files with the Job, however it goes, and files that come too late find no owner and go, too;
 * - a late third step finds another Job or none: it names the uid.
 *
 * thresher never reads, lists or deletes such objects, and needs no right to.
 */
export function asPrepared(job: FilledJob, attempt: number, payload: PayloadObject): FilledJob {
  const { metadata, spec } = job;
  const annotations = {
    ...metadata.annotations,
    [fenceAnnotation]: String(attempt - 1),
    [payloadAnnotation]: `${payload.kind}/${payload.name}`,
  };
  return { ...job, metadata: { ...metadata, annotations }, spec: { ...spec, parallelism: 0 } };
}

/** Steps two and three. `uid` is that of the Job of step one. */
export async function begin(
  namespace: K8sNamespace,
  worker: WorkerToStart,
  { job, payload, uid }: { readonly job: FilledJob; readonly payload: PayloadObject; readonly uid: string },
  signal: AbortSignal,
): Promise<BeginOutcome> {
  const { client, name } = namespace;
  try {
    const kind = { group: '', version: 'v1', resource: resources[payload.kind] };
    const object = payloadOf(namespace, worker, payload, uid);
    await client.create<KubernetesObject>(collectionPath(kind, name), object, { signal, metadataOnly: true });
    const change = {
      metadata: { uid, annotations: { [fenceAnnotation]: null } },
      spec: { parallelism: job.spec.parallelism ?? 1 },
    };
    await client.patch(namespace.job(worker.name), change, { kind: 'merge', signal });
    return { kind: 'begun' };
  } catch (error) {
    const told = toReason(error);
    // Another writer has the name, or changed the Job: only `find` can say how things stand.
    const unclear = isKubernetesError(
      error,
      ...(['kubernetes-already-exists', 'kubernetes-conflict', 'kubernetes-not-found'] as const),
    );
    if (unclear || !isKubernetesError(error) || error.maybeDone) return { kind: 'unknown', error: told };
    const gone = await isRemoved(namespace, worker.name, uid, signal);
    return gone ? { kind: 'refused', error: told } : { kind: 'unknown', error: told };
  }
}

function payloadOf(
  { factoryId, name: namespace }: K8sNamespace,
  worker: WorkerToStart,
  { kind, name, data }: PayloadObject,
  uid: string,
): KubernetesObject {
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: worker.name, uid };
  const { labels } = marksOf(worker, factoryId);
  const metadata = { name, namespace, labels, ownerReferences: [owner] };
  // Immutable: the kubelet then looks for no changes of ten thousand of them.
  const head = { apiVersion: 'v1', kind, immutable: true, metadata };
  if (kind === 'ConfigMap') return { ...head, binaryData: data } as KubernetesObject;
  return { ...head, type: 'Opaque', data } as KubernetesObject;
}

/** A Job that has no Pod yet goes at once. */
async function isRemoved(
  namespace: K8sNamespace,
  name: string,
  uid: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await namespace.client.delete(namespace.job(name), { signal, uid, propagationPolicy: 'Background' });
    return true;
  } catch (error) {
    return isKubernetesError(error, 'kubernetes-not-found');
  }
}
