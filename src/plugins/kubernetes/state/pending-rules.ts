import { messageOf } from '../../../worker/errors.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { hadItsTurn, hasBegun, isOnVirtualNode, type Facts, timeOf } from './pod-facts.ts';

/** Decides about a worker once it has waited for this reason for `graceSeconds`. */
export interface PendingRule {
  readonly reason: RegExp;
  /** Seconds from when the reason may first have been there, by the cluster's clock. */
  readonly graceSeconds: number;
  readonly then: 'wait' | 'fail';
  readonly code: string;
  /** For the table in docs/. */
  readonly about: string;
}

/** A rule of a queue's own, tried before those below. */
export interface PendingOverride {
  readonly reason: string;
  readonly graceSeconds: number;
  readonly then: 'wait' | 'fail';
}

/**
 * Each reason to wait and its meaning for the worker. Order matters: the first match counts. A worker whose reason
 * matches none waits until `podQueueTimeLimit`. The reasons are the kubelet's, the scheduler's, and five of our own:
 * NoPod, Terminating, Unknown, Pending and QueuedAtSite.
 * Source: kubelet's images/types.go, kuberuntime and container/sync_result.go, Kubernetes 1.36.
 */
export const pendingRules: readonly PendingRule[] = [
  {
    reason: /^(InvalidImageName|ErrImageNeverPull)$/,
    graceSeconds: 0,
    then: 'fail',
    code: 'k8s-image',
    about: 'No waiting makes an image of that name.',
  },
  {
    reason:
      /^(ErrImagePull|ImagePullBackOff|ImageInspectError|RegistryUnavailable|SignatureValidationFailed)$/,
    graceSeconds: 600,
    then: 'fail',
    code: 'k8s-image',
    about: 'A registry may be away for a moment.',
  },
  {
    reason: /^CreateContainerConfigError$/,
    graceSeconds: 300,
    then: 'fail',
    code: 'k8s-config',
    about: 'A Secret or ConfigMap, or a key of it, is missing; its maker may be about to create it.',
  },
  {
    reason: /^(CreateContainerError|PreCreateHookError|PreStartHookError|CreatePodSandboxError)$/,
    graceSeconds: 300,
    then: 'fail',
    code: 'k8s-container-start',
    about: 'The container runtime could not make the container.',
  },
  {
    reason: /^(RunContainerError|StartError|ContainerCannotRun|PostStartHookError)$/,
    graceSeconds: 60,
    then: 'fail',
    code: 'k8s-container-start',
    about: 'The container was made and did not start, as when its command does not exist.',
  },
  {
    reason: /^CrashLoopBackOff$/,
    graceSeconds: 300,
    then: 'fail',
    code: 'k8s-crash-loop',
    about: 'A container ends again and again; with `restartPolicy: Never` only a sidecar can.',
  },
  {
    reason: /^(ContainerCreating|PodInitializing)$/,
    graceSeconds: 3600,
    then: 'fail',
    code: 'k8s-not-starting',
    about:
      'Also a volume that cannot be mounted (a Secret that is not there, CVMFS) looks like this. On a virtual node it is `QueuedAtSite`, which waits until `podQueueTimeLimit`.',
  },
  {
    reason: /^SchedulingGated$/,
    graceSeconds: 0,
    then: 'wait',
    code: 'k8s-queue-time',
    about: 'A controller (Kueue) holds the Pod back on purpose: no limit.',
  },
  {
    reason: /^Terminating$/,
    graceSeconds: 3600,
    then: 'fail',
    code: 'k8s-node-lost',
    about: 'Counted from the end of its grace: no kubelet answers that would end it.',
  },
];

/** Why a worker waits, and since when by the cluster. */
export interface Waiting {
  readonly reason: string;
  readonly message?: string;
  /** ms UTC */
  readonly since: number;
  readonly container?: string;
}

export interface PendingLimits {
  /** Seconds a worker may wait before its pilot starts, whatever for. */
  readonly podQueueTimeLimit: number;
  readonly pendingRules?: readonly PendingOverride[];
  /** Since when the worker is known to have no Pod, ms UTC: its Job does not say. */
  readonly withoutPodSince?: number;
  /** Since when a worker waits whose Pod was made at this time, ms UTC by the clock of now: that of then may have been wrong. */
  readonly sinceOf?: (time: number) => number;
  /** Why it has none, as far as the cluster said: "FailedCreate: ... exceeded quota ...". */
  readonly withoutPodBecause?: string;
}

/** The meaning of waiting now: nothing yet but perhaps at `at` (ms UTC), or the end. */
export type PendingOutcome =
  | { readonly then: 'wait'; readonly at?: number }
  | { readonly then: 'fail'; readonly code: string; readonly message: string };

/** Own rules whose `reason` is no regular expression, for the `check` of the monitor: at work they would fail every worker. */
export function badPendingRules(rules: readonly PendingOverride[]): DefinitionProblem[] {
  return rules.flatMap(({ reason }, index) => {
    try {
      new RegExp(reason);
      return [];
    } catch (error) {
      const message = `reason is ${JSON.stringify(reason)}, which is no regular expression: ${messageOf(error)}`;
      return [{ pointer: `/pendingRules/${index}/reason`, code: 'wrong-type', message }];
    }
  });
}

