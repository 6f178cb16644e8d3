import type { Observation } from '../../../worker/observation.ts';
import type { WorkerStatus } from '../../../worker/status.ts';
import { type CauseOptions, causeOf } from './failure-causes.ts';
import { describePod } from './pod-detail.ts';
import {
  type Facts,
  factsOf,
  hadItsTurn,
  hasBegun,
  isDeleted,
  isElsewhere,
  startsAnotherPod,
  timeOf,
  wantsOnePod,
} from './pod-facts.ts';
import { judgeWaiting, noPodSince, type PendingLimits, type Waiting, waitingOf } from './pending-rules.ts';
import type { Job, Pod } from './types.ts';

export interface StateOptions extends PendingLimits, CauseOptions {}

/** The state of a worker by its Job and Pods. */
export interface WorkerState {
  /** The state as the cluster shows it. */
  readonly observation: Observation;
  /**
   * The worker is given up by a pending rule, or over by the end of its pilot, though the cluster would go on with it. `observation` is true as soon as the
   * deletion of the Job (of this uid, where there is one) was accepted, and not before: until then its pilot may still start.
   */
  readonly verdict?: { readonly observation: Observation; readonly jobUid?: string };
  /** ms UTC when time alone may change this. */
  readonly lookAgainAt?: number;
}

interface Row {
  /** For the table in docs/. */
  readonly seen: string;
  readonly status: WorkerStatus;
  /** The word for it, kubectl's where it has one. */
  readonly native: string | ((facts: Facts, waiting: readonly Waiting[]) => string);
  readonly when: (facts: Facts) => boolean;
  /** The pending rules are asked. */
  readonly mayBeGivenUp?: boolean;
  /** The pilot is over, and the rest of its Pod has a time to end by itself. */
  readonly endsWithPilot?: boolean;
}

/** Containers beside an ended pilot may bring something away meanwhile, such as its logs, ms. */
const restOfPod = 600_000;

/** "NoPod:FailedCreate" once an Event of its Job said why. */
const noPod = (_: Facts, waiting: readonly Waiting[]): string =>
  ['NoPod', ...(waiting[0]?.message?.split(': ', 1) ?? [])].join(':');

const reasonOf = (facts: Facts, waiting: readonly Waiting[]): string =>
  waiting.map(({ reason }) => reason).find((reason) => reason !== 'PodInitializing') ??
  waiting[0]?.reason ??
  facts.phase;

/**
 * Maps the sight of a Job and its newest Pod to the status of the worker. Order matters: the first match counts. A Pod
 * that waits makes an `idle` worker and not a `submitted` one, since a worker that lost its Pod, or was suspended, comes
 * back to that, and no worker goes back to `submitted`.
 */
