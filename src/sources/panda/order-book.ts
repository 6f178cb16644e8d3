import type {
  Desk,
  Log,
  OriginKey,
  Request,
  SourceQueue,
  WorkerNews,
} from '../../plugins/contracts/index.ts';
import type { PandaOrder } from '../../plugins/contracts/panda-status.ts';
import type { ClockDifference } from '../../clients/panda/client.ts';
import type { Clock } from '../../util/clock.ts';
import { isQueued } from '../../worker/status.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import type { ServerCommand } from './commands.ts';
import type { KeptOrder, LinkMemory, Run } from './memory.ts';
import { type ByType, knownReport, oldestOrder, reportsToKeep, stillWanted } from './orders.ts';
import { carriedOver, originsIn, uidOf } from './runs.ts';
import { shapeOf } from './shape.ts';
import { queueFor, sitesOf } from './sites.ts';

export interface OrderBookParts {
  readonly memory: LinkMemory;
  readonly clock: Clock;
  readonly log: Log;
  /** undefined where that is not known. */
  readonly serverAhead: () => ClockDifference | undefined;
}

type SetWorkers = Extract<ServerCommand, { kind: 'set-workers' }>;

/** New workers of one type that one order may want: a number beyond it is a mistake, and the next order asks for the rest. */
const mostOfOneType = 10_000;
/** New workers of all types that one order may want. */
export const mostOfOneOrder = 20_000;
/** The server has 6 types. */
const mostTypes = 100;

/**
 * A resource type that the server orders and never counts: it leaves it out when it stores statistics, and so would order the same
 * workers every 300 s. Source: panda-server 1.0.4, `worker_module.py`.
 */
const neverCounted = 'Undefined';

/** An order cannot be from after it came, ms: a time further ahead than this is a mistake, and counts as none, so that it makes no later order an older one. */
export const latestOrder = 300_000;

/** The order of a site that no queue serves any more is forgotten after so long, ms. */
const forgottenAfter = 7 * 86_400_000;

type OrderedQueue = Pick<SourceQueue, 'name' | 'requirements' | 'wholeSlots'>;

/** The orders of the server, one for each site, as requests for named workers: each gets one, also through crashes. */
export class OrderBook {
  readonly #parts: OrderBookParts;
  /** Indexes that have their worker, or never get one, by `uid`. */
  readonly #served = new Map<string, Set<number>>();
  /** By order: how many of its requests were served when its open ones were counted. */
  readonly #rests = new WeakMap<KeptOrder, { readonly served: number; readonly rest: number }>();

  constructor(parts: OrderBookParts) {
    this.#parts = parts;
  }

