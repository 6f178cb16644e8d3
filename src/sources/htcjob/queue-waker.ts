import type { Clock } from '../../util/clock.ts';
import type { Agenda } from './agenda.ts';

/** Requests that come at once are one pass of their queue, unless that takes longer, ms: each pass is a submission. */
const collected = 1000;

/** Wakes queues that have new requests, once for all resources that are being looked at. */
export class QueueWaker {
  readonly #clock: Clock;
  readonly #agenda: Pick<Agenda, 'isAlmostDone'>;
  readonly #wake: (queue: string) => void;
  /** Since when each waits, monotonic ms. */
  readonly #waiting = new Map<string, number>();

  constructor(clock: Clock, agenda: Pick<Agenda, 'isAlmostDone'>, wake: (queue: string) => void) {
    this.#clock = clock;
    this.#agenda = agenda;
    this.#wake = wake;
  }

  hasRequests(queue: string): void {
    if (!this.#waiting.has(queue)) this.#waiting.set(queue, this.#clock.monotonic());
  }

  /** To be called at the end of each step of a resource. */
  stepped(): void {
    if (this.#waiting.size === 0) return;
    const now = this.#clock.monotonic();
    const isLast = this.#agenda.isAlmostDone;
    for (const [queue, since] of this.#waiting) {
      if (!isLast && now - since < collected) continue;
      this.#waiting.delete(queue);
      this.#wake(queue);
    }
  }
}
