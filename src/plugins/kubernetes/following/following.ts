import { Age, type Clock } from '../../../util/clock.ts';
import type { Kept, KeptPod } from './records.ts';
import { type StateOptions, stateOf, type WorkerState } from '../state/pod-state.ts';
import { countsElsewhere, timeOf } from '../state/pod-facts.ts';
import { configAnnotation, queueLabel } from '../marks.ts';
import type { Job, Pod } from '../state/types.ts';

interface Followed {
  job?: Kept;
  /** Uid of the last Job that was there. Its Pods may be there for longer. */
  jobUid?: string;
  /** One, mostly: a Map each would take as much as what is in it. */
  readonly pods: KeptPod[];
  /** Since when it is known to have no Pod, ms UTC. */
  withoutPodSince?: number;
  /** Why it has none, as far as the cluster said. */
  because?: string;
  /** Of its Pod, or of its wait for one. */
  age?: Age;
  /** A watch told of it as new since the last look. */
  isNew?: boolean;
}

/** Clocks that differ by less are right, ms. */
const agreeing = 10_000;

/** More Pods than a Job makes for one worker. Others have its labels: each look at the worker would go through all of them. */
const mostPods = 1000;

/** Options by queue and number of its configuration, as far as the object says them. */
export type OptionsOf = (
  queue: string | undefined,
  configId: number | undefined,
) => StateOptions & { readonly failedLogLines?: number };

/** A Job or Pod as it is deleted: by name, and only while it has this uid. */
export interface ObjectName {
  readonly name: string;
  readonly uid: string;
  /** It is on its way out already. */
  readonly leaving: boolean;
  /** When it was to be gone, with its grace, ms UTC. */
  readonly goneAt?: number;
  /** What keeps it from going then. */
  readonly finalizers: readonly string[];
}

export interface FollowedState extends WorkerState {
  /** False while the end of its Pod may still be to come, which says why it ended. */
  readonly settled: boolean;
  /** So many last lines of its log are kept, if it failed. */
  readonly logLines: number;
}

