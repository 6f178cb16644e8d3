import type { WorkerError } from '../../../worker/worker.ts';
import { type Container, type Facts, providerFailed, providerLost } from './pod-facts.ts';

/** One cause of a failure: what it looks like, and what is said of it. */
export interface Cause {
  /** For the table in docs/. */
  readonly seen: string;
  readonly code: string;
  /** @returns the sentence, or undefined where it is not the cause. */
  readonly find: (facts: Facts, options: CauseOptions) => string | undefined;
}

export interface CauseOptions {
  /** Harvester's: `atlas_pilot_wrapper` gives the wrapper's exit statuses their texts. */
  readonly payloadType?: string;
}

/** Source: Harvester's monitor_common. */
const wrapperTexts: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  atlas_pilot_wrapper: {
    1: 'wrapper fault',
    2: 'wrapper killed stuck pilot',
    64: 'wrapper got cvmfs repos issue',
    80: 'pilot proxy invalid or with insufficient timeleft',
  },
};

/**
 * Why a worker failed. Order matters: the first match counts. A cause that befell the whole Pod comes before the ends
 * of its containers, since it ended them; the Job's own reason comes last, since it only counts Pods.
 * Source: Pod conditions and reasons of Kubernetes 1.36 (kubelet, scheduler, taint manager, Pod GC).
 */
export const failureCauses: readonly Cause[] = [
  {
    seen: 'Job `Failed` or `FailureTarget` with `DeadlineExceeded`, or Pod reason `DeadlineExceeded`',
    code: 'walltime',
    find: ({ jobIs, pod }) => {
      const ended = [jobIs.get('Failed'), jobIs.get('FailureTarget')];
      const byJob = ended.find((one) => one?.reason === 'DeadlineExceeded');
      if (byJob) return sentence('the Job was active longer than its activeDeadlineSeconds', byJob);
      if (pod?.status?.reason !== 'DeadlineExceeded') return undefined;
      return sentence('the Pod was active longer than its activeDeadlineSeconds', pod.status);
    },
  },
  {
    seen: 'Pod condition `DisruptionTarget` with `PreemptionByScheduler`, or Pod reason `Preempting`, `Preempted`',
    code: 'k8s-preempted',
    find: disrupted(
      /^(PreemptionByScheduler|Preempting|Preempted)$/,
      'made room for a Pod of higher priority',
    ),
  },
  {
    seen: 'Pod reason `NodeLost`, `NodeShutdown`, `Shutdown`, `Terminated`, or condition `DisruptionTarget` with `DeletionByTaintManager`, `DeletionByPodGC`',
    code: 'k8s-node-lost',
    find: disrupted(
      /^(NodeLost|NodeShutdown|Shutdown|Terminated|DeletionByTaintManager|DeletionByPodGC)$/,
      'the node was shut down, drained by a taint or lost',
    ),
  },
  {
    seen: 'Pod reason `Evicted`, or condition `DisruptionTarget` with `EvictionByEvictionAPI`, `TerminationByKubelet` or another reason',
    code: 'k8s-evicted',
    find: (facts) =>
      disrupted(/^(Evicted|EvictionByEvictionAPI|TerminationByKubelet)$/, 'evicted')(facts) ??
      (facts.podIs.has('DisruptionTarget')
        ? sentence('disrupted', facts.podIs.get('DisruptionTarget'))
        : undefined),
  },
  {
    seen: 'Pod reason `OutOfcpu` (and other `OutOf...`), `UnexpectedAdmissionError`, `NodeAffinity`, `AppArmor` ...: `Failed` without any container',
    code: 'k8s-rejected-by-node',
    find: ({ pod, containers }) =>
      pod?.status?.reason &&
      (containers.length === 0 || /^(OutOf|UnexpectedAdmission)/.test(pod.status.reason))
        ? sentence('the node refused the Pod', pod.status)
        : undefined,
  },
  {
    seen: 'Pod reason `ProviderFailed`: a virtual node whose site did not take the Pod',
    code: 'k8s-rejected-by-node',
    find: ({ pod }) =>
      pod?.status?.reason === providerFailed
        ? sentence('the site behind the virtual node refused the Pod', pod.status)
        : undefined,
  },
  {
    seen: 'Pod reason `NotFound`: a virtual node whose site no longer knows the Pod',
    code: 'k8s-node-lost',
    find: ({ pod, containers }) =>
      pod?.status?.reason === providerLost || containers.some(isLost)
        ? sentence('the site behind the virtual node no longer knows the Pod', pod?.status ?? undefined)
        : undefined,
  },
  {
    seen: 'pilot `OOMKilled`, exit status not 0',
    code: 'k8s-oom',
    find: ({ exit }) => {
      if (exit?.reason !== 'OOMKilled' || exit.exitCode === 0) return undefined;
      const limit = 'see the memory limit of its container';
      return exit.exitCode === 137
        ? `the pilot was killed for memory; ${limit}`
        : `ended with exit status ${exit.exitCode ?? '?'} after a process of it was killed for memory; ${limit}`;
    },
  },
  {
    seen: 'init container ended with an exit status other than 0',
    code: 'k8s-init-failed',
    find: ({ containers }) => {
      const failed = containers.find(({ role, state }) => role === 'init' && failedIn(state.terminated));
      return failed && `init container ${failed.name} ${howItEnded(failed)}`;
    },
  },
  {
    seen: 'pilot ended with `StartError`, `ContainerCannotRun`',
    code: 'k8s-container-start',
    find: ({ exit }) =>
      /^(StartError|ContainerCannotRun)$/.test(exit?.reason ?? '')
        ? sentence("the pilot's container could not start", exit)
        : undefined,
  },
  {
    seen: 'pilot ended with `ContainerStatusUnknown`',
    code: 'exit-status-lost',
    find: ({ exit }) =>
      exit?.reason === 'ContainerStatusUnknown'
        ? sentence("nobody knows how the pilot's container ended", exit)
        : undefined,
  },
  {
    seen: 'pilot ended with an exit status other than 0, or by a signal',
    code: 'exit-status',
    find: ({ exit, pilot, pod }, { payloadType = '' }) => {
      if (!failedIn(exit) || pilot === undefined) return undefined;
      const text = wrapperTexts[payloadType]?.[exit?.exitCode ?? 0];
      // By hand, or with its Job: no condition tells of it, and the signal alone looks like the pilot's own trouble.
      const deleted = pod?.metadata?.deletionTimestamp && isSignal(exit?.exitCode);
      const how = `${howItEnded(pilot)}${deleted ? '; its Pod was deleted' : ''}`;
      return text === undefined ? how : `${text}: ${how}`;
    },
  },
  {
    seen: 'another container ended with an exit status other than 0, the pilot not at all, or with 0 in a Job that wants more completions',
    code: 'k8s-container-beside-failed',
    find: ({ containers }) => {
      const failed = containers.find(({ state }) => failedIn(state.terminated));
      return failed && `container ${failed.name}, not the pilot's, ${howItEnded(failed)}`;
    },
  },
  {
    seen: 'Job `Failed` with `PodFailurePolicy`',
    code: 'k8s-failure-policy',
    find: ofJob('PodFailurePolicy', "the Job's podFailurePolicy ended it"),
  },
  {
    seen: 'Job `Failed` with `BackoffLimitExceeded`, and no Pod left that would say more',
    code: 'k8s-pod-gone',
    find: ofJob('BackoffLimitExceeded', 'its Pod failed, and is gone'),
  },
  {
    seen: 'Pod with a `deletionTimestamp`, and nothing of the above',
    code: 'k8s-pod-gone',
    find: ({ pod }) =>
      pod?.metadata?.deletionTimestamp ? 'its Pod was deleted before its pilot began' : undefined,
  },
  {
    seen: 'anything else',
    code: 'k8s-failed',
    find: ({ pod, jobIs }) => {
      const reason = pod?.status?.reason ? pod.status : (jobIs.get('Failed') ?? jobIs.get('FailureTarget'));
      return sentence('failed', reason);
    },
  },
];

