import type { CheckResult, Log, Monitor, ObservationSink } from '../../plugins/contracts/index.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import type { Observation } from '../../worker/observation.ts';
import type { WorkerError } from '../../worker/worker.ts';
import { reasonFromOutside } from '../../util/own-secrets.ts';
import type { Connection } from './connection.ts';
import type { Clock } from '../../util/clock.ts';
import type { Change, Ledger } from '../ledger/ledger.ts';
import type { ObservationWriter } from './observation-writer.ts';
import { EarlyLooks } from './early-looks.ts';
import { goneSinceSeen, type LiveWorker, notSeenYet } from '../ledger/live-table.ts';
import { absenceChange } from '../ledger/outcomes.ts';
import type { PluginCalls } from '../plugin-calls.ts';
import type { AgentStore } from '../agent-store.ts';
import type { Emit, Subscribe } from '../events.ts';

export interface MonitorOptions {
  /** How long a worker must be missing before it is looked up by name, ms. */
  readonly missingGrace: number;
  /** Whether a connection of this name is at work. */
  isFollowed(connection: string): boolean;
}

export interface MonitorParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly store: AgentStore;
  readonly calls: PluginCalls;
  readonly events: Emit & Subscribe;
  readonly writer: ObservationWriter;
  /** Aborts when look-ups under way are to be given up. */
  readonly giveUp: AbortSignal;
}

/** Missing workers looked up in one call. */
const checkAtOnce = 500;

/** Follows all workers of one connection. */
export class MonitorAgent {
  readonly #monitor: Monitor;
  readonly #connection: Connection;
  readonly #parts: MonitorParts;
  readonly #options: MonitorOptions;
  /** Workers that were not shown, and since when (monotonic ms). */
  readonly #missing = new Map<number, number>();
  #checking = false;
  #waiting = false;
  /** Seen without being ours to follow: told once each. */
  readonly #strangers = new Set<number>();
  readonly #early: EarlyLooks;