export const stateRows: readonly Row[] = [
  {
    seen: 'Job condition `Complete`, whatever its Pods say',
    status: 'finished',
    native: 'Complete',
    when: ({ jobIs }) => jobIs.has('Complete'),
  },
  {
    seen: "pilot's container ended with exit status 0, and later, for the containers beside it, its Pod was ended or failed: Job `Failed`, or Pod `Failed` and no other follows",
    status: 'finished',
    native: 'PilotEnded',
    when: (facts) =>
      hasSucceededBefore(facts) &&
      (facts.jobIs.has('Failed') || (facts.phase === 'Failed' && !startsAnotherPod(facts))),
  },
  {
    seen: 'Job condition `Failed`, whatever its Pods say',
    status: 'failed',
    native: ({ jobIs }) => jobIs.get('Failed')?.reason ?? 'Failed',
    when: ({ jobIs }) => jobIs.has('Failed'),
  },
  {
    seen: 'Pod `Succeeded`; the Job, if it is still there, wants one completion',
    status: 'finished',
    native: 'Completed',
    when: (facts) => facts.phase === 'Succeeded' && wantsOnePod(facts),
  },
  {
    seen: 'Pod `Succeeded`, and the Job wants more completions',
    status: 'running',
    native: 'Completed',
    when: ({ phase }) => phase === 'Succeeded',
  },
  {
    seen: 'Job condition `Suspended`, or `suspend: true`, and no Pod that lives (Kueue)',
    status: 'idle',
    native: 'Suspended',
    when: ({ job, jobIs, pod, phase }) =>
      (jobIs.has('Suspended') || job?.spec?.suspend === true) && (pod === undefined || phase === 'Failed'),
  },
  {
    seen: 'Pod `Failed`, and no other follows: `backoffLimit` or `backoffLimitPerIndex` 0 and no `podFailurePolicy`, condition `FailureTarget`, or the Job is gone or being deleted',
    status: 'failed',
    native: ({ pod, exit }) => pod?.status?.reason ?? exit?.reason ?? 'Failed',
    when: (facts) => facts.phase === 'Failed' && !startsAnotherPod(facts),
  },
  {
    seen: 'Pod `Failed`, and the Job may start another',
    status: 'idle',
    native: 'PodFailed',
    when: ({ phase }) => phase === 'Failed',
  },
  {
    seen: 'Job condition `SuccessCriteriaMet`: it is being completed',
    status: 'running',
    native: 'SuccessCriteriaMet',
    when: ({ jobIs }) => jobIs.has('SuccessCriteriaMet'),
  },
  {
    seen: 'Job condition `FailureTarget`: its Pod is being ended, the pilot has begun',
    status: 'running',
    native: 'FailureTarget',
    when: (facts) => facts.jobIs.has('FailureTarget') && hasBegun(facts),
    mayBeGivenUp: true,
  },
  {
    seen: 'Job condition `FailureTarget`, the pilot has not begun or its Pod is gone',
    status: 'idle',
    native: 'FailureTarget',
    when: ({ jobIs }) => jobIs.has('FailureTarget'),
    mayBeGivenUp: true,
  },
  {
    seen: 'Pod with a `deletionTimestamp` (evicted, preempted, deleted by hand), the pilot has begun',
    status: 'running',
    native: 'Terminating',
    when: (facts) => isDeleted(facts.pod) && hasBegun(facts),
    mayBeGivenUp: true,
  },
  {
    seen: 'Pod with a `deletionTimestamp`, the pilot has not begun',
    status: 'idle',
    native: 'Terminating',
    when: ({ pod }) => isDeleted(pod),
    mayBeGivenUp: true,
  },
  {
    seen: 'Pod `Unknown` or `NodeLost`, the pilot has begun',
    status: 'running',
    native: 'NodeLost',
    when: (facts) => isUnknown(facts) && hasBegun(facts),
  },
  {
    seen: 'Pod `Unknown` or `NodeLost`, the pilot has not begun',
    status: 'idle',
    native: 'NodeLost',
    mayBeGivenUp: true,
    when: isUnknown,
  },
  {
    seen: "pilot's container running",
    status: 'running',
    native: 'Running',
    when: ({ pilot }) => Boolean(pilot?.state.running),
  },
  {
    seen: "pilot's container ended, others of the Pod still run: after 10 minutes its end is the worker's end, and the Job is deleted",
    status: 'running',
    native: 'PilotEnded',
    when: ({ exit }) => exit !== undefined,
    endsWithPilot: true,
  },
  {
    seen: "pilot's container waits to be started again (`restartPolicy: OnFailure`)",
    status: 'idle',
    native: reasonOf,
    mayBeGivenUp: true,
    when: hasBegun,
  },
  {
    seen: 'init containers at work',
    status: 'idle',
    native: ({ containers }) => {
      const inits = containers.filter(({ role }) => role === 'init');
      return `Init:${inits.filter(({ state }) => state.terminated?.exitCode === 0).length}/${inits.length}`;
    },
    when: (facts) =>
      facts.phase === 'Pending' &&
      facts.containers.some(({ role, state }) => role === 'init' && Boolean(state.running)),
    mayBeGivenUp: true,
  },
  {
    seen: 'Pod `Pending`, or its pilot not begun: native is the reason of a waiting container (`ImagePullBackOff` ...), of `PodScheduled: False` (`Unschedulable`, `SchedulingGated`), or `Pending`',
    status: 'idle',
    native: reasonOf,
    mayBeGivenUp: true,
    when: ({ pod }) => pod !== undefined,
  },
  {
    seen: 'Job without a Pod, of another controller (`managedBy`, as MultiKueue has it), whose `status.ready` counts one',
    status: 'running',
    native: 'RunningElsewhere',
    when: (facts) => isElsewhere(facts) && (facts.job?.status?.ready ?? 0) > 0,
  },
  {
    seen: 'Job without a Pod, of another controller, whose `status.active` counts one: native `ActiveElsewhere`, and it is never given up',
    status: 'idle',
    native: 'ActiveElsewhere',
    when: (facts) => isElsewhere(facts) && (facts.job?.status?.active ?? 0) > 0,
  },
  {
    seen: 'Job without a Pod that had one, or was suspended, before: native is `NoPod`, with the reason of an Event of the Job where there is one (`NoPod:FailedCreate`)',
    status: 'idle',
    native: noPod,
    mayBeGivenUp: true,
    when: (facts) => hadItsTurn(facts),
  },
  {
    seen: 'Job without a Pod yet (quota, slow controller): native as before',
    status: 'submitted',
    native: noPod,
    mayBeGivenUp: true,
    when: () => true,
  },
];

