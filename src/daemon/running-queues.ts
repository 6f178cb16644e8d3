import type { ObservationWriter } from '../agents/observation/observation-writer.ts';
import type { QueueRuntime } from '../agents/queue-runtime.ts';
import type { QueueConfig, QueueFileResult } from '../config/queues/queues.ts';
import type { Desk } from '../plugins/contracts/index.ts';
import type { ConfigPlace } from '../store/config-places.ts';
import type { QueueStore } from '../store/queues.ts';
import { within } from '../util/within.ts';
import { messageOf, toReason } from '../worker/errors.ts';
import type { Reason } from '../worker/reason.ts';
import { ConnectionSet } from './connection-set.ts';
import type { ConfigInUse, RunConfiguration } from './configuration.ts';
import { Homes } from './homes.ts';
import type { Sharing } from './sharing/sharing.ts';
import { makeCommandLoop, makePruneLoop } from './housekeeping.ts';
import { type LoopParts, makeQueueLoops, type QueueLoops } from './queue-loops.ts';
import { keyOf, planReload, type PlannedVersion, type ReloadPlan } from './reload-plan.ts';
import { placed, QueueReports } from './reports/queue-reports.ts';
import type { PluginFactory } from './plugin-factory.ts';

type Read = Pick<RunConfiguration, 'queueFile' | 'inUse' | 'places'>;

export interface RunningQueuesParts extends LoopParts {
  readonly writer: ObservationWriter;
  readonly plugins: PluginFactory;
  /** Where workers of which configurations are, as the database has them now. */
  places(): Promise<readonly ConfigPlace[]>;
  /** Drops news that no source took for too long. */
  dropOldNews(): Promise<void>;
  /** More to say of a queue, which holds nothing back. */
  notesOn?(queue: string): readonly Reason[];
  /** The part of this daemon, where several share the factory. What is read for it has no queue of another one. */
  readonly sharing?: Pick<Sharing, 'queues' | 'queuesElsewhere' | 'keys' | 'holdsFactory'> | undefined;
  /** Does this while no reload is under way. */
  betweenReloads(work: () => Promise<void>): Promise<void>;
}

/** The queues that run, each with its configuration. The start and each reload bring them in line with the queue file. */
export class RunningQueues {
  readonly #parts: RunningQueuesParts;
  readonly #reports: QueueReports;
  readonly #homes: Homes;
  /** By queue. */
  readonly #current = new Map<string, QueueLoops>();
  /** Earlier configurations whose workers are followed to their end, by their ids. */
  readonly #older = new Map<number, QueueLoops>();
  readonly #connections: ConnectionSet;
  /** Whether the last file could be read: else nothing is known of what should run. */
  #readable = false;
  /** Queues that have errors to show instead of what is followed of them. */
  #standing: ReadonlySet<string> = new Set();
  /** Names of queues that commands may be about. */
  #known: ReadonlySet<string> = new Set();

