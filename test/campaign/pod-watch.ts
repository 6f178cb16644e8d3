import type { Namespace, Pod } from '../support/kubernetes.ts';
import type { Seen } from './arena.ts';

interface Event {
  readonly type: string;
  readonly object: Pod;
}

/** Every Pod that a namespace ever had since a moment, by the API server's own events. It speaks to the server directly. */
export class PodWatch implements AsyncDisposable {
  readonly #space: Namespace;
  readonly #stop = new AbortController();
  /** By uid. */
  readonly #alive = new Map<string, Seen>();
  readonly #starts = new Map<number, Set<string>>();
  #version: string;
  #watching: Promise<void>;

  static async begin(space: Namespace): Promise<PodWatch> {
    const list = await space.client.request<{ metadata: { resourceVersion: string } }>(
      'GET',
      space.core('pods'),
    );
    return new PodWatch(space, list.metadata.resourceVersion);
  }

  private constructor(space: Namespace, version: string) {
    this.#space = space;
    this.#version = version;
    this.#watching = this.#watch();
  }

  living(): readonly Seen[] {
    return [...this.#alive.values()];
  }

  starts(): ReadonlyMap<number, number> {
    return new Map([...this.#starts].map(([id, pods]) => [id, pods.size]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const query = new URLSearchParams({
        watch: '1',
        timeoutSeconds: '1',
        allowWatchBookmarks: 'true',
        resourceVersion: this.#version,
      });
      const { text } = await this.#space.client.raw('GET', `${this.#space.core('pods')}?${query.toString()}`);
      for (const line of text.split('\n')) if (line !== '') this.#take(JSON.parse(line) as Event);
    }
  }

  #take({ type, object }: Event): void {
    if (type === 'ERROR') throw new Error(`the observer lost its watch: ${JSON.stringify(object)}`);
    const { uid = '', labels = {}, resourceVersion = this.#version } = object.metadata;
    this.#version = resourceVersion;
    const workerId = Number(labels['thresher/worker-id']);
    if (type === 'BOOKMARK' || !Number.isInteger(workerId)) return;
    const pods = this.#starts.get(workerId) ?? new Set();
    this.#starts.set(workerId, pods.add(uid));
    const over = type === 'DELETED' || ['Succeeded', 'Failed'].includes(object.status.phase);
    if (over) this.#alive.delete(uid);
    else this.#alive.set(uid, { workerId, queue: labels['thresher/queue'] ?? '' });
  }
}
