import type { Desk, Log, Source, SourceQueue, Wanted, WorkerNews } from '../../plugins/contracts/index.ts';
import type { PandaLinkStatus } from '../../plugins/contracts/panda-status.ts';
import type { ClockDifference } from '../../clients/panda/client.ts';
import type { Clock } from '../../util/clock.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import { type BesideTask, runBeside } from './beside.ts';
import type { CommandRunner } from './command-runner.ts';
import { type ActiveJobs, getsNoneWithoutJobs, workersForJobs } from './jobs.ts';
import type { Life } from './life.ts';
import type { LinkMemory } from './memory.ts';
import type { LinkOptions, PandaQueueOptions } from './options.ts';
import type { OrderBook } from './order-book.ts';
import type { Reporter } from './reporter.ts';
import type { ServerHealth } from './server-health.ts';
import { typeOfSlot } from './shape.ts';
import { isOrdered, sitesOf } from './sites.ts';
import type { Statistician } from './statistician.ts';
import type { StatusFile } from './status-file.ts';
import { type LinkFacts, whyNoJobs, whyNoOrder, whyStarting } from './why-none.ts';
import { isFinal } from '../../worker/status.ts';

export interface LinkParts {
  readonly memory: LinkMemory;
  readonly life: Life;
  readonly orders: OrderBook;
  readonly commands: CommandRunner;
  readonly statistician: Statistician;
  readonly jobs: ActiveJobs;
  readonly reporter: Reporter;
  /** Told to the server from time to time; nothing waits for them. */
  readonly beside: readonly BesideTask[];
  readonly health: ServerHealth;
  readonly status: StatusFile;
  readonly serverAhead: () => ClockDifference | undefined;
  readonly options: LinkOptions;
  readonly clock: Clock;
  readonly log: Log;
  readonly harvesterId: string;
  readonly url: string;
}

/** Between two looks for workers that are to be reported again, ms. */
const repeatEvery = 60_000;
/** The shortest pause of the loop, ms: one that is always due must not spin. */
const shortestPause = 100;

/** The link to one PanDA server: its orders become requests, its commands are carried out, and it hears of each worker. */
export class PandaLink implements Source<PandaQueueOptions> {
  readonly #parts: LinkParts;
  readonly #living = new Living();
  #desk: Desk | undefined;
  /** Sites whose jobs are divided by the instances that serve them. */
  readonly #sharedSites = new Set<string>();
  /** Monotonic ms. */
  #pollAt = -Infinity;

  constructor(parts: LinkParts) {
    this.#parts = parts;
  }

  async wanted({
    name,
    requirements,
    own,
    options,
    ...queue
  }: SourceQueue<PandaQueueOptions>): Promise<Wanted> {
    const nothing: Wanted = { requests: [], groups: [], reasons: [] };
    if (!own) return nothing;
    const { memory, orders, statistician, jobs, options: all } = this.#parts;
    const facts = this.#facts();
    const desk = this.#desk;
    if (desk === undefined || !facts.isReady) return { ...nothing, reasons: whyStarting(facts) };
    const site = computingSiteOf(name);
    if (isOrdered(queue)) {
      const queues = desk.ownQueues().filter(isOrdered);
      const series = orders.seriesOf(
        { name, requirements, ...queue },
        queues.map((one) => one.name),
      );
      const reasons = whyNoOrder(site, orders.orderOf(site), statistician.lastOf(site), facts);
      return { ...nothing, series, reasons };
    }
    const factor = options.activateWorkerFactor ?? all.activateWorkerFactor;
    if (factor === 'auto') {
      jobs.askForInstances();
      this.#sharedSites.add(site);
    } else this.#sharedSites.delete(site);
    const count = jobs.of(site);
    const instances = factor === 'auto' ? jobs.instancesOf(site) : 1;
    // The count is of the whole site, which may have a queue for each resource type.
    const counting = desk.ownQueues().filter((one) => !isOrdered(one) && computingSiteOf(one.name) === site);
    const queued = await Promise.all(counting.map((one) => desk.queued(one.name)));
    const noneWithoutJobs = getsNoneWithoutJobs(options, queue, all);
    const wanted =
      count === undefined || instances === undefined
        ? 0
        : workersForJobs({
            activated: count.activated / instances,
            factor: factor === 'auto' ? 1 : factor,
            noneWithoutJobs,
            queued: queued.reduce((sum, one) => sum + one, 0),
          });
    const resourceType = queue.wholeSlots ? typeOfSlot(requirements, memory.types) : undefined;
    const needs = resourceType === undefined ? requirements : { ...requirements, resourceType };
    const groups = wanted > 0 ? [{ requirements: needs, count: wanted }] : [];
    return { ...nothing, groups, reasons: whyNoJobs(site, { count, instances, wanted }, facts) };
  }

  async told(news: readonly WorkerNews[], signal: AbortSignal): Promise<void> {
    const { orders, statistician, reporter } = this.#parts;
    for (const one of news) {
      this.#living.heard(one);
      orders.heard(one);
      statistician.heard(one);
    }
    await reporter.report(news, signal);
  }

