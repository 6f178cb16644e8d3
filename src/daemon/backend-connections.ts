import type {
  AnyBackend,
  BackendConnection,
  ConnectedQueue,
  ConnectionHost,
  ConnectionPlace,
  Host,
  SourceMemory,
} from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';
import { toReason } from '../worker/errors.ts';
import { inFiles } from './source-memory.ts';

/** That a configuration of a queue leads to a connection of a backend. */
export interface ConnectionUse {
  readonly backend: AnyBackend;
  readonly connection: string;
  readonly queue: ConnectedQueue;
}

/** The connections of all backends: each is made once, told of the queues that lead to it, and dropped after the last one. */
export class BackendConnections {
  readonly #host: Host;
  readonly #ended: AbortSignal;
  readonly #memoryOf: (kind: string) => SourceMemory;
  readonly #made = new Map<AnyBackend, Map<string, Made>>();
  /** By backend and id: the queues of the configurations that lead to any connection of it. */
  readonly #configs = new Map<AnyBackend, ReadonlyMap<number, string>>();
  /** By key, with the connections that asked for it. */
  readonly #shared = new Map<string, { readonly value: unknown; readonly by: Set<QueuesOfConnection> }>();

  /**
   * @param ended aborts when the daemon ends. Default: the process ends by itself, as that of a command line
   * @param memoryOf default: files of the state directory
   */
  constructor(
    host: Host,
    ended: AbortSignal = new AbortController().signal,
    memoryOf: (kind: string) => SourceMemory = inFiles(host.stateDir),
  ) {
    this.#host = host;
    this.#ended = ended;
    this.#memoryOf = memoryOf;
  }

  /** Made when it is first asked for. Until `use` says that a queue leads there, it knows of none. */
  at(backend: AnyBackend, place: ConnectionPlace): BackendConnection {
    const ofBackend = this.#made.get(backend) ?? new Map<string, Made>();
    const known = ofBackend.get(place.name);
    if (known !== undefined) return known.connection;
    const queues = new QueuesOfConnection();
    const connection = this.#connect(backend, place, queues);
    this.#made.set(backend, ofBackend.set(place.name, { connection, queues }));
    return connection;
  }

  /** A connection that cannot be made holds nothing that others share: no queue would ever make it leave. */
  #connect(backend: AnyBackend, place: ConnectionPlace, queues: QueuesOfConnection): BackendConnection {
    try {
      return backend.connect(place, this.#hostOf(backend, place.name, queues));
    } catch (error) {
      this.#leave(queues);
      throw error;
    }
  }

  /** From now on these lead to connections, and no others. Connections know of their queues in this order. */
  use(uses: readonly ConnectionUse[]): void {
    const byBackend = Map.groupBy(uses, ({ backend }) => backend);
    this.#configs.clear();
    for (const [backend, some] of byBackend)
      this.#configs.set(backend, new Map(some.map(({ queue }) => [queue.configId, queue.queue])));
    for (const [backend, ofBackend] of this.#made) {
      const byName = Map.groupBy(byBackend.get(backend) ?? [], ({ connection }) => connection);
      for (const [name, { connection, queues }] of ofBackend) {
        const all = byName.get(name)?.map(({ queue }) => queue) ?? [];
        if (queues.change(all)) this.#tell(name, connection);
        if (all.length > 0) continue;
        ofBackend.delete(name);
        this.#leave(queues);
      }
      if (ofBackend.size === 0) this.#made.delete(backend);
    }
  }

  /** A backend that fails here keeps no other from being told. */
  #tell(name: string, connection: BackendConnection): void {
    try {
      connection.queuesChanged?.();
    } catch (error) {
      this.#host.log.error('a connection cannot take up its queues', {
        connection: name,
        ...toReason(error),
      });
    }
  }

  #hostOf(backend: AnyBackend, connection: string, queues: QueuesOfConnection): ConnectionHost {
    // In the marks of workers from before a database was lost an id is that of some other queue.
    const isUsed = (name: string, configId: number) => this.#configs.get(backend)?.get(configId) === name;
    const { factoryId, harvesterId, logServer, stateDir, clock, files, random, log } = this.#host;
    return {
      ...(logServer && { logServer }),
      factoryId,
      harvesterId,
      stateDir,
      clock,
      files,
      random,
      log,
      connection,
      ended: this.#ended,
      get queues() {
        return queues.each;
      },
      queue: (name, configId) => queues.find(name, configId, isUsed),
      pause: (howLong, signal) => queues.pause(howLong, clock, signal),
      share: (key, make) => this.#share(key, make, queues),
      memoryOf: this.#memoryOf,
    };
  }

  #share<T>(key: string, make: () => T, by: QueuesOfConnection): T {
    const shared = this.#shared.get(key) ?? { value: make(), by: new Set<QueuesOfConnection>() };
    shared.by.add(by);
    this.#shared.set(key, shared);
    return shared.value as T;
  }

  #leave(queues: QueuesOfConnection): void {
    for (const [key, { by }] of this.#shared) {
      by.delete(queues);
      if (by.size === 0) this.#shared.delete(key);
    }
  }
}

interface Made {
  readonly connection: BackendConnection;
  readonly queues: QueuesOfConnection;
}

/** The configurations of queues that lead to one connection now. */
class QueuesOfConnection {
  #all: readonly ConnectedQueue[] = [];
  #each: readonly ConnectedQueue[] = [];
  /** Ends the waits under way, so that each asks anew how long it is. */
  readonly #waits = new Set<() => void>();

  /** One configuration of each queue: the current one, or the newest that is followed. */
  get each(): readonly ConnectedQueue[] {
    return this.#each;
  }

  /** @returns whether these are others than before */
  change(all: readonly ConnectedQueue[]): boolean {
    if (all.length === this.#all.length && all.every((queue, index) => queue === this.#all[index]))
      return false;
    this.#all = all;
    this.#each = [...Map.groupBy(all, ({ queue }) => queue).values()].flatMap((ofQueue) => decisive(ofQueue));
    for (const end of this.#waits) end();
    return true;
  }

  /** @param isUsed whether a configuration leads to any connection of the backend */
  find(
    name: string | undefined,
    configId: number | undefined,
    isUsed: (name: string, configId: number) => boolean,
  ): ConnectedQueue | undefined {
    const own = this.#all.find((one) => one.queue === name && one.configId === configId);
    if (own !== undefined || name === undefined) return own;
    // Two connections may show the same workers: what a configuration of the other one says of them is not for this one to say.
    if (configId !== undefined && isUsed(name, configId)) return undefined;
    return this.#each.find(({ queue }) => queue === name);
  }

  async pause(howLong: () => number, clock: Clock, signal: AbortSignal): Promise<void> {
    const begun = clock.monotonic();
    while (!signal.aborted) {
      const left = begun + howLong() - clock.monotonic();
      if (left <= 0) return;
      const wait = new AbortController();
      const end = () => {
        wait.abort();
      };
      this.#waits.add(end);
      signal.addEventListener('abort', end);
      await clock.sleep(left, wait.signal);
      signal.removeEventListener('abort', end);
      this.#waits.delete(end);
    }
  }
}

/** The configuration that speaks for its queue. */
function decisive(ofQueue: readonly ConnectedQueue[]): ConnectedQueue[] {
  const newestFirst = ofQueue.toSorted((a, b) => b.configId - a.configId);
  const current = newestFirst.find((one) => one.current);
  return current === undefined ? newestFirst.slice(0, 1) : [current];
}
