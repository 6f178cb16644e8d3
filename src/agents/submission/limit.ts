import type { FamilyPart, Group, ThrottleFacts } from '../../plugins/contracts/index.ts';
import { namedCredentials } from '../../config/queues/credential-managers.ts';
import { siteFamilyOf } from '../../config/queues/queues.ts';
import {
  blackHole,
  type BlackHoleOptions,
  type BlackHoleState,
  provenAfter,
} from '../../limits/black-hole.ts';
import { cycleAt } from '../../limits/cycle.ts';
import { queueLoad } from '../../limits/formulas.ts';
import { gates, type GateState, type Limit, type LimitState, roomIn } from '../../limits/limiters.ts';
import { limitsOf } from '../../limits/queue-limits.ts';
import type { LoadRow } from '../../store/load.ts';
import type { Clock } from '../../util/clock.ts';
import type { TokenBucket } from '../../util/token-bucket.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import type { Reason } from '../../worker/reason.ts';
import { isQueued, type WorkerStatus } from '../../worker/status.ts';
import type { AgentStore } from '../agent-store.ts';
import type { CredentialBoard } from '../credentials/credential-board.ts';
import type { PluginCalls } from '../plugin-calls.ts';
import type { QueueRuntime } from '../queue-runtime.ts';
import type { FactoryLimits, QueueMemory } from './factory-limits.ts';
import { closedAltogether } from './open-connections.ts';
import { coreFactor } from './worker-maker.ts';

export interface LimitParts {
  readonly clock: Clock;
  readonly store: AgentStore;
  readonly calls: PluginCalls;
  readonly factoryLimits: FactoryLimits;
  readonly credentials: CredentialBoard;
  /** No worker is submitted with a credential that ends sooner, ms. */
  readonly credentialLifetime: number;
}

export interface LimitOptions {
  readonly maxNewWorkers: number;
  /** Length of a cycle, ms. */
  readonly cycle: number;
  readonly blackHole: BlackHoleOptions;
}

/** Gathers the facts that bound the new workers of one queue, and remembers the outcomes of submissions: `limits/` decides. */
export class QueueLimits {
  readonly #runtime: QueueRuntime;
  readonly #parts: LimitParts;
  readonly #options: LimitOptions;
  readonly #memory: QueueMemory;
  readonly #buckets: readonly { readonly bucket: TokenBucket; readonly name: string }[];
  /** The throttler's last answer: one that counts this queue alone is not asked twice in a pass. */
  #throttled: Limit | undefined;

