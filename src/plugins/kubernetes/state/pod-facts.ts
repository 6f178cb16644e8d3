import { presentIn } from '../../../clients/kubernetes/objects.ts';
import { pilotAnnotation } from '../marks.ts';
import type { Condition, ContainerState, ContainerStatus, Job, Pod, TerminatedState } from './types.ts';

/** The role of a container. A sidecar is an init container that is always restarted. */
export type ContainerRole = 'pilot' | 'beside' | 'init' | 'sidecar';

export interface Container {
  readonly name: string;
  readonly role: ContainerRole;
  readonly restarts: number;
  readonly state: ContainerState;
  readonly lastState: ContainerState;
}

/** The rules of pod-state.ts read these: a Job and the newest of its Pods, with all that may be missing sorted out. */
export interface Facts {
  readonly job?: Job;
  readonly pod?: Pod;
  /** How many Pods of the Job are there. */
  readonly pods: number;
  /** Another Pod than the newest has not ended. */
  readonly isBesideOthers: boolean;
  readonly containers: readonly Container[];
  readonly pilot?: Container;
  /** How the pilot's container ended, where it has. */
  readonly exit?: TerminatedState;
  /** Conditions that hold, by type: all of them, in whatever order they stand. */
  readonly jobIs: ReadonlyMap<string, Condition>;
  readonly podIs: ReadonlyMap<string, Condition>;
  readonly phase: string;
}

export function factsOf(job: Job | undefined, pods: readonly Pod[]): Facts {
  const pod = newest(pods);
  const containers = pod === undefined ? [] : containersOf(pod);
  const pilot = containers.find(({ role }) => role === 'pilot');
  const terminated = pilot?.state.terminated ?? undefined;
  const exit = isOfProvider(terminated) ? undefined : terminated;
  return {
    ...(job !== undefined && { job }),
    ...(pod !== undefined && { pod }),
    pods: pods.length,
    isBesideOthers: pods.some((one) => one !== pod && !/^(Succeeded|Failed)$/.test(one.status?.phase ?? '')),
    containers,
    ...(pilot !== undefined && { pilot }),
    ...(exit !== undefined && { exit }),
    jobIs: holding(job?.status?.conditions),
    podIs: holding(pod?.status?.conditions),
    phase: pod?.status?.phase ?? (pod === undefined ? '' : 'Pending'),
  };
}

/** Value of `spec.managedBy` of a Job that Kubernetes' own controller has. */
export const ownController = 'kubernetes.io/job-controller';

/** ms UTC of a time of the API; undefined where there is none, none that can be read, or 1970, which is the kubelet's "never". */
export function timeOf(text: string | null | undefined): number | undefined {
  const time = Date.parse(text ?? '');
  return time > 0 ? time : undefined;
}

/** Whether the pilot's process has begun in this Pod, whatever became of it. */
export function hasBegun({ pilot }: Facts): boolean {
  if (pilot === undefined) return false;
  const { running, terminated } = pilot.state;
  const ended = terminated?.reason === providerFailed ? undefined : terminated;
  return Boolean(running ?? ended ?? pilot.lastState.terminated);
}

/** What a virtual node writes of a Pod that its provider did not take. Source: virtual-kubelet, node/pod.go. */
export const providerFailed = 'ProviderFailed';
/** The same of one that its provider no longer knows. Source: virtual-kubelet, node/sync.go. */
export const providerLost = 'NotFound';

/** Whether a virtual node made this end up: no process of the container had that exit status (1 and -137). */
function isOfProvider(terminated: TerminatedState | undefined): boolean {
  const { reason, exitCode } = terminated ?? {};
  return reason === providerFailed || (reason === providerLost && (exitCode ?? 0) < 0);
}

/** Taints of virtual nodes: interLink's charts, and virtual-kubelet's providers. */
const virtualTaints: ReadonlySet<string> = new Set([
  'virtual-node.interlink/no-schedule',
  'virtual-kubelet.io/provider',
]);

export function toleratesVirtualNode(
  tolerations: readonly { readonly key?: string | null | undefined }[] | null | undefined,
): boolean {
  return presentIn(tolerations).some(({ key }) => virtualTaints.has(key ?? ''));
}

/** Whether a virtual node has the Pod: its containers are "being created" as long as the job waits in the batch queue of a site. */
export function isOnVirtualNode({ spec, status }: Pod): boolean {
  return toleratesVirtualNode(spec?.tolerations) || status?.reason === 'Waiting for init containers';
}