/**
 * Judges the Job and Pods of one worker at `now` (ms UTC). Pure.
 * @returns undefined when there is neither: absence is for the caller to judge.
 */
export function stateOf(
  workerId: number,
  job: Job | undefined,
  pods: readonly Pod[],
  now: number,
  options: StateOptions,
): WorkerState | undefined {
  if (job === undefined && pods.length === 0) return undefined;
  const facts = factsOf(job, pods);
  const row = stateRows.find(({ when }) => when(facts));
  if (row === undefined) return undefined;
  const { status, native, mayBeGivenUp = false, endsWithPilot = false } = row;
  const waiting = mayBeGivenUp ? waitingOf(facts, options) : [];
  const nativeStatus = typeof native === 'string' ? native : native(facts, waiting);
  const over = status === 'finished' || status === 'failed';
  const node = facts.pod?.spec?.nodeName ?? undefined;
  const startTime = timeOf(facts.pilot?.state.running?.startedAt ?? facts.exit?.startedAt);
  const common = {
    workerId,
    observedAt: now,
    detail: describePod(facts, waiting),
    ...(node !== undefined && { node }),
    ...(startTime !== undefined && { startTime }),
  };
  const exitCode = facts.exit?.exitCode ?? undefined;
  const ended = endOf(facts, now);
  // containerd notes a start only once it has returned, so that a container which ends at once ended a moment before it.
  const endTime = ended !== undefined && startTime !== undefined ? Math.max(ended, startTime) : ended;
  const observation: Observation = {
    ...common,
    status,
    nativeStatus,
    ...(over && exitCode !== undefined && { exitCode }),
    ...(over && endTime !== undefined && { endTime }),
    ...(status === 'failed' && { error: causeOf(facts, options) }),
  };
  if (endsWithPilot && endTime !== undefined && isForGood(facts)) {
    // The node's clock may be behind: the pilot ran after its Pod was made.
    const made = timeOf(facts.pod?.metadata?.creationTimestamp) ?? 0;
    const restEnds = Math.max(endTime, made + endTime - (startTime ?? endTime)) + restOfPod;
    if (now < restEnds) return { observation, lookAgainAt: restEnds };
    const over: Observation = {
      ...common,
      status: hasSucceeded(facts) ? 'finished' : 'failed',
      nativeStatus,
      ...(exitCode !== undefined && { exitCode }),
      endTime,
      ...(!hasSucceeded(facts) && { error: causeOf(facts, options) }),
    };
    return { observation, verdict: verdictOf(over, job) };
  }
  // A Job that its controller is ending already has its own reason.
  const ending = facts.jobIs.has('FailureTarget') && facts.pod === undefined;
  if (!mayBeGivenUp || ending) return { observation };
  const { withoutPodSince, sinceOf = (time: number) => time } = options;
  const made = timeOf(facts.pod?.metadata?.creationTimestamp) ?? noPodSince(facts, withoutPodSince);
  const known = made === undefined ? undefined : sinceOf(made);
  // Nor has it waited for longer for any one reason.
  const isLess = known !== undefined && known !== made;
  const judged = isLess ? waiting.map((one) => ({ ...one, since: Math.max(one.since, known) })) : waiting;
  const outcome = judgeWaiting(judged, hasBegun(facts) ? undefined : known, options, now);
  if (outcome.then === 'wait') {
    return { observation, ...(outcome.at !== undefined && { lookAgainAt: outcome.at }) };
  }
  const { code, message } = outcome;
  const given: Observation = {
    ...common,
    status: 'failed',
    nativeStatus,
    error: { code, message },
    endTime: now,
  };
  return { observation, verdict: verdictOf(given, job) };
}

