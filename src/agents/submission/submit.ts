import type { Log, SubmitOutcome } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { isCounted } from '../../worker/counted.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import type { WorkerError, WorkerToStart } from '../../worker/worker.ts';
import type { AgentStore } from '../agent-store.ts';
import type { Emit } from '../events.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { noOutcome, outcomesFromOutside, submitChange } from '../ledger/outcomes.ts';
import type { PluginCalls } from '../plugin-calls.ts';
import type { QueueRuntime, Step } from '../queue-runtime.ts';
import type { QueueLimits } from './limit.ts';
import { payloadLost, withPayloads } from './payloads.ts';

export interface SenderParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly store: AgentStore;
  readonly calls: PluginCalls;
  readonly events: Emit;
  /** Does nothing outside of tests. */
  readonly step: (step: Step) => void;
}

/** Sends recorded intents to the backend, and writes down what became of each. */
export class IntentSender {
  readonly #runtime: QueueRuntime;
  readonly #parts: SenderParts;
  readonly #limits: QueueLimits;

  constructor(runtime: QueueRuntime, parts: SenderParts, limits: QueueLimits) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#limits = limits;
  }

  /** Sends new intents, unless an operator closed the queue since the last look at the limits. */
  async sendNew(workers: readonly WorkerToStart[]): Promise<void> {
    const control = await this.#parts.store.queues.control(this.#runtime.config.name);
    if (control === undefined) await this.send(workers);
    else if (control.mode === 'draining') await this.#withdraw(workers, control.mode);
    // A named worker is the only one that its origin gets: it stays an open intent, which is settled when the queue goes on.
    else await this.#withdraw(workers.filter(isCounted), control.mode);
  }

  /** Sends workers whose intents are committed and that are held. @throws ThresherError `submit-failed` where none was accepted */
  async send(workers: readonly WorkerToStart[]): Promise<void> {
    const { ledger, clock, log, events, step } = this.#parts;
    const { config } = this.#runtime;
    if (workers.length === 0) return;
    const said = await this.#call(workers);
    const outcomes = await outcomesFromOutside(workers, said, clock);
    events.emit('submissionAnswered', { queue: config.name, workers, outcomes });
    step('submit:before-outcome');
    const maxAttempts = config.options.maxSubmissionAttempts;
    const changes = workers.map((worker) => {
      const status = ledger.live.get(worker.workerId)?.status ?? 'pending';
      const outcome = outcomes.get(worker.workerId) ?? noOutcome;
      if (isCounted(worker)) return submitChange(worker, status, outcome, maxAttempts, clock.now());
      if (outcome.kind === 'unknown') ledger.live.noteUnanswered(worker.workerId);
      // No other worker can take its place: it waits until the backend takes it.
      return submitChange(worker, status, outcome, Infinity, clock.now());
    });
    await ledger.change(changes);
    step('submit:after-outcome');
    const accepted = workers.filter((worker) => outcomes.get(worker.workerId)?.kind === 'accepted').length;
    log.info('submitted workers', { queue: config.name, wanted: workers.length, accepted });
    const own = new Set(
      workers.filter((worker) => isOwnFault(worker, outcomes.get(worker.workerId))).map(idOf),
    );
    const error = changes.find((change) => change.error && !own.has(change.workerId))?.error;
    const sent = workers.length - own.size;
    this.#limits.answered(sent, accepted, error?.message ?? '');
    if (accepted === 0 && error) {
      // Counted as a failure of the pass, so that the next one waits.
      throw new ThresherError('submit-failed', `none of ${sent} was accepted: ${error.message}`);
    }
  }

  /** Nothing was sent of these intents. */
  async #withdraw(workers: readonly WorkerToStart[], mode: string): Promise<void> {
    const { ledger, clock } = this.#parts;
    const error = { code: 'killed', message: `the queue was ${mode} before it was submitted` };
    const endTime = clock.now();
    await ledger.change(
      workers.map(({ workerId }) => ({ workerId, to: 'cancelled', source: 'submitter', error, endTime })),
    );
  }

  async #call(all: readonly WorkerToStart[]): Promise<ReadonlyMap<number, SubmitOutcome>> {
    const { config, submitter } = this.#runtime;
    const outcomes = new Map<number, SubmitOutcome>();
    const { workers, lost } = await withPayloads(this.#parts.store.payloads, all);
    for (const workerId of lost) outcomes.set(workerId, payloadLost);
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
      const sent = await this.#parts.calls.call(what, (signal) => submitter.submit(ready, signal));
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
      return await this.#parts.calls.call(`access points of ${config.name}`, () => messenger.setUp(paths));
    } catch (error) {
      const failure = { code: 'access-point-failed', message: toReason(error).message };
      return new Map(paths.map((path) => [path, failure]));
    }
  }
}

/**
 * Whether a rejection is about a named worker alone, as for its payload or its needs. It tells nothing of the backend, and its origin is spent: a pause would only
 * delay the other workers of the queue. A counted worker would be made again at once, so its rejection counts as a failure.
 */
function isOwnFault(worker: WorkerToStart, outcome: SubmitOutcome | undefined): boolean {
  return outcome?.kind === 'rejected' && outcome.permanent && !isCounted(worker);
}

function idOf({ workerId }: WorkerToStart): number {
  return workerId;
}
