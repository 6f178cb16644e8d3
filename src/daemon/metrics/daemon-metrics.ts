import { judgeOne, type KnownCredential } from '../../agents/credentials/credential-board.ts';
import type { LoopHealth } from '../../agents/loop.ts';
import type { FactoryEvents, PassEnded, Subscribe, WorkerChanged } from '../../agents/events.ts';
import type { WaitingCount } from '../../agents/sources/waiting-board.ts';
import type { NewsBacklog } from '../../store/news.ts';
import type { QueueReport } from '../../store/queues.ts';
import type { AliveCount } from '../../store/figures.ts';
import type { SourceGauge } from '../../plugins/contracts/index.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../util/clock.ts';
import { finalStatuses, isFinal, workerStatuses } from '../../worker/status.ts';
import type { ServiceHealth } from '../services/service.ts';
import { type Families, makeFamilies } from './metric-families.ts';
import { gaugesText } from './source-gauges.ts';
import { everyCode } from '../every-code.ts';
import { collectDefaultMetrics, Registry } from 'prom-client';

/** Gauges that prom-client names like counters, which Prometheus' own check refuses. Each has a twin without `_total`. */
const misnamed = [
  'nodejs_active_resources_total',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
];

let registry: Registry | undefined;

/**
 * The metrics of the process itself (`process_*`, `nodejs_*`). One registry per process, made when it is first asked
 * for: prom-client's observers of the event loop and the garbage collector can never be taken away again.
 */
export function processMetrics(): Registry {
  if (registry === undefined) {
    registry = new Registry();
    collectDefaultMetrics({ register: registry });
    for (const name of misnamed) registry.removeSingleMetric(name);
  }
  return registry;
}

interface LoopLabels {
  readonly kind: string;
  /** A queue or a connection; empty where a loop serves all. */
  readonly target: string;
}

/**
 * A loop's name as labels: `submit CERN_PROD` is of kind `submit`. Loops of earlier configurations of a queue are counted
 * with it, since their number would grow with every change of the file.
 */
export function loopLabels(name: string): LoopLabels {
  const at = name.indexOf(' ');
  if (at < 0) return { kind: name, target: '' };
  return { kind: name.slice(0, at), target: name.slice(at + 1).replace(/ \(configuration \d+\)$/, '') };
}

/** How many codes of third parties are told apart. */
const foreignCodes = 50;

/**
 * Gives each code its label. Codes of the catalogue are few; a third-party plugin may make up as many as it likes, and the
 * ones past the first 50 become `other`: a label without bound would fill Prometheus.
 */
export function codeLabels(): (code: string | undefined) => string {
  const foreign = new Set<string>();
  return (code) => {
    if (code === undefined || code === '') return 'none';
    if (Object.hasOwn(everyCode, code) || foreign.has(code)) return code;
    if (foreign.size >= foreignCodes) return 'other';
    foreign.add(code);
    return code;
  };
}

/** The sources of all values that a scrape reads, because nothing counts them. */
export interface MetricSources {
  readonly store: Store;
  readonly factoryId: string;
  readonly version: string;
  /** Whether this daemon has the factory. */
  readonly leads: boolean;
  readonly health: readonly LoopHealth[];
  readonly credentials: readonly KnownCredential[];
  readonly services: readonly ServiceHealth[];
  readonly waiting: readonly WaitingCount[];
  readonly gauges: readonly SourceGauge[];
}

const outcomes = ['accepted', 'rejected', 'unknown'] as const;
const aliveStatuses = workerStatuses.filter((status) => !isFinal(status));

/** Counts of one queue, by label. Plain maps: counting happens far more often than anybody asks. */
class QueueCounts {
  readonly ended = new Map<string, number>(finalStatuses.map((status) => [status, 0]));
  readonly submissions = new Map<string, number>(outcomes.map((outcome) => [outcome, 0]));
  readonly failures = new Map<string, number>();
}