  constructor(monitor: Monitor, connection: Connection, parts: MonitorParts, options: MonitorOptions) {
    this.#monitor = monitor;
    this.#connection = connection;
    this.#parts = parts;
    this.#options = options;
    const { clock, giveUp, ledger } = parts;
    this.#early = new EarlyLooks({
      clock,
      giveUp,
      lives: (workerId) => ledger.live.get(workerId) !== undefined,
      look: (workerIds) => this.#lookEarly(workerIds),
    });
  }

  /** Observes until `signal` aborts. @throws when the plugin stops before; the connection then counts as unknown. */
  async pass(signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#parts.events.on('endsExpected', ({ workerIds }) => {
      this.#expectEnd(workerIds);
    });
    try {
      await untilAborted(this.#monitor.observe(this.#sink(), signal), signal);
    } catch (error) {
      this.#connection.troubled(toReason(error));
      throw error;
    } finally {
      unsubscribe();
    }
    if (signal.aborted) return;
    const error = new ThresherError(
      'plugin-failed',
      `the monitor of ${this.#connection.name} stopped by itself`,
    );
    this.#connection.troubled(toReason(error));
    throw error;
  }

  /** A listing lacks these, which were here before it began: each is looked up by name before anything is concluded. */
  suspect(workerIds: readonly number[]): void {
    const now = this.#parts.clock.monotonic();
    for (const workerId of workerIds) if (!this.#missing.has(workerId)) this.#missing.set(workerId, now);
    if (workerIds.length > 0) this.#lookLater();
  }

  /** These are said to end now: those that live here are looked up before their turn. */
  #expectEnd(workerIds: readonly number[]): void {
    if (this.#monitor.hearsAtOnce?.() === true) return;
    const { live } = this.#parts.ledger;
    this.#early.expect(workerIds.filter((id) => live.get(id)?.placement === this.#connection.name));
  }

  #sink(): ObservationSink {
    return {
      begin: () => {
        this.#connection.beginListing();
      },
      observe: (observation) => {
        this.#observe(observation);
      },
      complete: () => {
        this.#completed();
        this.#findMissing();
      },
      gone: (workerId) => {
        const worker = this.#parts.ledger.live.get(workerId);
        if (worker === undefined || this.#isElsewhere(worker)) return;
        // It was shown in this listing, and is not there any more.
        worker.seenIn = goneSinceSeen;
        if (!this.#missing.has(workerId)) this.#missing.set(workerId, this.#parts.clock.monotonic());
        this.#lookLater();
      },
      trouble: (reason) => {
        this.#connection.troubled(reason);
      },
    };
  }

  #observe(observation: Observation): void {
    this.#missing.delete(observation.workerId);
    const worker = this.#parts.ledger.live.get(observation.workerId);
    if (worker !== undefined) {
      if (this.#isElsewhere(worker)) return;
      if (worker.placement === this.#connection.name) worker.seenIn = this.#connection.listing;
    }
    if (
      this.#parts.writer.add(observation) ||
      isOver(observation) ||
      this.#strangers.has(observation.workerId)
    )
      return;
    this.#strangers.add(observation.workerId);
    this.#parts.events.emit('strangerSeen', {
      connection: this.#connection.name,
      workerId: observation.workerId,
    });
  }

  /**
   * A worker of another connection may be shown here: this one is the same backend by another name, or has a copy of the object with its mark,
   * which a queue that passes jobs on made. Its own connection alone says what becomes of it, as long as it has one.
   */
  #isElsewhere({ placement }: LiveWorker): boolean {
    return placement !== this.#connection.name && this.#options.isFollowed(placement);
  }

  #completed(): void {
    const { name: connection } = this.#connection;
    if (this.#connection.completed()) this.#parts.events.emit('connectionOpened', { connection });
  }

  /** Only now does absence mean something, and even now it is only a suspicion. */
  #findMissing(): void {
    const now = this.#parts.clock.monotonic();
    for (const worker of this.#parts.ledger.live.on(this.#connection.name)) {
      // An unconfirmed worker is the submitter's to settle.
      if (worker.seenIn === this.#connection.listing || worker.status === 'pending') continue;
      if (!this.#missing.has(worker.workerId)) this.#missing.set(worker.workerId, now);
    }
    this.#checkDue();
  }

  /** Looks up workers that a watch called gone without waiting for the next listing, which may be far. */
  #lookLater(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    const { clock, giveUp } = this.#parts;
    const later = async () => {
      await clock.sleep(this.#options.missingGrace, giveUp);
      this.#waiting = false;
      if (giveUp.aborted) return;
      this.#checkDue();
      if (this.#missing.size > 0) this.#lookLater();
    };
    later().catch((error: unknown) => {
      this.#parts.log.error('missing workers are not looked up', { ...toReason(error) });
    });
  }

  /** Looks up what has been missing for the grace. */
  #checkDue(): void {
    const now = this.#parts.clock.monotonic();
    const { live } = this.#parts.ledger;
    const due: number[] = [];
    for (const [workerId, since] of this.#missing) {
      const worker = live.get(workerId);
      // It ended meanwhile, or is the submitter's affair again.
      if (worker === undefined || worker.status === 'pending') this.#missing.delete(workerId);
      else if (now - since >= this.#options.missingGrace) due.push(workerId);
    }
    if (due.length === 0 || this.#checking) return;
    this.#checking = true;
    this.#checkAll(due)
      .catch((error: unknown) => {
        this.#parts.log.warn('missing workers could not be looked up', { ...toReason(error) });
      })
      .finally(() => {
        this.#checking = false;
      });
  }

  async #checkAll(due: readonly number[]): Promise<void> {
    const { clock, giveUp, log } = this.#parts;
    for (let first = 0; first < due.length && !giveUp.aborted; first += checkAtOnce) {
      const some = due.slice(first, first + checkAtOnce);
      try {
        await this.#check(some);
      } catch (error) {
        // A call that fails as a whole keeps no others from theirs, either.
        for (const workerId of some)
          if (this.#missing.has(workerId)) this.#missing.set(workerId, clock.monotonic());
        const { name: connection } = this.#connection;
        log.warn('missing workers could not be looked up', {
          connection,
          workers: some.length,
          ...toReason(error),
        });
      }
    }
  }

  /** An absent worker waits out its grace, as one that a listing lacks: an early look concludes nothing. */
  async #lookEarly(workerIds: readonly number[]): Promise<void> {
    try {
      const results = await this.#lookUp(workerIds);
      for (const [workerId, result] of results) {
        if (result?.kind === 'observed') this.#observe(result.observation);
        else if (result?.kind === 'absent') this.suspect([workerId]);
      }
      // The next look leaves out those that have ended.
      await this.#parts.writer.flushed();
    } catch (error) {
      const { name: connection } = this.#connection;
      this.#parts.log.debug('workers could not be looked at early', { connection, ...toReason(error) });
    }
  }

  /** By id, for each of them that has a row. @throws ThresherError, and those of the store */
  async #lookUp(workerIds: readonly number[]): Promise<ReadonlyMap<number, CheckResult | undefined>> {
    const { store, calls } = this.#parts;
    const records = await store.workers.byIds(workerIds);
    const what = `check of ${this.#connection.name}`;
    const results = await calls.call(what, (signal) => this.#monitor.check(records, signal));
    return new Map(records.map(({ workerId }) => [workerId, results.get(workerId)]));
  }

  async #check(workerIds: readonly number[]): Promise<void> {
    const { ledger, clock, log } = this.#parts;
    const results = await this.#lookUp(workerIds);
    const absent: Change[] = [];
    const unknown: WorkerError[] = [];
    for (const [workerId, result] of results) {
      const worker = ledger.live.get(workerId);
      if (worker === undefined) continue;
      switch (result?.kind) {
        case 'observed':
          this.#observe(result.observation);
          break;
        case 'absent':
          this.#missing.delete(workerId);
          if (ledger.live.isSweepersToEnd(workerId)) break;
          absent.push(absenceChange(workerId, worker.killed, worker.seenIn !== notSeenYet, clock.now()));
          break;
        case 'unknown':
        case undefined:
          // It waits for its next turn, and does not keep others from theirs.
          this.#missing.set(workerId, clock.monotonic());
          unknown.push(result?.error ?? noResult);
      }
    }
    const { name: connection } = this.#connection;
    if (absent.length > 0) {
      const workerIds = absent.slice(0, 10).map(({ workerId }) => workerId);
      log.warn('workers are gone from their backend', { connection, workers: absent.length, workerIds });
      await ledger.change(absent);
    }
    const [first] = unknown;
    if (first !== undefined) {
      const facts = { connection, workers: unknown.length, ...reasonFromOutside(first) };
      log.warn('missing workers could not be looked up', facts);
    }
  }
}

const noResult: WorkerError = { code: 'plugin-failed', message: 'the plugin said nothing of this worker' };

/** Ended workers stay on the backend until they are swept: they are no strangers. */
function isOver(observation: Observation): boolean {
  return observation.endTime !== undefined;
}

/** A plugin that does not come back after the abort is left behind. */
async function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
  await Promise.race([work, aborted]);
}
