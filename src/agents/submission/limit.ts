import type { FamilyPart, Group, ThrottleFacts } from '../../plugins/contracts/index.ts';
import { namedCredentials } from '../../config/queues/credential-managers.ts';
import { computingSiteOf, siteFamilyOf } from '../../config/queues/queues.ts';
import type { LoadRow } from '../../store/load.ts';
import type { TokenBucket } from '../../util/token-bucket.ts';
import type { Reason } from '../../worker/reason.ts';
import { isQueued, type WorkerStatus } from '../../worker/status.ts';
import { blackHole, type BlackHoleOptions } from '../../limits/black-hole.ts';
import type { QueueMemory } from './factory-limits.ts';
import { queueLoad } from '../../limits/formulas.ts';
import { caps, gates, type GateState, type Limit, type LimitState, resourceTypeLimits } from '../../limits/limiters.ts';
import { closedAltogether } from './open-connections.ts';
import { type AgentContext, callPlugin, type QueueRuntime } from '../queue-runtime.ts';
import { coreFactor } from './worker-maker.ts';

export interface LimitOptions {
  readonly maxNewWorkers: number;
  /** Length of a cycle, ms. */
  readonly cycle: number;
  readonly blackHole: BlackHoleOptions;
}

/** Everything that bounds the new workers of one queue: asked before each submission, told of what came of it. */
export class QueueLimits {
  readonly #runtime: QueueRuntime;
  readonly #context: AgentContext;
  readonly #options: LimitOptions;
  readonly #memory: QueueMemory;
  readonly #buckets: readonly { readonly bucket: TokenBucket; readonly name: string }[];
  /** What the throttler said last: one that counts this queue alone is not asked twice in a pass. */
  #throttled: Limit | undefined;