  constructor(runtime: QueueRuntime, parts: LimitParts, options: LimitOptions) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#options = options;
    const { factoryLimits } = parts;
    this.#memory = factoryLimits.memory(runtime.config.name);
    const own = runtime.current ? factoryLimits.queueBucket(runtime.config) : undefined;
    this.#buckets = [
      { bucket: own, name: 'submissionRate' },
      { bucket: factoryLimits.bucket, name: 'submitter.submissionRate' },
    ].flatMap(({ bucket, name }) => (bucket === undefined ? [] : [{ bucket, name }]));
  }

  /** Why nothing at all may be submitted, retries included; and why nothing is known of the backend, if so. */
  async closed(): Promise<{ readonly closed: Reason | undefined; readonly unknown: Reason | undefined }> {
    const state = await this.#gateState();
    const closing = gates.map((gate) => gate(state)).find((limit) => limit !== undefined);
    return { closed: closing?.reason, unknown: state.closed };
  }

  /** Counts afresh everything that bounds these groups; @returns the limits in the order in which they are to be applied. */
  async look(groups: readonly Group[]): Promise<readonly Limit[]> {
    this.#throttled = await this.#throttle();
    return this.#count(groups, this.#throttled);
  }

  /** How many new workers may be let through at most, by a first look that asks no throttler. */
  async room(): Promise<number> {
    return roomIn(await this.#count([], undefined));
  }

  /** Right after another look, and perhaps with other queues waiting: a throttler that counts this queue alone is not asked. */
  async lookAgain(groups: readonly Group[]): Promise<readonly Limit[]> {
    return this.#runtime.throttler?.countsFamily === true
      ? this.look(groups)
      : this.#count(groups, this.#throttled);
  }

  /**
   * Runs `work`, which looks and then records intents; alone, where other queues count against the same limits: these must
   * not record theirs in between.
   */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const { factoryLimits } = this.#parts;
    const shared = this.#runtime.throttler?.countsFamily === true || factoryLimits.bucket !== undefined;
    return shared ? factoryLimits.exclusive(work) : work();
  }

  /** So many intents were recorded: they count for this cycle and for the rates. */
  intentsRecorded(count: number): void {
    const { startedAt, made } = this.#cycle();
    this.#memory.cycle = { startedAt, made: made + count };
    this.#takeFromBuckets(count);
  }

  /** So many earlier intents are sent again: they count for the rates, and are no new workers. */
  intentsRetried(count: number): void {
    this.#takeFromBuckets(count);
  }

  /** Takes the outcome of a submission; `error` is the first failure's message. */
  answered(sent: number, accepted: number, error: string): void {
    this.#memory.window.record(sent, accepted, error);
  }

  /** ms until the rates let one more through; undefined where they do not hold anything back. */
  get nextIn(): number | undefined {
    const waits = this.#buckets.map(({ bucket }) => bucket.nextIn).filter((wait) => wait > 0);
    return waits.length === 0 ? undefined : Math.max(...waits);
  }

  /** How many earlier intents may be sent again now. */
  get retries(): number {
    const rates = this.#buckets.map(({ bucket }) => bucket.available);
    return Math.max(0, Math.min(this.#memory.window.limit?.atMost ?? Infinity, ...rates));
  }

  #takeFromBuckets(count: number): void {
    for (const { bucket } of this.#buckets) bucket.take(count);
  }

  #cycle() {
    return cycleAt(this.#memory.cycle, this.#parts.clock.monotonic(), this.#options.cycle);
  }

  async #count(groups: readonly Group[], throttled: Limit | undefined): Promise<readonly Limit[]> {
    const rows = await this.#parts.store.load.alive([this.#runtime.config.name]);
    const state = { ...(await this.#gateState()), ...this.#load(groups, rows) };
    return limitsOf({
      state,
      throttled,
      blackHole: { state: await this.#swallowing(state), options: this.#guard },
      window: this.#memory.window.limit,
      rates: this.#buckets.map(({ bucket, name }) => ({
        name,
        rate: bucket.rate,
        burst: bucket.burst,
        available: bucket.available,
      })),
    });
  }

  async #gateState(): Promise<GateState> {
    const { config } = this.#runtime;
    return {
      queueStatus: config.options.queueStatus,
      cricStatus: config.options.cricStatus,
      control: await this.#parts.store.queues.control(config.name),
      closed: closedAltogether(this.#runtime),
      credential: await this.#credential(),
    };
  }

  async #credential(): Promise<Reason | undefined> {
    const { credentials, credentialLifetime, clock } = this.#parts;
    const { config, submitter } = this.#runtime;
    const named = namedCredentials(config);
    const wanted = { names: named ?? (await submitter.credentials?.()) ?? [], named: named !== undefined };
    return credentials.judge(wanted, credentialLifetime, clock.now());
  }

  /** A job may be short and good, so a queue of jobs has no guard. */
  get #guard(): BlackHoleOptions {
    const { blackHole } = this.#options;
    const own = this.#runtime.sources.find((one) => one.own);
    if (own?.runsJobs === true) return { ...blackHole, lifetime: 0 };
    const after = own?.source.provenAfter;
    return after === undefined ? blackHole : { ...blackHole, provenAfter: after };
  }

  #load(groups: readonly Group[], rows: readonly LoadRow[]): Omit<LimitState, keyof GateState> {
    const { config, requirements } = this.#runtime;
    const queuedByType = new Map<string, number>();
    for (const { resourceType, status, workers } of rows) {
      if (isQueued(status)) queuedByType.set(resourceType, (queuedByType.get(resourceType) ?? 0) + workers);
    }
    return {
      limits: config.limits,
      maxNewWorkers: this.#options.maxNewWorkers,
      madeInCycle: this.#cycle().made,
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
    const facts = this.#throttleFacts(queue.siteFamily);
    return this.#parts.calls.call(`throttler of ${config.name}`, () => throttler.judge(queue, facts));
  }

  #throttleFacts(siteFamily: string): ThrottleFacts {
    const { store, clock, factoryLimits } = this.#parts;
    return {
      missed: (level, value, window) => {
        const scope = {
          site: { computingSite: value },
          pq: { queue: value },
          ce: { computingElement: value },
        }[level];
        return store.workers.missedSince(scope, clock.now() - window);
      },
      family: async (part) => {
        const configs = new Map(factoryLimits.family(siteFamily).map((config) => [config.name, config]));
        const alive = await store.load.alive([...configs.keys()]);
        const rows = alive.filter(({ status }) => isPart(part, status));
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

  /** The facts that tell whether the resource swallows workers. */
  async #swallowing({ load }: LimitState): Promise<BlackHoleState> {
    const options = this.#guard;
    const { clock, store } = this.#parts;
    const { name } = this.#runtime.config;
    const now = clock.now();
    const ended =
      options.lifetime === 0 ? [] : await store.workers.lastEnded(name, options.workers, endedByItself);
    const alone = { ended, proven: 0, unproven: load.alive.workers, lastMade: undefined, now };
    // Most queues swallow nothing by this much alone: the rest is asked of the database only where it counts.
    if (blackHole(alone, options) === undefined) return alone;
    const proven = await store.load.runningSince(name, now - provenAfter(options));
    const lastMade = await store.load.lastMade(name);
    return { ...alone, proven, unproven: load.alive.workers - proven, lastMade };
  }
}

/** How workers end that nothing ended and that did start: these ends tell of the resource. */
const endedByItself = ['finished', 'failed'] as const;

function isPart(part: FamilyPart, status: WorkerStatus): boolean {
  return part === 'alive' || isQueued(status) === (part === 'queued');
}
