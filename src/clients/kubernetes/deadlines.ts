import type { Clock } from '../../util/clock.ts';

/** Something that may last until `at`, monotonic ms. */
export interface OpenDeadline {
  readonly at: number;
  readonly late: () => void;
}

/**
 * Deadlines of requests under way. One sleep serves all of them: a timer with its signal for each of thousands of requests, of
 * which none is late, costs more than their headers.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #open = new Set<OpenDeadline>();
  #sleep: { readonly until: number; readonly ended: AbortController } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param late is called once after so many ms, unless `close` is called before; it must not throw. */
  open(ms: number, late: () => void): OpenDeadline {
    const deadline = { at: this.#clock.monotonic() + ms, late };
    this.#open.add(deadline);
    // Neither a clock nor `late` rejects or throws.
    if (this.#sleep === undefined) this.#run().catch(() => undefined);
    else if (deadline.at < this.#sleep.until) this.#sleep.ended.abort();
    return deadline;
  }

  close(deadline: OpenDeadline): void {
    this.#open.delete(deadline);
    // A timer would keep a command alive that has done its work.
    if (this.#open.size === 0) this.#sleep?.ended.abort();
  }

  async #run(): Promise<void> {
    while (this.#open.size > 0) {
      const until = Math.min(...[...this.#open].map(({ at }) => at));
      const ended = new AbortController();
      this.#sleep = { until, ended };
      await this.#clock.sleep(until - this.#clock.monotonic(), ended.signal);
      const now = this.#clock.monotonic();
      for (const deadline of this.#open) {
        if (deadline.at > now) continue;
        this.#open.delete(deadline);
        deadline.late();
      }
    }
    this.#sleep = undefined;
  }
}