/** Keeps the known Jobs and Pods of all workers in one namespace. */
export class Following {
  readonly #workers = new Map<number, Followed>();
  readonly #clock: Pick<Clock, 'monotonic'>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  get workerIds(): MapIterator<number> {
    return this.#workers.keys();
  }

  has(workerId: number): boolean {
    return this.#workers.has(workerId);
  }

  /** @param isNew a watch tells of it: if it was not there, it was made just now */
  putJob(job: Kept, isNew = false): void {
    const followed = this.#of(job.workerId);
    if (isNew && followed.jobUid !== job.uid) followed.isNew = true;
    followed.job = job;
    followed.jobUid = job.uid;
  }

  /** @param isNew as of a Job */
  putPod(pod: KeptPod, isNew = false): void {
    const followed = this.#of(pod.workerId);
    const { pods } = followed;
    const at = pods.findIndex(({ uid }) => uid === pod.uid);
    if (at === -1 && pods.length >= mostPods) return;
    if (isNew && at === -1) followed.isNew = true;
    pods[at === -1 ? pods.length : at] = pod;
  }

  /** A Job that was replaced meanwhile by another of its name is not taken away. */
  removeJob({ workerId, uid }: Kept): void {
    const followed = this.#workers.get(workerId);
    if (followed?.job?.uid !== uid) return;
    delete followed.job;
    this.#forgetEmpty(workerId, followed);
  }

  removePod({ workerId, uid }: Kept): void {
    const followed = this.#workers.get(workerId);
    const at = followed?.pods.findIndex((pod) => pod.uid === uid) ?? -1;
    if (followed === undefined || at === -1) return;
    followed.pods.splice(at, 1);
    this.#forgetEmpty(workerId, followed);
  }

  /** Goes on counting from when another look found no Pod, or first saw the one that is there. */
  countFrom(workerId: number, other: Following): void {
    const { withoutPodSince, age } = other.#workers.get(workerId) ?? {};
    const followed = this.#workers.get(workerId);
    if (followed === undefined) return;
    if (withoutPodSince !== undefined) followed.withoutPodSince = withoutPodSince;
    if (age !== undefined) followed.age = age;
  }

  /** Workers by the uid of their Job, where it has had no Pod since `before` (ms UTC) and is not suspended. */
  withoutPod(before: number): ReadonlyMap<string, number> {
    const found = new Map<string, number>();
    for (const [workerId, followed] of this.#workers) {
      const { job, withoutPodSince = Infinity } = followed;
      if (job === undefined || ownPods(followed).length > 0 || withoutPodSince > before) continue;
      if (!job.text.includes('"suspend":true')) found.set(job.uid, workerId);
    }
    return found;
  }

  /** Until it has a Pod, this is why it has none. */
  explain(workerId: number, because: string): void {
    const followed = this.#workers.get(workerId);
    if (followed !== undefined && ownPods(followed).length === 0) followed.because = because;
  }

  /** From now on these Jobs are all there are. */
  replaceJobs(jobs: readonly Kept[]): void {
    for (const followed of this.#workers.values()) delete followed.job;
    for (const job of jobs) this.putJob(job);
    for (const [workerId, followed] of this.#workers) this.#forgetEmpty(workerId, followed);
  }

  replacePods(pods: readonly KeptPod[]): void {
    for (const followed of this.#workers.values()) followed.pods.length = 0;
    for (const pod of pods) this.putPod(pod);
    for (const [workerId, followed] of this.#workers) this.#forgetEmpty(workerId, followed);
  }

  /**
   * Undefined where there is nothing of the worker.
   * @param uid of its Job, as far as the caller knows it: for a Job that is not there any more
   */
  stateOf(workerId: number, now: number, options: OptionsOf, uid?: string): FollowedState | undefined {
    const followed = this.#workers.get(workerId);
    if (followed === undefined) return undefined;
    const { job, pods } = parsed({ ...followed, pods: ownPods(followed, uid) });
    // A Job does not say since when it has no Pod: it is counted from when that was first seen.
    if (pods.length > 0 || countsElsewhere(job)) {
      delete followed.withoutPodSince;
      delete followed.because;
    } else followed.withoutPodSince ??= now;
    const { withoutPodSince, because } = followed;
    const { [queueLabel]: queue, [configAnnotation]: config } = (job ?? pods[0])?.metadata?.annotations ?? {};
    const own = options(queue ?? undefined, config == null ? undefined : Number(config));
    const state = stateOf(workerId, job, pods, now, {
      ...own,
      ...(withoutPodSince !== undefined && { withoutPodSince }),
      ...(because !== undefined && { withoutPodBecause: because }),
      sinceOf: (time) => this.#sinceOf(followed, time, now),
    });
    return state && { ...state, settled: isSettled(state, pods), logLines: own.failedLogLines ?? 0 };
  }

  #sinceOf(followed: Followed, time: number, now: number): number {
    const { age = new Age(), isNew = false } = followed;
    const monotonic = this.#clock.monotonic();
    if (isNew) age.begin(time, monotonic);
    followed.age = age;
    followed.isNew = false;
    const since = now - age.of(time, now, monotonic);
    return since - time < agreeing ? time : since;
  }

  /** The objects to delete for the worker: those of earlier Jobs of its name, too. */
  objectsOf(workerId: number): { readonly job?: ObjectName; readonly pods: readonly ObjectName[] } {
    const followed = this.#workers.get(workerId);
    if (followed === undefined) return { pods: [] };
    const { job, pods } = parsed(followed);
    return { ...(job && { job: nameOf(job) }), pods: pods.map(nameOf) };
  }

  #of(workerId: number): Followed {
    let followed = this.#workers.get(workerId);
    if (followed === undefined) {
      followed = { pods: [] };
      this.#workers.set(workerId, followed);
    }
    return followed;
  }

  #forgetEmpty(workerId: number, { job, pods }: Followed): void {
    if (job === undefined && pods.length === 0) this.#workers.delete(workerId);
  }
}

/** The Pods that decide: those of its Job. Where no Job of it was seen, and its uid is not known, all that a Job of its name made. */
function ownPods({ jobUid, pods }: Followed, uid?: string): readonly KeptPod[] {
  const own = jobUid ?? uid;
  return own ? pods.filter(({ maker }) => maker === own) : pods;
}

function parsed({ job, pods }: Pick<Followed, 'job'> & { readonly pods: readonly Kept[] }): {
  readonly job: Job | undefined;
  readonly pods: readonly Pod[];
} {
  return {
    job: job && (JSON.parse(job.text) as Job),
    pods: pods.map(({ text }) => JSON.parse(text) as Pod),
  };
}

function nameOf({ metadata }: Job | Pod): ObjectName {
  const { name = '', uid = '', deletionTimestamp, finalizers } = metadata ?? {};
  const goneAt = timeOf(deletionTimestamp);
  return {
    name,
    uid,
    leaving: Boolean(deletionTimestamp),
    ...(goneAt !== undefined && { goneAt }),
    finalizers: finalizers ?? [],
  };
}

/** Jobs and Pods are told of by two streams: the end of a Job may be heard before that of its Pod, which says why. */
function isSettled({ observation }: WorkerState, pods: readonly Pod[]): boolean {
  if (observation.status !== 'finished' && observation.status !== 'failed') return true;
  return pods.length > 0 && pods.every(({ status }) => ['Succeeded', 'Failed'].includes(status?.phase ?? ''));
}
