import type { Clock } from '../../../util/clock.ts';
import type { TrackedPod } from '../pods/tracked-pod.ts';

/** How long an end is fresh, how often its files are looked for meanwhile, and how long without any fresh end, ms. Files mostly come within a second. */
const fresh = { lasts: 5000, every: 200, idle: 3_600_000 };

/** Looks at Pods whose jobs have just ended more often than at the others: their ends are shown when their files are there. */
export class FreshEnds {
  readonly #clock: Clock;
  readonly #pods: () => readonly TrackedPod[];
  #wake = new AbortController();

  constructor(clock: Clock, pods: () => readonly TrackedPod[]) {
    this.#clock = clock;
    this.#pods = pods;
  }

  has({ ending }: TrackedPod): boolean {
    return ending !== undefined && this.#clock.monotonic() - ending.since < fresh.lasts;
  }

  /** A job may have ended. */
  heard(): void {
    this.#wake.abort();
  }

  /** Runs until `signal` aborts. @param look never rejects, and does nothing for a Pod that it still looks at */
  async run(look: (pod: TrackedPod) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#wake = new AbortController();
      const due = this.#pods().filter((pod) => this.has(pod));
      // A file that hangs must not hold the looks at the others.
      for (const pod of due) look(pod).catch(() => undefined);
      // Between two looks there is a pause, however many ends come meanwhile.
      if (due.length > 0) await this.#clock.sleep(fresh.every, signal);
      else await this.#clock.sleep(fresh.idle, AbortSignal.any([signal, this.#wake.signal]));
    }
  }
}
