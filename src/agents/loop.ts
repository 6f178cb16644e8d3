import type { Log } from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';
import { toReason } from '../worker/errors.ts';
import type { Reason } from '../worker/reason.ts';
import type { Emit } from './events.ts';

export interface LoopOptions {
  /** "submit CERN_PROD": for logs and health. */
  readonly name: string;
  /** Between passes that nothing woke, ms. */
  readonly interval: number;
  /** Longest pause after failures, ms. */
  readonly longestPause?: number;
  /** Without any progress for so long a pass is stuck, ms. Default: it may last in silence, as a monitor's does. */
  readonly stuckAfter?: number;
  /** Noted by the calls in a pass whenever one of them came back. */
  readonly progress?: Progress;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Hears of each pass that ended. */
  readonly events?: Emit;
  /** One pass. Rejections are failures: logged, and followed by a growing pause. */
  pass(signal: AbortSignal): Promise<void>;
}

/** When a pass last got on: a pass that lasts long is not stuck as long as it does. */
export class Progress {
  readonly #clock: Clock;
  /** Monotonic ms. */
  at = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  made(): void {
    this.at = this.#clock.monotonic();
  }
}

/** A loop's last pass, for health and for reasons. Times are ms UTC. */
export interface LoopHealth {
  readonly name: string;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** Failures in a row. */
  readonly failures: number;
  readonly lastError: Reason | undefined;
  /** For how long the pass under way has made no progress, ms; undefined while that is no cause for worry. */
  readonly stuckFor: number | undefined;
}

/** The first pause after a failure, ms, and the longest. */
const backoff = { first: 1000, longest: 300_000 };

/** From the start of a woken pass to the next one at the least, ms: a pass may wake its own loop. */
const wokenGap = 20;

/** How long a pass that fails must have gone well for earlier failures to be forgotten, ms. */
const wellFor = 60_000;

/**
 * Runs a pass again and again: after `interval` (jittered, so that many queues do not beat in step), at once when woken,
 * and after a growing pause when it failed, which no waking shortens.
 */
export class Loop {
  readonly #options: LoopOptions;
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #health: { startedAt?: number; endedAt?: number; failures: number; lastError?: Reason } = { failures: 0 };
  /** In how many ms after the pass the next is wanted at the latest. */
  #soonest = Infinity;
  /** Monotonic start of the pass under way. */
  #begun: number | undefined;
  #running: Promise<void> | undefined;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Asks for a pass as soon as may be, but a moment after one that was woken too; during a pass, for another one after it. */
  wake(): void {
    this.#wake.abort();
  }

  /** From within a pass: asks for the next in so many ms at the latest. A pause under way is not shortened by it. */
  wakeIn(ms: number): void {
    this.#soonest = Math.min(this.#soonest, ms);
  }

  /** Ends the loop after the pass under way. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  get health(): LoopHealth {
    const { startedAt, endedAt, failures, lastError } = this.#health;
    return { name: this.#options.name, startedAt, endedAt, failures, lastError, stuckFor: this.#stuckFor() };
  }

  #stuckFor(): number | undefined {
    const { clock, stuckAfter, progress } = this.#options;
    if (this.#begun === undefined || stuckAfter === undefined) return undefined;
    const silence = clock.monotonic() - Math.max(this.#begun, progress?.at ?? -Infinity);
    return silence > stuckAfter ? silence : undefined;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const stop = this.#stop.signal;
    let woken = false;
    while (!stop.aborted) {
      this.#wake = new AbortController();
      this.#soonest = Infinity;
      this.#health.startedAt = clock.now();
      const begun = clock.monotonic();
      this.#begun = begun;
      const failed = await this.#pass(stop);
      this.#begun = undefined;
      this.#health.endedAt = clock.now();
      const duration = clock.monotonic() - begun;
      this.#options.events?.emit('passEnded', { loop: this.#options.name, duration, failed });
      const before = woken;
      woken = false;
      if (failed) {
        await clock.sleep(this.#pauseAfterFailure(), stop);
        continue;
      }
      // A pass may use microtasks alone: without a sleep, passes that wake loops would let no timer, request or signal through.
      const least = this.#wake.signal.aborted ? 1 : 0;
      await clock.sleep(
        Math.min(this.#jittered(this.#options.interval), this.#soonest),
        AbortSignal.any([stop, this.#wake.signal]),
      );
      woken = this.#wake.signal.aborted;
      const gap = Math.max(wokenGap - (clock.monotonic() - begun), least);
      if (before && woken && gap > 0) await clock.sleep(gap, stop);
    }
  }

  async #pass(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#options.pass(signal);
      this.#health = { ...this.#health, failures: 0 };
      delete this.#health.lastError;
      return false;
    } catch (error) {
      if (signal.aborted) return false;
      // A monitor's pass lasts as long as all goes well: one that did for a while begins to count anew.
      if (this.#options.clock.monotonic() - (this.#begun ?? 0) > wellFor) this.#health.failures = 0;
      const reason = toReason(error);
      this.#health.failures++;
      this.#health.lastError = reason;
      this.#options.log.error('pass failed', {
        loop: this.#options.name,
        failures: this.#health.failures,
        ...reason,
      });
      return true;
    }
  }

  #pauseAfterFailure(): number {
    const grown = backoff.first * 2 ** Math.min(this.#health.failures - 1, 20);
    return this.#jittered(Math.min(grown, this.#options.longestPause ?? backoff.longest));
  }

  #jittered(ms: number): number {
    return ms * (0.9 + 0.2 * this.#options.random());
  }
}
