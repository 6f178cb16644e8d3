/** Bytes of one resource that may be written in a second, and at once. etcd keeps each version whole until it is compacted. */
const rate = { perSecond: 100_000, atOnce: 4_000_000 };

/** Says when a further write of one resource does its cluster no harm. Times are monotonic ms. */
export class WritePace {
  #debt = 0;
  #at = 0;

  wrote(bytes: number, now: number): void {
    this.#debt = this.#left(now) + bytes;
    this.#at = now;
  }

  /** ms; 0: now. */
  pause(now: number): number {
    return Math.ceil((Math.max(0, this.#left(now) - rate.atOnce) / rate.perSecond) * 1000);
  }

  #left(now: number): number {
    return Math.max(0, this.#debt - ((now - this.#at) / 1000) * rate.perSecond);
  }
}