  /** After a start: looks up which requests of the orders have their worker. */
  async resume(desk: Desk): Promise<void> {
    for (const { runs } of this.#parts.memory.orders.values()) await this.#lookUp(runs, desk);
  }

  /** A worker's news says that its request is served. */
  heard({ origin }: WorkerNews): void {
    this.#served.get(origin.uid)?.add(origin.index);
  }

  /** The requests of a queue that have no worker yet. */
  requestsOf({ name: queue, requirements, wholeSlots }: OrderedQueue, queues: readonly string[]): Request[] {
    const { memory } = this.#parts;
    const site = computingSiteOf(queue);
    const requests: Request[] = [];
    for (const run of memory.orderOf(site)?.runs ?? []) {
      if (queueFor(run.type, site, queues) !== queue) continue;
      const { nCore: coreCount, minRamCount: maxRss } = requirements;
      const shape = shapeOf(run.type, memory.types, { coreCount, maxRss, wholeSlots });
      const groupId = `${run.uid}/${run.type}`;
      for (const origin of this.#open(run)) requests.push({ origin, requirements: shape, groupId });
    }
    return requests;
  }

  /** The order that counts, for operators. */
  orderOf(site: string): PandaOrder | undefined {
    const order = this.#parts.memory.orderOf(site);
    if (order === undefined) return undefined;
    const { createdAt, takenAt, said, wanted } = order;
    return { createdAt, takenAt, said, wanted, rest: this.#restOf(order) };
  }

  /** Counted again only when something was served: orders of 100 sites have 2,000,000 requests, and their status is asked for all the time. */
  #restOf(order: KeptOrder): number {
    const uids = new Set(order.runs.map(({ uid }) => uid));
    const served = [...uids].reduce((sum, uid) => sum + (this.#served.get(uid)?.size ?? 0), 0);
    const before = this.#rests.get(order);
    if (before?.served === served) return before.rest;
    const rest = order.runs.reduce((sum, run) => sum + run.count - this.#servedIn(run), 0);
    this.#rests.set(order, { served, rest });
    return rest;
  }

  /**
   * Takes an order in the place of the last one. Requests that the last one left over become requests of this one: a pass under way
   * may be making their workers just now, and so it makes workers of this order.
   * @returns the outcome in words
   */
  async take({ site, wanted: said, createdAt: saidAt }: SetWorkers, id: number, desk: Desk): Promise<string> {
    const { memory, clock } = this.#parts;
    const uid = uidOf(site, id, saidAt);
    const last = memory.orderOf(site);
    // It was carried out, and the daemon died before it wrote that down.
    if (last?.uid === uid) return 'it is carried out already';
    // Any server on the way may have told the time, and a wrong one: of its clock and ours each bound has the one that changes less.
    const ahead = this.#parts.serverAhead()?.ahead ?? 0;
    const isDated = saidAt !== undefined && saidAt <= clock.now() + Math.max(0, ahead) + latestOrder;
    const createdAt = isDated ? saidAt : clock.now() + Math.min(0, ahead);
    // The server's clock may have been set back, and a server whose database was made anew counts its commands from 1 again: an order is older by
    // its number and its time. Of one without a time the number decides, for as long as answers come late.
    const isLater = isDated
      ? last === undefined || createdAt >= last.createdAt
      : last === undefined || clock.now() - last.takenAt >= oldestOrder;
    if (!isLater && id < (last?.commandId ?? 0)) return 'a newer order of the site counts';
    const lastRuns = last?.runs ?? [];
    await this.#lookUp(lastRuns, desk);
    const left = lastRuns.flatMap((run) => this.#open(run).map((origin) => ({ ...origin, type: run.type })));
    const reports = memory.reportsOf(site);
    // Of an order that says to be older no report is kept; its clock is wrong, and its workers are not all that were ever made.
    const known = knownReport(Math.max(createdAt, clock.now() + Math.min(0, ahead) - oldestOrder), reports);
    // The open requests were looked up before this count: one that is served in between is counted here, and the order wants
    // one worker too few rather than one too many.
    const made = new Map(await desk.madeSince(site, { at: known?.countedAt ?? 0, upTo: known?.upTo ?? 0 }));
    if ((said.get(neverCounted) ?? 0) > 0) made.set(neverCounted, await queuedOf(site, neverCounted, desk));
    const bounded = this.#bounded(site, said);
    const wanted = stillWanted(bounded, made);
    const { runs, surplus } = carriedOver(left, wanted, uid);
    const now = clock.now();
    const own = new Set(sitesOf(desk.ownQueues()));
    await memory.change((kept) => ({
      ...kept,
      orders: {
        ...Object.fromEntries(
          Object.entries(kept.orders).filter(
            ([other, order]) => own.has(other) || order.takenAt > now - forgottenAfter,
          ),
        ),
        [site]: {
          uid,
          commandId: id,
          createdAt,
          takenAt: now,
          said: Object.fromEntries([...said].slice(0, mostTypes)),
          wanted: Object.fromEntries(wanted),
          runs: [...runs],
        },
      },
      reports: { ...kept.reports, [site]: [...reportsToKeep(reports, createdAt)] },
    }));
    for (const run of lastRuns) this.#served.delete(run.uid);
    await this.#lookUp(runs, desk);
    // A pass under way may still hold them: the database refuses a withdrawn one. An order ends nothing: some may have got their workers
    // just now, or have them without a row since the database was lost, and these live on.
    if (surplus.length > 0) await desk.withdraw(surplus);
    for (const queue of desk.ownQueues()) if (computingSiteOf(queue.name) === site) desk.wake(queue.name);
    return this.#outcome(bounded, wanted);
  }

  #outcome(said: ByType, wanted: ByType): string {
    const sum = (numbers: ByType) => [...numbers.values()].reduce((all, one) => all + one, 0);
    const [all, rest] = [sum(said), sum(wanted)];
    const less = all === rest ? '' : `, ${all - rest} of ${all} were made before the server knew of them`;
    return `${rest} new workers${less}`;
  }

  /** The part of an order that can be meant: types that the server has, and no more workers than sites have. */
  #bounded(site: string, said: ByType): ByType {
    const { log, memory } = this.#parts;
    const known = new Set(memory.types.map(({ resource_name: type }) => type));
    const isKnown = (type: string) => known.size === 0 || known.has(type) || type === neverCounted;
    const types = [...said].filter(([type, count]) => count > 0 && isKnown(type)).slice(0, mostTypes);
    let room = mostOfOneOrder;
    const bounded = new Map<string, number>([...said].slice(0, mostTypes).map(([type]) => [type, 0]));
    for (const [type, count] of types) {
      const share = Math.min(count, mostOfOneType, room);
      bounded.set(type, share);
      room -= share;
    }
    const sum = (numbers: ByType) => [...numbers.values()].reduce((all, one) => all + one, 0);
    const cut = [...said].find(([type, count]) => count > (bounded.get(type) ?? 0));
    if (cut !== undefined)
      log.warn('an order of the PanDA server is cut', {
        site,
        wanted: sum(said),
        taken: sum(bounded),
        type: cut[0],
        most: `${mostOfOneType} of one type and ${mostOfOneOrder} of all, of types that the server has`,
      });
    return bounded;
  }

  #servedIn({ uid, from, count }: Run): number {
    let served = 0;
    for (const index of this.#served.get(uid) ?? []) if (index >= from && index < from + count) served++;
    return served;
  }

  #open(run: Run): OriginKey[] {
    const served = this.#served.get(run.uid);
    return originsIn(run).filter(({ index }) => served?.has(index) !== true);
  }

  async #lookUp(runs: readonly Run[], desk: Desk): Promise<void> {
    const uids = [...new Set(runs.map(({ uid }) => uid))];
    for (const uid of uids) if (!this.#served.has(uid)) this.#served.set(uid, new Set());
    if (uids.length === 0) return;
    for (const news of await desk.find(uids.map((uid) => ({ uid })))) this.heard(news);
  }
}

/** How many workers of a type a site has that have not started. */
async function queuedOf(site: string, type: string, desk: Desk): Promise<number> {
  const { living } = await desk.census();
  return living.reduce((sum, { computingSite, queue, resourceType, status, workers }) => {
    const isOne =
      (computingSite || computingSiteOf(queue)) === site && resourceType === type && isQueued(status);
    return isOne ? sum + workers : sum;
  }, 0);
}
