import type { Desk, Log, RequestSeries, SourceQueue, WorkerNews } from '../../plugins/contracts/index.ts';
import type { PandaOrder } from '../../plugins/contracts/panda-status.ts';
import type { ClockDifference } from '../../clients/panda/client.ts';
import type { Clock } from '../../util/clock.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import { isQueued } from '../../worker/status.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import type { ServerCommand } from './commands.ts';
import type { KeptOrder, LinkMemory, Run } from './memory.ts';
import { type ByType, knownReport, oldestOrder, reportsToKeep, stillWanted } from './orders.ts';
import { carriedOver, openIn, originsIn, smallestBeyond, uidOf } from './runs.ts';
import { shapeOf } from './shape.ts';
import { isOrdered, queueFor, sitesOf } from './sites.ts';

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
/**
 * New workers of all orders together; once they are given out, an order has its site's part of them still, so that no order of others takes it.
 * A factory of 100 sites with some hundreds of workers each has half of it.
 */
export const mostOfAllOrders = 100_000;
/** Left-over runs that one order keeps: orders that each want a little more leave one more run of each type. */
export const mostLeftRuns = 200;
/** The same of all orders together: all of them are written at each change. */
const mostLeftRunsOfAll = 10_000;
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

/** All orders together fit again when none was cut for so long, ms: while they do not, one fits in each round and the next is cut. */
const fitsAfter = 3_600_000;

/** The open requests of an order. */
interface Rest {
  /** How many had been served when they were counted. */
  readonly served: number;
  readonly all: number;
  readonly byRun: ReadonlyMap<Run, number>;
}

type OrderedQueue = Pick<SourceQueue, 'name' | 'requirements' | 'wholeSlots'>;

/** The orders of the server, one for each site, as requests for named workers: each gets one, also through crashes. */
export class OrderBook {
  readonly #parts: OrderBookParts;
  /** Indexes that have their worker, or never get one, by `uid`. */
  readonly #served = new Map<string, Set<number>>();
  /** By order: how many of its requests were served when its open ones were counted. */
  readonly #rests = new WeakMap<KeptOrder, Rest>();
  /** When the last order was cut because all together ask for too much, monotonic ms. */
  #lastFull = -Infinity;

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

