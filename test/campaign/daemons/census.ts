import type { Job, Namespace, Pod } from '../../support/kubernetes.ts';
import { isFence, workerIdOf } from '../../support/kubernetes-history.ts';
import { CollectionWatch } from '../collection-watch.ts';

/** Limits of a queue. */
export interface QueueCaps {
  readonly maxWorkers: number;
  readonly nQueueLimitWorker: number;
}

/** A limit that several queues have together. */
export interface FamilyCap {
  readonly name: string;
  readonly queues: readonly string[];
  readonly maxWorkers: number;
}

export interface Caps {
  readonly queues: Readonly<Record<string, QueueCaps>>;
  readonly families: readonly FamilyCap[];
}

interface LivingPod {
  readonly workerId: number;
  readonly queue: string;
  readonly runs: boolean;
}

/** All Jobs and Pods that there ever were, by the API server's own events. It judges the limits at each of them. */
export class Census implements AsyncDisposable {
  events = 0;
  readonly broken: string[] = [];
  /** Called with each broken promise. */
  onBroken: (what: string) => void = () => undefined;
  readonly #caps: Caps;
  readonly #jobs = new Map<number, Set<string>>();
  readonly #pods = new Map<number, Set<string>>();
  /** By uid. */
  readonly #livingJobs = new Map<string, number>();
  readonly #livingPods = new Map<string, LivingPod>();
  readonly #told = new Set<string>();
  readonly #watches: AsyncDisposable[] = [];

  static async begin(space: Namespace, caps: Caps): Promise<Census> {
    const census = new Census(caps);
    census.#watches.push(
      await CollectionWatch.begin<Job>(space, space.jobs(), (type, job) => {
        census.#takeJob(type, job);
      }),
      await CollectionWatch.begin<Pod>(space, space.core('pods'), (type, pod) => {
        census.#takePod(type, pod);
      }),
    );
    return census;
  }

  private constructor(caps: Caps) {
    this.#caps = caps;
  }

  /** Workers that ever had a Job. */
  get workers(): ReadonlySet<number> {
    return new Set(this.#jobs.keys());
  }

  /** Workers that ever had a Pod. */
  get started(): ReadonlySet<number> {
    return new Set(this.#pods.keys());
  }

  /** Workers of which a Job or a Pod is there. */
  get present(): ReadonlySet<number> {
    return new Set([
      ...this.#livingJobs.values(),
      ...[...this.#livingPods.values()].map((pod) => pod.workerId),
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const watch of this.#watches) await watch[Symbol.asyncDispose]();
  }

  #takeJob(type: string, job: Job): void {
    this.events++;
    if (isFence(job)) return;
    const workerId = workerIdOf(job);
    this.#count(this.#jobs, 'Jobs', workerId, job.metadata.uid);
    if (type === 'DELETED') this.#livingJobs.delete(job.metadata.uid ?? '');
    else this.#livingJobs.set(job.metadata.uid ?? '', workerId);
  }

  #takePod(type: string, pod: Pod): void {
    this.events++;
    const { uid = '', labels = {} } = pod.metadata;
    const workerId = workerIdOf(pod);
    this.#count(this.#pods, 'Pods', workerId, uid);
    const { phase } = pod.status;
    const queue = labels['thresher/queue'] ?? '';
    if (type === 'DELETED' || phase === 'Succeeded' || phase === 'Failed') this.#livingPods.delete(uid);
    else this.#livingPods.set(uid, { workerId, queue, runs: phase === 'Running' });
    this.#judge(queue);
  }

  #count(seen: Map<number, Set<string>>, what: string, workerId: number, uid = ''): void {
    const uids = seen.get(workerId) ?? new Set();
    seen.set(workerId, uids.add(uid));
    if (uids.size > 1) this.#breaks(`promise 1: worker ${workerId} had ${uids.size} ${what}`);
  }

  /** Each event is a moment: what it shows was so on the server. */
  #judge(queue: string): void {
    const caps = this.#caps.queues[queue];
    if (caps === undefined) {
      this.#breaks(`a worker of an unknown queue "${queue}" lives`);
      return;
    }
    const living = [...this.#livingPods.values()].filter((pod) => pod.queue === queue);
    const queued = living.filter(({ runs }) => !runs);
    const { maxWorkers, nQueueLimitWorker } = caps;
    const ids = (pods: readonly LivingPod[]) => pods.map(({ workerId }) => workerId).join(', ');
    if (living.length > maxWorkers)
      this.#breaks(`promise 4: ${queue} has more than ${maxWorkers} Pods: ${ids(living)}`);
    if (queued.length > nQueueLimitWorker)
      this.#breaks(`promise 4: ${queue} has more than ${nQueueLimitWorker} waiting Pods: ${ids(queued)}`);
    for (const family of this.#caps.families.filter(({ queues }) => queues.includes(queue))) {
      const together = [...this.#livingPods.values()].filter((pod) => family.queues.includes(pod.queue));
      if (together.length > family.maxWorkers)
        this.#breaks(
          `promise 4: the family ${family.name} has more than ${family.maxWorkers} Pods: ${ids(together)}`,
        );
    }
  }

  #breaks(what: string): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    this.broken.push(what);
    this.onBroken(what);
  }
}
