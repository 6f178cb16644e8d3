import type { PandaApi, PandaCommand, ResourceType } from '../../clients/panda/api.ts';
import type { PandaFailure, PandaOutcome } from '../../clients/panda/outcome.ts';
import type {
  Desk,
  Log,
  OriginKey,
  Reason,
  Source,
  SourceQueue,
  Wanted,
  WorkerNews,
} from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { isFinal } from '../../worker/status.ts';
import { type KillFilter, readCommand, type ServerCommand } from './commands.ts';
import type { KeptOrder, LinkMemory } from './memory.ts';
import type { PandaOptions } from './options.ts';
import { reportsToKeep, stillWanted } from './orders.ts';
import { reportOf } from './reports.ts';
import { shapeOf } from './shape.ts';
import { statisticsOf } from './statistics.ts';

export interface LinkParts {
  readonly api: PandaApi;
  readonly memory: LinkMemory;
  readonly directory: string;
  readonly options: PandaOptions;
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  readonly host: string;
}

/** Commands that one poll takes; with as many, the next poll comes at once. */
const commandsAtOnce = 20;
/** The clocks of the server and of its database may differ by this much, ms. */
const skew = 2000;

type Task = 'heartbeat' | 'poll' | 'statistics' | 'repeat';

/** The link to one PanDA server: its orders become requests, its commands are carried out, and it hears of each worker. */
export class PandaLink implements Source {
  readonly #parts: LinkParts;
  /** Living workers of this source, as they were told last. */
  readonly #living = new Map<number, WorkerNews>();
  /** When each was reported last, ms UTC. */
  readonly #reportedAt = new Map<number, number>();
  /** Sites whose workers changed since the last report of statistics. */
  readonly #changedSites = new Set<string>();
  readonly #sites = new Set<string>();
  readonly #dueAt: Record<Task, number>;
  readonly #startedAt: number;
  #types: readonly ResourceType[] = [];
  #failure: { readonly since: number; readonly failure: PandaFailure } | undefined;

  constructor(parts: LinkParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.now();
    this.#dueAt = { heartbeat: 0, poll: 0, statistics: 0, repeat: 0 };
  }

