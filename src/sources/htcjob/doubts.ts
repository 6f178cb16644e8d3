import pMap from 'p-map';
import { collectionPath } from '../../clients/kubernetes/paths.ts';
import { htcJobs, isNamed } from '../../clients/htcjob/resource.ts';
import type { Log, WorkerNews } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import type { OriginKey } from '../../worker/news.ts';
import { type HtcJobCluster, readsAtOnce } from './cluster.ts';
import { type Followed, kept } from './followed.ts';
import type { Name, Names } from './names.ts';
import type { OperatorClient } from './operator-host.ts';

/** So long after a list was without a HTCJob whose name is not known, all are listed once more, ms. */
const nextList = 60_000;
/** Workers that were ended, and live on, that are kept: of the oldest of more, the HTCJob is asked for again. */
const mostEnding = 100_000;
/** HTCJobs that a line of the log names. */
const mostNamed = 10;

export interface DoubtsParts {
  readonly client: Pick<OperatorClient, 'list'>;
  readonly cluster: Pick<HtcJobCluster, 'read'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly names: Pick<Names, 'all'>;
  readonly isKnown: (uid: string) => boolean;
  /** Whether its HTCJob was in the cluster that is followed now. */
  readonly isOfHere: (worker: WorkerNews) => boolean;
  /** False: another operator may work now. */
  readonly mayEnd: () => boolean;
  /** The server has it after all. */
  readonly found: (object: Followed) => void;
  readonly end: (origins: readonly OriginKey[]) => Promise<void>;
}

interface Doubt {
  /** Monotonic ms. */
  readonly since: number;
  /** By index. */
  readonly workers: Map<number, WorkerNews>;
}

/**
 * Workers whose HTCJob is in no list. One list that is without it ends none of them: a server, or what stands before it, may have answered wrongly once.
 * The server is asked for each by its name; where that is not known, it counts as gone once a list of later is without it, too.
 */
export class Doubts {
  readonly #parts: DoubtsParts;
  /** By uid. */
  readonly #open = new Map<string, Doubt>();
  /** Uids of which the log has said that they wait. */
  readonly #told = new Set<string>();
  /** Workers that were ended, up to their end: that may take days, and is no reason to ask for their HTCJobs again. */
  readonly #ending = new Set<string>();

  constructor(parts: DoubtsParts) {
    this.#parts = parts;
  }

  get uids(): Iterable<string> {
    return this.#open.keys();
  }

  add(workers: readonly WorkerNews[]): void {
    for (const worker of workers) {
      const { uid, index } = worker.origin;
      if (this.#ending.has(originText(worker.origin))) continue;
      const doubt = this.#open.get(uid) ?? { since: this.#parts.clock.monotonic(), workers: new Map() };
      doubt.workers.set(index, worker);
      this.#open.set(uid, doubt);
    }
  }

  /** These workers have ended. */
  ended(workers: readonly WorkerNews[]): void {
    for (const { origin } of workers) this.#ending.delete(originText(origin));
  }

  /**
   * @returns in how many ms it is to be called again; undefined: nothing is in doubt
   * @throws KubernetesError, and errors of the database: what was not asked stays in doubt
   */
  async settle(signal: AbortSignal): Promise<number | undefined> {
    this.#forgetKnown();
    if (this.#open.size === 0) return undefined;
    const names = await this.#parts.names.all();
    const uids = [...this.#open.keys()];
    const gone: string[] = [];
    try {
      await this.#read(
        uids.flatMap((uid) => names.get(uid) ?? []),
        gone,
        signal,
      );
      await this.#list(new Set(uids.filter((uid) => !names.has(uid))), gone, signal);
    } finally {
      await this.#end(gone, names);
    }
    this.#forgetKnown();
    const since = [...this.#open.values()].map((doubt) => doubt.since);
    return since.length === 0 ? undefined : this.#untilList(Math.min(...since));
  }

  /** ms */
  #untilList(since: number): number {
    return Math.max(0, since + nextList - this.#parts.clock.monotonic());
  }

  #forgetKnown(): void {
    for (const uid of this.#open.keys()) if (this.#parts.isKnown(uid)) this.#forget(uid);
  }

  #forget(uid: string): void {
    this.#open.delete(uid);
    this.#told.delete(uid);
  }

  /** @param gone gets the uids of those that the server does not have */
  async #read(names: readonly Name[], gone: string[], signal: AbortSignal): Promise<void> {
    const { cluster } = this.#parts;
    const there: Followed[] = [];
    const read = async (name: Name) => {
      const object = await cluster.read(name, signal);
      if (object === undefined) gone.push(name.uid);
      else there.push(kept(object));
    };
    try {
      await pMap(names, read, { concurrency: readsAtOnce, signal });
    } finally {
      this.#found(there);
    }
  }

  /** Those whose names are not known. @param gone gets the uids of those that this list is without, too */
  async #list(uids: ReadonlySet<string>, gone: string[], signal: AbortSignal): Promise<void> {
    const due = new Set(uids.values().filter((uid) => this.#untilList(this.#open.get(uid)?.since ?? 0) <= 0));
    this.#tell(uids);
    if (due.size === 0) return;
    const { items } = await this.#parts.client.list(collectionPath(htcJobs), { signal }, (object) =>
      isNamed(object) && due.has(object.metadata.uid) ? kept(object) : undefined,
    );
    const there = new Set(items.map(({ metadata }) => metadata.uid));
    gone.push(...[...due].filter((uid) => !there.has(uid)));
    this.#found(items);
  }

  #tell(uids: ReadonlySet<string>): void {
    const fresh = [...uids].filter((uid) => !this.#told.has(uid));
    for (const uid of fresh) this.#told.add(uid);
    if (fresh.length === 0) return;
    this.#parts.log.warn(
      'jobs run on whose HTCJobs are in no list: they are ended if the next one is without them, too',
      { htcjobs: fresh.length, seconds: nextList / 1000 },
    );
  }

  #found(objects: readonly Followed[]): void {
    const fresh = objects.filter(({ metadata: { uid } }) => !this.#parts.isKnown(uid));
    if (fresh.length === 0) return;
    this.#parts.log.warn('a list was without HTCJobs that are there', {
      count: fresh.length,
      htcjobs: fresh.slice(0, mostNamed).map(({ metadata: { namespace, name } }) => `${namespace}/${name}`),
    });
    for (const object of fresh) this.#parts.found(object);
  }

  async #end(uids: readonly string[], names: ReadonlyMap<string, Name>): Promise<void> {
    const { log, isKnown, isOfHere, mayEnd, end } = this.#parts;
    // The watch may have told of one meanwhile, and the Lease may be another's.
    if (!mayEnd()) return;
    const gone = uids.filter((uid) => !isKnown(uid));
    const origins = gone.flatMap((uid) =>
      [...(this.#open.get(uid)?.workers.values() ?? [])].filter(isOfHere).map(({ origin }) => origin),
    );
    if (origins.length > 0) {
      await end(origins);
      for (const origin of origins) this.#ending.add(originText(origin));
      const over = this.#ending.size - mostEnding;
      for (const oldest of [...this.#ending.keys().take(Math.max(0, over))]) this.#ending.delete(oldest);
      const named = gone.flatMap((uid) => names.get(uid) ?? []).slice(0, mostNamed);
      log.info('jobs are ended whose HTCJobs are gone', {
        jobs: origins.length,
        htcjobs: named.map(({ namespace, name }) => `${namespace}/${name}`),
      });
    }
    for (const uid of gone) this.#forget(uid);
  }
}

function originText({ uid, index }: OriginKey): string {
  return `${index} ${uid}`;
}