function verdictOf(observation: Observation, job: Job | undefined): NonNullable<WorkerState['verdict']> {
  const jobUid = job?.metadata?.uid;
  return { observation, ...(jobUid !== undefined && { jobUid }) };
}

function hasSucceeded({ exit }: Facts): boolean {
  return exit?.exitCode === 0 && !exit.signal;
}

/** Whether no other Pod of the Job, nor its own kubelet, has or starts a pilot. */
function isForGood(facts: Facts): boolean {
  const isRepeated = facts.pod?.spec?.restartPolicy === 'OnFailure' && !hasSucceeded(facts);
  return wantsOnePod(facts) && !facts.isBesideOthers && !isRepeated;
}

/** A pilot that is told to end may well do so with exit status 0, within its grace, and a node takes a moment, ms. */
const shortestGrace = 120_000;

/** Whether the pilot had done its work before its Pod was ended: that befell the containers beside it. */
function hasSucceededBefore(facts: Facts): boolean {
  const { pod, jobIs, podIs, exit, containers } = facts;
  const beside = containers.filter(({ role }) => role === 'beside');
  if (!hasSucceeded(facts) || beside.length === 0 || !isForGood(facts)) return false;
  const failures = [jobIs.get('FailureTarget'), jobIs.get('Failed')];
  const byJob = failures.find((one) => one?.reason === 'DeadlineExceeded');
  const target = podIs.get('DisruptionTarget');
  const isEnded = [byJob, target, pod?.status?.reason, pod?.metadata?.deletionTimestamp].some(Boolean);
  if (!isEnded) return true;
  const grace = shortestGrace + (pod?.spec?.terminationGracePeriodSeconds ?? 0) * 1000;
  const told = [byJob, target].flatMap((one) => timeOf(one?.lastTransitionTime) ?? []);
  const ends = beside.flatMap(({ state }) => timeOf(state.terminated?.finishedAt) ?? []);
  const endedAt = told.length > 0 ? Math.min(...told) : Math.max(...ends) - grace;
  return (timeOf(exit?.finishedAt) ?? Infinity) < endedAt;
}

function isUnknown({ phase, pod }: Facts): boolean {
  return phase === 'Unknown' || pod?.status?.reason === 'NodeLost';
}

/** When it ended by the cluster: the pilot, else the last container, else the Job. */
function endOf({ exit, containers, job, jobIs, pod }: Facts, now: number): number | undefined {
  const deletion = timeOf(pod?.metadata?.deletionTimestamp);
  const ends = containers.flatMap(({ state }) => timeOf(state.terminated?.finishedAt) ?? []);
  return (
    timeOf(exit?.finishedAt) ??
    (ends.length > 0 ? Math.max(...ends) : undefined) ??
    timeOf(job?.status?.completionTime) ??
    timeOf(jobIs.get('Failed')?.lastTransitionTime) ??
    timeOf(pod?.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')?.lastTransitionTime) ??
    // With its grace it may still be to come, for a Pod that needed less.
    (deletion === undefined ? undefined : Math.min(deletion, now))
  );
}
