import type { Group, Preflight } from '../plugins/contracts/index.ts';
import type { Limits } from '../config/limits.ts';
import type { Control } from '../store/queues.ts';
import type { Reason } from '../worker/reason.ts';

/** All that limiters may look at. */
export interface LimitState {
  readonly queueStatus: string;
  readonly control: Control | undefined;
  /** Why a connection is closed, if one is. */
  readonly closed: Reason | undefined;
  readonly limits: Limits;
  /** The instance's cap per queue and pass. */
  readonly maxNewWorkers: number;
  /** New workers of this cycle so far. */
  readonly madeInCycle: number;
  readonly alive: number;
  readonly queued: number;
}

export interface Limit {
  /** At most so many new workers. */
  readonly atMost: number;
  readonly reason: Reason;
}

/** Says how many at most, and why; undefined when it has nothing to say. */
export type Limiter = (state: LimitState) => Limit | undefined;

const stop = (code: string, message: string): Limit => ({ atMost: 0, reason: { code, message } });

/** Queue states in which Harvester's operators expect new workers. */
const workingStates = ['online', 'test'];

export const queueStatus: Limiter = ({ queueStatus }) =>
  workingStates.includes(queueStatus) ? undefined : stop('queue-status', `queueStatus is ${queueStatus}`);

export const operatorControl: Limiter = ({ control }) => {
  if (control === undefined) return undefined;
  const since = new Date(control.since).toISOString();
  const code = control.mode === 'paused' ? 'paused' : 'draining';
  return stop(code, `${code} since ${since}: ${control.reason}`);
};

export const knownConnection: Limiter = ({ closed }) => closed && { atMost: 0, reason: closed };

export const maxWorkers: Limiter = ({ alive, limits }) => ({
  atMost: Math.max(0, limits.maxWorkers - alive),
  reason: { code: 'max-workers', message: `${alive} of maxWorkers ${limits.maxWorkers} are alive` },
});

export const queueLimit: Limiter = ({ queued, limits }) => ({
  atMost: Math.max(0, limits.nQueueLimitWorker - queued),
  reason: {
    code: 'queue-limit',
    message: `${queued} of nQueueLimitWorker ${limits.nQueueLimitWorker} are queued`,
  },
});

export const newPerCycle: Limiter = ({ limits, maxNewWorkers, madeInCycle }) => {
  const own = limits.maxNewWorkersPerCycle;
  const [atMost, name] =
    own > 0 && own < maxNewWorkers
      ? [own, 'maxNewWorkersPerCycle']
      : [maxNewWorkers, 'submitter.maxNewWorkers'];
  const message = `${madeInCycle} of ${name} ${atMost} were submitted in this cycle`;
  return { atMost: Math.max(0, atMost - madeInCycle), reason: { code: 'max-new-per-cycle', message } };
};

/** What closes a queue altogether: retries wait, too. */
export const gates: readonly Limiter[] = [queueStatus, operatorControl, knownConnection];
/** What bounds the number of new workers; a retry is counted as alive already. */
export const caps: readonly Limiter[] = [maxWorkers, queueLimit, newPerCycle];

/** What the backend said, as a limiter after all others: it costs a call. */
export function backendLimiter({ problems, room }: Preflight): Limit | undefined {
  const [first] = problems;
  if (first !== undefined) return { atMost: 0, reason: first };
  return room && { atMost: room.workers, reason: room.reason };
}

/** How many may be submitted, and what held back the rest. */
export interface Allowed {
  readonly groups: readonly Group[];
  readonly reasons: readonly Reason[];
}

/** Cuts the groups to the least that any limit allows; every limit that cut something gives its reason. */
export function applyLimits(wanted: readonly Group[], limits: readonly (Limit | undefined)[]): Allowed {
  let groups = wanted;
  const reasons: Reason[] = [];
  for (const limit of limits) {
    if (limit === undefined || total(groups) <= limit.atMost) continue;
    groups = cut(groups, limit.atMost);
    // The one that cut deepest comes first: it is what an operator has to look at.
    reasons.unshift(limit.reason);
  }
  return { groups: groups.filter((group) => group.count > 0), reasons };
}

export function total(groups: readonly Group[]): number {
  return groups.reduce((sum, group) => sum + group.count, 0);
}

/** The first groups are served first. */
function cut(groups: readonly Group[], atMost: number): Group[] {
  let left = atMost;
  return groups.map((group) => {
    const count = Math.min(group.count, left);
    left -= count;
    return { ...group, count };
  });
}
