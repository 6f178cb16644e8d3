import type { Job, KubeObject, Namespace } from './kubernetes.ts';

interface Event {
  readonly type: string;
  readonly object: KubeObject;
}

/** What is there of one worker, or ever was. */
export interface MadeOf {
  readonly jobs: number;
  readonly pods: number;
}

const workerIdOf = ({ metadata }: KubeObject) => Number(metadata.labels?.['thresher/worker-id'] ?? 0);
/** A Job that starts no Pod: it rules out a late submission. */
const isFence = ({ metadata }: KubeObject) => metadata.annotations?.['thresher/fenced-attempt'] !== undefined;

/** Jobs of workers of any factory in a namespace, without fences. */
export async function workerJobs(space: Namespace): Promise<readonly Job[]> {
  return (await space.client.list<Job>(space.jobs(), 'thresher/factory')).filter((job) => !isFence(job));
}

/** Ids of workers with a Job, in their order. */
export async function workersWithJobs(space: Namespace): Promise<number[]> {
  return (await workerJobs(space)).map(workerIdOf).sort((a, b) => a - b);
}

/** Number of Pods of any factory's workers. */
export async function livingPods(space: Namespace): Promise<number> {
  return (await space.client.list(space.core('pods'), 'thresher/factory')).length;
}

/**
 * Everything that was ever made in a namespace since a moment, by the server's own word: also what is gone again, and lived
 * only for a moment. The server looks back a minute and more; a test is over by then.
 */
export class History {
  readonly #space: Namespace;
  readonly #since: readonly [jobs: string, pods: string];

  /** Begins now. */
  static async begin(space: Namespace): Promise<History> {
    const version = async (path: string) => {
      const list = await space.client.request<{ metadata: { resourceVersion: string } }>('GET', path);
      return list.metadata.resourceVersion;
    };
    return new History(space, [await version(space.jobs()), await version(space.core('pods'))]);
  }

  private constructor(space: Namespace, since: readonly [string, string]) {
    this.#space = space;
    this.#since = since;
  }

  /** By worker. Fences do not count. */
  async made(): Promise<ReadonlyMap<number, MadeOf>> {
    const [jobs, pods] = await Promise.all([
      this.#added(this.#space.jobs(), this.#since[0]),
      this.#added(this.#space.core('pods'), this.#since[1]),
    ]);
    const made = new Map<number, { jobs: number; pods: number }>();
    const of = (object: KubeObject) => {
      const id = workerIdOf(object);
      const counts = made.get(id) ?? { jobs: 0, pods: 0 };
      made.set(id, counts);
      return counts;
    };
    for (const job of jobs) if (!isFence(job)) of(job).jobs++;
    for (const pod of pods) of(pod).pods++;
    return made;
  }

  /** Workers that ever had more than one Job or Pod: promise 1 says that there are none. */
  async twice(): Promise<[workerId: number, made: MadeOf][]> {
    return [...(await this.made())].filter(([, { jobs, pods }]) => jobs > 1 || pods > 1);
  }

  async #added(path: string, resourceVersion: string): Promise<KubeObject[]> {
    const query = new URLSearchParams({ watch: '1', timeoutSeconds: '1', resourceVersion });
    const { text } = await this.#space.client.raw('GET', `${path}?${query.toString()}`);
    const events = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Event);
    const error = events.find(({ type }) => type === 'ERROR');
    if (error !== undefined) throw new Error(`no history of ${path}: ${JSON.stringify(error)}`);
    return events.filter(({ type }) => type === 'ADDED').map(({ object }) => object);
  }
}
