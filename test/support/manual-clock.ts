import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/util/clock.ts';
import { until } from './until.ts';

interface Sleeper {
  readonly wakeAt: number;
  readonly ms: number;
  wake(): void;
}

/** A clock that stands still until it is told to go on. */
export class ManualClock implements Clock {
  /** How long each sleep was asked to be, ms, in the order they were asked for. */
  readonly asked: number[] = [];
  /** By how much the wall clock has jumped, ms. */
  ahead = 0;
  readonly #start: number;
  #elapsed = 0;
  #sleepers: Sleeper[] = [];

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#start = start;
  }

  now(): number {
    return this.#start + this.#elapsed + this.ahead;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    this.asked.push(ms);
    await new Promise<void>((resolve) => {
      const wake = () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { wakeAt: this.#elapsed + ms, ms, wake };
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', wake);
    });
  }

  /** The sleeps under way, ms as they were asked for. */
  get sleeping(): number[] {
    return this.#sleepers.map(({ ms }) => ms);
  }

  /** Lets `ms` go by: whoever is due wakes at its own moment, and everybody gets to run before time goes on. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await turn();
    for (;;) {
      const due = this.#sleepers
        .filter(({ wakeAt }) => wakeAt <= end)
        .reduce<Sleeper | undefined>((a, b) => (a !== undefined && a.wakeAt <= b.wakeAt ? a : b), undefined);
      if (due === undefined) break;
      this.#elapsed = Math.max(this.#elapsed, due.wakeAt);
      due.wake();
      await turn();
    }
    this.#elapsed = end;
  }

  /** Waits until somebody sleeps for `ms`, and lets them go by: a pause behind real input or output begins when that is over. */
  async pass(ms: number): Promise<void> {
    await until(`somebody sleeps for ${ms} ms`, () => this.sleeping.includes(ms));
    await this.advance(ms);
  }

  /** Lets everybody run who can, at this very moment. */
  async settle(): Promise<void> {
    await this.advance(0);
  }
}