/** Counts what agents do, and renders it with what the database and the loops say, in Prometheus' text format. */
export class DaemonMetrics {
  readonly #clock: Clock;
  readonly #families: Families = makeFamilies();
  readonly #queues = new Map<string, QueueCounts>();
  /** The loops that were ever counted, by name. */
  readonly #loops = new Map<string, LoopLabels>();
  readonly #code = codeLabels();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  subscribeTo(events: Subscribe): void {
    events.on('submissionAnswered', (facts) => {
      this.#submitted(facts);
    });
    events.on('workersChanged', ({ workers }) => {
      for (const worker of workers) if (isFinal(worker.to)) this.#ended(worker);
    });
    events.on('observationsWritten', (facts) => {
      this.#observed(facts);
    });
    events.on('passEnded', (pass) => {
      this.#passEnded(pass);
    });
  }

  #submitted({ queue, workers, outcomes: results }: FactoryEvents['submissionAnswered']): void {
    const { submissions, failures } = this.#of(queue);
    for (const { workerId } of workers) {
      const outcome = results.get(workerId);
      count(submissions, outcome?.kind ?? 'unknown');
      if (outcome?.kind !== 'accepted') count(failures, this.#code(outcome?.error.code));
    }
  }

  #ended({ queue, to: status, code }: WorkerChanged): void {
    const { ended, failures } = this.#of(queue);
    count(ended, status);
    // A worker that an operator ended is no failure.
    if (status === 'failed' || status === 'missed') count(failures, this.#code(code));
  }

  #observed({ observations, at }: FactoryEvents['observationsWritten']): void {
    for (const { observedAt } of observations) {
      const delay = (at - observedAt) / 1000;
      // A plugin may have left the time out, and clocks of backends go wrong.
      if (Number.isFinite(delay)) this.#families.delay.observe(Math.max(0, delay));
    }
  }

  #passEnded({ loop, duration, failed }: PassEnded): void {
    let labels = this.#loops.get(loop);
    if (labels === undefined) {
      labels = loopLabels(loop);
      this.#loops.set(loop, labels);
      this.#families.loopFailures.inc({ ...labels }, 0);
    }
    this.#families.duration.observe({ ...labels }, duration / 1000);
    if (failed) this.#families.loopFailures.inc({ ...labels });
  }

  /** Everything, as Prometheus reads it. @throws ThresherError when the database cannot be read. */
  async text(sources: MetricSources): Promise<string> {
    const { store, factoryId, version, leads, health, credentials, services, waiting, gauges } = sources;
    const [reports, alive, atElements, orphans, backlog, bytes] = await Promise.all([
      store.queues.all(),
      store.figures.alive(),
      store.figures.aliveAtElements(),
      store.figures.orphans(),
      store.news.backlog(),
      store.bytes(),
    ]);
    const { info, databaseBytes, registry, workersAtElements } = this.#families;
    info.reset();
    info.set({ version, factory: factoryId }, 1);
    this.#families.leader.set(leads ? 1 : 0);
    this.#families.orphans.set(orphans);
    databaseBytes.set(bytes);
    this.#fillQueues(reports, alive);
    workersAtElements.reset();
    for (const { queue, computingElement, status, workers } of atElements)
      workersAtElements.set({ queue, ce: computingElement, status }, workers);
    this.#fillLoops(health);
    this.#fillCredentials(credentials);
    this.#fillServices(services, waiting, backlog);
    const own = registry.getMetricsAsArray().map(({ name }) => name);
    const ofSources = gaugesText(gauges, new Set(own));
    return `${await registry.metrics()}\n${ofSources}${await processMetrics().metrics()}`;
  }

  #of(queue: string): QueueCounts {
    let counts = this.#queues.get(queue);
    if (counts === undefined) {
      counts = new QueueCounts();
      this.#queues.set(queue, counts);
    }
    return counts;
  }

  /** Anew from what there is: a queue that vanished leaves nothing behind. */
  #fillQueues(reports: readonly QueueReport[], alive: readonly AliveCount[]): void {
    const { workers, ended, submissions, failures, limited, limit } = this.#families;
    for (const family of [workers, ended, submissions, failures, limited, limit]) family.reset();
    const known = new Set([...reports, ...alive].map(({ queue }) => queue));
    for (const queue of this.#queues.keys()) if (!known.has(queue)) this.#queues.delete(queue);
    for (const queue of known) {
      for (const status of aliveStatuses) workers.set({ queue, status }, 0);
      const counts = this.#of(queue);
      for (const [status, value] of counts.ended) ended.inc({ queue, status }, value);
      for (const [outcome, value] of counts.submissions) submissions.inc({ queue, outcome }, value);
      for (const [code, value] of counts.failures) failures.inc({ queue, code }, value);
    }
    for (const { queue, status, workers: value } of alive) workers.set({ queue, status }, value);
    for (const { queue, reasons, limits } of reports) {
      for (const { code } of reasons) limited.set({ queue, reason: this.#code(code) }, 1);
      for (const [name, value] of Object.entries(limits)) {
        if (value !== null) limit.set({ queue, limit: name }, value);
      }
    }
  }

  /** A credential without an end has no remaining time. */
  #fillCredentials(credentials: readonly KnownCredential[]): void {
    const { credentialLeft, credentialGood, credentialFailing } = this.#families;
    credentialLeft.reset();
    credentialGood.reset();
    credentialFailing.reset();
    const now = this.#clock.now();
    for (const known of credentials) {
      const { name: credential, manager, state } = known;
      credentialGood.set({ credential, manager }, judgeOne(known, 1, now) === undefined ? 1 : 0);
      const end = state.kind === 'there' ? state.facts.expiresAt : undefined;
      credentialFailing.set({ credential, manager }, known.trouble === undefined ? 0 : 1);
      if (end !== undefined) credentialLeft.set({ credential, manager }, (end - now) / 1000);
    }
  }

  /** A source whose news are all taken has no backlog, and a queue without waiting requests no number of them. */
  #fillServices(
    services: readonly ServiceHealth[],
    waiting: readonly WaitingCount[],
    backlog: readonly NewsBacklog[],
  ): void {
    const { serviceUp, requestsWaiting, newsBacklog } = this.#families;
    for (const family of [serviceUp, requestsWaiting, newsBacklog]) family.reset();
    for (const { name: service, state } of services) serviceUp.set({ service }, state === 'up' ? 1 : 0);
    for (const { queue, source, requests } of waiting) requestsWaiting.set({ queue, source }, requests);
    for (const { kind: source, count } of backlog) newsBacklog.set({ source }, count);
  }

  #fillLoops(health: readonly LoopHealth[]): void {
    const { age, stuck, duration, loopFailures } = this.#families;
    age.reset();
    stuck.reset();
    const worst = new Map<string, { labels: LoopLabels; age: number; stuck: number }>();
    for (const { name, startedAt, endedAt, stuckFor } of health) {
      const labels = loopLabels(name);
      const since = endedAt ?? startedAt;
      const seconds = since === undefined ? 0 : Math.max(0, this.#clock.now() - since) / 1000;
      const key = `${labels.kind} ${labels.target}`;
      const before = worst.get(key) ?? { labels, age: 0, stuck: 0 };
      // If a queue has several configurations, its worst loop speaks.
      worst.set(key, {
        labels,
        age: Math.max(before.age, seconds),
        stuck: stuckFor === undefined ? before.stuck : 1,
      });
    }
    for (const { labels, ...one } of worst.values()) {
      stuck.set({ ...labels }, one.stuck);
      // A monitor's pass ends only when it fails, and news come when there are any.
      if (labels.kind !== 'monitor' && labels.kind !== 'news') age.set({ ...labels }, one.age);
    }
    const running = new Set(health.map(({ name }) => name));
    for (const [name, labels] of this.#loops) {
      if (running.has(name)) continue;
      this.#loops.delete(name);
      if (worst.has(`${labels.kind} ${labels.target}`)) continue;
      duration.remove({ ...labels });
      loopFailures.remove({ ...labels });
    }
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