/** The error of a failed worker. */
export function causeOf(facts: Facts, options: CauseOptions): WorkerError {
  for (const cause of failureCauses) {
    const message = cause.find(facts, options);
    if (message !== undefined) return { code: cause.code, message };
  }
  return { code: 'k8s-failed', message: 'failed' };
}

/** By the Pod's reason, or its condition DisruptionTarget: of a Pod that was deleted only the condition says why. */
function disrupted(reasons: RegExp, what: string): (facts: Facts) => string | undefined {
  return ({ pod, podIs }) => {
    const target = podIs.get('DisruptionTarget');
    const said = [pod?.status, target].find((one) => reasons.test(one?.reason ?? ''));
    return said && sentence(what, { reason: said.reason, message: said.message ?? target?.message });
  };
}

function ofJob(reason: string, what: string): (facts: Facts) => string | undefined {
  return ({ jobIs }) => {
    const condition = [jobIs.get('Failed'), jobIs.get('FailureTarget')].find((one) => one?.reason === reason);
    return condition && sentence(what, condition);
  };
}

interface Said {
  readonly reason?: string | null | undefined;
  readonly message?: string | null | undefined;
}

/** Reason and message may each be missing: Harvester fails over a null here. */
function sentence(what: string, from: Said | undefined): string {
  const parts = [from?.reason, from?.message].filter((part) => part);
  return parts.length === 0 ? what : `${what} (${parts.join(': ')})`;
}

function isLost({ state: { terminated } }: Container): boolean {
  return terminated?.reason === providerLost && (terminated.exitCode ?? 0) < 0;
}

function failedIn(terminated: Container['state']['terminated']): boolean {
  return Boolean(terminated && (terminated.exitCode !== 0 || terminated.signal));
}

/** As a shell says that a signal ended something. */
function isSignal(code: number | null | undefined): code is number {
  return typeof code === 'number' && code > 128 && code < 193;
}

/** "ended with exit status 143, usually signal 15 (Error: ...)". */
function howItEnded({ state }: Container): string {
  const { exitCode, signal, reason, message } = state.terminated ?? {};
  const code = exitCode ?? undefined;
  const bySignal = signal ? `, by signal ${signal}` : isSignal(code) ? `, usually signal ${code - 128}` : '';
  const notFound = code === 127 ? ', usually a command that was not found' : '';
  // "Error" is what the kubelet says of every exit status but 0.
  const said = sentence('', {
    reason: reason === 'Error' ? null : (reason ?? null),
    message: message ?? null,
  });
  return `ended with exit status ${code ?? '?'}${bySignal}${notFound}${said === '' ? '' : said}`;
}