/** Judges these reasons to wait, with the queue's own rules first. */
export function judgeWaiting(
  waiting: readonly Waiting[],
  queuedSince: number | undefined,
  limits: PendingLimits,
  now: number,
): PendingOutcome {
  const ends = waiting.flatMap((one) => {
    const rule = ruleFor(one.reason, limits.pendingRules ?? []);
    return rule?.then === 'fail'
      ? [{ at: one.since + rule.graceSeconds * 1000, code: rule.code, said: sayWaiting(one, now) }]
      : [];
  });
  const unlimited = waiting.some(
    ({ reason }) => reason === 'Terminating' || ruleFor(reason, limits.pendingRules ?? [])?.then === 'wait',
  );
  if (queuedSince !== undefined && !unlimited) {
    const hours = `podQueueTimeLimit of ${limits.podQueueTimeLimit} s is over`;
    const said = waiting[0] === undefined ? '' : `: ${sayWaiting(waiting[0], now)}`;
    ends.push({
      at: queuedSince + limits.podQueueTimeLimit * 1000,
      code: 'k8s-queue-time',
      said: `${hours}${said}`,
    });
  }
  const first = ends.toSorted((a, b) => a.at - b.at)[0];
  if (first === undefined) return { then: 'wait' };
  if (first.at > now) return { then: 'wait', at: first.at };
  return { then: 'fail', code: first.code, message: first.said };
}

function ruleFor(reason: string, overrides: readonly PendingOverride[]): PendingRule | undefined {
  const usual = pendingRules.find((rule) => rule.reason.test(reason));
  const own = overrides.find((override) => new RegExp(`^(?:${override.reason})$`).test(reason));
  if (own === undefined) return usual;
  const { graceSeconds, then } = own;
  const { code = 'k8s-queue-time', about = '' } = usual ?? {};
  return { reason: new RegExp(own.reason), graceSeconds, then, code, about };
}

function sayWaiting({ reason, message, since, container }: Waiting, now: number): string {
  const where = container === undefined ? '' : ` of container ${container}`;
  const text = message === undefined || message === '' ? '' : `: ${message}`;
  return `${reason}${where} for ${Math.max(0, Math.round((now - since) / 1000))} s${text}`;
}

/** Since when a worker without a Pod waits for one, ms UTC. A worker that lost its Pod waits since that loss. */
export function noPodSince(facts: Facts, withoutPodSince: number | undefined): number | undefined {
  const { status, metadata } = facts.job ?? {};
  const started = timeOf(status?.startTime) ?? timeOf(metadata?.creationTimestamp);
  if (started === undefined || withoutPodSince === undefined || !hadItsTurn(facts)) return started;
  return Math.max(started, withoutPodSince);
}

/** Why a worker waits: the containers' reasons, else the Pod's, else that there is no Pod. */
export function waitingOf(facts: Facts, { withoutPodSince, withoutPodBecause }: PendingLimits): Waiting[] {
  const { pod } = facts;
  if (pod === undefined) {
    const since = noPodSince(facts, withoutPodSince);
    const message = withoutPodBecause;
    return since === undefined ? [] : [{ reason: 'NoPod', ...(message !== undefined && { message }), since }];
  }
  const deletion = timeOf(pod.metadata?.deletionTimestamp);
  if (deletion !== undefined) return [{ reason: 'Terminating', since: deletion }];
  const created = timeOf(pod.metadata?.creationTimestamp);
  const changed = (type: string) =>
    timeOf(pod.status?.conditions?.find((condition) => condition.type === type)?.lastTransitionTime);
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  const taken = timeOf(pod.status?.startTime) ?? changed('PodScheduled') ?? created;
  if (taken === undefined || created === undefined) return [];
  if (facts.phase === 'Unknown') return [{ reason: 'Unknown', since: created }];
  const initialized = facts.podIs.has('Initialized') ? changed('Initialized') : undefined;
  const begun = hasBegun(facts);
  const inits = facts.containers.flatMap(({ role, state }) =>
    role === 'init' ? (timeOf(state.terminated?.finishedAt) ?? []) : [],
  );
  const containers = facts.containers.flatMap(({ name, role, state, lastState }): Waiting[] => {
    // Once the pilot has begun, only what holds the pilot itself up counts: not a sidecar that fails beside it.
    if (!state.waiting || (begun && role !== 'pilot')) return [];
    const first = role === 'init' || role === 'sidecar';
    // The kubelet says PodInitializing of every container that waits for the init containers: no reason of its own.
    if (!first && initialized === undefined && facts.containers.some((one) => one.role === 'init')) {
      if (state.waiting.reason === 'PodInitializing') return [];
    }
    const { reason, message } = state.waiting;
    // Not before what it waited for until then was over: an init container, or its own last run.
    const lastEnd = timeOf(lastState.terminated?.finishedAt) ?? 0;
    const since = Math.max(first ? taken : (initialized ?? taken), lastEnd, ...(first ? inits : []));
    const isQueued = /^(ContainerCreating|PodInitializing)$/.test(reason ?? '') && isOnVirtualNode(pod);
    const shown = isQueued ? 'QueuedAtSite' : (reason ?? 'Pending');
    return [{ reason: shown, ...(message && { message }), since, container: name }];
  });
  if (containers.length > 0) return containers;
  if (begun || facts.phase !== 'Pending') return [];
  // An init container at work is no reason to wait of any rule; the queue time goes on.
  if (facts.containers.some(({ state }) => state.running)) return [{ reason: 'Initializing', since: taken }];
  const { reason, message } = scheduled?.status === 'False' ? scheduled : {};
  const since = (scheduled && timeOf(scheduled.lastTransitionTime)) ?? created;
  return [{ reason: reason ?? 'Pending', ...(message && { message }), since }];
}
