import { whyNoDemand } from '../../config/queues/demand.ts';
import type { Group, SubmitOutcome } from '../../plugins/contracts/index.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Worker, WorkerError } from '../../worker/worker.ts';
import type { Change } from '../ledger/ledger.ts';
import type { LiveWorker } from '../ledger/live-table.ts';
import { applyLimits, backendLimiter, total } from '../../limits/limiters.ts';
import { isOpen, openPlacements } from './open-connections.ts';
import { findChange, submitChange } from '../ledger/outcomes.ts';
import { PreflightLog } from './preflight-log.ts';
import { type LimitOptions, QueueLimits } from './limit.ts';
import { type AgentContext, callPlugin, type QueueRuntime } from '../queue-runtime.ts';
import { drawPilotType, makeWorker, scaleDemand } from './worker-maker.ts';

export interface SubmitterOptions extends LimitOptions {
  /** Told after each pass why no more were submitted. */
  report(reasons: readonly Reason[]): Promise<void>;
  /** Asks for a pass in so many ms, earlier than usual. */
  again(ms: number): void;
}

/** Open intents settled in one call: of a call that takes too long nothing is known, and all of it is asked again. */
const settledAtOnce = 200;

type Held = Pick<Worker, 'workerId'>;

/** Keeps one queue at its number of workers, and settles what an earlier pass or an earlier daemon left open. */
export class SubmitterAgent {
  readonly #runtime: QueueRuntime;
  readonly #context: AgentContext;
  readonly #options: SubmitterOptions;
  readonly #limits: QueueLimits;
  #turn = 0;
  readonly #preflight: PreflightLog;

  constructor(runtime: QueueRuntime, context: AgentContext, options: SubmitterOptions) {
    this.#runtime = runtime;
    this.#context = context;
    this.#options = options;
    this.#limits = new QueueLimits(runtime, context, options);
    this.#preflight = new PreflightLog(runtime.config.name, context.log);
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
    const before = await this.#limits.closed();
    if (before.unknown === undefined) await this.#settle();
    if (!current) return [{ code: 'queue-removed', message: 'followed with an earlier configuration' }];

    const unwanted = whyNoDemand(config.options, config.demand);
    // Its own state comes first: a paused or offline queue gets nothing whatever asks for workers.
    if (unwanted.length > 0) return [...(before.closed === undefined ? [] : [before.closed]), ...unwanted];
    const demand = await callPlugin(this.#context, `demand of ${config.name}`, (signal) => {
      const queue = { name: config.name, requirements: this.#runtime.requirements };
      return this.#runtime.demand.groups(queue, signal);
    });
    const wanted = scaleDemand(demand.groups, config.worker);
    const first = applyLimits(wanted, await this.#limits.look(wanted));
    if (total(first.groups) === 0) return this.#say(first.reasons, demand.reasons);
    const preflight = await callPlugin(this.#context, `preflight of ${config.name}`, (signal) =>
      this.#runtime.submitter.preflight(signal),
    );
    this.#preflight.takeProblems(preflight.problems);
    this.#preflight.takeNotes(preflight.notes ?? []);
    const made = await this.#limits.exclusively(async () => {
      // The calls may have taken long: what an operator said meanwhile counts, and so do the workers of other queues.
      const limits = await this.#limits.look(wanted, true);
      const { groups, reasons } = applyLimits(first.groups, [...limits, backendLimiter(preflight)]);
      if (total(groups) === 0) return { workers: [], reasons: [...reasons, ...first.reasons] };
      return { workers: await this.#intend(groups), reasons: [] };
    });
    if (made.workers.length === 0) return this.#say(made.reasons, demand.reasons);
    await this.#holding(made.workers, () => this.#submitNew(made.workers));
    // What holds back the next one is said of the queue as it is now.
    const after = await this.#limits.look(wanted);
    return this.#say(applyLimits(wanted, after).reasons, []);
  }

