import type { Namespace, Pod } from '../support/kubernetes.ts';
import type { Seen } from './arena.ts';
import { CollectionWatch } from './collection-watch.ts';

/** Every Pod that a namespace ever had since a moment, by the API server's own events. */
export class PodWatch implements AsyncDisposable {
  /** By uid. */
  readonly #alive = new Map<string, Seen>();
  readonly #starts = new Map<number, Set<string>>();
  #watch: CollectionWatch<Pod> | undefined;

  static async begin(space: Namespace): Promise<PodWatch> {
    const pods = new PodWatch();
    pods.#watch = await CollectionWatch.begin<Pod>(space, space.core('pods'), (type, pod) => {
      pods.#take(type, pod);
    });
    return pods;
  }

  living(): readonly Seen[] {
    return [...this.#alive.values()];
  }

  starts(): ReadonlyMap<number, number> {
    return new Map([...this.#starts].map(([id, pods]) => [id, pods.size]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#watch?.[Symbol.asyncDispose]();
  }

  #take(type: string, { metadata, status }: Pod): void {
    const { uid = '', labels = {} } = metadata;
    const workerId = Number(labels['thresher/worker-id']);
    if (!Number.isInteger(workerId)) return;
    const pods = this.#starts.get(workerId) ?? new Set();
    this.#starts.set(workerId, pods.add(uid));
    const over = type === 'DELETED' || ['Succeeded', 'Failed'].includes(status.phase);
    if (over) this.#alive.delete(uid);
    else this.#alive.set(uid, { workerId, queue: labels['thresher/queue'] ?? '' });
  }
}
