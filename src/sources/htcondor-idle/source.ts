import type {
  Desk,
  OriginKey,
  OwnQueue,
  Reason,
  Request,
  Source,
  SourceGauge,
  SourceHost,
  SourceQueue,
  Wanted,
  WorkerNews,
} from '../../plugins/contracts/index.ts';
import { decide } from './decide.ts';
import type { Decision, QueueTerms } from './demand.ts';
import { Causes } from './causes.ts';
import { factsOf, othersIn } from './facts.ts';
import { gaugesOf } from './gauges.ts';
import { type Joining, JoinMemory, type LivingWorker } from './joining.ts';
import { livingOf } from './living.ts';
import type { Looker, PoolLook, Template } from './look/result.ts';
import type { IdleOptions, IdleQueueOptions } from './options.ts';
import { decisionReasons, notJoined, unknownParts } from './reasons.ts';
import { requestOf } from './request.ts';
import { type Bounds, boundsOf, mostOfQueue, termsOf, whyClosed, whyUnlisted } from './room.ts';
import { shapesOf, type WrittenShape } from './shapes.ts';
import { readTemplates } from './templates.ts';
import type { Drainer } from './shrink/drainer.ts';
import { queueStates } from './shrink/queue-states.ts';
import type { Tokens } from './tokens.ts';
import { Wishes } from './wishes.ts';

export interface IdleParts extends Pick<SourceHost, 'clock' | 'log' | 'files'> {
  readonly options: Pick<IdleOptions, 'interval' | 'joinTimeout' | 'tokenLifetime'>;
  readonly looker: Looker;
  /** Tells workers that are too many to leave. */
  readonly drainer: Pick<Drainer, 'shrink'>;
  /** Absent where workers have their tokens from elsewhere. */
  readonly tokens?: Tokens;
}

/** The last decision, with all that it rests on. */
interface Last {
  /** When its look began, monotonic ms. */
  readonly at: number;
  /** How long the look took, ms. */
  readonly took: number;
  readonly look: PoolLook;
  readonly joining: Joining | undefined;
  readonly decision: Decision;
  readonly bounds: Bounds;
  readonly troubles: ReadonlyMap<string, readonly Reason[]>;
}

type Queue = OwnQueue<IdleQueueOptions>;

/** The pool and the configuration at the beginning of a decision. */
interface Seen {
  readonly queues: readonly Queue[];
  readonly written: readonly WrittenShape[];
  readonly templates: readonly Template[];
  readonly look: PoolLook;
}

/** A worker fails by itself within its time to join, and says so a little later, ms. */
const toldWithin = 120_000;
const day = 86_400;

/** Asks for exactly the workers that the waiting jobs of a HTCondor pool can use. */
export class IdleSource implements Source<IdleQueueOptions> {
  readonly provenAfter: number;
  readonly #parts: IdleParts;
  readonly #wishes = new Wishes();
  readonly #memory = new JoinMemory();
  readonly #causes: Causes;
  /**
   * Set while a decision reads which workers live: origins of news that came meanwhile. Their wishes stay open until it is taken, or it
   * would ask for a worker in place of one that it has not read.
   */
  #toldMeanwhile: OriginKey[] | undefined;
  /** Queues whose workers were not all known at the last decision. */
  #unlisted: ReadonlySet<string> = new Set();
  /** Ids of strays of which the log says so already. */
  #toldStrays: ReadonlySet<number> = new Set();
  #last: Last | undefined;
  /** When the last look began to which every part of the pool gave its answer, monotonic ms. */
  #wholeAt: number | undefined;

  constructor(parts: IdleParts) {
    this.#parts = parts;
    this.#causes = new Causes(parts);
    this.provenAfter = parts.options.joinTimeout * 1000 + toldWithin;
  }

