import type { Group, SubmitOutcome } from '../plugins/contracts/index.ts';
import { queuedWorkers } from '../store/workers.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Reason } from '../worker/reason.ts';
import type { Worker, WorkerError } from '../worker/worker.ts';
import type { Change } from './ledger.ts';
import { applyLimits, backendLimiter, caps, gates, type LimitState, total } from './limiters.ts';
import { toReason } from './loop.ts';
import { findChange, submitChange } from './outcomes.ts';
import { type AgentContext, callPlugin, type QueueRuntime } from './queue-runtime.ts';
import { makeWorker } from './worker-maker.ts';

export interface SubmitterOptions {
  readonly maxNewWorkers: number;
  /** Length of a cycle, ms. */
  readonly cycle: number;
  /** Told after each pass why no more were submitted. */
  report(reasons: readonly Reason[]): Promise<void>;
}

/** Keeps one queue at its number of workers, and settles what an earlier pass or an earlier daemon left open. */
export class SubmitterAgent {
  readonly #runtime: QueueRuntime;
  readonly #context: AgentContext;
  readonly #options: SubmitterOptions;
  #turn = 0;
  /** New workers since the last cycle began: a pass that was woken by an event is no new cycle. */
  #cycle = { startedAt: -Infinity, made: 0 };

  constructor(runtime: QueueRuntime, context: AgentContext, options: SubmitterOptions) {
    this.#runtime = runtime;
    this.#context = context;
    this.#options = options;
  }

  async pass(): Promise<void> {
    try {
      await this.#options.report(await this.#pass());
    } catch (error) {
      await this.#options.report([toReason(error)]);
      throw error;
    }
  }

  async #pass(): Promise<readonly Reason[]> {
    const { config, current } = this.#runtime;
    const state = await this.#limitState();
    const open = current && gates.every((gate) => gate(state) === undefined);
    if (state.closed === undefined) await this.#settle(open);
    if (!current) return [{ code: 'queue-removed', message: 'followed with an earlier configuration' }];

    const demand = await callPlugin(this.#context, `demand of ${config.name}`, (signal) => {
      const { mapType, runMode } = config.options;
      const queue = { name: config.name, mapType, runMode, requirements: this.#runtime.requirements };
      return this.#runtime.demand.groups(queue, signal);
    });
    let allowed = applyLimits(demand.groups, limitsOf(state));
    let reasons = [...allowed.reasons, ...demand.reasons];
    if (total(allowed.groups) > 0) {
      const preflight = await callPlugin(this.#context, `preflight of ${config.name}`, (signal) =>
        this.#runtime.submitter.preflight(signal),
      );
      // The calls may have taken long: what an operator said meanwhile counts.
      const fresh = limitsOf(await this.#limitState());
      allowed = applyLimits(allowed.groups, [...fresh, backendLimiter(preflight)]);
      reasons = [...allowed.reasons, ...reasons];
    }
    if (total(allowed.groups) === 0) return reasons;
    await this.#submitNew(allowed.groups);
    // What holds back the next one is said of the queue as it is now.
    const after = await this.#limitState();
    return applyLimits(demand.groups, limitsOf(after)).reasons;
  }

  async #limitState(): Promise<LimitState> {
    const { config, connected } = this.#runtime;
    const { ledger, clock } = this.#context;
    const { store } = ledger;
    const now = clock.monotonic();
    if (now - this.#cycle.startedAt >= this.#options.cycle) this.#cycle = { startedAt: now, made: 0 };
    const counts = await store.workers.countAlive(config.name);
    return {
      queueStatus: config.options.queueStatus,
      control: await store.queues.control(config.name),
      closed: [...connected.values()]
        .map(({ connection }) => connection.closed)
        .find((reason) => reason !== undefined),
      limits: config.limits,
      maxNewWorkers: this.#options.maxNewWorkers,
      madeInCycle: this.#cycle.made,
      alive: counts.reduce((sum, count) => sum + count.workers, 0),
      queued: queuedWorkers(counts),
    };
  }

