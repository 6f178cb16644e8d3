import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type { KubernetesObject } from '../../clients/kubernetes/objects.ts';
import { toReason } from '../../worker/errors.ts';
import type { Handle, Worker } from '../../worker/worker.ts';
import type { FindOutcome } from '../contracts/submitter.ts';
import type { FilledJob } from './template/fill.ts';
import type { K8sNamespace } from './namespace.ts';
import { identityOf, isOurs, marksOf } from './marks.ts';
import type { JobMaker } from './queue-template.ts';
import type { ObjectMeta } from './state/types.ts';

/** Annotation of a fence: up to which attempt nothing of this worker may begin. */
export const fenceAnnotation = 'thresher/fenced-attempt';

/** Annotation of a Job whose worker has files: the object with them. Without a worker yet, the Job is a fence, too. */
export const payloadAnnotation = 'thresher/payload';

/** Either alone would do: whatever resumes suspended Jobs (Kueue) still gets no Pod. */
const noPods = { suspend: true, parallelism: 0 };

/**
 * A request whose answer was lost may be carried out later: by a server that hangs, or that a dead daemon's last bytes
 * still reach. Only the server itself can rule that out. A fence is a Job of the worker's own name that starts no Pod: while
 * it is there no late creation of that name succeeds. The sweeper removes it with the worker, and not before every such
 * request has come or is lost (late-creation.ts).
 */
async function fenceJob(namespace: K8sNamespace, worker: Worker, makeJob: JobMaker) {
  const marks = marksOf(worker, namespace.factoryId);
  const own = await makeJob(worker);
  if (own !== undefined) return asFence(own, worker.attempt);
  const resources = { requests: { cpu: '1m', memory: '4Mi' }, limits: { cpu: '1m', memory: '4Mi' } };
  const securityContext = {
    allowPrivilegeEscalation: false,
    runAsNonRoot: true,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const container = { name: 'fence', image: 'registry.k8s.io/pause:3.10', resources, securityContext };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: worker.name,
      namespace: namespace.name,
      labels: marks.labels,
      annotations: { ...marks.annotations, [fenceAnnotation]: String(worker.attempt) },
    },
    spec: {
      ...noPods,
      backoffLimit: 0,
      template: { spec: { restartPolicy: 'Never', containers: [container] } },
    },
  };
}

/** The queue's own Job as a fence: what policies of the cluster ask of Jobs it has. */
export function asFence(job: FilledJob, attempt: number): FilledJob {
  const { metadata, spec } = job;
  const annotations = { ...metadata.annotations, [fenceAnnotation]: String(attempt) };
  return { ...job, metadata: { ...metadata, annotations }, spec: { ...spec, ...noPods } };
}

/** The attempt up to which a Job of ours is a fence; undefined where it is a worker's. */
export function fencedAttempt(metadata: ObjectMeta | undefined): number | undefined {
  const text = metadata?.annotations?.[fenceAnnotation];
  return text == null ? undefined : Number(text) || 0;
}

/** Which fence is meant. */
export interface FenceAt {
  readonly uid: string;
  /** The version of an object that a late request may still make a worker (payload-objects.ts): only this one is the fence. */
  readonly version?: string | undefined;
}

/** The object under a worker's name. `createdAt` is ms UTC by the cluster's clock, NaN where it does not say. */
export type Standing =
  | { readonly kind: 'worker'; readonly handle: Handle; readonly createdAt: number }
  | (FenceAt & { readonly kind: 'fence'; readonly attempt: number; readonly createdAt: number })
  | { readonly kind: 'stranger' }
  | { readonly kind: 'nothing' };

type Named = Pick<Worker, 'workerId' | 'name'>;

/** @throws KubernetesError */
export async function standingOf(
  namespace: K8sNamespace,
  worker: Named,
  signal: AbortSignal,
): Promise<Standing> {
  try {
    return judgeStanding(
      namespace,
      worker,
      await namespace.client.get(namespace.job(worker.name), { signal }),
    );
  } catch (error) {
    if (isKubernetesError(error, 'kubernetes-not-found')) return { kind: 'nothing' };
    throw error;
  }
}

function judgeStanding(namespace: K8sNamespace, worker: Named, { metadata }: KubernetesObject): Standing {
  const identity = isOurs(metadata, namespace.factoryId) ? identityOf(metadata) : undefined;
  if (identity?.workerId !== worker.workerId) return { kind: 'stranger' };
  const uid = metadata?.uid ?? '';
  const attempt = fencedAttempt(metadata);
  const createdAt = Date.parse(metadata?.creationTimestamp ?? '');
  const version = metadata?.annotations?.[payloadAnnotation] == null ? undefined : metadata.resourceVersion;
  if (attempt !== undefined) return { kind: 'fence', attempt, uid, version, createdAt };
  return { kind: 'worker', handle: handleOf(worker.name, uid), createdAt };
}

export function handleOf(name: string, uid: string | undefined): Handle {
  return { batchID: name, ...(uid && { uid }) };
}

/** How often `fence` tries. Another client may take the name first each time. */
const turns = 3;

/**
 * Rules out every attempt at this worker up to `worker.attempt`, unless one went through already.
 * @returns the handle of the one that went through; undefined: there is none, and none will come.
 * @throws KubernetesError when that could not be made sure.
 */
export async function fence(
  namespace: K8sNamespace,
  worker: Worker,
  makeJob: JobMaker,
  signal: AbortSignal,
): Promise<Handle | undefined> {
  // The server said no to it, and was not asked since.
  if (namespace.refused.get(worker.workerId) === worker.attempt) return undefined;
  for (let turn = 1; ; turn++) {
    // First, since quotas, policies and a namespace on its way out refuse what is there already, too.
    const standing = await standingOf(namespace, worker, signal);
    switch (standing.kind) {
      case 'worker':
        return standing.handle;
      case 'stranger':
        // The name is taken: nothing else can come of it.
        return undefined;
      case 'fence':
        if (standing.attempt >= worker.attempt) return undefined;
        await removeFence(namespace, worker.name, standing, signal);
        break;
      case 'nothing':
        break;
    }
    try {
      const job = await fenceJob(namespace, worker, makeJob);
      await namespace.client.create(namespace.jobs, job, { signal, metadataOnly: true });
      return undefined;
    } catch (error) {
      // A namespace that is not there, or on its way out, takes in nothing any more.
      if (isKubernetesError(error, 'kubernetes-namespace')) return undefined;
      if (!isKubernetesError(error, 'kubernetes-already-exists') || turn >= turns) throw error;
    }
  }
}

/** Opens the way for a further attempt. @throws KubernetesError */
export async function removeFence(
  namespace: K8sNamespace,
  name: string,
  { uid, version }: FenceAt,
  signal: AbortSignal,
): Promise<void> {
  const preconditions = version === undefined ? { uid } : { uid, resourceVersion: version };
  const options = { ...preconditions, signal, propagationPolicy: 'Background' } as const;
  try {
    await namespace.client.delete(namespace.job(name), options);
  } catch (error) {
    if (!isKubernetesError(error, 'kubernetes-not-found', 'kubernetes-conflict')) throw error;
  }
}

/** The outcome of a fence, as `find` tells it. */
export async function findOutcome(
  namespace: K8sNamespace,
  worker: Worker,
  makeJob: JobMaker,
  signal: AbortSignal,
): Promise<FindOutcome> {
  try {
    const handle = await fence(namespace, worker, makeJob, signal);
    return handle === undefined ? { kind: 'absent' } : { kind: 'found', handle };
  } catch (error) {
    return { kind: 'unknown', error: toReason(error) };
  }
}
