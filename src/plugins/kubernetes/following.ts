import type { Kept } from './records.ts';
import { type StateOptions, stateOf, type WorkerState } from './pod-state.ts';
import { queueLabel } from './marks.ts';
import type { Job, Pod } from './types.ts';

interface Followed {
  job?: Kept;
  readonly pods: Map<string, Kept>;
}

/** A Job or Pod as it is deleted: by name, and only while it has this uid. */
export interface ObjectName {
  readonly name: string;
  readonly uid: string;
  /** It is on its way out already. */
  readonly leaving: boolean;
}

export interface FollowedState extends WorkerState {
  /** False while the end of its Pod may still be to come, which says why it ended. */
  readonly settled: boolean;
  readonly queue?: string;
}

/** What is known of the Jobs and Pods of all workers in one namespace. */
export class Following {
  readonly #workers = new Map<number, Followed>();

  get workerIds(): MapIterator<number> {
    return this.#workers.keys();
  }

  has(workerId: number): boolean {
    return this.#workers.has(workerId);
  }

  putJob(job: Kept): void {
    this.#of(job.workerId).job = job;
  }

  putPod(pod: Kept): void {
    this.#of(pod.workerId).pods.set(pod.uid, pod);
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
    if (followed?.pods.delete(uid)) this.#forgetEmpty(workerId, followed);
  }

  /** From now on these Jobs are all there are. */
  replaceJobs(jobs: readonly Kept[]): void {
    for (const followed of this.#workers.values()) delete followed.job;
    for (const job of jobs) this.putJob(job);
    for (const [workerId, followed] of this.#workers) this.#forgetEmpty(workerId, followed);
  }

  replacePods(pods: readonly Kept[]): void {
    for (const followed of this.#workers.values()) followed.pods.clear();
    for (const pod of pods) this.putPod(pod);
    for (const [workerId, followed] of this.#workers) this.#forgetEmpty(workerId, followed);
  }

  /** Undefined where there is nothing of the worker. */
  stateOf(
    workerId: number,
    now: number,
    options: (queue: string | undefined) => StateOptions,
  ): FollowedState | undefined {
    const followed = this.#workers.get(workerId);
    if (followed === undefined) return undefined;
    const { job, pods } = parsed(followed);
    const queue = (job ?? pods[0])?.metadata?.annotations?.[queueLabel];
    const state = stateOf(workerId, job, pods, now, options(queue));
    return state && { ...state, settled: isSettled(state, pods), ...(queue !== undefined && { queue }) };
  }

  /** What there is to be deleted of the worker. */
  objectsOf(workerId: number): { readonly job?: ObjectName; readonly pods: readonly ObjectName[] } {
    const followed = this.#workers.get(workerId);
    if (followed === undefined) return { pods: [] };
    const { job, pods } = parsed(followed);
    return { ...(job && { job: nameOf(job) }), pods: pods.map(nameOf) };
  }

  #of(workerId: number): Followed {
    let followed = this.#workers.get(workerId);
    if (followed === undefined) {
      followed = { pods: new Map() };
      this.#workers.set(workerId, followed);
    }
    return followed;
  }

  #forgetEmpty(workerId: number, { job, pods }: Followed): void {
    if (job === undefined && pods.size === 0) this.#workers.delete(workerId);
  }
}

function parsed({ job, pods }: Followed): { readonly job: Job | undefined; readonly pods: readonly Pod[] } {
  return {
    job: job && (JSON.parse(job.text) as Job),
    pods: pods
      .values()
      .map(({ text }) => JSON.parse(text) as Pod)
      .toArray(),
  };
}

function nameOf({ metadata }: Job | Pod): ObjectName {
  const { name = '', uid = '', deletionTimestamp } = metadata ?? {};
  return { name, uid, leaving: Boolean(deletionTimestamp) };
}

/** Jobs and Pods are told of by two streams: the end of a Job may be heard before that of its Pod, which says why. */
function isSettled({ observation }: WorkerState, pods: readonly Pod[]): boolean {
  if (observation.status !== 'finished' && observation.status !== 'failed') return true;
  return pods.length > 0 && pods.every(({ status }) => ['Succeeded', 'Failed'].includes(status?.phase ?? ''));
}