  /** Intents of which the submitter does not know what became of them: fenced, searched, and then confirmed, tried again or given up. */
  async #settle(mayRetry: boolean): Promise<void> {
    const { ledger } = this.#context;
    const { config, configId } = this.#runtime;
    // What is to be killed is the sweeper's, and what is settled here is out of its reach meanwhile.
    const ids = ledger.live
      .unconfirmed(config.name, configId)
      .filter(({ workerId, killed }) => !killed && !ledger.inFlight.has(workerId))
      .map(({ workerId }) => workerId);
    if (ids.length === 0) return;
    await this.#holding(ids, () => this.#settleThese(ids, mayRetry));
  }

  /** Keeps everybody else off these workers meanwhile, and lets go of them however it ends. */
  async #holding(workerIds: readonly number[], work: () => Promise<void>): Promise<void> {
    const { inFlight } = this.#context.ledger;
    for (const workerId of workerIds) inFlight.add(workerId);
    try {
      await work();
    } finally {
      for (const workerId of workerIds) inFlight.delete(workerId);
    }
  }

  async #settleThese(ids: readonly number[], mayRetry: boolean): Promise<void> {
    const { ledger, clock, log } = this.#context;
    const { config, submitter } = this.#runtime;
    const records = await ledger.store.workers.byIds(ids);
    const found = await callPlugin(this.#context, `find of ${config.name}`, (signal) =>
      submitter.find(records, signal),
    );
    const changes: Change[] = [];
    const again: Worker[] = [];
    for (const record of records) {
      const outcome = found.get(record.workerId) ?? noOutcome;
      const status = ledger.live.get(record.workerId)?.status ?? record.status;
      const lastError =
        record.errorCode === null ? undefined : { code: record.errorCode, message: record.diagMessage ?? '' };
      const retry = { allowed: mayRetry, maxAttempts: config.options.maxSubmissionAttempts, lastError };
      // While the queue is closed an absent intent waits: it is no failure of its own.
      if (outcome.kind === 'absent' && !mayRetry && this.#runtime.current) continue;
      // What a monitor saw and is gone now is the monitor's to judge.
      if (outcome.kind === 'absent' && status !== 'pending') continue;
      const change = findChange(record, status, outcome, retry, clock.now());
      if (change === undefined) again.push(record);
      else changes.push(change);
    }
    await ledger.change(changes);
    if (changes.length > 0) log.info('settled open intents', { queue: config.name, settled: changes.length });
    if (again.length === 0) return;
    // Whose end was asked for meanwhile gets no further attempt.
    const counted = await ledger.store.workers.nextAttempt(
      again.map((worker) => worker.workerId),
      clock.now(),
    );
    const retried = again.filter(({ workerId }) => counted.has(workerId));
    await this.#submit(retried.map((worker) => ({ ...worker, attempt: worker.attempt + 1 })));
  }

  async #submitNew(groups: readonly Group[]): Promise<void> {
    const { factoryId, harvesterId, ledger, step } = this.#context;
    const { config, configId, messenger, demand } = this.#runtime;
    step('submit:before-intent');
    const placements = [...this.#runtime.connected.keys()];
    let workerId = await ledger.store.ids.take(total(groups));
    const workers = groups.flatMap(({ requirements, count }) =>
      Array.from({ length: count }, () => {
        const placement = placements[this.#turn++ % placements.length] ?? '';
        const make = { factoryId, harvesterId, config, configId, placement, originKind: demand.kind };
        return makeWorker(workerId++, { ...make, requirements, messenger });
      }),
    );
    await this.#holding(
      workers.map((worker) => worker.workerId),
      () => this.#recordAndSubmit(workers),
    );
  }

  async #recordAndSubmit(workers: readonly Worker[]): Promise<void> {
    const { ledger, step } = this.#context;
    await ledger.intend(workers);
    step('submit:after-intent');
    this.#cycle.made += workers.length;
    const control = await ledger.store.queues.control(this.#runtime.config.name);
    if (control === undefined) await this.#submit(workers);
    else await this.#withdraw(workers, control.mode);
  }

  /** An operator closed the queue between its last look and these intents: nothing was sent of them. */
  async #withdraw(workers: readonly Worker[], mode: string): Promise<void> {
    const { ledger, clock } = this.#context;
    const error = { code: 'killed', message: `the queue was ${mode} before it was submitted` };
    const endTime = clock.now();
    await ledger.change(
      workers.map(({ workerId }) => ({ workerId, to: 'cancelled', source: 'submitter', error, endTime })),
    );
  }

  /** Sends workers whose intents are committed and that are held, and writes down what came of each. */
  async #submit(workers: readonly Worker[]): Promise<void> {
    const { ledger, clock, log, step } = this.#context;
    const { config } = this.#runtime;
    if (workers.length === 0) return;
    const outcomes = await this.#call(workers);
    this.#context.metrics.submitted(config.name, workers, outcomes);
    step('submit:before-outcome');
    const maxAttempts = config.options.maxSubmissionAttempts;
    const changes = workers.map((worker) => {
      const status = ledger.live.get(worker.workerId)?.status ?? 'pending';
      const outcome = outcomes.get(worker.workerId) ?? noOutcome;
      return submitChange(worker, status, outcome, maxAttempts, clock.now());
    });
    await ledger.change(changes);
    step('submit:after-outcome');
    const accepted = workers.filter((worker) => outcomes.get(worker.workerId)?.kind === 'accepted').length;
    log.info('submitted workers', { queue: config.name, wanted: workers.length, accepted });
    const error = changes.find((change) => change.error)?.error;
    if (accepted === 0 && error) {
      // Counted as a failure of the pass, so that the next one waits.
      throw new ThresherError('submit-failed', `none of ${workers.length} was accepted: ${error.message}`);
    }
  }

  async #call(workers: readonly Worker[]): Promise<ReadonlyMap<number, SubmitOutcome>> {
    const { config, submitter } = this.#runtime;
    const outcomes = new Map<number, SubmitOutcome>();
    const paths = workers.flatMap(({ accessPoint }) => (accessPoint === undefined ? [] : [accessPoint]));
    const failed = await this.#setUp(paths);
    const ready = workers.filter((worker) => {
      const error = worker.accessPoint === undefined ? undefined : failed.get(worker.accessPoint);
      if (error !== undefined) outcomes.set(worker.workerId, { kind: 'rejected', permanent: false, error });
      return error === undefined;
    });
    if (ready.length === 0) return outcomes;
    try {
      const what = `submit of ${config.name}`;
      const sent = await callPlugin(this.#context, what, (signal) => submitter.submit(ready, signal));
      for (const [workerId, outcome] of sent) outcomes.set(workerId, outcome);
    } catch (error) {
      // A call that timed out or broke may have reached the backend: unknown, until it was fenced and searched.
      for (const { workerId } of ready) outcomes.set(workerId, { kind: 'unknown', error: toReason(error) });
    }
    return outcomes;
  }

  /** Access points, by path what failed. A file system that hangs is as bad as an endpoint that does. */
  async #setUp(paths: readonly string[]): Promise<ReadonlyMap<string, WorkerError>> {
    const { messenger, config } = this.#runtime;
    if (messenger === undefined || paths.length === 0) return new Map();
    try {
      return await callPlugin(this.#context, `access points of ${config.name}`, () => messenger.setUp(paths));
    } catch (error) {
      const failure = { code: 'access-point-failed', message: toReason(error).message };
      return new Map(paths.map((path) => [path, failure]));
    }
  }
}

function limitsOf(state: LimitState) {
  return [...gates, ...caps].map((limiter) => limiter(state));
}

const noOutcome = {
  kind: 'unknown',
  error: { code: 'plugin-failed', message: 'the plugin gave no outcome for this worker' },
} as const;
