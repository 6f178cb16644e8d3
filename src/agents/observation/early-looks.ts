import type { Clock } from '../../util/clock.ts';

export interface EarlyLooksParts {
  readonly clock: Clock;
  readonly giveUp: AbortSignal;
  /** Whether a worker still lives by what is recorded. */
  readonly lives: (workerId: number) => boolean;
  /** Looks these up now. Must not throw. */
  readonly look: (workerIds: readonly number[]) => Promise<void>;
}

/** From the end of one look to the next at the least, ms. */
const gap = 1000;
/** A look that takes long is followed by a pause so many times as long. */
const timesTheCost = 4;
/** Workers of one look: each is named in the question. */
const mostAtOnce = 500;
/** After how many ms without an end a worker is looked at again: its word comes before the backend knows of its end. */
const again: readonly number[] = [1000, 2000, 4000, 8000, 16_000, 32_000];
/** Workers that wait for an early look. The monitor finds the others by its own looks. */
const mostWaiting = 20_000;

interface Expected {
  /** Monotonic ms. */
  readonly due: number;
  /** How often it was looked at. */
  readonly looks: number;
}

/**
 * Looks at workers before their turn, because they are said to end now. However many are named, and however often, the backend is
 * asked once a second at most. Workers that have not ended are looked at again a few times, and then wait for their turn.
 */
export class EarlyLooks {
  readonly #parts: EarlyLooksParts;
  readonly #expected = new Map<number, Expected>();
  /** Monotonic ms: no look begins before. */
  #earliest = -Infinity;
  #running: Promise<void> | undefined;

  constructor(parts: EarlyLooksParts) {
    this.#parts = parts;
  }

  /** A worker that waits already is looked at no sooner for a second word. */
  expect(workerIds: readonly number[]): void {
    const due = this.#parts.clock.monotonic();
    for (const workerId of workerIds)
      if (!this.#expected.has(workerId) && this.#expected.size < mostWaiting)
        this.#expected.set(workerId, { due, looks: 0 });
    if (this.#expected.size === 0) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    const { clock, giveUp, look } = this.#parts;
    while (!giveUp.aborted) {
      const next = this.#next();
      if (next === undefined) return;
      const wait = Math.max(next, this.#earliest) - clock.monotonic();
      if (wait > 0) {
        await clock.sleep(Math.min(wait, gap), giveUp);
        continue;
      }
      const begun = clock.monotonic();
      const due = [...this.#expected].filter(([, one]) => one.due <= begun).slice(0, mostAtOnce);
      await look(due.map(([workerId]) => workerId));
      const ended = clock.monotonic();
      this.#earliest = ended + Math.max(gap, timesTheCost * (ended - begun));
      for (const [workerId, { looks }] of due) {
        const pause = again[looks];
        // Behind the others: those that were not looked at yet come first.
        this.#expected.delete(workerId);
        if (pause !== undefined) this.#expected.set(workerId, { due: ended + pause, looks: looks + 1 });
      }
    }
  }

  /** When the next of them is due, monotonic ms; undefined where all have ended. */
  #next(): number | undefined {
    let next: number | undefined;
    for (const [workerId, { due }] of this.#expected) {
      if (!this.#parts.lives(workerId)) this.#expected.delete(workerId);
      else next = Math.min(next ?? Infinity, due);
    }
    return next;
  }
}
