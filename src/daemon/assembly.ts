import { CommandAgent, type SweepResult } from '../agents/commands.ts';
import type { ObservationWriter } from '../agents/observations.ts';
import { Progress } from '../agents/loop.ts';
import { PrunerAgent, retentionAt } from '../agents/pruner.ts';
import type { ConnectedPlugins, QueueRuntime } from '../agents/queue-runtime.ts';
import type { QueueConfig, QueueFileResult } from '../config/queues/queues.ts';
import { messageOf, toReason } from '../worker/errors.ts';
import type { Reason } from '../worker/reason.ts';
import { type ConnectionLoops, makeConnectionLoops } from './connection-loops.ts';
import { followed, type LoopParts, makeQueueLoops, type QueueLoops, watched } from './queue-loops.ts';
import { placed, QueueReports } from './queue-reports.ts';
import type { Wiring } from './wiring.ts';

export interface AssemblyParts extends LoopParts {
  readonly writer: ObservationWriter;
  readonly wiring: Wiring;
}

/** A configuration that workers were submitted with. */
export interface ConfigInUse {
  readonly configId: number;
  readonly config: QueueConfig;
}

/** How often the database is asked whether somebody left a command, ms. */
const commandInterval = 300;

/** What runs, and with which configuration; brought in line with the queue file at the start and at each reload. */
export class Assembly {
  readonly #parts: AssemblyParts;
  readonly #reports: QueueReports;
  /** By queue. */
  readonly #current = new Map<string, QueueLoops>();
  /** Earlier configurations whose workers are followed to their end, by their ids. */
  readonly #older = new Map<number, QueueLoops>();
  readonly #connections = new Map<string, ConnectionLoops & { readonly made: string }>();
  /** Whether the last file could be read: else nothing is known of what should run. */
  #readable = false;
  /** Queues that have errors to show instead of what is followed of them. */
  #standing: ReadonlySet<string> = new Set();
  /** Names of queues that commands may be about. */
  #known: ReadonlySet<string> = new Set();

  constructor(parts: AssemblyParts) {
    this.#parts = parts;
    this.#reports = new QueueReports(parts.context.ledger.store.queues, parts.context.clock);
  }

  /** Makes everything from the queue file and from what is still followed. Nothing runs yet. */
  async begin(file: QueueFileResult, inUse: readonly ConfigInUse[]): Promise<void> {
    await this.#parts.context.ledger.load();
    const report = await this.#apply(file, inUse);
    await report();
    const commands = this.#commands();
    this.#prune();
    // An operator's pause counts before the first worker is submitted.
    await commands.carryOutControls();
  }

  /**
   * Brings what runs in line with a file that was read anew. A queue that has errors now goes on as it was, and says so; so does
   * every queue where the file as a whole cannot be read.
   */
  async reload(file: QueueFileResult, inUse: readonly ConfigInUse[]): Promise<void> {
    if (!file.readable) {
      const [first] = file.problems;
      const message = `the changed queue file is not used: ${first === undefined ? 'it cannot be read' : placed(first)}`;
      this.#reports.note({ code: 'reload-refused', message });
    } else {
      this.#reports.note(undefined);
      const kept = file.verdicts.filter(({ name, state }) => state !== 'ready' && this.#current.has(name));
      for (const { name, problems } of kept) {
        const [first] = problems.filter(({ severity }) => severity === 'error');
        const why = first === undefined ? 'it has errors' : placed(first);
        const message = `the changed configuration of the queue is not used: ${why}`;
        this.#reports.note({ code: 'reload-refused', message }, name);
      }
      const old = kept.flatMap(({ name }) => this.#current.get(name)?.runtime.config ?? []);
      const report = await this.#apply({ ...file, queues: [...file.queues, ...old] }, inUse);
      try {
        await report();
      } catch (error) {
        // Everything runs; only what is shown of it is late.
        this.#parts.context.log.error('queues could not be reported', { ...toReason(error) });
      }
    }
    this.#parts.loops.wakeAll('submit');
  }

  /** Says of all queues that a changed file could not be taken up at all. */
  notReloaded(reason: Reason): void {
    this.#reports.note({
      code: 'reload-refused',
      message: `the changed queue file is not used: ${reason.message}`,
    });
    this.#parts.loops.wakeAll('submit');
  }

