import type { Log } from '../../plugins/contracts/index.ts';
import { type Clock, eachGivingWay, givingWay, nextTurn } from '../../util/clock.ts';
import { messageOf } from '../../worker/errors.ts';
import type { Observation } from '../../worker/observation.ts';
import { isFinal } from '../../worker/status.ts';
import { fingerprintOf } from '../ledger/live-table.ts';
import type { Change, Ledger } from '../ledger/ledger.ts';
import type { Emit } from '../events.ts';
import { endOf, observationChange } from '../ledger/outcomes.ts';

/** A batch is written when it is this old, ms, or this large. */
const flushAfter = 50;
const flushAt = 500;
/** After a failed write, ms: the batch is kept. */
const retryAfter = 1000;
/** How long those wait that the database does not take beside others, ms. */
const tryAgainAfter = 60_000;
/** As many that fail one after the other say that it is the database. */
const mostFailed = 20;

/**
 * Collects observations and writes them in batches. Of a worker seen twice before a write only the last counts. What cannot be written (a full
 * disk) stays and is written later; one that the database does not take keeps no others from being written.
 */
export class ObservationWriter {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #events: Emit;
  #batch = new Map<number, Observation>();
  /**
   * That a worker is submitted, of those whose submission is under way: its outcome is about to say so, and more. Of
   * thousands that are submitted at once each would otherwise be written twice, a few in each transaction.
   */
  readonly #afterOutcome = new Map<number, Observation>();
  /** Those that could not be written though others could: they are tried again later. */
  readonly #refused = new Map<number, Observation>();
  #refusedAt = 0;
  /** `InFlight.releases` at the last look at these. */
  #lookedAt = -1;
  #writing: Promise<void> | undefined;
  #full = new AbortController();
  /** One for all batches: SQLite takes one observation after the other in one turn. */
  readonly #giveWay: () => Promise<void>;

  constructor(ledger: Ledger, clock: Clock, log: Log, events: Emit) {
    this.#ledger = ledger;
    this.#clock = clock;
    this.#giveWay = givingWay(clock);
    this.#log = log;
    this.#events = events;
  }

  /** @returns whether the worker is one we know to be alive. */
  add(observation: Observation): boolean {
    const { workerId, status } = observation;
    this.#takeRefused();
    const worker = this.#ledger.live.get(workerId);
    if (worker === undefined) return false;
    const waiting = this.#batch.get(workerId) ?? this.#afterOutcome.get(workerId);
    const known = waiting === undefined ? worker.fingerprint : fingerprintOf(waiting);
    if (known === fingerprintOf(observation)) return true;
    const isForLater = status === 'submitted' && this.#ledger.inFlight.has(workerId);
    const [into, other] = isForLater ? [this.#afterOutcome, this.#batch] : [this.#batch, this.#afterOutcome];
    into.set(workerId, observation);
    other.delete(workerId);
    this.#refused.delete(workerId);
    if (this.#batch.size >= flushAt) this.#full.abort();
    this.#begin();
    return true;
  }

  #begin(): void {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Waits until everything added so far is written. */
  async flushed(): Promise<void> {
    this.#full.abort();
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#batch.size + this.#afterOutcome.size > 0) {
      await nextTurn();
      if (this.#batch.size < flushAt) await this.#clock.sleep(flushAfter, this.#full.signal);
      this.#full = new AbortController();
      this.#takeAfterOutcome();
      if (this.#batch.size === 0) continue;
      const batch = this.#batch.values().take(flushAt).toArray();
      try {
        await this.#writeAll(batch);
      } catch (error) {
        this.#log.error('observations could not be written', {
          waiting: this.#batch.size,
          error: messageOf(error),
        });
        if (!(await this.#writeEach(batch))) await this.#clock.sleep(retryAfter);
      }
    }
  }

  async #writeAll(batch: readonly Observation[]): Promise<void> {
    const { live } = this.#ledger;
    const made = await eachGivingWay(this.#giveWay, batch, (one) => [one, this.#toChange(one)] as const);
    // The end of a worker may have been asked for in one of these turns.
    const ours = made.filter(
      ([{ workerId, status }]) => !(isFinal(status) && live.isSweepersToEnd(workerId)),
    );
    const observations = ours.map(([one]) => one);
    const changes = ours.flatMap(([{ workerId, status }, change]) =>
      change === undefined ? [] : [{ ...change, to: endOf(status, live.get(workerId)?.killed ?? false) }],
    );
    const changed = await this.#ledger.change(changes);
    this.#events.emit('observationsWritten', { observations, at: this.#clock.now() });
    for (const one of batch) {
      this.#isDone(one);
      const worker = this.#ledger.live.get(one.workerId);
      // A refused observation is judged anew when it is seen again.
      if (worker !== undefined && changed.has(one.workerId)) worker.fingerprint = fingerprintOf(one);
    }
  }

  /**
   * One that the database does not take keeps no other from being written. It is tried again: what looks like a refusal may be a database that came
   * back, or went away, meanwhile.
   * @returns whether any was: if none, it is not the observations that are at fault
   */
  async #writeEach(batch: readonly Observation[]): Promise<boolean> {
    const failed: (readonly [Observation, unknown])[] = [];
    let written = 0;
    for (const one of batch)
      try {
        if (written === 0 && failed.length === mostFailed) break;
        await this.#writeAll([one]);
        written++;
      } catch (error) {
        failed.push([one, error]);
      }
    if (written === 0) {
      // The next try begins with others.
      for (const [one] of failed) if (this.#isDone(one)) this.#batch.set(one.workerId, one);
      return false;
    }
    const [first] = failed;
    for (const [one] of failed) if (this.#isDone(one)) this.#refused.set(one.workerId, one);
    this.#refusedAt = this.#clock.monotonic();
    if (first !== undefined)
      this.#log.error('observations cannot be written yet, and others can', {
        workerIds: failed.slice(0, 10).map(([{ workerId }]) => workerId),
        observations: failed.length,
        error: messageOf(first[1]),
      });
    return true;
  }

  /** @returns false where a newer one has come in meanwhile, which stays */
  #isDone(one: Observation): boolean {
    return this.#batch.get(one.workerId) === one && this.#batch.delete(one.workerId);
  }

  #takeRefused(): void {
    if (this.#refused.size === 0 || this.#clock.monotonic() - this.#refusedAt < tryAgainAfter) return;
    for (const [workerId, one] of this.#refused)
      if (!this.#batch.has(workerId)) this.#batch.set(workerId, one);
    this.#refused.clear();
    this.#begin();
  }

  #takeAfterOutcome(): void {
    const { releases } = this.#ledger.inFlight;
    if (this.#lookedAt === releases) return;
    this.#lookedAt = releases;
    for (const [workerId, observation] of this.#afterOutcome) {
      if (this.#ledger.inFlight.has(workerId)) continue;
      this.#afterOutcome.delete(workerId);
      this.#batch.set(workerId, observation);
    }
  }

  /** An observation that no change can be made of (a plugin's mistake) must not stop the others. */
  #toChange(observation: Observation): Change | undefined {
    try {
      return observationChange(observation, false);
    } catch (error) {
      const { workerId } = observation;
      this.#log.error('observation cannot be used', { workerId, error: messageOf(error) });
      return undefined;
    }
  }
}