  async wanted({ name, requirements, own }: SourceQueue): Promise<Wanted> {
    if (!own) return { requests: [], groups: [], reasons: [] };
    this.#sites.add(name);
    const order = this.#parts.memory.orderOf(name);
    const site = { coreCount: requirements.nCore, maxRss: requirements.minRamCount };
    const requests = (order?.types ?? []).map((type, index) => ({
      origin: { uid: order?.uid ?? '', index },
      requirements: shapeOf(type, this.#types, site),
      groupId: `${order?.uid ?? ''}/${type}`,
    }));
    return { requests, groups: [], reasons: this.#whyNone(name, order) };
  }

  async told(news: readonly WorkerNews[], signal: AbortSignal): Promise<void> {
    for (const one of news) this.#remember(one);
    // The server keeps one row for each worker, so the last of its changes says all.
    const last = new Map(news.map((one) => [one.worker.workerId, one]));
    await this.#report([...last.values()], signal);
  }

  async run(desk: Desk, signal: AbortSignal): Promise<void> {
    const { memory, directory, clock, log } = this.#parts;
    const lost = await memory.load(directory);
    if (lost !== undefined) log.error('the memory of the PanDA link is lost', { why: lost });
    await this.#begin(desk, signal);
    while (!signal.aborted) {
      await this.#turn(desk, signal);
      const soonest = Math.min(...Object.values(this.#dueAt)) - clock.monotonic();
      await clock.sleep(Math.max(100, soonest), signal);
    }
  }

  /** What was left over of the last run comes first: a command is given once. */
  async #begin(desk: Desk, signal: AbortSignal): Promise<void> {
    const { memory, api } = this.#parts;
    const types = await this.#untilAnswered(() => api.resourceTypes(signal), signal);
    this.#types = types ?? [];
    for (const queue of desk.queues()) {
      const uids = memory.ordersOf(queue).map(({ uid }) => ({ uid }));
      for (const news of await desk.find(uids)) this.#remember(news);
    }
    await this.#carryOut(memory.commands, desk, signal);
  }

  async #turn(desk: Desk, signal: AbortSignal): Promise<void> {
    const { clock, options } = this.#parts;
    const intervals: Readonly<Record<Task, number>> = {
      heartbeat: options.heartbeatInterval,
      statistics: options.statisticsInterval,
      repeat: options.repeatInterval / 10,
      poll: options.pollInterval,
    };
    const tasks: Readonly<Record<Task, () => Promise<boolean>>> = {
      heartbeat: () => this.#heartbeat(signal),
      // Statistics come before the poll: an order must be counted with the workers of the one before it.
      statistics: () => this.#reportStatistics([...this.#sites], signal),
      repeat: () => this.#repeat(signal),
      poll: () => this.#poll(desk, signal),
    };
    for (const [task, interval] of Object.entries(intervals) as [Task, number][]) {
      if (task === 'poll') await this.#reportStatistics([...this.#changedSites], signal);
      if (this.#dueAt[task] > clock.monotonic() || signal.aborted) continue;
      const more = await tasks[task]();
      this.#dueAt[task] = clock.monotonic() + (more ? 0 : interval * 1000);
    }
  }

  async #heartbeat(signal: AbortSignal): Promise<boolean> {
    const { api, version } = this.#parts;
    const data = { startTime: this.#startedAt, version, commit: '' };
    const first = await api.heartbeat(data, signal);
    // The first one of an instance is stored without its data, and answered as a failure.
    const outcome =
      first.kind === 'failed' && first.code === 'panda-database' ? await api.heartbeat(data, signal) : first;
    this.#note(outcome);
    return false;
  }

  /** @returns whether there may be more */
  async #poll(desk: Desk, signal: AbortSignal): Promise<boolean> {
    const { api, memory } = this.#parts;
    const outcome = await api.acquireCommands(commandsAtOnce, signal);
    this.#note(outcome);
    if (outcome.kind === 'failed' || outcome.data.length === 0) return false;
    const commands = [...outcome.data];
    // Stored before anything else: the server never gives them again.
    await memory.change((kept) => ({ ...kept, commands: [...kept.commands, ...commands] }));
    this.#note(
      await api.acknowledge(
        commands.map(({ command_id: id }) => id),
        signal,
      ),
    );
    await this.#carryOut(commands, desk, signal);
    return commands.length === commandsAtOnce;
  }

  async #carryOut(commands: readonly PandaCommand[], desk: Desk, signal: AbortSignal): Promise<void> {
    const { memory, log } = this.#parts;
    for (const given of commands) {
      const command = readCommand(given);
      await this.#obey(command, given.command_id, desk, signal);
      if (command.kind === 'unknown')
        log.warn('a command of the PanDA server is not carried out', { why: command.why });
      await memory.change((kept) => ({
        ...kept,
        commands: kept.commands.filter(({ command_id: id }) => id !== given.command_id),
      }));
    }
  }

