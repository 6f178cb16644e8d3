import { type KubernetesObject, presentIn } from '../../../clients/kubernetes/objects.ts';
import { fencedAttempt } from '../fence.ts';
import { workerName } from '../../../worker/identity.ts';
import { configAnnotation, isOurs, pilotAnnotation, queueLabel, workerIdOf } from '../marks.ts';
import { toleratesVirtualNode } from '../state/pod-facts.ts';
import type {
  Condition,
  ContainerSpec,
  ContainerState,
  ContainerStatus,
  Job,
  ObjectMeta,
  Pod,
  TerminatedState,
  WaitingState,
} from '../state/types.ts';

/**
 * The kept part of a Job or Pod of ours: enough for pod-state.ts, as JSON text. There may be ten thousand of them, and
 * text takes a third of the memory of objects.
 */
export interface Kept {
  readonly workerId: number;
  readonly uid: string;
  readonly text: string;
}

export interface KeptPod extends Kept {
  /** Uid of the Job that made it: a Pod of an earlier Job of that name does not decide about a later one. */
  readonly maker: string;
}

/**
 * Undefined for a Job that is no worker's: a fence, one without our marks, or a copy of a worker's Job under another
 * name, which must not decide about the worker.
 */
export function keepJob(object: KubernetesObject, factoryId: string): Kept | undefined {
  const { metadata } = object;
  if (fencedAttempt(metadata) !== undefined) return undefined;
  return keep(object, metadata?.name, factoryId, slimJob);
}

/**
 * A Pod belongs to the worker whose Job made it, by the Job's name. Undefined for one that has our labels and that no Job made: a copy by
 * hand, or of a ReplicaSet. None of these becomes a Job's later, but by the label that makes it one from the beginning.
 */
export function keepPod(object: KubernetesObject, factoryId: string): KeptPod | undefined {
  const maker = makerOf(object.metadata);
  const kept = maker === undefined ? undefined : keep(object, jobOf(object.metadata), factoryId, slimPod);
  return kept && maker ? { ...kept, maker } : undefined;
}

/**
 * Uid of the Job that made a Pod: the one that controls it. A Job that was deleted without its Pods (`--cascade=orphan`) leaves them without
 * a controller, and its uid in their label; while it is there, it takes each Pod with that label for its own.
 */
export function makerOf(metadata: ObjectMeta | undefined): string | undefined {
  const controller = presentIn(metadata?.ownerReferences).find((one) => one.controller);
  const { 'batch.kubernetes.io/controller-uid': label, 'controller-uid': former } = metadata?.labels ?? {};
  if (controller === undefined) return label || former || undefined;
  const isJob = controller.kind === 'Job' && controller.name === jobOf(metadata);
  return (isJob && controller.uid) || undefined;
}

/** Name of the Job that made a Pod. */
export function jobOf(metadata: ObjectMeta | undefined): string | undefined {
  return metadata?.labels?.['batch.kubernetes.io/job-name'] ?? metadata?.labels?.['job-name'] ?? undefined;
}

function keep(
  object: KubernetesObject,
  jobName: string | undefined,
  factoryId: string,
  slim: (object: KubernetesObject) => unknown,
): Kept | undefined {
  const workerId = workerIdOf(object.metadata);
  if (workerId === undefined || !isOurs(object.metadata, factoryId)) return undefined;
  if (jobName !== workerName(factoryId, workerId)) return undefined;
  return { workerId, uid: object.metadata?.uid ?? '', text: JSON.stringify(slim(object), cutText) };
}

/** Longest text that is kept, characters: a name is shorter, of a message the beginning is shown, and a pilot's own has 4096 bytes. */
const longestText = 4096;

function cutText(_: string, value: unknown): unknown {
  return typeof value === 'string' && value.length > longestText ? value.slice(0, longestText) : value;
}

/** The conditions of Pods that thresher reads: those of readiness would be half of the kept text. */
const readOfPods: ReadonlySet<string> = new Set(['PodScheduled', 'Initialized', 'DisruptionTarget']);

