import type { FindOutcome } from '../../plugins/contracts/index.ts';
import type { WorkerRecord } from '../../store/rows.ts';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import { isCounted } from '../../worker/counted.ts';
import type { AgentStore } from '../agent-store.ts';
import type { Change, Ledger } from '../ledger/ledger.ts';
import type { LiveWorker } from '../ledger/live-table.ts';
import { findChange, noOutcome, outcomesFromOutside } from '../ledger/outcomes.ts';
import type { PluginCalls } from '../plugin-calls.ts';
import type { QueueRuntime } from '../queue-runtime.ts';
import type { QueueLimits } from './limit.ts';
import { isOpen } from './open-connections.ts';
import type { IntentSender } from './submit.ts';
import { workerOfMark } from './worker-maker.ts';

export interface SettlerParts {
  readonly harvesterId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly store: AgentStore;
  readonly calls: PluginCalls;
}

/** Open intents settled in one call: where a call takes too long, nothing is known of all of them, and all are asked again. */
const settledAtOnce = 200;

/**
 * Settles intents whose outcome is unknown: (1) the daemon died during the submission, (2) the call timed out, (3) the answer was
 * lost. The submitter fences each, searches for it, and then the intent is confirmed, tried again or given up.
 */
export class IntentSettler {
  readonly #runtime: QueueRuntime;
  readonly #parts: SettlerParts;
  readonly #limits: QueueLimits;
  readonly #sender: IntentSender;
  /** The worker that was retried last. The others come before it: one that is refused each time must not take all retries. */
  #last = 0;

  constructor(runtime: QueueRuntime, parts: SettlerParts, limits: QueueLimits, sender: IntentSender) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#limits = limits;
    this.#sender = sender;
  }

  async settle(): Promise<void> {
    const { ledger } = this.#parts;
    const { config, configId, current } = this.#runtime;
    const due = ledger.live.unconfirmed(config.name, configId).filter((worker) => this.#isDue(worker));
    const all = this.#inTurn(due);
    for (let first = 0; first < all.length; first += settledAtOnce) {
      // Calls take their time: an operator's word, and workers that ended meanwhile, count.
      const open = all.slice(first, first + settledAtOnce).filter((worker) => this.#isDue(worker));
      if (open.length === 0) continue;
      const { closed, unknown } = await this.#limits.closed();
      if (unknown !== undefined) return;
      const mayRetry = current && closed === undefined;
      const ids = open.map(({ workerId }) => workerId);
      await ledger.inFlight.during(open, () => this.#settleThese(ids, mayRetry));
    }
  }

  /** A worker that is to be killed is the sweeper's; a worker that is settled here is out of the sweeper's reach meanwhile. */
  #isDue({ workerId, killed, placement }: LiveWorker): boolean {
    const { live, inFlight } = this.#parts.ledger;
    return (
      !killed &&
      !inFlight.has(workerId) &&
      live.get(workerId) !== undefined &&
      isOpen(this.#runtime, placement)
    );
  }

  #inTurn<One extends { readonly workerId: number }>(workers: readonly One[]): readonly One[] {
    const isLater = ({ workerId }: One) => workerId > this.#last;
    const all = workers.toSorted((one, other) => one.workerId - other.workerId);
    return [...all.filter(isLater), ...all.filter((worker) => !isLater(worker))];
  }

  async #settleThese(ids: readonly number[], mayRetry: boolean): Promise<void> {
    const { ledger, store, calls, clock, log } = this.#parts;
    const { config, submitter } = this.#runtime;
    const records = await store.workers.byIds(ids);
    const said = await calls.call(`find of ${config.name}`, (signal) => submitter.find(records, signal));
    const found = await outcomesFromOutside(records, said, clock);
    const { changes, toRetry } = this.#judge(records, found, mayRetry);
    await ledger.change(changes);
    if (changes.length > 0) log.info('settled open intents', { queue: config.name, settled: changes.length });
    if (toRetry.length > 0) await this.#retry(toRetry);
  }

  #judge(
    records: readonly WorkerRecord[],
    found: ReadonlyMap<number, FindOutcome>,
    mayRetry: boolean,
  ): { readonly changes: readonly Change[]; readonly toRetry: readonly WorkerRecord[] } {
    const { ledger, clock } = this.#parts;
    const { config, current } = this.#runtime;
    const changes: Change[] = [];
    const toRetry: WorkerRecord[] = [];
    for (const record of records) {
      const outcome = found.get(record.workerId) ?? noOutcome;
      const status = ledger.live.get(record.workerId)?.status ?? record.status;
      const lastError =
        record.errorCode === null ? undefined : { code: record.errorCode, message: record.diagMessage ?? '' };
      const maxAttempts = config.options.maxSubmissionAttempts;
      // A named worker is the only one of its origin: neither refusals nor a daemon that stopped too soon use up its attempts.
      const spent = isCounted(record) ? record.attempt : ledger.live.unanswered(record.workerId);
      const retry = { allowed: mayRetry, spent, maxAttempts, lastError };
      // While the queue is closed an absent intent waits: it is no failure of its own.
      if (outcome.kind === 'absent' && !mayRetry && current) continue;
      // A worker that a monitor saw and that is gone now is the monitor's to judge.
      if (outcome.kind === 'absent' && status !== 'pending') continue;
      const change = findChange(record, status, outcome, retry, clock.now());
      if (change === undefined) toRetry.push(record);
      else changes.push(change);
    }
    return { changes, toRetry };
  }

  async #retry(toRetry: readonly WorkerRecord[]): Promise<void> {
    const ids = this.#inTurn(toRetry)
      .slice(0, this.#limits.retries)
      .map(({ workerId }) => workerId);
    this.#last = ids.at(-1) ?? this.#last;
    // A worker whose end was asked for meanwhile gets no further attempt.
    const counted = await this.#parts.ledger.attemptAgain(ids);
    const retried = toRetry.filter(({ workerId }) => counted.has(workerId));
    this.#limits.intentsRetried(retried.length);
    const again = await this.#checked(retried);
    await this.#sender.send(again.map((worker) => ({ ...worker, attempt: worker.attempt + 1 })));
  }

  /** Earlier versions made rows of whatever stood in a mark. */
  async #checked(workers: readonly WorkerRecord[]): Promise<readonly WorkerRecord[]> {
    const { store, harvesterId } = this.#parts;
    const { config, messenger } = this.#runtime;
    const own = await store.workers.intended(workers.map(({ workerId }) => workerId));
    return workers.map((worker) =>
      own.has(worker.workerId) ? worker : workerOfMark(worker, { config, messenger, harvesterId }),
    );
  }
}