  /** @returns what is to be written down of it, which may fail without harm to what runs. */
  async #apply(file: QueueFileResult, inUse: readonly ConfigInUse[]): Promise<() => Promise<void>> {
    const { context, loops } = this.#parts;
    const { store } = context.ledger;
    this.#readable = file.readable;
    this.#standing = new Set(file.verdicts.filter(({ state }) => state !== 'ready').map(({ name }) => name));
    const renewed = this.#renew(file.queues);
    const wanted = new Map<string, QueueRuntime>();
    for (const config of file.queues) {
      const configId = await store.queues.configId(config.name, JSON.stringify(config), context.clock.now());
      const now = this.#current.get(config.name)?.runtime;
      const touched = now !== undefined && [...now.connected.keys()].some((name) => renewed.has(name));
      const asItWas = now?.configId === configId && !touched;
      // A plugin that cannot be made leaves the queue as it was.
      const runtime = asItWas ? now : (this.#runtime(config, configId, true) ?? now);
      if (runtime !== undefined) wanted.set(config.name, runtime);
    }
    const replaced = [...this.#current.values()].filter(
      ({ runtime }) => wanted.get(runtime.config.name) !== runtime,
    );
    const older = this.#toFollow(inUse, wanted, replaced);
    const outdated = [...this.#older.values()].filter(
      ({ runtime }) => older.get(runtime.configId) !== runtime,
    );
    // From here on nothing may fail or wait until everything is in its place again.
    const outgoing = [...replaced, ...outdated];
    for (const { runtime } of replaced) this.#current.delete(runtime.config.name);
    for (const { runtime } of outdated) this.#older.delete(runtime.configId);
    const incoming = [...wanted.values(), ...older.values()]
      .filter((runtime) =>
        runtime.current ? !this.#current.has(runtime.config.name) : !this.#older.has(runtime.configId),
      )
      .map((runtime) => this.#add(runtime));
    const loopsOf = (made: readonly QueueLoops[], queue: string) =>
      made.filter(({ runtime }) => runtime.config.name === queue).flatMap(({ all }) => all);
    for (const queue of new Set([...outgoing, ...incoming].map(({ runtime }) => runtime.config.name))) {
      loops.succeed(`queue ${queue}`, loopsOf(outgoing, queue), loopsOf(incoming, queue));
    }
    const connections = this.#connect(renewed);
    const configs = [...wanted.values(), ...older.values()].map(({ config }) => config);
    // Of a queue with several configurations the current one counts; the others are there for those that have none.
    context.factoryLimits.configure([
      ...new Map(configs.reverse().map((config) => [config.name, config])).values(),
    ]);
    const speaking = incoming.map(({ runtime }) => runtime).filter((runtime) => this.#speaks(runtime));
    const silent = [...this.#current.values()].map(({ runtime }) => runtime.config.name);
    const begun = speaking.map(({ config }) => config);
    this.#known = new Set([...this.#known, ...silent, ...begun.map(({ name }) => name)]);
    return async () => {
      await this.#reports.begin(begun, silent, file);
      if (file.readable) await store.orphans.keepOnly(connections);
      this.#known = new Set((await store.queues.all()).map(({ queue }) => queue));
    };
  }

  /** Connections whose monitor or sweeper is configured otherwise now. */
  #renew(queues: readonly QueueConfig[]): ReadonlySet<string> {
    const { wiring } = this.#parts;
    const made = madeOf(queues.map((config) => ({ config, connections: wiring.placementsOf(config) })));
    const renewed = [...this.#connections].filter(([name, connection]) => {
      const now = made.get(name);
      return now !== undefined && now !== connection.made;
    });
    return new Set(renewed.map(([name]) => name));
  }

  /** The configurations with workers that are not gone yet, other than those that are wanted. */
  #toFollow(
    inUse: readonly ConfigInUse[],
    wanted: ReadonlyMap<string, QueueRuntime>,
    replaced: readonly QueueLoops[],
  ): ReadonlyMap<number, QueueRuntime> {
    const follow = new Map<number, QueueRuntime>();
    // A pass under way may still submit with what is replaced, so that is followed, whatever is in use.
    const last = replaced.map(({ runtime: { config, configId } }) => ({ config, configId }));
    for (const { config, configId } of [...inUse, ...last]) {
      if (wanted.get(config.name)?.configId === configId || follow.has(configId)) continue;
      const runtime = this.#older.get(configId)?.runtime ?? this.#runtime(config, configId, false);
      if (runtime !== undefined) follow.set(configId, runtime);
    }
    return follow;
  }