  async run(desk: Desk, signal: AbortSignal): Promise<void> {
    const { memory, orders, commands, clock, log } = this.#parts;
    // A life that failed begins again with what it knows.
    if (this.#desk === undefined) {
      const lost = await memory.load();
      if (lost !== undefined)
        log.error('the memory of the PanDA link is lost: the next orders of the server replace it', {
          why: lost,
        });
    }
    await this.#living.load(desk);
    await orders.resume(desk);
    this.#desk = desk;
    await commands.resume(desk, signal);
    const over = new AbortController();
    const beside = runBeside(this.#beside(), { clock, log }, AbortSignal.any([signal, over.signal]));
    try {
      while (!signal.aborted) {
        await this.#turn(desk, signal);
        await clock.sleep(this.#pause(), signal);
      }
    } finally {
      over.abort();
      await beside;
    }
  }

  /** A slow report of thousands of unchanged workers must not delay a poll. */
  #beside(): readonly BesideTask[] {
    const { beside, reporter } = this.#parts;
    const turn = (signal: AbortSignal) => reporter.repeat(this.#living.all, signal);
    return [...beside, { name: 'repeated reports', interval: repeatEvery, turn }];
  }

  /** One after the other: a poll must not overtake the statistics of the order before it. */
  async #turn(desk: Desk, signal: AbortSignal): Promise<void> {
    const { life, statistician, orders, jobs } = this.#parts;
    const tasks: readonly (() => Promise<void>)[] = [
      () => life.turn(desk, signal),
      () => statistician.turn(desk, (site) => (orders.orderOf(site)?.rest ?? 0) > 0, signal),
      () => this.#poll(desk, signal),
      async () => {
        const queues = desk.ownQueues().filter((queue) => !isOrdered(queue));
        if (queues.length > 0 && (await jobs.turn(signal))) for (const { name } of queues) desk.wake(name);
      },
    ];
    for (const task of tasks) {
      if (signal.aborted) return;
      try {
        await task();
      } finally {
        // A call of a server that stalls takes minutes: what is known by now is shown before the next.
        await this.#parts.status.write(() => this.#status(desk));
      }
    }
  }

  async #poll(desk: Desk, signal: AbortSignal): Promise<void> {
    const { commands, life, options, clock } = this.#parts;
    // An instance that the server does not know yet gets no commands.
    if (clock.monotonic() < this.#pollAt || !life.isReady) return;
    const more = await commands.poll(desk, signal);
    this.#pollAt = clock.monotonic() + (more ? 0 : options.pollInterval * 1000);
  }

  /** ms. Everything else that is due can wait for the next poll. */
  #pause(): number {
    const { clock, options, life, statistician } = this.#parts;
    if (statistician.hasMore) return shortestPause;
    const next = life.isReady ? this.#pollAt - clock.monotonic() : options.pollInterval * 1000;
    return Math.max(shortestPause, next);
  }

  #facts(): LinkFacts {
    const { life, health, clock, harvesterId } = this.#parts;
    return {
      now: clock.now(),
      startedAt: life.startedAt,
      harvesterId,
      isReady: life.isReady,
      failure: health.whyNoOrders,
    };
  }

  #status(desk: Desk): Omit<PandaLinkStatus, 'writtenAt'> {
    const { life, health, commands, orders, statistician, jobs, reporter } = this.#parts;
    const { serverAhead, harvesterId, url } = this.#parts;
    const facts = this.#facts();
    const queues = desk.ownQueues();
    const { lastTaken, taken, refused } = reporter.facts;
    const ahead = serverAhead()?.ahead;
    return {
      url,
      harvesterId,
      startedAt: life.startedAt,
      ...(facts.isReady
        ? {}
        : {
            starting: whyStarting(facts)
              .map(({ message }) => message)
              .join(),
          }),
      lastAnswers: health.lastAnswers,
      failures: health.failures,
      ...(ahead === undefined ? {} : { serverAhead: ahead }),
      commands: commands.shown,
      sites: sitesOf(queues).map((site) => {
        const order = orders.orderOf(site);
        const statisticsAt = statistician.lastOf(site);
        const counted = jobs.of(site);
        const instances = this.#sharedSites.has(site) ? jobs.instancesOf(site) : undefined;
        return {
          site,
          queues: queues.flatMap(({ name }) => (computingSiteOf(name) === site ? [name] : [])),
          ...(statisticsAt === undefined ? {} : { statisticsAt }),
          ...(order === undefined ? {} : { order }),
          ...(counted === undefined
            ? {}
            : { jobs: { ...counted, ...(instances !== undefined && { instances }) } }),
        };
      }),
      reports: { taken, refused, ...(lastTaken === undefined ? {} : { lastTaken }) },
    };
  }
}

/** The living workers of the source as it heard of them, so that unchanged ones can be reported again without a look at the database. */
export class Living {
  readonly #workers = new Map<number, WorkerNews>();
  /** Workers whose news came while the database was read: these are newer than its rows. */
  #heardMeanwhile: Set<number> | undefined;

  /** News of before the start were taken then, so that the database has to tell of these workers. */
  async load(desk: Desk): Promise<void> {
    const meanwhile = new Set<number>();
    this.#heardMeanwhile = meanwhile;
    try {
      const found = await desk.living();
      for (const news of found) if (!meanwhile.has(news.worker.workerId ?? 0)) this.heard(news);
    } finally {
      this.#heardMeanwhile = undefined;
    }
  }

  heard(news: WorkerNews): void {
    const { workerId, status } = news.worker;
    if (workerId === null) return;
    this.#heardMeanwhile?.add(workerId);
    if (status === 'withdrawn' || isFinal(status)) this.#workers.delete(workerId);
    else this.#workers.set(workerId, news);
  }

  get all(): ReadonlyMap<number, WorkerNews> {
    return this.#workers;
  }
}
