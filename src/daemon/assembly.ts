import type { ObservationWriter } from '../agents/observation/observation-writer.ts';
import type { ConnectedPlugins, QueueRuntime } from '../agents/queue-runtime.ts';
import type { QueueConfig, QueueFileResult } from '../config/queues/queues.ts';
import type { ConfigPlace } from '../store/config-places.ts';
import { messageOf, toReason } from '../worker/errors.ts';
import type { Reason } from '../worker/reason.ts';
import { type ConnectionLoops, madeOf, makeConnectionLoops } from './connection-loops.ts';
import type { ConfigInUse, RunConfiguration } from './configuration.ts';
import { Homes } from './homes.ts';
import { makeCommandLoop, makePruneLoop } from './housekeeping.ts';
import { type LoopParts, makeQueueLoops, type QueueLoops } from './queue-loops.ts';
import { placed, QueueReports } from './reports/queue-reports.ts';
import type { Wiring } from './wiring.ts';

const noConnections: ReadonlySet<string> = new Set();

type Read = Pick<RunConfiguration, 'queueFile' | 'inUse' | 'places'>;

export interface AssemblyParts extends LoopParts {
  readonly writer: ObservationWriter;
  readonly wiring: Wiring;
}

/** What runs, and with which configuration; brought in line with the queue file at the start and at each reload. */
export class Assembly {
  readonly #parts: AssemblyParts;
  readonly #reports: QueueReports;
  readonly #homes: Homes;
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
    const { clock, log, store } = parts.context;
    const { queues } = store;
    this.#reports = new QueueReports(queues, clock);
    this.#homes = new Homes({
      queues,
      clock,
      log,
      placementsOf: (config) => parts.wiring.placementsOf(config),
      running: () => this.running,
      follow: (config, configId) => this.#follow(config, configId),
    });
  }

  /** Makes everything from the queue file and from what is still followed. Nothing runs yet. */
  async begin({ queueFile: file, inUse, places }: Read): Promise<void> {
    await this.#parts.context.ledger.load();
    const report = await this.#apply(file, inUse);
    await this.#rehome(places);
    await report();
    const commands = makeCommandLoop(this.#parts, {
      queues: () => this.#known,
      leads: ({ configId, placement }) => this.#leads(configId, placement),
      sweepers: () => [...this.#current.values(), ...this.#older.values()].map(({ sweeper }) => sweeper),
      reconcilers: () => [...this.#connections.values()].map(({ reconciler }) => reconciler),
    });
    // A pass under way may still submit with one that was replaced.
    makePruneLoop(this.#parts, () => new Set(this.running.map(({ configId }) => configId)));
    // An operator's pause counts before the first worker is submitted.
    await commands.carryOutControls();
  }

  /**
   * Brings what runs in line with a file that was read anew. A queue that has errors now goes on as it was, and says so; so does
   * every queue where the file as a whole cannot be read.
   */
  async reload({ queueFile: file, inUse, places }: Read): Promise<void> {
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
        await this.#rehome(places);
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
    const { store } = context;
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
    this.#connect(renewed);
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
      if (file.readable) await store.orphans.keepOnly([...this.#connections.keys()]);
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
    // A pass under way may still submit with what is replaced, and a listing adopt with what it was given for that: these are
    // followed, whatever is in use.
    const held = this.#homes.held.take();
    const adopting = [...this.#older.values()].filter(({ runtime }) => held.has(runtime.configId));
    const last = [...replaced, ...adopting].map(({ runtime: { config, configId } }) => ({
      config,
      configId,
    }));
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

  /** What runs now, the current configurations first. */
  get running(): QueueRuntime[] {
    return [...this.#current.values(), ...this.#older.values()].map(({ runtime }) => runtime);
  }

  /** Whether the configuration that a worker is followed with leads to where it is. */
  #leads(configId: number, placement: string): boolean {
    const current = this.running.filter((runtime) => runtime.configId === configId);
    return current.some(({ connected }) => connected.has(placement));
  }

  #follow(config: QueueConfig, configId: number): QueueRuntime | undefined {
    const runtime = this.#older.get(configId)?.runtime ?? this.#runtime(config, configId, false);
    if (runtime === undefined) return undefined;
    if (this.#older.has(configId)) return runtime;
    this.#parts.loops.succeed(`queue ${config.name}`, [], this.#add(runtime).all);
    // It may lead where no other configuration does: its workers are observed and listed from now on.
    this.#connect(noConnections);
    return runtime;
  }

  /** Workers whose configuration leads elsewhere, or is gone, get one by which they can be ended, if there is any. */
  async #rehome(places: readonly ConfigPlace[]): Promise<void> {
    const { ledger, log } = this.#parts.context;
    for (const place of places.filter(({ configId, placement }) => !this.#leads(configId, placement))) {
      const configId = await this.#homes.configFor(place.queue, place.placement);
      if (configId === undefined) {
        log.error('workers are where no configuration leads', { code: 'worker-unreachable', ...place });
        continue;
      }
      const workers = await ledger.moveConfig(place, configId);
      log.warn('workers get another configuration, which leads to where they are', {
        ...place,
        workers,
        to: configId,
      });
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

  /** One monitor and one listing per connection in use, made from the current configurations first. */
  #connect(renewed: ReadonlySet<string>): void {
    const { loops } = this.#parts;
    const plugins = new Map<string, ConnectedPlugins>();
    const current = [...this.#current.values()].map(({ runtime }) => runtime);
    for (const { connected } of this.running) {
      for (const [name, its] of connected) if (!plugins.has(name)) plugins.set(name, its);
    }
    const users = current.map(({ config, connected }) => ({ config, connections: [...connected.keys()] }));
    const made = madeOf(users);
    for (const name of new Set([...this.#connections.keys(), ...plugins.keys()])) {
      const now = this.#connections.get(name);
      const connected = plugins.get(name);
      if (now !== undefined && connected !== undefined && !renewed.has(name)) continue;
      const next =
        connected &&
        makeConnectionLoops(this.#parts, name, connected, () =>
          this.#homes.forPass(name, (queue) => this.#current.has(queue)),
        );
      if (next === undefined) this.#connections.delete(name);
      else this.#connections.set(name, { ...next, made: made.get(name) ?? '' });
      loops.succeed(`connection ${name}`, now?.all ?? [], next?.all ?? []);
    }
  }
}