  constructor(parts: RunningQueuesParts) {
    this.#parts = parts;
    const { clock, log, store } = parts.context;
    const { queues } = store;
    this.#reports = new QueueReports(queues, clock, (queue) => parts.notesOn?.(queue) ?? []);
    this.#homes = new Homes({
      queues,
      clock,
      log,
      placementsOf: (config) => parts.plugins.placementsOf(config),
      running: () => this.runtimes,
      follow: (config, configId) => this.#follow(config, configId),
    });
    this.#connections = new ConnectionSet(parts, (name) =>
      this.#homes.forPass(name, (queue) => this.#current.has(queue)),
    );
  }

  /** Makes everything from the queue file and from what is still followed. Nothing runs yet. */
  async begin({ queueFile: file, inUse, places }: Read): Promise<void> {
    await this.#parts.context.ledger.load(this.#parts.sharing?.queues);
    const report = await this.#apply(file, inUse);
    await this.#rehome(places);
    await report();
    const commands = makeCommandLoop(this.#parts, {
      queues: () => this.#known,
      leads: ({ configId, placement }) => this.#leads(configId, placement),
      sweepers: () => [...this.#current.values(), ...this.#older.values()].map(({ sweeper }) => sweeper),
      reconcilers: () => this.#connections.reconcilers,
      sharing: this.#parts.sharing,
    });
    // A pass under way may still submit with one that was replaced.
    makePruneLoop(this.#parts, {
      // Another daemon may submit with any of them.
      currentConfigs: () =>
        this.#parts.sharing === undefined
          ? new Set(this.runtimes.map(({ configId }) => configId))
          : undefined,
      isHere: () => this.#parts.sharing?.holdsFactory ?? true,
      endUnused: () => this.#parts.betweenReloads(() => this.#endUnused()),
      dropOldNews: () => this.#parts.dropOldNews(),
    });
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
      const keptNames = new Set(kept.map(({ name }) => name));
      // In the order of the file: the first queue of a connection says how it is watched, also where its change is refused.
      const queues = file.verdicts.flatMap(({ name, config }) =>
        keptNames.has(name) ? (this.#current.get(name)?.runtime.config ?? []) : (config ?? []),
      );
      const report = await this.#apply({ ...file, queues }, inUse);
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
    const { store } = this.#parts.context;
    this.#readable = file.readable;
    this.#standing = new Set(file.verdicts.filter(({ state }) => state !== 'ready').map(({ name }) => name));
    const { plan, made } = this.#prepare(await this.#versionsOf(file.queues, store.queues), inUse);
    // From here on nothing may fail or wait until everything is in its place again.
    const incoming = this.#exchange(plan.leave, made);
    this.#sort(file.queues);
    this.#share();
    const speaking = incoming.map(({ runtime }) => runtime).filter((runtime) => this.#speaks(runtime));
    const silent = [...this.#current.values()].map(({ runtime }) => runtime.config.name);
    const begun = speaking.map(({ config }) => config);
    this.#known = new Set([...this.#known, ...silent, ...begun.map(({ name }) => name)]);
    return async () => {
      await this.#reports.begin(begun, silent, file, this.#parts.sharing?.queuesElsewhere);
      if (file.readable) await this.#forgetOrphans();
      this.#known = new Set((await store.queues.all()).map(({ queue }) => queue));
    };
  }

  /**
   * Ends the older configurations that are over: without this a removed queue would keep its loops and its connections until an
   * operator changes the file again.
   */
  async #endUnused(): Promise<void> {
    const { store } = this.#parts.context;
    const older = [...this.#older.values()].map(({ runtime }) => runtime);
    const ending = this.#ending();
    const carried = new Set((await this.#parts.places()).map(({ configId }) => configId));
    const inUse = [...older.filter(({ configId }) => carried.has(configId)), ...ending];
    const current = [...this.#current.values()].map(({ runtime }) => runtime);
    // Those that a listing began to follow meanwhile are held.
    const now = [...this.#older.values()].map(({ runtime }) => runtime);
    const held = this.#homes.held.take();
    const { leave } = planReload({ current, older: now, file: current, inUse, held });
    if (leave.length === 0) return;
    this.#exchange(leave, []);
    this.#share();
    if (!this.#readable) return;
    const followed = new Set(this.runtimes.map(({ config }) => config.name));
    const names = new Set(leave.map(({ config }) => config.name));
    await this.#reports.end([...names].filter((name) => !followed.has(name) && !this.#standing.has(name)));
    await this.#forgetOrphans();
    this.#known = new Set((await store.queues.all()).map(({ queue }) => queue));
  }

  /** Those of connections that no queue leads to. */
  async #forgetOrphans(): Promise<void> {
    const keys = this.#parts.sharing?.keys ?? [];
    await this.#parts.context.store.orphans.keepOnly([...new Set([...this.#connections.names, ...keys])]);
  }

  /**
   * Leaves these queues to another daemon: their loops end, and their workers are forgotten here once nothing is under way for them.
   * @returns those that are left. A call for another one still runs
   */
  async leave(queues: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const { loops, context, writer } = this.#parts;
    const leaving = this.runtimes
      .filter(({ config }) => queues.has(config.name))
      .map(({ config, configId, current }) => ({ config, configId, current }));
    const led = new Map(
      [...queues].map((queue) => {
        const own = this.runtimes.filter(({ config }) => config.name === queue);
        return [queue, own.flatMap(({ connected }) => [...connected.keys()])];
      }),
    );
    this.#exchange(leaving, []);
    this.#share();
    const remaining = new Set(this.#connections.names);
    const ended = await Promise.all(
      [...queues].map(async (queue) => {
        const gone = (led.get(queue) ?? []).filter((name) => !remaining.has(name));
        const slots = [slotOf(queue), ...gone.map((name) => `connection ${name}`)];
        const over = Promise.all(slots.map((slot) => loops.ended(slot))).then(() => undefined);
        return (await within(context.clock, context.pluginTimeout + leaveGrace, over)) ? [queue] : [];
      }),
    );
    const left = new Set(ended.flat());
    await within(context.clock, leaveGrace, writer.flushed());
    await context.ledger.leave(left);
    this.#reports.leave(left);
    return left;
  }

  /** Takes up the workers of queues that this daemon did not have. */
  async join(queues: ReadonlySet<string>): Promise<void> {
    this.#reports.leave(queues);
    await this.#parts.context.ledger.load(queues);
  }

  /** Older configurations that a pass under way may still submit with. Its workers have no rows yet: they count the next time. */
  #ending(): QueueRuntime[] {
    const older = [...this.#older.values()].map(({ runtime }) => runtime);
    return older.filter(({ config }) => this.#parts.loops.isEnding(slotOf(config.name)));
  }

  /** Takes out what leaves and puts in what comes, without a pause in between. */
  #exchange(leave: readonly PlannedVersion[], made: readonly QueueRuntime[]): readonly QueueLoops[] {
    const outgoing = leave.flatMap((version) => this.#loopsOf(version) ?? []);
    for (const { runtime } of outgoing) runtime.replaced = true;
    for (const { current, config, configId } of leave) {
      if (current) this.#current.delete(config.name);
      else this.#older.delete(configId);
    }
    const incoming = made.map((runtime) => this.#add(runtime));
    const loopsOf = (some: readonly QueueLoops[], queue: string) =>
      some.filter(({ runtime }) => runtime.config.name === queue).flatMap(({ all }) => all);
    for (const queue of new Set([...outgoing, ...incoming].map(({ runtime }) => runtime.config.name)))
      this.#parts.loops.replace(slotOf(queue), loopsOf(outgoing, queue), loopsOf(incoming, queue));
    return incoming;
  }

  /** Tells what queues share which of them run now. */
  #share(): void {
    const { plugins, context } = this.#parts;
    plugins.run(this.runtimes);
    this.#connections.use(this.runtimes);
    context.waiting.keepOnly(new Set(this.#current.keys()));
    const configs = this.runtimes.map(({ config }) => config);
    // The current configuration of a queue counts. An older one counts only where a queue has no current one.
    context.factoryLimits.configure([
      ...new Map(configs.reverse().map((config) => [config.name, config])).values(),
    ]);
  }

  /** The queues of the file with the numbers of their configurations. */
  async #versionsOf(
    queues: readonly QueueConfig[],
    known: Pick<QueueStore, 'configId'>,
  ): Promise<ConfigInUse[]> {
    const { clock } = this.#parts.context;
    const versions: ConfigInUse[] = [];
    for (const config of queues) {
      const configId = await known.configId(config.name, JSON.stringify(config), clock.now());
      versions.push({ config, configId });
    }
    return versions;
  }

  /** Makes the plugins of all that is to come. A queue whose plugins cannot be made stays as it was. */
  #prepare(
    file: readonly ConfigInUse[],
    inUse: readonly ConfigInUse[],
  ): { plan: ReloadPlan; made: readonly QueueRuntime[] } {
    const current = [...this.#current.values()].map(({ runtime }) => runtime);
    const older = [...this.#older.values()].map(({ runtime }) => runtime);
    const carried = [...inUse, ...this.#ending()];
    const state = { current, older, file, inUse: carried, held: this.#homes.held.take() };
    const first = planReload(state);
    const made = new Map(
      first.come
        .filter((version) => version.current)
        .map((version) => [keyOf(version), this.#runtime(version)]),
    );
    const failed = new Set(
      first.come
        .filter((version) => version.current && !made.get(keyOf(version)))
        .map(({ config }) => config.name),
    );
    const usable = file.filter(({ config }) => !failed.has(config.name));
    const kept = current.filter(({ config }) => failed.has(config.name));
    const plan = failed.size === 0 ? first : planReload({ ...state, file: [...usable, ...kept] });
    const runtimes = plan.come.flatMap((version) => made.get(keyOf(version)) ?? this.#runtime(version) ?? []);
    return { plan, made: runtimes };
  }

  #loopsOf({ current, config, configId }: PlannedVersion): QueueLoops | undefined {
    return current ? this.#current.get(config.name) : this.#older.get(configId);
  }

  /** The file's order counts: the first queue of a shared connection says how it is watched. */
  #sort(queues: readonly QueueConfig[]): void {
    for (const { name } of queues) {
      const made = this.#current.get(name);
      if (made === undefined) continue;
      this.#current.delete(name);
      this.#current.set(name, made);
    }
  }

  #runtime({ config, configId, current }: PlannedVersion): QueueRuntime | undefined {
    try {
      return this.#parts.plugins.runtime(config, configId, current);
    } catch (error) {
      const facts = { queue: config.name, configId, error: messageOf(error) };
      this.#parts.context.log.error(current ? 'queue cannot be run' : 'workers cannot be followed', facts);
      return undefined;
    }
  }

  /** The configurations that run now, the current ones first. */
  get runtimes(): QueueRuntime[] {
    return [...this.#current.values(), ...this.#older.values()].map(({ runtime }) => runtime);
  }

  /** Names of the queues that may get new workers. */
  get names(): readonly string[] {
    return [...this.#current.keys()];
  }

  /** Those among them whose own source has this kind. */
  queuesOf(kind: string): ReturnType<Desk['ownQueues']> {
    return [...this.#current.values()].flatMap(({ runtime: { config, requirements, sources } }) => {
      const { name, demand, configDir } = config;
      if (demand !== kind) return [];
      const { mapType, runMode } = config.options;
      const options = sources.find(({ own }) => own)?.options ?? {};
      return [{ name, mapType, runMode, requirements, options, configDir }];
    });
  }

  /** Why a queue gets no more workers, as it was reported last; undefined where there is no such queue. */
  reasonsOf(queue: string): readonly Reason[] | undefined {
    return this.#reports.reasonsOf(queue);
  }

  /**
   * Why workers of a queue may live that have no row, if so: one of its connections was not listed since the start, or a mistake keeps the
   * queue from running. No listing adopts workers of a queue that is not in the file any more.
   */
  unlistedOf(queue: string): Reason | undefined {
    const own = this.runtimes.filter(({ config }) => config.name === queue);
    const reasons = own.flatMap(({ connected }) =>
      [...connected.values()].map((one) => one.connection.unlisted),
    );
    if (own.length > 0) return reasons.find((reason) => reason !== undefined);
    return this.#readable && !this.#standing.has(queue) ? undefined : this.reasonsOf(queue)?.[0];
  }

  /** Whether the configuration that a worker is followed with leads to where it is. */
  #leads(configId: number, placement: string): boolean {
    const current = this.runtimes.filter((runtime) => runtime.configId === configId);
    return current.some(({ connected }) => connected.has(placement));
  }

  #follow(config: QueueConfig, configId: number): QueueRuntime | undefined {
    const runtime = this.#older.get(configId)?.runtime ?? this.#runtime({ config, configId, current: false });
    if (runtime === undefined) return undefined;
    if (this.#older.has(configId)) return runtime;
    this.#parts.loops.replace(slotOf(config.name), [], this.#add(runtime).all);
    this.#parts.plugins.run(this.runtimes);
    // It may lead where no other configuration does: its workers are observed and listed from now on.
    this.#connections.use(this.runtimes);
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

  /** Only the current configuration speaks for its queue; a refused queue has its errors to show. */
  #speaks(runtime: QueueRuntime): boolean {
    const { config, configId, current } = runtime;
    const now = this.#current.get(config.name)?.runtime;
    if (current) return now?.configId === configId;
    const isFollowed = this.#older.get(configId)?.runtime === runtime;
    return isFollowed && now === undefined && this.#readable && !this.#standing.has(config.name);
  }
}

/** Beyond one call of a plugin, ms. */
const leaveGrace = 5000;

/** Where the loops of a queue stand among all loops. */
const slotOf = (queue: string) => `queue ${queue}`;