function slimJob(object: KubernetesObject): Job {
  const { metadata, spec, status } = object as Job;
  return {
    metadata: slimMetadata(metadata, queueLabel, configAnnotation),
    spec: {
      ...(spec?.backoffLimit !== undefined && { backoffLimit: spec.backoffLimit }),
      ...(spec?.backoffLimitPerIndex !== undefined && { backoffLimitPerIndex: spec.backoffLimitPerIndex }),
      ...(spec?.completions !== undefined && { completions: spec.completions }),
      ...(spec?.suspend ? { suspend: true } : {}),
      ...(spec?.podFailurePolicy ? { podFailurePolicy: true } : {}),
      ...(spec?.managedBy && { managedBy: spec.managedBy }),
    },
    status: {
      ...(status?.startTime && { startTime: status.startTime }),
      ...(status?.completionTime && { completionTime: status.completionTime }),
      ...(status?.active && { active: status.active }),
      ...(status?.ready && { ready: status.ready }),
      ...(status?.succeeded && { succeeded: status.succeeded }),
      ...(status?.failed && { failed: status.failed }),
      ...(status?.terminating && { terminating: status.terminating }),
      ...(status?.conditions && { conditions: presentIn(status.conditions).map(slimCondition) }),
    },
  };
}

function slimPod(object: KubernetesObject): Pod {
  const { metadata, spec, status } = object as Pod;
  const { phase, reason, message, startTime, conditions, containerStatuses, initContainerStatuses } =
    status ?? {};
  return {
    metadata: slimMetadata(metadata, queueLabel, configAnnotation, pilotAnnotation),
    spec: {
      ...(spec?.nodeName && { nodeName: spec.nodeName }),
      ...(spec?.terminationGracePeriodSeconds && {
        terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
      }),
      ...(spec?.restartPolicy === 'OnFailure' && { restartPolicy: spec.restartPolicy }),
      ...(toleratesVirtualNode(spec?.tolerations) && {
        tolerations: presentIn(spec?.tolerations).map(keyOf),
      }),
      containers: presentIn(spec?.containers).map(slimSpec),
      ...(spec?.initContainers && { initContainers: presentIn(spec.initContainers).map(slimSpec) }),
    },
    status: {
      ...(phase && { phase }),
      ...(reason && { reason }),
      ...(message && { message }),
      ...(startTime && { startTime }),
      ...(conditions && {
        conditions: presentIn(conditions)
          .filter(({ type }) => readOfPods.has(type))
          .map(slimCondition),
      }),
      ...(containerStatuses && { containerStatuses: presentIn(containerStatuses).map(slimStatus) }),
      ...(initContainerStatuses && {
        initContainerStatuses: presentIn(initContainerStatuses).map(slimStatus),
      }),
    },
  };
}

function slimMetadata(metadata: ObjectMeta | undefined, ...wanted: string[]): ObjectMeta {
  const { name, uid, creationTimestamp, deletionTimestamp, finalizers, annotations } = metadata ?? {};
  const kept = wanted.flatMap((key) => {
    const value = annotations?.[key];
    return value == null ? [] : [[key, value] as const];
  });
  return {
    ...(name !== undefined && { name }),
    ...(uid !== undefined && { uid }),
    ...(creationTimestamp && { creationTimestamp }),
    ...(deletionTimestamp && { deletionTimestamp }),
    // Before its end nothing rests on them.
    ...(deletionTimestamp && finalizers && { finalizers: presentIn(finalizers) }),
    annotations: Object.fromEntries(kept),
  };
}

function slimCondition({ type, status, reason, message, lastTransitionTime }: Condition): Condition {
  return {
    type,
    status,
    ...(reason && { reason }),
    ...(message && { message }),
    ...(lastTransitionTime && { lastTransitionTime }),
  };
}

function keyOf({ key }: { readonly key?: string | null }): { readonly key?: string } {
  return key ? { key } : {};
}

function slimSpec({ name, restartPolicy }: ContainerSpec): ContainerSpec {
  return { name, ...(restartPolicy && { restartPolicy }) };
}

function slimStatus({ name, restartCount, state, lastState }: ContainerStatus): ContainerStatus {
  return {
    name,
    ...(restartCount && { restartCount }),
    ...(state && { state: slimState(state) }),
    ...(lastState && { lastState: slimState(lastState) }),
  };
}

function slimState({ waiting, running, terminated }: ContainerState): ContainerState {
  return {
    ...(waiting && { waiting: slimSaid(waiting) }),
    ...(running && { running: running.startedAt ? { startedAt: running.startedAt } : {} }),
    ...(terminated && { terminated: slimTerminated(terminated) }),
  };
}

function slimSaid({ reason, message }: WaitingState): WaitingState {
  return { ...(reason && { reason }), ...(message && { message }) };
}

function slimTerminated(from: TerminatedState): TerminatedState {
  const { exitCode, signal, startedAt, finishedAt } = from;
  return {
    ...(exitCode !== undefined && { exitCode }),
    ...(signal && { signal }),
    ...slimSaid(from),
    ...(startedAt && { startedAt }),
    ...(finishedAt && { finishedAt }),
  };
}
