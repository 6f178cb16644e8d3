import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../util/clock.ts';

/** ms */
const longestPause = 60_000;
/** Why a sleep was ended. */
const over = 'the agenda is looked at again';

/**
 * Keys that are to be looked at, and when. A key is looked at by one at a time; one that is added meanwhile is looked at once more. A
 * key that waits for later costs nothing until then.
 */
export class Agenda {
  readonly #clock: Clock;
  /** Monotonic ms, by key. */
  readonly #due = new Map<string, number>();
  readonly #busy = new Set<string>();
  #wake = Promise.withResolvers<undefined>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The earlier of two times counts. @param after ms */
  add(key: string, after = 0): void {
    // No time is later than what is no number: it would be due at once, and for ever.
    const at = this.#clock.monotonic() + (Number.isNaN(after) ? longestPause : after);
    if (at >= (this.#due.get(key) ?? Infinity)) return;
    this.#due.set(key, at);
    this.#wake.resolve(undefined);
  }

  /** Whether no key is due now or looked at, but for one that is about to end. */
  get isAlmostDone(): boolean {
    if (this.#busy.size > 1) return false;
    const now = this.#clock.monotonic();
    for (const [key, at] of this.#due) if (at <= now && !this.#busy.has(key)) return false;
    return true;
  }

  /** Resolves when `signal` aborts and all is at rest. `look` must not throw. */
  async run(atOnce: number, look: (key: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    const looks = new Set<Promise<void>>();
    while (!signal.aborted) {
      const now = this.#clock.monotonic();
      let next = Infinity;
      for (const [key, at] of this.#due) {
        if (at > now) next = Math.min(next, at);
        else if (looks.size >= atOnce) break;
        else if (!this.#busy.has(key)) {
          this.#due.delete(key);
          const looked = this.#look(key, look).finally(() => looks.delete(looked));
          looks.add(looked);
        }
      }
      const woken = new AbortController();
      const rest = AbortSignal.any([signal, woken.signal]);
      const pause = Math.min(next - this.#clock.monotonic(), longestPause);
      await Promise.race([this.#wake.promise, this.#clock.sleep(Math.max(0, pause), rest)]);
      // With a reason of its own no error is made for it, thousands of times.
      woken.abort(over);
      this.#wake = Promise.withResolvers<undefined>();
      // Looks that await nothing of the outside would let nothing else in this thread have a turn.
      await setImmediate();
    }
    await Promise.all(looks);
  }

  async #look(key: string, look: (key: string) => Promise<void>): Promise<void> {
    this.#busy.add(key);
    try {
      await look(key);
    } finally {
      this.#busy.delete(key);
      // Another may wait for this place, or for this key.
      this.#wake.resolve(undefined);
    }
  }
}