  /** The requests of a queue that have no worker yet, in one series for each type. */
  seriesOf(
    { name: queue, requirements, wholeSlots }: OrderedQueue,
    queues: readonly string[],
  ): RequestSeries[] {
    const { memory } = this.#parts;
    const site = computingSiteOf(queue);
    const order = memory.orderOf(site);
    if (order === undefined) return [];
    const { byRun } = this.#restOf(order);
    const { nCore: coreCount, minRamCount: maxRss } = requirements;
    return [...Map.groupBy(order.runs, ({ type }) => type)].flatMap(([type, runs]) => {
      const open = runs.filter((run) => (byRun.get(run) ?? 0) > 0);
      if (open.length === 0 || queueFor(type, site, queues) !== queue) return [];
      const count = open.reduce((sum, run) => sum + (byRun.get(run) ?? 0), 0);
      const shape = shapeOf(type, memory.types, { coreCount, maxRss, wholeSlots });
      return [{ count, requests: { [Symbol.iterator]: () => this.#requestsOf(open, shape) } }];
    });
  }

  *#requestsOf(runs: readonly Run[], requirements: ReturnType<typeof shapeOf>) {
    for (const { uid, type, from, count } of runs) {
      const served = this.#served.get(uid);
      const groupId = `${uid}/${type}`;
      for (let index = from; index < from + count; index++)
        if (served?.has(index) !== true) yield { origin: { uid, index }, requirements, groupId };
    }
  }

  /** The order that counts, for operators. */
  orderOf(site: string): PandaOrder | undefined {
    const order = this.#parts.memory.orderOf(site);
    if (order === undefined) return undefined;
    const { createdAt, takenAt, said, wanted } = order;
    return { createdAt, takenAt, said, wanted, rest: this.#restOf(order).all };
  }

  /** Counted again only when something was served: passes ask for it, and the status is asked for all the time. */
  #restOf(order: KeptOrder): Rest {
    const byUid = Map.groupBy(order.runs, ({ uid }) => uid);
    const served = [...byUid.keys()].reduce((sum, uid) => sum + (this.#served.get(uid)?.size ?? 0), 0);
    const before = this.#rests.get(order);
    if (before?.served === served) return before;
    const byRun = new Map(order.runs.map((run) => [run, run.count]));
    for (const [uid, runs] of byUid) {
      const indexes = [...(this.#served.get(uid) ?? [])].sort((a, b) => a - b);
      let at = 0;
      for (const run of runs.toSorted((a, b) => a.from - b.from)) {
        let open = run.count;
        for (; (indexes[at] ?? Infinity) < run.from + run.count; at++)
          if ((indexes[at] ?? 0) >= run.from) open--;
        byRun.set(run, open);
      }
    }
    const all = [...byRun.values()].reduce((sum, open) => sum + open, 0);
    const rest = { served, all, byRun };
    this.#rests.set(order, rest);
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
    const left = await this.#bounded(
      lastRuns.flatMap((run) => this.#open(run)),
      desk,
    );
    const reports = memory.reportsOf(site);
    // Of an order that says to be older no report is kept; its clock is wrong, and its workers are not all that were ever made.
    const known = knownReport(Math.max(createdAt, clock.now() + Math.min(0, ahead) - oldestOrder), reports);
    // The open requests were looked up before this count: one that is served in between is counted here, and the order wants
    // one worker too few rather than one too many.
    const made = new Map(await desk.madeSince(site, { at: known?.countedAt ?? 0, upTo: known?.upTo ?? 0 }));
    if ((said.get(neverCounted) ?? 0) > 0) made.set(neverCounted, await queuedOf(site, neverCounted, desk));
    const bounded = this.#meant(site, said, desk);
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
          said: Object.fromEntries(keptTypes(said)),
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
    if (surplus.length > 0) await desk.withdraw(surplus.flatMap(originsIn));
    for (const queue of desk.ownQueues()) if (computingSiteOf(queue.name) === site) desk.wake(queue.name);
    return this.#outcome(said, bounded, wanted);
  }

  #outcome(said: ByType, bounded: ByType, wanted: ByType): string {
    const [all, meant, rest] = [sumOf(said), sumOf(bounded), sumOf(wanted)];
    const less =
      meant === rest ? '' : `, ${meant - rest} of ${meant} were made before the server knew of them`;
    const cut = all === meant ? '' : `, ${all - meant} of ${all} are more than thresher takes`;
    return `${rest} new workers${less}${cut}`;
  }

  /**
   * What the last order left over, in as many runs as an order may keep. The others are withdrawn before the workers of the site are counted: the
   * new order asks for as many under its own name, and one that was recorded just now is counted.
   */
  async #bounded(left: readonly Run[], desk: Desk): Promise<readonly Run[]> {
    const share = Math.floor(mostLeftRunsOfAll / Math.max(1, this.#parts.memory.orders.size));
    const dropped = smallestBeyond(left, Math.min(mostLeftRuns, share));
    if (dropped.size === 0) return left;
    await desk.withdraw([...dropped].flatMap(originsIn));
    return left.filter((run) => !dropped.has(run));
  }

  /** The part of an order that can be meant: types that the server has, and no more workers than sites have. */
  #meant(site: string, said: ByType, desk: Desk): ByType {
    const { clock, log, memory } = this.#parts;
    const known = new Set(memory.types.map(({ resource_name: type }) => type));
    const isKnown = (type: string) => known.size === 0 || known.has(type) || type === neverCounted;
    const types = keptTypes([...said].filter(([type, count]) => count > 0 && isKnown(type)));
    const sites = new Set(sitesOf(desk.ownQueues().filter(isOrdered)));
    // What is made already, and what no queue makes, takes no room from this one.
    const others = [...memory.orders].reduce(
      (sum, [other, order]) => (other !== site && sites.has(other) ? sum + this.#restOf(order).all : sum),
      0,
    );
    const share = Math.floor(mostOfAllOrders / Math.max(1, sites.size));
    const most = Math.min(mostOfOneOrder, Math.max(mostOfAllOrders - others, share));
    let room = most;
    let alone = mostOfOneOrder;
    const bounded = new Map<string, number>(keptTypes(said).map(([type]) => [type, 0]));
    for (const [type, count] of types) {
      const own = Math.min(count, mostOfOneType, alone);
      const taken = Math.min(own, room);
      bounded.set(type, taken);
      alone -= own;
      room -= taken;
    }
    const isFull = mostOfOneOrder - alone > most;
    if (isFull && clock.monotonic() - this.#lastFull >= fitsAfter)
      log.warn('the orders of the PanDA server together ask for more workers than thresher takes', {
        site,
        wanted: mostOfOneOrder - alone,
        taken: most,
        most: mostOfAllOrders,
      });
    if (isFull) this.#lastFull = clock.monotonic();
    const cut = [...said].find(([type, count]) => count > (bounded.get(type) ?? 0));
    if (cut !== undefined && !isFull)
      log.warn('an order of the PanDA server is cut', {
        site,
        wanted: sumOf(said),
        taken: sumOf(bounded),
        type: fromOutside(cut[0]),
        most: `${mostOfOneType} of one type and ${mostOfOneOrder} of all, of types that the server has`,
      });
    return bounded;
  }

  #open(run: Run): Run[] {
    return openIn(run, this.#served.get(run.uid) ?? new Set());
  }

  async #lookUp(runs: readonly Run[], desk: Desk): Promise<void> {
    const uids = [...new Set(runs.map(({ uid }) => uid))];
    for (const uid of uids) if (!this.#served.has(uid)) this.#served.set(uid, new Set());
    if (uids.length === 0) return;
    for (const news of await desk.find(uids.map((uid) => ({ uid })))) this.heard(news);
  }
}

/**
 * As many types as an order keeps, without those whose names show a secret. To look for one in a name takes its time, and a thousand may be named: it is
 * done for the orders that are taken, and for these types alone.
 */
function keptTypes(said: Iterable<readonly [type: string, count: number]>): (readonly [string, number])[] {
  return [...said].slice(0, mostTypes).filter(([type]) => fromOutside(type) === type);
}

function sumOf(numbers: ByType): number {
  return [...numbers.values()].reduce((all, one) => all + one, 0);
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
