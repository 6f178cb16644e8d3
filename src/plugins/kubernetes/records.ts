import type { KubernetesObject } from '../../clients/kubernetes/objects.ts';
import { fencedAttempt } from './fence.ts';
import { isOurs, pilotAnnotation, queueLabel, workerIdOf } from './marks.ts';
import type { Condition, ContainerSpec, ContainerStatus, Job, ObjectMeta, Pod } from './types.ts';

/**
 * What is kept of a Job or Pod of ours: enough for pod-state.ts, as JSON text. There may be ten thousand of them, and as
 * text they take a third of what they take as objects.
 */
export interface Kept {
  readonly workerId: number;
  readonly uid: string;
  readonly text: string;
}

/** Undefined for what is no worker's: a fence, or something without our marks. */
export function keepJob(object: KubernetesObject, factoryId: string): Kept | undefined {
  return fencedAttempt(object.metadata) === undefined ? keep(object, factoryId, slimJob) : undefined;
}

export function keepPod(object: KubernetesObject, factoryId: string): Kept | undefined {
  return keep(object, factoryId, slimPod);
}

function keep(
  object: KubernetesObject,
  factoryId: string,
  slim: (object: KubernetesObject) => unknown,
): Kept | undefined {
  const workerId = workerIdOf(object.metadata);
  if (workerId === undefined || !isOurs(object.metadata, factoryId)) return undefined;
  return { workerId, uid: object.metadata?.uid ?? '', text: JSON.stringify(slim(object)) };
}

function slimJob(object: KubernetesObject): Job {
  const { metadata, spec, status } = object as Job;
  return {
    metadata: slimMetadata(metadata, queueLabel),
    spec: {
      ...(spec?.backoffLimit !== undefined && { backoffLimit: spec.backoffLimit }),
      ...(spec?.completions !== undefined && { completions: spec.completions }),
      ...(spec?.suspend ? { suspend: true } : {}),
      ...(spec?.podFailurePolicy ? { podFailurePolicy: true } : {}),
    },
    status: { ...status, ...(status?.conditions && { conditions: status.conditions.map(slimCondition) }) },
  };
}

function slimPod(object: KubernetesObject): Pod {
  const { metadata, spec, status } = object as Pod;
  const { phase, reason, message, startTime, conditions, containerStatuses, initContainerStatuses } =
    status ?? {};
  return {
    metadata: slimMetadata(metadata, queueLabel, pilotAnnotation),
    spec: {
      ...(spec?.nodeName && { nodeName: spec.nodeName }),
      containers: (spec?.containers ?? []).map(slimSpec),
      ...(spec?.initContainers && { initContainers: spec.initContainers.map(slimSpec) }),
    },
    status: {
      ...(phase && { phase }),
      ...(reason && { reason }),
      ...(message && { message }),
      ...(startTime && { startTime }),
      ...(conditions && { conditions: conditions.map(slimCondition) }),
      ...(containerStatuses && { containerStatuses: containerStatuses.map(slimStatus) }),
      ...(initContainerStatuses && { initContainerStatuses: initContainerStatuses.map(slimStatus) }),
    },
  };
}

function slimMetadata(metadata: ObjectMeta | undefined, ...wanted: string[]): ObjectMeta {
  const { name, uid, creationTimestamp, deletionTimestamp, annotations } = metadata ?? {};
  const kept = wanted.flatMap((key) => {
    const value = annotations?.[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  return {
    ...(name !== undefined && { name }),
    ...(uid !== undefined && { uid }),
    ...(creationTimestamp && { creationTimestamp }),
    ...(deletionTimestamp && { deletionTimestamp }),
    annotations: Object.fromEntries(kept),
  };
}

function slimCondition({ type, status, reason, message, lastTransitionTime }: Condition): Condition {
  return {
    ...{ type, status },
    ...(reason && { reason }),
    ...(message && { message }),
    ...(lastTransitionTime && { lastTransitionTime }),
  };
}

function slimSpec({ name, restartPolicy }: ContainerSpec): ContainerSpec {
  return { name, ...(restartPolicy && { restartPolicy }) };
}

function slimStatus({ name, restartCount, state, lastState }: ContainerStatus): ContainerStatus {
  return {
    name,
    ...(restartCount && { restartCount }),
    ...(state && { state }),
    ...(lastState && { lastState }),
  };
}