  constructor(runtime: QueueRuntime, context: AgentContext, options: LimitOptions) {
    this.#runtime = runtime;
    this.#context = context;
    this.#options = options;
    const { factoryLimits } = context;
    this.#memory = factoryLimits.memory(runtime.config.name);
    const own = runtime.current ? factoryLimits.queueBucket(runtime.config) : undefined;
    this.#buckets = [
      ...(own === undefined ? [] : [{ bucket: own, name: 'submissionRate' }]),
      ...(factoryLimits.bucket === undefined
        ? []
        : [{ bucket: factoryLimits.bucket, name: 'submitter.submissionRate' }]),
    ];
  }

  /** Why nothing at all may be submitted, retries included; and why nothing is known of the backend, if so. */
  async closed(): Promise<{ readonly closed: Reason | undefined; readonly unknown: Reason | undefined }> {
    const state = await this.#gateState();
    const closing = gates.map((gate) => gate(state)).find((limit) => limit !== undefined);
    return { closed: closing?.reason, unknown: state.closed };
  }

  /**
   * Counts afresh what these groups are bounded by; in the order in which it is to be applied. `again`: right after another
   * look, and perhaps with others waiting.
   */
  async look(groups: readonly Group[], again = false): Promise<readonly Limit[]> {
    const { config, throttler } = this.#runtime;
    if (!again || throttler?.countsFamily === true) this.#throttled = await this.#throttle();
    const rows = await this.#context.ledger.store.load.alive([config.name]);
    const state = { ...(await this.#gateState()), ...this.#state(groups, rows) };
    const limits = [
      ...gates.map((gate) => gate(state)),
      this.#throttled,
      // Before what all types share, or the first would take it all and leave the part of the others unused.
      ...resourceTypeLimits(state),
      ...caps.map((cap) => cap(state)),
      await this.#blackHole(state),
      this.#memory.window.limit,
      ...this.#buckets.map(rate),
    ];
    return limits.filter((limit) => limit !== undefined);
  }

  /**
   * Runs `work`, which looks and then records intents; alone, where other queues count against the same limits: these must
   * not record theirs in between.
   */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const { factoryLimits } = this.#context;
    const shared = this.#runtime.throttler?.countsFamily === true || factoryLimits.bucket !== undefined;
    return shared ? factoryLimits.exclusive(work) : work();
  }

  /** So many intents were recorded. */
  made(count: number): void {
    this.#memory.cycle.made += count;
    this.retried(count);
  }

  /** So many earlier ones are sent again: they count for the rates, and are no new workers. */
  retried(count: number): void {
    for (const { bucket } of this.#buckets) bucket.take(count);
  }

  /** What came of a submission; `error` is what the first one that failed said. */
  answered(sent: number, accepted: number, error: string): void {
    this.#memory.window.record(sent, accepted, error);
  }

  /** ms until the rates let one more through; undefined where they do not hold anything back. */
  get nextIn(): number | undefined {
    const waits = this.#buckets.map(({ bucket }) => bucket.nextIn).filter((wait) => wait > 0);
    return waits.length === 0 ? undefined : Math.max(...waits);
  }

  /** How many earlier ones may be sent again now. */
  get retries(): number {
    const rates = this.#buckets.map(({ bucket }) => bucket.available);
    return Math.max(0, Math.min(this.#memory.window.limit?.atMost ?? Infinity, ...rates));
  }

  async #gateState(): Promise<GateState> {
    const { config } = this.#runtime;
    return {
      queueStatus: config.options.queueStatus,
      control: await this.#context.ledger.store.queues.control(config.name),
      closed: closedAltogether(this.#runtime),
      credential: await this.#credential(),
    };
  }

  async #credential(): Promise<Reason | undefined> {
    const { credentials, credentialLifetime, clock } = this.#context;
    const { config, submitter } = this.#runtime;
    const named = namedCredentials(config);
    const wanted = { names: named ?? (await submitter.credentials?.()) ?? [], named: named !== undefined };
    return credentials.judge(wanted, credentialLifetime, clock.now());
  }

  #state(groups: readonly Group[], rows: readonly LoadRow[]): Omit<LimitState, keyof GateState> {
    const { config, requirements } = this.#runtime;
    const now = this.#context.clock.monotonic();
    const memory = this.#memory;
    if (now - memory.cycle.startedAt >= this.#options.cycle) memory.cycle = { startedAt: now, made: 0 };
    const queuedByType = new Map<string, number>();
    for (const { resourceType, status, workers } of rows) {
      if (isQueued(status)) queuedByType.set(resourceType, (queuedByType.get(resourceType) ?? 0) + workers);
    }
    return {
      limits: config.limits,
      maxNewWorkers: this.#options.maxNewWorkers,
      madeInCycle: memory.cycle.made,
      load: queueLoad(rows),
      queuedByType,
      wantedTypes: [...new Set(groups.map((group) => group.requirements.resourceType))],
      requirements,
    };
  }

  async #throttle(): Promise<Limit | undefined> {
    const { throttler, config, requirements } = this.#runtime;
    if (throttler === undefined) return undefined;
    const queue = {
      name: config.name,
      computingSite: computingSiteOf(config.name),
      siteFamily: siteFamilyOf(config),
      computingElements: config.worker.computingElements ?? [],
      coresPerWorker: coreFactor(config.worker, requirements),
    };
    const facts = this.#facts(queue.siteFamily);
    return callPlugin(this.#context, `throttler of ${config.name}`, () => throttler.judge(queue, facts));
  }

  #facts(siteFamily: string): ThrottleFacts {
    const { ledger, clock, factoryLimits } = this.#context;
    const { load } = ledger.store;
    return {
      missed: (level, value, window) => {
        const scope = {
          site: { computingSite: value },
          pq: { queue: value },
          ce: { computingElement: value },
        }[level];
        return ledger.store.workers.missedSince(scope, clock.now() - window);
      },
      family: async (part) => {
        const configs = new Map(factoryLimits.family(siteFamily).map((config) => [config.name, config]));
        const rows = (await load.alive([...configs.keys()])).filter(({ status }) => isPart(part, status));
        return {
          workers: rows.reduce((sum, { workers }) => sum + workers, 0),
          cores: rows.reduce((sum, row) => {
            const worker = configs.get(row.queue)?.worker ?? {};
            return sum + row.workers * coreFactor(worker, row);
          }, 0),
        };
      },
    };
  }

  async #blackHole({ load }: LimitState): Promise<Limit | undefined> {
    const { blackHole: options } = this.#options;
    if (options.lifetime === 0) return undefined;
    const { config } = this.#runtime;
    const { ledger, clock } = this.#context;
    const store = ledger.store.load;
    const now = clock.now();
    const ended = await ledger.store.workers.lastEnded(config.name, options.workers, endedByItself);
    const alone = { ended, proven: 0, unproven: load.alive.workers, lastMade: undefined, now };
    // Most queues have nothing to fear of, and are not asked for more.
    if (blackHole(alone, options) === undefined) return undefined;
    const proven = await store.runningSince(config.name, now - options.lifetime);
    const lastMade = await store.lastMade(config.name);
    return blackHole({ ...alone, proven, unproven: load.alive.workers - proven, lastMade }, options);
  }
}

/** How workers end that nobody ended and that did start: what tells of the resource. */
const endedByItself = ['finished', 'failed'] as const;

function rate({ bucket, name }: { readonly bucket: TokenBucket; readonly name: string }): Limit {
  const message = `${name} of ${bucket.rate} per second (${bucket.burst} at once) is used up for the moment`;
  return { atMost: bucket.available, reason: { code: 'submission-rate', message } };
}

function isPart(part: FamilyPart, status: WorkerStatus): boolean {
  return part === 'alive' || isQueued(status) === (part === 'queued');
}
