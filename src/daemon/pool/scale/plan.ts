import { longRetirement } from '../../../clients/htcondor/drain.ts';

/** Reason of our drains. Only drains with it are taken back. */
export const drainReason = 'thresher pool scale';

/** Lowest cost that Kubernetes knows: it deletes such a Pod before others of its class. */
export const lowestCost = -2_147_483_647;

/** A Pod of the Deployment that counts as one of its replicas. */
export interface WorkerPod {
  readonly name: string;
  readonly isScheduled: boolean;
  readonly phase: 'Pending' | 'Running' | 'Unknown';
  readonly isReady: boolean;
  /** Whether any of its containers runs: no job runs in a Pod without one. */
  readonly runs: boolean;
  /** Annotation `controller.kubernetes.io/pod-deletion-cost`; 0 without one. */
  readonly cost: number;
}

/** The startd of a Pod, as the collector has it. */
export interface WorkerStartd {
  /** Name of its whole slot: the target of drains. */
  readonly slot: string;
  /** Cores that jobs have; 0: no slot is claimed. */
  readonly busyCores: number;
  readonly draining: boolean;
  /** Whether the drain is over: no job runs there, and none comes. */
  readonly drained: boolean;
  readonly drainReason: string | undefined;
  /** s */
  readonly retirement: number;
}

export interface ScaleFacts {
  /** `spec.replicas` */
  readonly replicas: number;
  readonly wanted: number;
  readonly pods: readonly WorkerPod[];
  /** By the name of the Pod. */
  readonly startds: ReadonlyMap<string, WorkerStartd>;
  /** Busy slots that have just refused to drain, because a job there would be ended by it. */
  readonly refused?: ReadonlySet<string>;
}

export interface ScalePlan {
  /** Slots to drain that no job has now: HTCondor itself refuses if one has come since. */
  readonly drainIdle: readonly string[];
  /** Slots to drain whose jobs may end by themselves. */
  readonly drainBusy: readonly string[];
  /** Drains of ours that are taken back: these workers stay. */
  readonly release: readonly string[];
  /** Pods that get the lowest cost. */
  readonly mark: readonly string[];
  /** Pods that lose the cost. */
  readonly unmark: readonly string[];
  /** Pods that can go now: no job runs there, and none can come. */
  readonly gone: readonly string[];
  /** To which number the replicas can be lowered now. Kubernetes then deletes `gone`, and no other Pod. */
  readonly lowerTo: number;
  /** Why not all that should go can go now; empty where they can. */
  readonly waits: readonly string[];
}

/**
 * The next step to a number of workers. Repeated until nothing is left to do, it ends no busy worker: whatever the last run left
 * half done is seen in the facts.
 */
export function planScale(facts: ScaleFacts): ScalePlan {
  const { replicas, wanted, pods } = facts;
  // Pods that Kubernetes has yet to delete stay drained; replicas that it has yet to make need no drain.
  const surplus = Math.max(0, pods.length - wanted);
  const unmade = Math.max(0, replicas - pods.length);
  const candidates = pods.map((pod) => judged(pod, facts.startds.get(pod.name))).toSorted(byPreference);
  const victims = candidates.filter(({ rank }) => rank !== ranks.unknown).slice(0, surplus);
  const names = new Set(victims.map(({ pod }) => pod.name));
  const others = candidates.filter(({ pod }) => !names.has(pod.name));
  const ready = victims.filter(({ rank }) => rank === ranks.empty || rank === ranks.drained);
  // Busy workers that are to go are among them: they must not go before their jobs have ended.
  const staying = candidates.filter((one) => !ready.includes(one));
  const before = ready.length === 0 ? [] : staying.filter((other) => comesBefore(other, ready));
  const isSafe = before.length === 0;
  const lowerBy = Math.min(Math.max(0, replicas - wanted), unmade + (isSafe ? ready.length : 0));
  const toDrain = victims.filter(({ startd }) => startd?.draining === false);
  return {
    drainIdle: slotsOf(toDrain.filter(({ rank }) => rank === ranks.idle)),
    drainBusy: slotsOf(toDrain.filter(({ rank, startd }) => rank === ranks.busy && retires(startd))),
    release: slotsOf(
      others.filter(({ startd }) => startd?.draining === true && startd.drainReason === drainReason),
    ),
    mark: ready.filter(({ pod }) => pod.cost !== lowestCost).map(({ pod }) => pod.name),
    unmark: candidates
      .filter(({ pod }) => pod.cost === lowestCost && !ready.some((one) => one.pod.name === pod.name))
      .map(({ pod }) => pod.name),
    gone: isSafe ? ready.map(({ pod }) => pod.name) : [],
    lowerTo: replicas - lowerBy,
    waits: waitsOf(victims, surplus, before, facts.refused),
  };
}

