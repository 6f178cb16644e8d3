import type { Group, Preflight } from '../plugins/contracts/index.ts';
import type { Limits } from './limits.ts';
import type { Reason } from '../worker/reason.ts';
import type { Requirements } from '../worker/worker.ts';
import {
  type Bound,
  coresBound,
  memoryBound,
  perResourceType,
  type QueueLoad,
  whyNoneStarts,
  workerBound,
} from './formulas.ts';

/** The facts that may close a queue altogether. */
export interface GateState {
  readonly queueStatus: string;
  /** Its status in CRIC, where that is known. */
  readonly cricStatus?: string | undefined;
  /** An operator's word to the queue, and since when (ms UTC). */
  readonly control:
    { readonly mode: 'paused' | 'draining'; readonly reason: string; readonly since: number } | undefined;
  /** Why its connections are closed, if nothing can be submitted on any of them. */
  readonly closed: Reason | undefined;
  /** Why its credentials are not good enough, if so. */
  readonly credential: Reason | undefined;
}

/** All that limiters may look at. */
export interface LimitState extends GateState {
  readonly limits: Limits;
  /** The instance's cap per queue and pass. */
  readonly maxNewWorkers: number;
  /** New workers of this cycle so far. */
  readonly madeInCycle: number;
  readonly load: QueueLoad;
  /** Queued workers by resource type. */
  readonly queuedByType: ReadonlyMap<string, number>;
  /** Resource types that ask for workers. */
  readonly wantedTypes: readonly string[];
  /** The requirements of one worker of the queue. */
  readonly requirements: Requirements;
}

export interface Limit {
  /** So many new workers at most, or so much of what they cost. */
  readonly atMost: number;
  readonly reason: Reason;
  /** The cost of one worker with these requirements. Default: 1. */
  readonly cost?: (requirements: Requirements) => number;
  /** Only these groups are bounded. Default: all. */
  readonly of?: (requirements: Requirements) => boolean;
}

/** Says how many at most, and why; undefined when it has nothing to say. */
export type Limiter = (state: LimitState) => Limit | undefined;
export type Gate = (state: GateState) => Limit | undefined;

const stop = (code: string, message: string): Limit => ({ atMost: 0, reason: { code, message } });

/** States of a queue in which Harvester's operators expect new workers. */
const workingStates = ['online', 'test'];

/**
 * The statuses in which CRIC gives a queue nothing new; it runs in every other one, `brokeroff` and `test` among them. Source:
 * Harvester's worker_adjuster, and `get_queue_status` of its info_utils for the queue of another instance.
 */
const closedInCric: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['offline', 'standby', 'maintenance'].map((status) => [status, `CRIC says that the queue is ${status}`]),
  ),
  elsewhere: 'CRIC gives the queue to another instance or pilot manager (`harvester`, `pilot_manager`)',
};

type Statuses = Pick<GateState, 'queueStatus' | 'cricStatus'>;

/** Why a queue in this state gets no new workers; undefined where it does. The daemon's gate asks the same. */
export function whyClosed({ queueStatus, cricStatus = '' }: Statuses): Reason | undefined {
  if (!workingStates.includes(queueStatus)) {
    const message = `queueStatus is ${queueStatus}: set it to "online" for new workers`;
    return { code: 'queue-status', message };
  }
  const inCric = Object.hasOwn(closedInCric, cricStatus) ? closedInCric[cricStatus] : undefined;
  if (inCric === undefined) return undefined;
  const message = `${inCric}: change it there, or set cricStatus of the queue to "online" for new workers all the same`;
  return { code: 'cric-status', message };
}

/** The status that counts of the two: what an operator sees in place of "online" is why the queue is closed. */
export function statusThatCounts(statuses: Statuses): string {
  const byCric = whyClosed(statuses)?.code === 'cric-status';
  return (byCric ? statuses.cricStatus : undefined) ?? statuses.queueStatus;
}

export const queueStatus: Gate = (state) => {
  const reason = whyClosed(state);
  return reason && { atMost: 0, reason };
};