  async wanted(queue: SourceQueue<IdleQueueOptions>): Promise<Wanted> {
    const nothing: Wanted = { requests: [], groups: [], reasons: [] };
    if (!queue.own) return nothing;
    const last = this.#last;
    if (last === undefined) {
      const message = 'the pool was not looked at yet since the start: no worker is asked for before';
      return { ...nothing, reasons: [{ code: 'htcondor-idle-starting', message }] };
    }
    const reasons = this.#reasons(queue.name, last);
    const stale = this.#stale(last);
    if (stale !== undefined) return { ...nothing, reasons: [stale, ...reasons] };
    // The queue may have been read again since: what a decision by a higher `most` asks for is too much now.
    const { bounds } = last;
    if (mostOfQueue(queue.options) < (bounds.queues.get(queue.name) ?? 0)) return { ...nothing, reasons };
    // Where the paths of its slot ads lead is of no matter here.
    const shapes = shapesOf({ ...queue, configDir: '/' }).filter(
      ({ key, most }) => most >= (bounds.shapes.get(key) ?? 0),
    );
    return { ...nothing, requests: shapes.flatMap((shape) => this.#requests(shape)), reasons };
  }

  gauges(): readonly SourceGauge[] {
    const { clock } = this.#parts;
    if (this.#last === undefined) return [];
    const age = this.#wholeAt === undefined ? undefined : (clock.monotonic() - this.#wholeAt) / 1000;
    return gaugesOf({ ...this.#last, causes: this.#causes.all, age });
  }

  async told(news: readonly WorkerNews[]): Promise<void> {
    // Whatever the news are, they are of an origin that has, or had, its worker.
    const origins = news.map(({ origin }) => origin);
    if (this.#toldMeanwhile === undefined) this.#wishes.served(origins);
    else this.#toldMeanwhile.push(...origins);
  }

  async run(desk: Desk, signal: AbortSignal): Promise<void> {
    const { clock, options } = this.#parts;
    try {
      while (!signal.aborted) {
        const begun = clock.monotonic();
        await this.#turn(desk, signal);
        const left = options.interval * 1000 - (clock.monotonic() - begun);
        await clock.sleep(Math.max(shortestPause, left), signal);
      }
    } finally {
      // Its programs end with the signal; after a failure the next life goes on without a wait.
      if (signal.aborted) await this.#causes.settled();
    }
  }

  /** Looks, decides and asks. */
  async #turn(desk: Desk, signal: AbortSignal): Promise<void> {
    const { clock, files, looker, tokens } = this.#parts;
    const queues = desk.ownQueues() as readonly Queue[];
    const written = queues.flatMap((queue) => shapesOf(queue));
    const { templates, troubles } = await readTemplates(written, files);
    await tokens?.readKey();
    const at = clock.monotonic();
    const look = await looker.look(templates, signal);
    if (signal.aborted) return;
    const seen = { queues, written, templates, look };
    const { living, joining, decision, bounds } = await this.#decide(desk, seen);
    this.#last = { at, took: clock.monotonic() - at, look, joining, decision, bounds, troubles };

    tokens?.keep(written.flatMap(({ key }) => this.#wishes.of(key).map(({ origin }) => origin)));
    const asked = written.filter(({ key }) => this.#wishes.of(key).length > 0);
    for (const queue of new Set(asked.map((shape) => shape.queue))) desk.wake(queue);
    if (look.unknown.length === 0) this.#wholeAt = at;
    if (joining !== undefined) this.#tellStrays(joining);
    await this.#parts.drainer.shrink(
      look,
      {
        living,
        queues: queueStates(queues, living, desk),
        most: bounds.shapes,
        mostOfQueues: bounds.queues,
      },
      signal,
    );
    this.#causes.explain(decision.unservable, templates, signal);
  }

  /** Counts the workers and asks for those that are missing. */
  async #decide(desk: Desk, { queues, written, templates, look }: Seen) {
    const { clock, options } = this.#parts;
    this.#toldMeanwhile = [];
    try {
      // Before its workers are read: a listing adds some.
      const unlisted = new Map(queues.map(({ name }) => [name, whyUnlisted(name, desk)]));
      // After the look: a worker that joins in between counts twice at most for one interval, and is never asked for twice.
      const living = livingOf(await desk.living());
      const others = await desk.alive(othersIn(look, living));
      // From here on nothing waits: what was counted and what is asked for belong together.
      const times = {
        joinTimeout: options.joinTimeout * 1000,
        now: clock.now(),
        monotonic: clock.monotonic(),
        collectorStartedAt: look.collectorStartedAt,
      };
      const present = look.startds && new Set(look.startds.map(({ workerId }) => workerId));
      const joining = present && this.#memory.judge(living, present, times);
      this.#wishes.served(living.map(({ origin }) => origin));
      const terms = this.#terms(queues, written, desk, unlisted);
      const decision = decide(factsOf({ look, templates, living, others, joining, times }), terms);
      const counts = this.#counts(decision, terms, living);
      for (const { key, queue } of written) if (unlisted.get(queue) !== undefined) counts.delete(key);
      this.#wishes.ask(counts);
      this.#unlisted = new Set([...unlisted].flatMap(([queue, why]) => (why === undefined ? [] : [queue])));
      return { living, joining, decision, bounds: boundsOf(written, queues) };
    } finally {
      this.#wishes.served(this.#toldMeanwhile);
      this.#toldMeanwhile = undefined;
    }
  }

  #terms(
    queues: readonly Queue[],
    shapes: readonly WrittenShape[],
    desk: Desk,
    unlisted: ReadonlyMap<string, Reason | undefined>,
  ): ReadonlyMap<string, QueueTerms> {
    const byQueue = Map.groupBy(shapes, ({ queue }) => queue);
    return new Map(
      queues.map((queue) => {
        const keys = (byQueue.get(queue.name) ?? []).map(({ key }) => key);
        const asked = keys.flatMap((key) => this.#wishes.of(key));
        // A listing usually takes a moment: before the next decision no other queue takes over.
        const still = this.#unlisted.has(queue.name) ? unlisted.get(queue.name) : undefined;
        return [queue.name, termsOf(queue, whyClosed(queue.name, asked, desk) ?? still)];
      }),
    );
  }

  /**
   * How many of each shape are asked for. A closed queue keeps one wish: by its pass it shows that it makes workers again. Its others
   * rest, so that jobs which another queue serves meanwhile get no second worker once it opens.
   */
  #counts(
    { shapes, jobs }: Decision,
    terms: ReadonlyMap<string, QueueTerms>,
    living: readonly LivingWorker[],
  ): Map<string, number> {
    const counts = new Map(shapes.map(({ shape, workers }) => [shape.key, workers]));
    const isWaiting = jobs.served + jobs.capped > 0;
    for (const [queue, { closed }] of terms) {
      if (closed === undefined || !isWaiting) continue;
      const probe = shapes.find(({ shape }) => {
        const alive = living.filter((worker) => worker.shape === shape.key).length;
        return shape.queue === queue && this.#wishes.open(shape.key) > 0 && alive < shape.most;
      });
      if (probe !== undefined) counts.set(probe.shape.key, Math.max(1, probe.workers));
    }
    return counts;
  }

  /**
   * Says once of each stray that it runs for nothing. An operator ends it: thresher cannot tell a worker that hangs from a busy one whose
   * image was changed meanwhile and lacks the marks of its machine.
   */
  #tellStrays({ strays }: Joining): void {
    const { log } = this.#parts;
    const workers = strays.map(({ workerId }) => workerId);
    const fresh = workers.filter((workerId) => !this.#toldStrays.has(workerId));
    this.#toldStrays = new Set(workers);
    if (fresh.length === 0) return;
    log.warn('workers neither join the pool nor end: see their logs, and end them with `thresher kill`', {
      workers: fresh.slice(0, 20),
      count: fresh.length,
    });
  }

  #requests(shape: WrittenShape): Request[] {
    const { tokens, options } = this.#parts;
    const usual = shape.maxWalltime > 0 ? shape.maxWalltime + day : 8 * day;
    return this.#wishes.of(shape.key).flatMap((wish) => {
      const token = tokens?.of(wish.origin, options.tokenLifetime ?? usual);
      // It could not join the pool.
      if (tokens !== undefined && token === undefined) return [];
      return [requestOf(shape, wish, token, options.joinTimeout)];
    });
  }

  #reasons(queue: string, { look, joining, decision, troubles }: Last): Reason[] {
    const { tokens, options } = this.#parts;
    const failure = tokens?.failure;
    return [
      ...(troubles.get(queue) ?? []),
      ...unknownParts(look),
      ...notJoined(joining, queue, options.joinTimeout * 1000),
      ...(failure === undefined ? [] : [failure]),
      ...decisionReasons(decision, queue),
    ];
  }

  /** A slow look is no stale one: its own time is added. */
  #stale({ at, took }: Last): Reason | undefined {
    const { clock, options } = this.#parts;
    const age = clock.monotonic() - at;
    if (age <= 2 * options.interval * 1000 + took) return undefined;
    const message = `the last look at the pool is ${Math.round(age / 1000)} s old, more than two intervals of ${options.interval} s: no worker is asked for`;
    return { code: 'htcondor-idle-stale', message };
  }
}

/** ms: a look that takes longer than the interval must not spin. */
const shortestPause = 50;