/** In the order in which workers go. */
const ranks = { empty: 0, drained: 1, leaving: 2, idle: 3, busy: 4, unknown: 5 } as const;

interface Judged {
  readonly pod: WorkerPod;
  readonly startd: WorkerStartd | undefined;
  readonly rank: (typeof ranks)[keyof typeof ranks];
}

function judged(pod: WorkerPod, startd: WorkerStartd | undefined): Judged {
  const rank = (): Judged['rank'] => {
    if (pod.phase === 'Pending' || !pod.runs) return ranks.empty;
    // A collector that has just started knows no startd: an unknown worker may have jobs.
    if (startd === undefined || pod.phase === 'Unknown') return ranks.unknown;
    if (startd.drained) return ranks.drained;
    if (startd.draining) return ranks.leaving;
    return startd.busyCores === 0 ? ranks.idle : ranks.busy;
  };
  return { pod, startd, rank: rank() };
}

function byPreference(one: Judged, other: Judged): number {
  const busy = ({ startd }: Judged) => startd?.busyCores ?? 0;
  return (
    one.rank - other.rank ||
    busy(one) - busy(other) ||
    classOf(one.pod) - classOf(other.pod) ||
    (one.pod.name < other.pod.name ? -1 : 1)
  );
}

/** Source: Kubernetes 1.36, `ActivePodsWithRanks.Less`: the order in which a ReplicaSet deletes, before it looks at costs. */
function classOf({ isScheduled, phase, isReady }: WorkerPod): number {
  const phases = { Pending: 0, Unknown: 1, Running: 2 } as const;
  return (isScheduled ? 10 : 0) + phases[phase] * 2 + (isReady ? 1 : 0);
}

/** Whether Kubernetes could delete this Pod before all of these are deleted. They have the lowest cost of their class. */
function comesBefore({ pod }: Judged, ready: readonly Judged[]): boolean {
  const last = Math.max(...ready.map((one) => classOf(one.pod)));
  return classOf(pod) < last || (classOf(pod) === last && pod.cost <= lowestCost);
}

const slotsOf = (judged: readonly Judged[]) =>
  judged.flatMap(({ startd }) => (startd === undefined ? [] : [startd.slot]));
const retires = (startd: WorkerStartd | undefined) => (startd?.retirement ?? 0) >= longRetirement;

function waitsOf(
  victims: readonly Judged[],
  surplus: number,
  before: readonly Judged[],
  refused: ReadonlySet<string> = new Set(),
): string[] {
  const refuses = ({ startd }: Judged) => startd !== undefined && refused.has(startd.slot);
  const named = (rank: Judged['rank'], also: (one: Judged) => boolean = () => true) =>
    victims.filter((one) => one.rank === rank && also(one)).map(({ pod }) => pod.name);
  const tell = (names: readonly string[], why: string) =>
    names.length === 0 ? [] : [`${names.join(', ')} ${why}`];
  const unknown = surplus - victims.length;
  return [
    ...tell(named(ranks.leaving), 'drains: its jobs run on until they end'),
    ...tell(named(ranks.idle), 'is idle, and is asked to drain'),
    ...tell(
      named(ranks.busy, (one) => retires(one.startd) && !refuses(one)),
      'is busy, and is asked to drain',
    ),
    ...tell(
      named(ranks.busy, (one) => retires(one.startd) && refuses(one)),
      `is busy, and refuses to drain: a job there shows less than ${longRetirement} s of retirement left (nice_user, max_job_retirement_time), and a drain would end it`,
    ),
    ...tell(
      named(ranks.busy, ({ startd }) => !retires(startd)),
      `is busy, and a drain would end its jobs: its MaxJobRetirementTime is below ${longRetirement} s`,
    ),
    ...(unknown > 0
      ? [`${unknown} more ${unknown === 1 ? 'runs' : 'run'} without being known to the collector`]
      : []),
    ...tell(
      before.map(({ pod }) => pod.name),
      'would be deleted first by Kubernetes, since it is not ready; it may have a job',
    ),
  ];
}
