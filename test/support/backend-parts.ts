import { BackendConnections, type ConnectionUse } from '../../src/daemon/backend-connections.ts';
import type {
  BackendConnection,
  BackendDefinition,
  BackendKind,
  ConnectedQueue,
  Context,
  Monitor,
  Submitter,
  Sweeper,
} from '../../src/plugins/contracts/index.ts';
import { check } from '../../src/util/schema.ts';

export interface BackendParts {
  readonly submitter: Submitter;
  readonly monitor: Monitor;
  readonly sweeper: Sweeper;
}

/** The connections of one daemon in a test, and the queues that lead to each. */
class Daemon {
  readonly #connections: BackendConnections;
  readonly #uses = new Map<string, ConnectionUse>();

  constructor(context: Context) {
    this.#connections = new BackendConnections(context);
  }

  /** The connection of this name, after the section joined what its queue says there. */
  join(definition: BackendDefinition, config: unknown, name: string, context: Context): BackendConnection {
    const { backend, kind } = definition;
    const { queue, configId, configDir } = context;
    const connection = this.at(definition, config, name, context);
    const key = [backend.name, name, queue, configId].join(' ');
    const said = this.#uses.get(key)?.queue ?? { queue, configId, configDir, current: true };
    const joined: ConnectedQueue = { ...said, [kind]: config };
    this.#uses.set(key, { backend, connection: name, queue: joined });
    this.#connections.use([...this.#uses.values()]);
    return connection;
  }

  at({ backend }: BackendDefinition, config: unknown, name: string, context: Context): BackendConnection {
    return this.#connections.at(backend, { name, config, configDir: context.configDir });
  }

  replace(name: string, configId: number): void {
    for (const [key, use] of this.#uses) {
      const { queue } = use;
      if (queue.queue !== name || queue.configId !== configId) continue;
      this.#uses.set(key, { ...use, queue: { ...queue, current: false } });
    }
    this.#connections.use([...this.#uses.values()]);
  }

  leave(name: string): void {
    for (const [key, { queue }] of this.#uses) if (queue.queue === name) this.#uses.delete(key);
    this.#connections.use([...this.#uses.values()]);
  }
}

const daemons = new WeakMap<object, Daemon>();

/** Contexts that were spread from one `pluginContext()` are of one daemon. */
function daemonOf(context: Context): Daemon {
  const { daemon } = context as Context & { readonly daemon?: object };
  if (daemon === undefined) throw new Error('the context is not of pluginContext()');
  const known = daemons.get(daemon) ?? new Daemon(context);
  daemons.set(daemon, known);
  return known;
}

/**
 * A part of a backend as a section of a queue makes it: the queue leads to the connection from now on.
 * @param place the connection, where the section does not name it
 * @throws if the section is not sound
 */
export function partOf<K extends BackendKind>(
  definition: (BackendDefinition & { readonly kind: BackendKind }) | undefined,
  kind: K,
  section: unknown,
  context: Context,
  place?: string,
): BackendParts[K] {
  const checked = definition && check(definition.config, section);
  if (definition === undefined || checked?.ok !== true) throw new Error(JSON.stringify(checked));
  const config: unknown = checked.value;
  const daemon = daemonOf(context);
  const names = place === undefined ? definition.connections(config, context) : [place];
  const [connection] = names.map((name) => daemon.join(definition, config, name, context));
  const at = (name: string) => daemon.at(definition, config, name, context);
  const parts = {
    submitter: () => connection?.submitter?.(config, context, at),
    monitor: () => connection?.monitor,
    sweeper: () => connection?.sweeper,
  };
  const part = parts[kind]();
  if (part === undefined) throw new Error(`${definition.name} gives no ${kind}`);
  return part as BackendParts[K];
}

/** The connection itself, which a part was made of before. */
export function connectionAt(
  definition: BackendDefinition,
  section: unknown,
  context: Context,
): BackendConnection {
  const checked = check(definition.config, section);
  if (!checked.ok) throw new Error(JSON.stringify(checked));
  const [name = ''] = definition.connections(checked.value, context);
  return daemonOf(context).at(definition, checked.value, name, context);
}

/** A queue was removed from the file, and none of its workers is left. */
export function leaveQueue(queue: string, context: Context): void {
  daemonOf(context).leave(queue);
}

/** A configuration of a queue is not the current one any more, and its workers are followed to their end. */
export function replaceConfig(queue: string, configId: number, context: Context): void {
  daemonOf(context).replace(queue, configId);
}
