import type { ObservationWriter } from '../agents/observation/observation-writer.ts';
import type { ConnectedPlugins, QueueRuntime } from '../agents/queue-runtime.ts';
import type { PassHomes, ReconcilerAgent } from '../agents/reconciling/reconciler-agent.ts';
import { type ConnectionLoops, makeConnectionLoops } from './connection-loops.ts';
import type { LoopParts } from './queue-loops.ts';

export interface ConnectionSetParts extends LoopParts {
  readonly writer: ObservationWriter;
}

/** The connections at work: one monitor and one listing each, those of the first configuration that leads there. */
export class ConnectionSet {
  readonly #parts: ConnectionSetParts;
  /** For one pass of the listing of this connection. */
  readonly #homesOf: (connection: string) => PassHomes;
  readonly #made = new Map<string, ConnectionLoops & { readonly plugins: ConnectedPlugins }>();

  constructor(parts: ConnectionSetParts, homesOf: (connection: string) => PassHomes) {
    this.#parts = parts;
    this.#homesOf = homesOf;
  }

  get names(): string[] {
    return [...this.#made.keys()];
  }

  get reconcilers(): ReconcilerAgent[] {
    return [...this.#made.values()].map(({ reconciler }) => reconciler);
  }

  /** These run from now on, the current configurations first. */
  use(running: readonly QueueRuntime[]): void {
    const { loops } = this.#parts;
    const inUse = new Map<string, ConnectedPlugins>();
    for (const { connected } of running)
      for (const [name, plugins] of connected) if (!inUse.has(name)) inUse.set(name, plugins);
    for (const name of new Set([...this.#made.keys(), ...inUse.keys()])) {
      const now = this.#made.get(name);
      const plugins = inUse.get(name);
      if (now !== undefined && plugins !== undefined && areSame(now.plugins, plugins)) continue;
      const next =
        plugins &&
        makeConnectionLoops(this.#parts, name, plugins, {
          homes: () => this.#homesOf(name),
          isFollowed: (connection) => this.#made.has(connection),
        });
      if (next === undefined || plugins === undefined) this.#made.delete(name);
      else this.#made.set(name, { ...next, plugins });
      loops.replace(`connection ${name}`, now?.all ?? [], next?.all ?? []);
    }
  }
}

/** Whether a connection goes on with what it has: queues may take their monitor from different backends. */
function areSame(a: ConnectedPlugins, b: ConnectedPlugins): boolean {
  return a.connection === b.connection && a.monitor === b.monitor && a.sweeper === b.sweeper;
}
