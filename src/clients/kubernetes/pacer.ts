import type { Clock } from '../../util/clock.ts';
import { TokenBucket } from '../../util/token-bucket.ts';

export interface Rate {
  /** Requests per second on average. */
  readonly perSecond: number;
  /** Requests at once. */
  readonly burst: number;
}

/** An hour, ms: a server that asks for more patience is asked again, and may repeat it. */
const longestPause = 3_600_000;

/**
 * Paces the requests to one cluster: no faster than its rate, and none while the server asks for patience. All callers
 * of a cluster share one, for whichever queue they work.
 */
export class Pacer {
  readonly #bucket: TokenBucket;
  readonly #clock: Clock;
  readonly #random: () => number;
  /** Monotonic ms. */
  #pausedUntil = -Infinity;

  constructor(rate: Rate, clock: Clock, random: () => number) {
    this.#bucket = new TokenBucket(rate.perSecond, rate.burst, clock);
    this.#clock = clock;
    this.#random = random;
  }

  /** For those who come from now on. */
  change({ perSecond, burst }: Rate): void {
    if (this.#bucket.rate !== perSecond || this.#bucket.burst !== burst)
      this.#bucket.change(perSecond, burst);
  }

  /** Holds all callers for this many ms, an hour at most; a longer pause goes on. */
  pause(ms: number): void {
    if (Number.isNaN(ms)) return;
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.monotonic() + Math.min(ms, longestPause));
  }

  /** ms until the pause ends; 0 when there is none. */
  get pausedFor(): number {
    return Math.max(0, this.#pausedUntil - this.#clock.monotonic());
  }

  /**
   * Waits for one's turn, first come first served.
   * @returns whether it came: false when `signal` aborts first, or a pause lasts longer than `patience` (ms).
   */
  async admitted(patience: number, signal: AbortSignal): Promise<boolean> {
    for (;;) {
      if (signal.aborted || this.pausedFor > patience) return false;
      if (this.pausedFor > 0) {
        // Not all at the same moment: the server was overrun a moment ago.
        await this.#clock.sleep(this.pausedFor * (1 + 0.1 * this.#random()), signal);
        continue;
      }
      const wait = this.#bucket.nextIn;
      // Taken before the wait, so that each later caller waits longer and none wakes in vain.
      this.#bucket.take(1);
      if (wait === 0) return true;
      await this.#clock.sleep(wait, signal);
      if (this.pausedFor === 0 && !isAborted(signal)) return true;
      this.#bucket.take(-1);
    }
  }
}

/** It changes during a wait, which the compiler does not know of a property. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
