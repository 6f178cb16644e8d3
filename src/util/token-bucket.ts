import type { Clock } from './clock.ts';

/** A sum of many small parts may miss the whole by so much, for ever. */
const hair = 1e-9;

/**
 * Lets through `rate` per second on average and `burst` at once. It begins empty: what was let through before a restart is not
 * known any more, and must not count as never.
 */
export class TokenBucket {
  #rate: number;
  #burst: number;
  readonly #clock: Clock;
  #tokens = 0;
  #at: number;

  constructor(rate: number, burst: number, clock: Clock) {
    this.#rate = rate;
    this.#burst = burst;
    this.#clock = clock;
    this.#at = clock.monotonic();
  }

  get rate(): number {
    return this.#rate;
  }

  get burst(): number {
    return this.#burst;
  }

  /** From now on; what was saved up at the old rate stays, up to the new burst. */
  change(rate: number, burst: number): void {
    this.#fill();
    this.#rate = rate;
    this.#burst = burst;
  }

  /** How many may go now. */
  get available(): number {
    this.#fill();
    return Math.floor(this.#tokens + hair);
  }

  /** Counts so many as gone; more than `available` is owed. */
  take(count: number): void {
    this.#fill();
    this.#tokens -= count;
  }

  /** ms until one more may go; 0 when one may go now. */
  get nextIn(): number {
    this.#fill();
    return Math.max(0, Math.ceil(((1 - hair - this.#tokens) / this.#rate) * 1000));
  }

  #fill(): void {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) / 1000) * this.#rate);
    this.#at = now;
  }
}