export const operatorControl: Gate = ({ control }) => {
  if (control === undefined) return undefined;
  const since = new Date(control.since).toISOString();
  const code = control.mode === 'paused' ? 'paused' : 'draining';
  return stop(code, `${code} since ${since}: ${control.reason}`);
};

export const knownConnection: Gate = ({ closed }) => closed && { atMost: 0, reason: closed };

export const goodCredentials: Gate = ({ credential }) => credential && { atMost: 0, reason: credential };

export const maxWorkers: Limiter = ({ load, limits }) => {
  const most = limits.maxWorkers;
  const unset = most === 0 ? ': it is 0, or not set; set it above 0' : '';
  const message = `${load.alive.workers} of maxWorkers ${most} are alive${unset}`;
  return { atMost: Math.max(0, most - load.alive.workers), reason: { code: 'max-workers', message } };
};

export const queueLimit: Limiter = ({ load, limits }) => {
  const bound = workerBound(limits, load.running);
  return ratioOfNone(bound, load, 1) ?? limitOf(bound, load.queued.workers, 'queue-limit', 'workers');
};

/** A share of none is none, and stays so: no waiting helps, as it does where a limit is reached. */
function ratioOfNone(bound: Bound, { alive }: QueueLoad, perWorker: number): Limit | undefined {
  const message = whyNoneStarts(bound);
  if (message === undefined || alive.workers > 0 || bound.atMost >= Math.max(1, perWorker)) return undefined;
  return stop('ratio-of-none', message);
}

/** Keeps a part for each of several resource types, so that no type takes the part of another. None where each may take all. */
export const resourceTypeLimits = (state: LimitState): Limit[] => {
  const { limits, load, queuedByType, wantedTypes } = state;
  const whole = workerBound(limits, load.running);
  const atMost = perResourceType(limits, load.running, wantedTypes.length);
  if (atMost === whole.atMost) return [];
  const from = `${whole.atMost} for ${wantedTypes.length} resource types`;
  return wantedTypes.map((type) => {
    const bound = { atMost, name: `${whole.name} for ${type}`, from };
    const queued = queuedByType.get(type) ?? 0;
    return {
      ...limitOf(bound, queued, 'queue-limit-resource-type', 'workers'),
      of: ({ resourceType }) => resourceType === type,
    };
  });
};

export const coresLimit: Limiter = ({ limits, load, requirements }) => {
  const each = requirements.nCore;
  const bound = coresBound(limits, load.running, each);
  if (bound === undefined) return undefined;
  const limit =
    ratioOfNone(bound, load, each) ?? limitOf(bound, load.queued.cores, 'queue-limit-cores', 'cores', each);
  return { ...limit, cost: ({ nCore }) => nCore };
};

export const memoryLimit: Limiter = ({ limits, load, requirements }) => {
  const each = requirements.minRamCount;
  const bound = memoryBound(limits, load.running, each);
  if (bound === undefined) return undefined;
  const limit =
    ratioOfNone(bound, load, each) ?? limitOf(bound, load.queued.memory, 'queue-limit-memory', 'MB', each);
  return { ...limit, cost: ({ minRamCount }) => minRamCount };
};

/** The limit that a bound leaves beside the queued workers. `perWorker` is how much of it one worker takes. */
function limitOf(bound: Bound, queued: number, code: string, unit: string, perWorker = 0): Limit {
  const { atMost, name, from } = bound;
  const unitOf = unit === 'workers' ? '' : ` ${unit}`;
  const how = from === undefined ? '' : ` (${from})`;
  // A share grows with what runs; what is written down does not.
  const never = from === undefined && perWorker > atMost;
  const tooLarge = never
    ? `; one worker takes ${perWorker}, so none can ever be queued: set it to ${perWorker} or more`
    : '';
  const none = from === undefined && atMost === 0 && !never ? ': set it above 0' : '';
  const message = `${queued} of ${name} ${atMost}${unitOf}${how} are queued${tooLarge}${none}`;
  return { atMost: Math.max(0, atMost - queued), reason: { code, message } };
}