  #runtime(config: QueueConfig, configId: number, current: boolean): QueueRuntime | undefined {
    try {
      return this.#parts.wiring.runtime(config, configId, current);
    } catch (error) {
      const facts = { queue: config.name, configId, error: messageOf(error) };
      this.#parts.context.log.error(current ? 'queue cannot be run' : 'workers cannot be followed', facts);
      return undefined;
    }
  }

  #add(runtime: QueueRuntime): QueueLoops {
    const made = makeQueueLoops(this.#parts, runtime, async (reasons) => {
      if (this.#speaks(runtime)) await this.#reports.report(runtime.config, reasons);
    });
    if (runtime.current) this.#current.set(runtime.config.name, made);
    else this.#older.set(runtime.configId, made);
    return made;
  }

  /** Of a queue with several configurations only the current one speaks for it; a refused one has its errors to show. */
  #speaks({ config, configId, current }: QueueRuntime): boolean {
    const now = this.#current.get(config.name)?.runtime;
    if (current) return now?.configId === configId;
    return now === undefined && this.#readable && !this.#standing.has(config.name);
  }

  /** One monitor and one listing per connection that somebody uses, made from the current configurations first. */
  #connect(renewed: ReadonlySet<string>): string[] {
    const { loops } = this.#parts;
    const plugins = new Map<string, ConnectedPlugins>();
    const current = [...this.#current.values()].map(({ runtime }) => runtime);
    const older = [...this.#older.values()].map(({ runtime }) => runtime);
    for (const { connected } of [...current, ...older]) {
      for (const [name, its] of connected) if (!plugins.has(name)) plugins.set(name, its);
    }
    const users = current.map(({ config, connected }) => ({ config, connections: [...connected.keys()] }));
    const made = madeOf(users);
    for (const name of new Set([...this.#connections.keys(), ...plugins.keys()])) {
      const now = this.#connections.get(name);
      const connected = plugins.get(name);
      if (now !== undefined && connected !== undefined && !renewed.has(name)) continue;
      const configId = (queue: string) => this.#current.get(queue)?.runtime.configId;
      const next = connected && makeConnectionLoops(this.#parts, name, connected, configId);
      if (next === undefined) this.#connections.delete(name);
      else this.#connections.set(name, { ...next, made: made.get(name) ?? '' });
      loops.succeed(`connection ${name}`, now?.all ?? [], next?.all ?? []);
    }
    return [...plugins.keys()];
  }

  #prune(): void {
    const { settings, context, loops } = this.#parts;
    const progress = new Progress(context.clock);
    const pruner = new PrunerAgent(followed(context, progress), (now) => {
      // A pass under way may still submit with one that was replaced.
      const inUse = [...this.#current.values(), ...this.#older.values()];
      const currentConfigs = new Set(inUse.map(({ runtime }) => runtime.configId));
      return retentionAt(now, settings, currentConfigs);
    });
    loops.add({
      ...watched(this.#parts, progress),
      name: 'prune',
      interval: settings.sweeper.pruneInterval * 1000,
      pass: (signal) => pruner.pass(signal),
    });
  }

  #commands(): CommandAgent {
    const { context, loops } = this.#parts;
    const progress = new Progress(context.clock);
    const commands = new CommandAgent(followed(context, progress), {
      queues: () => this.#known,
      wakeSubmitter: (queue) => {
        loops.wake('submit', queue);
      },
      sweepNow: () =>
        all([...this.#current.values(), ...this.#older.values()], ({ sweeper }) => sweeper.sweep()),
      removeOrphans: () =>
        all([...this.#connections.values()], ({ reconciler }) => reconciler.removeOrphans()),
    });
    loops.add({
      ...watched(this.#parts, progress),
      name: 'commands',
      interval: commandInterval,
      // Operators wait for an answer, also right after the disk was full.
      longestPause: 1000,
      pass: () => commands.pass(),
    });
    return commands;
  }
}

/** By connection, what of the configurations that use it makes its monitor and sweeper. */
function madeOf(
  users: readonly { readonly config: QueueConfig; readonly connections: readonly string[] }[],
): ReadonlyMap<string, string> {
  const made = new Map<string, Set<string>>();
  for (const { config, connections } of users) {
    const { monitor, sweeper } = config.plugins;
    const text = JSON.stringify([monitor, sweeper]);
    for (const name of connections) made.set(name, (made.get(name) ?? new Set()).add(text));
  }
  return new Map([...made].map(([name, texts]) => [name, [...texts].sort().join()]));
}

/** Side by side: a dead backend delays and fails only its own part. */
async function all<T>(items: readonly T[], count: (item: T) => Promise<number>): Promise<SweepResult> {
  const results = await Promise.allSettled(items.map(count));
  return {
    count: results.reduce((sum, result) => sum + (result.status === 'fulfilled' ? result.value : 0), 0),
    errors: results.flatMap((result) => (result.status === 'rejected' ? [messageOf(result.reason)] : [])),
  };
}