  async #obey(command: ServerCommand, id: number, desk: Desk, signal: AbortSignal): Promise<void> {
    switch (command.kind) {
      case 'set-workers':
        await this.#order(command, id, desk);
        break;
      case 'kill':
        await this.#end(
          desk,
          (news) => this.#isMeant(news, command.filter),
          'the PanDA server asked for its end',
        );
        break;
      case 'kill-ids': {
        const ids = new Set(command.workerIds);
        const meant = ({ worker: { workerId } }: WorkerNews) => workerId !== null && ids.has(workerId);
        await this.#end(desk, meant, 'the PanDA server counts its pilot as ended');
        break;
      }
      case 'report-statistics':
        await this.#reportStatistics([command.site], signal);
        break;
      case 'activate':
      case 'unknown':
    }
  }

  /**
   * Takes an order. The rest of the last one is withdrawn first, so that no worker is made any more that was not counted; then all
   * workers are counted that the server did not know of when it made the order.
   */
  async #order(
    command: Extract<ServerCommand, { kind: 'set-workers' }>,
    id: number,
    desk: Desk,
  ): Promise<void> {
    const { memory, clock } = this.#parts;
    const { site, wanted } = command;
    const uid = `${site}#${id}`;
    // It was carried out already, and the daemon died before that was written down.
    if (memory.ordersOf(site).some((order) => order.uid === uid)) {
      desk.wake(site);
      return;
    }
    const last = memory.orderOf(site);
    if (last !== undefined && (command.createdAt ?? Infinity) < last.createdAt) return;
    const rest = (last?.types ?? []).map((_, index): OriginKey => ({ uid: last?.uid ?? '', index }));
    const had = await desk.find(memory.ordersOf(site).map((order) => ({ uid: order.uid })));
    const served = new Set(
      had
        .filter(({ worker }) => worker.workerId !== null)
        .map(({ origin }) => `${origin.index} ${origin.uid}`),
    );
    const unserved = rest.filter(({ uid: of, index }) => !served.has(`${index} ${of}`));
    if (unserved.length > 0) await desk.end(unserved, 'a newer order of the PanDA server took its place');
    const all = await desk.find(memory.ordersOf(site).map((order) => ({ uid: order.uid })));
    const made = all.flatMap(({ worker: { creationTime, resourceType } }) =>
      creationTime === null || resourceType === null
        ? []
        : [{ at: creationTime, type: resourceType, count: 1 }],
    );
    const createdAt = command.createdAt ?? clock.now();
    const reports = memory.reportsOf(site);
    const numbers = stillWanted({ createdAt, wanted }, reports, made);
    const types = [...numbers].flatMap(([type, count]) => Array.from({ length: count }, () => type));
    const order: KeptOrder = { uid, createdAt, takenAt: clock.now(), types };
    const kept = reportsToKeep(reports, createdAt);
    const since = kept.reduce((first, { countedAt }) => Math.min(first, countedAt), Infinity);
    await memory.change((before) => ({
      ...before,
      orders: {
        ...before.orders,
        // Orders whose workers were made before every count that still matters are of no use any more.
        [site]: [...(before.orders[site] ?? []).filter(({ uid: of }) => isYounger(of, all, since)), order],
      },
      reports: { ...before.reports, [site]: [...kept] },
    }));
    desk.wake(site);
  }

  async #end(desk: Desk, isMeant: (news: WorkerNews) => boolean, reason: string): Promise<void> {
    const origins = [...this.#living.values()].filter(isMeant).map(({ origin }) => origin);
    if (origins.length > 0) await desk.end(origins, reason);
  }

  #isMeant({ worker, queue }: WorkerNews, filter: KillFilter): boolean {
    const { statuses, sites, computingElements, submissionHosts } = filter;
    return (
      (statuses?.includes(worker.status) ?? true) &&
      (sites?.includes(worker.computingSite ?? queue) ?? true) &&
      (computingElements?.includes(worker.computingElement ?? '') ?? true) &&
      (submissionHosts?.includes(this.#parts.host) ?? true)
    );
  }

  /** @returns false: there is never more to do at once */
  async #reportStatistics(sites: readonly string[], signal: AbortSignal): Promise<boolean> {
    const { api, memory, clock } = this.#parts;
    for (const site of sites) {
      const countedAt = clock.now();
      const own = [...this.#living.values()].filter(({ queue }) => queue === site);
      const counts = own.map(({ worker }) => ({
        jobType: worker.jobType ?? 'managed',
        resourceType: worker.resourceType ?? 'SCORE',
        status: worker.status === 'withdrawn' ? ('cancelled' as const) : worker.status,
        workers: 1,
      }));
      this.#changedSites.delete(site);
      const outcome = await api.reportStatistics(site, statisticsOf(counts), signal);
      this.#note(outcome);
      if (outcome.kind === 'failed') {
        this.#changedSites.add(site);
        continue;
      }
      const report = { countedAt, storedBy: clock.now() + skew };
      await memory.change((kept) => ({
        ...kept,
        reports: { ...kept.reports, [site]: [...(kept.reports[site] ?? []), report] },
      }));
    }
    return false;
  }

  /** Workers of which nothing was heard for long are reported again: the server would take them for lost. */
  async #repeat(signal: AbortSignal): Promise<boolean> {
    const { clock, options } = this.#parts;
    const before = clock.now() - options.repeatInterval * 1000;
    const silent = [...this.#living]
      .filter(([id]) => (this.#reportedAt.get(id) ?? 0) <= before)
      .map(([, news]) => news);
    await this.#report(silent, signal).catch(() => undefined);
    return false;
  }

  /** @throws Error where the server did not take them: they come again */
  async #report(news: readonly WorkerNews[], signal: AbortSignal): Promise<void> {
    const { api, options, clock, host } = this.#parts;
    const reports = news.flatMap(({ worker, queue }) => reportOf(worker, { host, queue }) ?? []);
    for (let first = 0; first < reports.length; first += options.reportBatch) {
      const batch = reports.slice(first, first + options.reportBatch);
      const outcome = await api.updateWorkers(batch, signal);
      this.#note(outcome);
      if (outcome.kind === 'failed') throw new Error(`${outcome.code}: ${outcome.message}`);
      for (const { workerID } of batch)
        if (this.#living.has(workerID)) this.#reportedAt.set(workerID, clock.now());
    }
  }

  #remember(news: WorkerNews): void {
    const { workerId, status } = news.worker;
    if (workerId === null) return;
    if (news.queue !== '') this.#changedSites.add(news.queue);
    if (status === 'withdrawn' || isFinal(status)) {
      this.#living.delete(workerId);
      this.#reportedAt.delete(workerId);
    } else this.#living.set(workerId, news);
  }

  #note(outcome: PandaOutcome<unknown>): void {
    const { clock, log } = this.#parts;
    if (outcome.kind === 'ok') {
      if (this.#failure !== undefined) log.info('the PanDA server answers again');
      this.#failure = undefined;
      return;
    }
    if (this.#failure?.failure.code !== outcome.code)
      log.warn('the PanDA server does not do what it is asked', {
        code: outcome.code,
        error: outcome.message,
      });
    this.#failure = { since: this.#failure?.since ?? clock.now(), failure: outcome };
  }

  #whyNone(site: string, order: KeptOrder | undefined): readonly Reason[] {
    const { clock } = this.#parts;
    if (this.#failure !== undefined) {
      const { since, failure } = this.#failure;
      const message = `the PanDA server gives no orders since ${new Date(since).toISOString()}: ${failure.message}`;
      return [{ code: failure.code, message }];
    }
    if (order === undefined) {
      const last = this.#parts.memory.reportsOf(site).at(-1);
      const reported =
        last === undefined
          ? 'no statistics were reported yet'
          : `statistics were reported last at ${new Date(last.countedAt).toISOString()}`;
      const minutes = Math.round((clock.now() - this.#startedAt) / 60_000);
      const message = `the PanDA server gave no order for ${minutes} min (${reported}): is \`harvester\` of the queue in CRIC the id of this instance?`;
      return [{ code: 'panda-no-order', message }];
    }
    if (order.types.length === 0) {
      const message = `the order of the PanDA server of ${new Date(order.createdAt).toISOString()} is fulfilled`;
      return [{ code: 'panda-order-fulfilled', message }];
    }
    return [];
  }

  async #untilAnswered<Data>(
    ask: () => Promise<PandaOutcome<Data>>,
    signal: AbortSignal,
  ): Promise<Data | undefined> {
    while (!signal.aborted) {
      const outcome = await ask();
      this.#note(outcome);
      if (outcome.kind === 'ok') return outcome.data;
      await this.#parts.clock.sleep(this.#parts.options.pollInterval * 1000, signal);
    }
    return undefined;
  }
}

/** Whether a worker of this order was made after that time, or the order never had one. */
function isYounger(uid: string, workers: readonly WorkerNews[], since: number): boolean {
  const own = workers.filter(({ origin }) => origin.uid === uid);
  return own.length === 0 || own.some(({ worker }) => (worker.creationTime ?? Infinity) >= since);
}
