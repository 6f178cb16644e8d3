import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, KubeObject, Namespace } from './kubernetes.ts';
import { until } from './until.ts';

interface List {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly KubeObject[];
}

interface Event {
  readonly type: string;
  readonly object: KubeObject;
}

/** What is there of one worker, or ever was. */
export interface MadeOf {
  readonly jobs: number;
  readonly pods: number;
}

export const workerIdOf = ({ metadata }: KubeObject) => Number(metadata.labels?.['thresher/worker-id'] ?? 0);
/** A Job that starts no Pod: it rules out a late submission. */
export const isFence = ({ metadata }: KubeObject) =>
  metadata.annotations?.['thresher/fenced-attempt'] !== undefined;

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
 * only for a moment.
 */
export class History {
  readonly #jobs: Additions;
  readonly #pods: Additions;

  /** Begins now. */
  static async begin(space: Namespace): Promise<History> {
    const [jobs, pods] = await Promise.all([list(space, space.jobs()), list(space, space.core('pods'))]);
    return new History(space, jobs, pods);
  }

  private constructor(space: Namespace, jobs: List, pods: List) {
    this.#jobs = new Additions(space, space.jobs(), jobs);
    this.#pods = new Additions(space, space.core('pods'), pods);
  }

  /** By worker. Fences do not count. */
  async made(): Promise<ReadonlyMap<number, MadeOf>> {
    const [jobs, pods] = await Promise.all([this.#jobs.all(), this.#pods.all()]);
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
}

/**
 * s that a reading beside the test lasts, and ms between two: the server looks back little more than a minute. Only towards its end says
 * a watch how far it has come where nothing happened.
 */
const beside = { lasts: 10, every: 10_000 };

const uidOf = ({ metadata }: KubeObject) => metadata.uid ?? '';
const list = (space: Namespace, path: string) => space.client.request<List>('GET', path);

/** All objects that were added to a collection, by the events of the server. */
class Additions {
  readonly #space: Namespace;
  readonly #path: string;
  /** By uid. */
  readonly #earlier: ReadonlySet<string>;
  readonly #known = new Map<string, KubeObject>();
  #version: string;

  constructor(space: Namespace, path: string, { metadata, items }: List) {
    this.#space = space;
    this.#path = path;
    this.#earlier = new Set(items.map(uidOf));
    this.#version = metadata.resourceVersion;
    this.#follow(space.gone).catch(() => undefined);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(beside.every, undefined, { signal, ref: false });
      // What fails here fails again in `all`, which says so.
      await this.#read(beside.lasts).catch(() => undefined);
    }
  }

  async all(): Promise<readonly KubeObject[]> {
    const { items } = await list(this.#space, this.#path);
    // A server that is busy may end a watch before it has told everything.
    await until(`the server tells of all that is at ${this.#path}`, async () => {
      await this.#read(1);
      return items.map(uidOf).every((uid) => this.#earlier.has(uid) || this.#known.has(uid));
    });
    return [...this.#known.values()];
  }

  /** Several may be under way. @param lasts s */
  async #read(lasts: number): Promise<void> {
    const query = new URLSearchParams({
      watch: '1',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(lasts),
      resourceVersion: this.#version,
    });
    const { text } = await this.#space.client.raw('GET', `${this.#path}?${query.toString()}`);
    for (const line of text.split('\n').filter((one) => one !== '')) {
      const { type, object } = JSON.parse(line) as Event;
      if (type === 'ERROR') throw new Error(`no history of ${this.#path}: ${line}`);
      if (type === 'ADDED') this.#known.set(uidOf(object), object);
      const { resourceVersion = this.#version } = object.metadata;
      if (BigInt(resourceVersion) > BigInt(this.#version)) this.#version = resourceVersion;
    }
  }
}
