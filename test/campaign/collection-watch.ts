import type { KubeObject, Namespace } from '../support/kubernetes.ts';

interface Event<T> {
  readonly type: string;
  readonly object: T;
}

/** Every event of a collection since a moment, in the API server's order. It speaks to the server directly. */
export class CollectionWatch<T extends KubeObject> implements AsyncDisposable {
  readonly #space: Namespace;
  readonly #path: string;
  readonly #take: (type: string, object: T) => void;
  readonly #stop = new AbortController();
  #version: string;
  #watching: Promise<void>;

  /** @param take hears of each addition, change and deletion */
  static async begin<T extends KubeObject>(
    space: Namespace,
    path: string,
    take: (type: string, object: T) => void,
  ): Promise<CollectionWatch<T>> {
    const list = await space.client.request<{ metadata: { resourceVersion: string } }>('GET', path);
    return new CollectionWatch(space, path, list.metadata.resourceVersion, take);
  }

  private constructor(
    space: Namespace,
    path: string,
    version: string,
    take: (type: string, object: T) => void,
  ) {
    this.#space = space;
    this.#path = path;
    this.#version = version;
    this.#take = take;
    this.#watching = this.#watch();
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
      const { text } = await this.#space.client.raw('GET', `${this.#path}?${query.toString()}`);
      for (const line of text.split('\n')) if (line !== '') this.#hear(JSON.parse(line) as Event<T>);
    }
  }

  #hear({ type, object }: Event<T>): void {
    if (type === 'ERROR') throw new Error(`the observer lost its watch: ${JSON.stringify(object)}`);
    this.#version = object.metadata.resourceVersion ?? this.#version;
    if (type !== 'BOOKMARK') this.#take(type, object);
  }
}