/** Whether no second Pod of the Job is to come. */
export function wantsOnePod({ job }: Facts): boolean {
  return (job?.spec?.completions ?? 1) <= 1;
}

export function isDeleted(object: Job | Pod | undefined): boolean {
  return Boolean(object?.metadata?.deletionTimestamp);
}

/**
 * Whether the Job would start another Pod after a failed one. Only what certainly would not may end a worker: a worker
 * called failed whose Job starts another Pod would be a second live one.
 */
export function startsAnotherPod({ job, jobIs }: Facts): boolean {
  if (job === undefined || isDeleted(job)) return false;
  if (jobIs.has('FailureTarget') || jobIs.has('Failed') || jobIs.has('SuccessCriteriaMet')) return false;
  // A failure policy may ignore a failure. 6 is what a Job without `backoffLimit` has.
  const { podFailurePolicy, backoffLimit, backoffLimitPerIndex } = job.spec ?? {};
  if (podFailurePolicy) return true;
  return (backoffLimit ?? 6) > 0 && (backoffLimitPerIndex ?? 6) > 0;
}

/**
 * Whether another controller than Kubernetes' own has the Job, as MultiKueue does: its Pods are in another cluster, and its status is copied
 * from there. Source: `spec.managedBy`, KEP-4368.
 */
export function isElsewhere({ job, pod }: Pick<Facts, 'job' | 'pod'>): boolean {
  const { managedBy = ownController } = job?.spec ?? {};
  return pod === undefined && (managedBy ?? ownController) !== ownController;
}

/** Whether that controller counts a Pod of the Job. */
export function countsElsewhere(job: Job | undefined): boolean {
  const { active, ready } = job?.status ?? {};
  return job !== undefined && isElsewhere({ job }) && (active ?? 0) + (ready ?? 0) > 0;
}

/** Whether a Pod was there, or the Job was held back, before: it is no longer only submitted then. */
export function hadItsTurn(facts: Facts): boolean {
  const { active, failed, succeeded, terminating, conditions, startTime } = facts.job?.status ?? {};
  // What was counted in another cluster may be counted no more, and this one makes no Pod before the start.
  if (isElsewhere(facts) && timeOf(startTime) !== undefined) return true;
  const counted = (active ?? 0) + (failed ?? 0) + (succeeded ?? 0) + (terminating ?? 0);
  return counted > 0 || (conditions ?? []).some(({ type }) => type === 'Suspended');
}

function holding(conditions: readonly Condition[] | null | undefined): Map<string, Condition> {
  const held = (conditions ?? []).filter(({ status }) => status === 'True');
  return new Map(held.map((condition) => [condition.type, condition]));
}

/** Created last; of two in the same second the one that is not on its way out. */
function newest(pods: readonly Pod[]): Pod | undefined {
  const age = (pod: Pod) => timeOf(pod.metadata?.creationTimestamp) ?? 0;
  const name = (pod: Pod) => pod.metadata?.name ?? '';
  return pods.toSorted(
    (a, b) => age(b) - age(a) || Number(isDeleted(a)) - Number(isDeleted(b)) || (name(a) < name(b) ? -1 : 1),
  )[0];
}

/** The pilot's is the one that the Pod's annotation names, else the first. */
function containersOf({ metadata, spec, status }: Pod): Container[] {
  const pilotContainer = metadata?.annotations?.[pilotAnnotation];
  const main = status?.containerStatuses ?? [];
  const init = status?.initContainerStatuses ?? [];
  const specs = spec?.containers ?? [];
  // The kubelet sorts statuses by name; the specification has the operator's order.
  const pilotName =
    [...specs, ...main].find(({ name }) => name === pilotContainer)?.name ?? specs[0]?.name ?? main[0]?.name;
  const sidecars = new Set(
    (spec?.initContainers ?? [])
      .filter(({ restartPolicy }) => restartPolicy === 'Always')
      .map(({ name }) => name),
  );
  const made = (status: ContainerStatus, role: ContainerRole): Container => ({
    name: status.name,
    role,
    restarts: status.restartCount ?? 0,
    state: status.state ?? {},
    lastState: status.lastState ?? {},
  });
  return [
    ...init.map((one) => made(one, sidecars.has(one.name) ? 'sidecar' : 'init')),
    ...main.map((one) => made(one, one.name === pilotName ? 'pilot' : 'beside')),
  ];
}
