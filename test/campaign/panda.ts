import { setTimeout as sleep } from 'node:timers/promises';
import type { PandaCallName } from '../support/panda-proxy.ts';
import { PandaSite } from '../support/panda-site.ts';
import type { Fault as ProxyFault } from '../support/fault-proxy.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';
import { type Arena, type Fault, limits, type Seen } from './arena.ts';
import type { Dice } from './dice.ts';
import { pilot, settings, StruckProcesses } from './local.ts';

/** What is struck. A statistics call without an answer makes orders wait for five minutes, so it has a fault of its own, which is rare. */
const calls: readonly PandaCallName[] = [
  'heartbeat',
  'acquire_commands',
  'acknowledge_commands',
  'update_workers',
  'get_current_worker_id',
  'get_resource_types',
];

const failures: readonly (readonly [what: string, weight: number, fault: (dice: Dice) => ProxyFault])[] = [
  ['are cut off before they arrive', 3, () => ({ kind: 'cut-before' })],
  ['lose their answers', 4, () => ({ kind: 'cut-after' })],
  ['get half an answer', 3, () => ({ kind: 'half' })],
  ['are carried out late', 4, (dice) => ({ kind: 'late', until: sleep(dice.between(500, 7000)) })],
  ['hang', 2, () => ({ kind: 'stall' })],
  ['get a page of a gateway', 2, () => ({ kind: 'text', status: 200, text: '<html>later</html>' })],
  ['are refused', 2, (dice) => ({ kind: 'status', status: dice.pick([403, 429, 500, 502, 503]) ?? 500 })],
];

/** How long a queue may be short of workers until the server orders again, ms: an order whose answer was lost is lost. */
const patience = 5000;
/** ms. */
const longestReport = 180_000;

/**
 * Workers that the real PanDA server orders, on this machine, through a proxy that breaks its answers. The server orders what a queue is short
 * of; nothing else may start, and in the end its tables have every worker as it ended.
 */
export class PandaArena implements Arena {
  readonly site: Site;
  readonly environment = {};
  /** Where a statistics call was cut off, new orders wait up to ten minutes for what it may still do (docs/panda.md). */
  readonly refills = false;
  readonly hidden: ReadonlySet<number>;
  readonly faults: readonly Fault[];
  readonly #panda: PandaSite;
  readonly #struck: StruckProcesses;
  readonly #over = new AbortController();
  readonly #server: Promise<void>;
  /** By queue: workers that the server ordered, and when it did last, monotonic ms. */
  readonly #ordered = new Map<string, { workers: number; at: number }>();
  #isOffline = false;

  static async open(): Promise<PandaArena> {
    const panda = await PandaSite.start({
      queues: queuesWith({}),
      pilot,
      settings,
      pandacon: { timeout: 5 },
    });
    return new PandaArena(panda);
  }

  private constructor(panda: PandaSite) {
    this.#panda = panda;
    this.site = panda.site;
    this.#struck = new StruckProcesses(panda.site);
    this.hidden = this.#struck.hidden;
    this.faults = [
      ...failures.map(([what, weight, fault]): Fault => ({
        name: `calls ${what}`,
        weight,
        strike: (dice) => this.#inject(dice, dice.pick(calls), fault(dice)),
      })),
      {
        name: 'statistics get no answer',
        weight: 1,
        strike: (dice) => this.#inject(dice, 'report_worker_statistics', { kind: 'cut-after' }),
      },
      ...this.#struck.faults.slice(0, 2),
    ];
    this.#server = this.#keepBusy();
  }

  writeQueues(change: Readonly<Record<string, unknown>>): void {
    this.#isOffline = change['queueStatus'] === 'offline';
    this.#panda.writeQueues(queuesWith(change));
  }

  living(): Promise<readonly Seen[]> {
    const names = new Map(Object.keys(limits).map((queue) => [this.#panda.siteOf(queue), queue]));
    return Promise.resolve(
      this.#struck.living().map(({ workerId, queue }) => ({ workerId, queue: names.get(queue) ?? queue })),
    );
  }

  starts(): ReadonlyMap<number, number> {
    return this.site.starts();
  }

  heal(): Promise<void> {
    this.#panda.proxy.heal();
    this.#struck.heal();
    return Promise.resolve();
  }

  async settle(breaks: (what: string) => void): Promise<void> {
    this.#over.abort();
    await this.#server;
    const ordered = [...this.#ordered.values()].reduce((sum, { workers }) => sum + workers, 0);
    const started = this.starts().size;
    if (started > ordered) breaks(`${started} workers were started, and the server ordered ${ordered}`);
    const wrong = async () => {
      const told = new Map(
        (await this.#panda.serverWorkers()).map(({ workerid, status }) => [workerid, status]),
      );
      return (await this.site.workers()).filter(({ workerID, status }) => told.get(workerID) !== status);
    };
    const right = async () => (await wrong()).length === 0;
    await until('the server has every worker as it ended', right, longestReport).catch(async () => {
      const told = await this.#panda.serverWorkers();
      for (const { workerID, status } of await wrong()) {
        const there = told.find(({ workerid }) => workerid === workerID)?.status ?? 'absent';
        breaks(`worker ${workerID} is ${status}, and at the server ${there}`);
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#server;
    await this.#panda.clean();
  }

  async #inject(dice: Dice, call: PandaCallName | undefined, fault: ProxyFault): Promise<void> {
    const injected = this.#panda.proxy.inject(call, fault);
    await sleep(dice.between(200, 4000));
    injected.remove();
  }

  /** Orders what a queue is short of, and again where that has not come for a while. */
  async #keepBusy(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const living = this.#isOffline ? undefined : await this.living();
      for (const [queue, limit] of living === undefined ? [] : Object.entries(limits)) {
        const short = limit - (living ?? []).filter((one) => one.queue === queue).length;
        const { workers, at } = this.#ordered.get(queue) ?? { workers: 0, at: -Infinity };
        if (short <= 0 || performance.now() < at + patience) continue;
        this.#ordered.set(queue, { workers: workers + short, at: performance.now() });
        this.#panda.order({ SCORE: short }, queue);
      }
      await sleep(300);
    }
  }
}

function queuesWith(change: Readonly<Record<string, unknown>>): Record<string, Record<string, unknown>> {
  const queue = (limit: number) => ({ maxWorkers: limit, nQueueLimitWorker: limit, ...change });
  return Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, queue(limit)]));
}