  /**
   * The reasons of a pass; where a rate cut deepest the next pass is due as soon as it lets one more through. Not where
   * another did: what a rate would let through is held back then, and pass would follow pass without a pause.
   */
  #say(limits: readonly Reason[], demand: readonly Reason[]): readonly Reason[] {
    if (limits[0]?.code === 'submission-rate') this.#options.again(this.#limits.nextIn ?? 0);
    const connections = [...this.#runtime.connected.values()].map(({ connection }) => connection.note);
    return [
      ...limits,
      ...demand,
      ...this.#preflight.notes,
      ...connections.filter((note) => note !== undefined),
    ];
  }

  /** Intents of which the submitter does not know what became of them: fenced, searched, and then confirmed, tried again or given up. */
  async #settle(): Promise<void> {
    const { ledger } = this.#context;
    const { config, configId, current } = this.#runtime;
    // What is to be killed is the sweeper's, and what is settled here is out of its reach meanwhile.
    const isDue = ({ workerId, killed, placement }: LiveWorker) =>
      !killed &&
      !ledger.inFlight.has(workerId) &&
      ledger.live.get(workerId) !== undefined &&
      isOpen(this.#runtime, placement);
    const all = ledger.live.unconfirmed(config.name, configId).filter(isDue);
    for (let first = 0; first < all.length; first += settledAtOnce) {
      // Calls take their time: what was said, and what ended, meanwhile counts.
      const open = all.slice(first, first + settledAtOnce).filter(isDue);
      if (open.length === 0) continue;
      const { closed, unknown } = await this.#limits.closed();
      if (unknown !== undefined) return;
      const mayRetry = current && closed === undefined;
      const ids = open.map(({ workerId }) => workerId);
      await this.#holding(open, () => this.#settleThese(ids, mayRetry));
    }
  }

  /** Keeps everybody else off these workers meanwhile, and lets go of them however it ends. */
  async #holding(workers: readonly Held[], work: () => Promise<void>): Promise<void> {
    this.#hold(workers);
    try {
      await work();
    } finally {
      this.#letGo(workers);
    }
  }

  #hold(workers: readonly Held[]): void {
    for (const { workerId } of workers) this.#context.ledger.inFlight.add(workerId);
  }

  #letGo(workers: readonly Held[]): void {
    for (const { workerId } of workers) this.#context.ledger.inFlight.delete(workerId);
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
      again.slice(0, this.#limits.retries).map((worker) => worker.workerId),
      clock.now(),
    );
    const retried = again.filter(({ workerId }) => counted.has(workerId));
    this.#limits.retried(retried.length);
    await this.#submit(retried.map((worker) => ({ ...worker, attempt: worker.attempt + 1 })));
  }

  /** Records intents for these groups. They are held by then already, so that nobody takes them for left over. */
  async #intend(groups: readonly Group[]): Promise<readonly Worker[]> {
    const { factoryId, harvesterId, ledger, step, random } = this.#context;
    const { config, configId, messenger, demand, submitter } = this.#runtime;
    step('submit:before-intent');
    const placements = openPlacements(this.#runtime);
    const placed = submitter.place?.(total(groups), placements).values();
    let workerId = await ledger.store.ids.take(total(groups));
    const workers = groups.flatMap((group) =>
      Array.from({ length: group.count }, () => {
        const placement = placed?.next().value ?? placements[this.#turn++ % placements.length] ?? '';
        const make = { factoryId, harvesterId, config, configId, placement, originKind: demand.kind };
        const requirements = { ...group.requirements, pilotType: drawPilotType(config, random) };
        return makeWorker(workerId++, { ...make, requirements, messenger });
      }),
    );
    this.#hold(workers);
    try {
      await ledger.intend(workers);
    } catch (error) {
      this.#letGo(workers);
      throw error;
    }
    step('submit:after-intent');
    this.#limits.made(workers.length);
    return workers;
  }

  async #submitNew(workers: readonly Worker[]): Promise<void> {
    const control = await this.#context.ledger.store.queues.control(this.#runtime.config.name);
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
    this.#limits.answered(workers.length, accepted, error?.message ?? '');
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

const noOutcome = {
  kind: 'unknown',
  error: { code: 'plugin-failed', message: 'the plugin gave no outcome for this worker' },
} as const;
