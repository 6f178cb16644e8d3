import type { ObservationWriter } from '../agents/observation/observation-writer.ts';
import type { ConnectedPlugins, QueueRuntime } from '../agents/queue-runtime.ts';
import {
  type PassHomes,
  ReconcilerAgent,
  type ReconcilerOptions,
} from '../agents/reconciling/reconciler-agent.ts';
import { type LoopParts, watched } from './queue-loops.ts';
import { type Loop, Progress } from '../agents/loop.ts';
import { MonitorAgent, type MonitorOptions } from '../agents/observation/monitor-agent.ts';
import { contextFor } from './agent-context.ts';

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

/** A connection at work: one monitor and one listing for all queues that share it. */
interface ConnectionLoops {
  readonly reconciler: ReconcilerAgent;
  readonly all: readonly Loop[];
}

/** Between a monitor's end and its next start when it did not fail, ms. */
const monitorInterval = 1000;

/** Makes the loops of a connection; they are not started yet. */
function makeConnectionLoops(
  parts: LoopParts & { readonly writer: ObservationWriter },
  name: string,
  { connection, monitor, sweeper }: ConnectedPlugins,
  { homes, isFollowed }: Pick<ReconcilerOptions, 'homes'> & Pick<MonitorOptions, 'isFollowed'>,
): ConnectionLoops {
  const { settings, context, writer, loops } = parts;
  const progress = new Progress(context.clock);
  const options = { missingGrace: settings.monitor.missingGrace * 1000, isFollowed };
  const agent = new MonitorAgent(monitor, connection, { ...contextFor(context), writer }, options);
  const reconciler = new ReconcilerAgent(sweeper, connection, contextFor(context, progress), {
    homes,
    notListed: (workerIds) => {
      agent.suspect(workerIds);
    },
  });
  const listing = loops.add({
    ...watched(parts, progress),
    name: `list ${name}`,
    interval: settings.sweeper.listInterval * 1000,
    pass: () => reconciler.pass(),
  });
  const monitoring = loops.add({
    name: `monitor ${name}`,
    interval: monitorInterval,
    pass: (signal) => agent.pass(signal),
  });
  return { reconciler, all: [listing, monitoring] };
}