export const newPerCycle: Limiter = ({ limits, maxNewWorkers, madeInCycle }) => {
  const own = limits.maxNewWorkersPerCycle;
  const [atMost, name] =
    own > 0 && own < maxNewWorkers
      ? [own, 'maxNewWorkersPerCycle']
      : [maxNewWorkers, 'submitter.maxNewWorkers'];
  const message = `${madeInCycle} of ${name} ${atMost} were submitted in this cycle`;
  return { atMost: Math.max(0, atMost - madeInCycle), reason: { code: 'max-new-per-cycle', message } };
};

/** These close a queue altogether: retries wait, too. */
export const gates: readonly Gate[] = [queueStatus, operatorControl, knownConnection, goodCredentials];
/** These bound the number of new workers; a retry is counted as alive already. */
export const caps: readonly Limiter[] = [maxWorkers, queueLimit, coresLimit, memoryLimit, newPerCycle];

/** The backend's answer as a limiter after all others, since it costs a call. */
export function backendLimiter({ problems, room }: Preflight): Limit | undefined {
  const [first] = problems;
  if (first !== undefined) {
    const message = problems.map((problem) => problem.message).join('; ');
    return { atMost: 0, reason: { code: first.code, message } };
  }
  return room && { atMost: room.workers, reason: room.reason };
}

/** A limit that cut a group: those behind the first `to` were left out. */
export interface Cut<Kind extends Group = Group> {
  /** As it was before this cut. */
  readonly group: Kind;
  readonly to: number;
  readonly reason: Reason;
}

/** How many may be submitted, and what held back the rest. */
export interface Allowed<Kind extends Group = Group> {
  readonly groups: readonly Kind[];
  readonly reasons: readonly Reason[];
  /** In the order in which the limits were applied. */
  readonly cuts: readonly Cut<Kind>[];
}

/** Cuts the groups to the least that any limit allows; every limit that cut something gives its reason. */
export function applyLimits<Kind extends Group>(
  wanted: readonly Kind[],
  limits: readonly (Limit | undefined)[],
): Allowed<Kind> {
  let groups = wanted;
  const reasons: Reason[] = [];
  const cuts: Cut<Kind>[] = [];
  for (const limit of limits) {
    if (limit === undefined) continue;
    const rest = cut(groups, limit);
    // Not the totals: of endlessly many there are as many left when one group was cut.
    const fewer = groups.flatMap((group, index) => {
      const to = rest[index]?.count ?? 0;
      return to === group.count ? [] : [{ group, to, reason: limit.reason }];
    });
    if (fewer.length === 0) continue;
    groups = rest;
    cuts.push(...fewer);
    // The one that cut deepest comes first: it is what an operator has to look at.
    reasons.unshift(limit.reason);
  }
  return { groups: groups.filter((group) => group.count > 0), reasons, cuts };
}

/** How many workers these limits may let through at most, whatever the needs of each. */
export function roomIn(limits: readonly Limit[]): number {
  const bounds = limits.filter(({ of }) => of === undefined);
  // What one worker costs is not known here: such a limit counts where it is reached.
  const most = bounds.map(({ atMost, cost }) => (cost === undefined || atMost <= 0 ? atMost : Infinity));
  return Math.max(0, Math.floor(Math.min(Infinity, ...most)));
}

export function total(groups: readonly Group[]): number {
  return groups.reduce((sum, group) => sum + group.count, 0);
}

/** The first groups are served first. */
function cut<Kind extends Group>(
  groups: readonly Kind[],
  { atMost, cost = () => 1, of = () => true }: Limit,
): Kind[] {
  if (atMost === Infinity) return [...groups];
  let rest = atMost;
  return groups.map((group) => {
    const each = cost(group.requirements);
    // A worker that costs nothing is stopped only by a limit that is reached.
    if (!of(group.requirements) || (each === 0 && rest > 0)) return group;
    const count = Math.min(group.count, rest <= 0 ? 0 : Math.floor(rest / each));
    rest -= count * each;
    return { ...group, count };
  });
}
