import type { Request } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import type { TrackedPod } from './pods/tracked-pod.ts';

/** The least time between two batches of Pods, ms. Pods that come meanwhile share a submission, and so one `condor_submit`. */
export const batchInterval = 200;

/** How long one batch may take to be planned, ms: nothing else runs meanwhile. The rest is of the next batch. */
const planTime = 50;

export interface PodRequestsParts {
  readonly clock: Clock;
  /** The least time between two batches, ms. */
  readonly batchInterval: number;
  /** Makes a Pod a request; undefined: it cannot become a job any more. */
  readonly plan: (pod: TrackedPod) => Request | undefined;
}

/** The requests of Pods that wait for jobs. It plans each Pod once, and asks for new Pods in batches. */
export class PodRequests {
  readonly #parts: PodRequestsParts;
  /** Pods that were asked for and wait on. The plan of a Pod holds its Secrets, so it goes as soon as the Pod waits no more. */
  #asked: ReadonlyMap<TrackedPod, Request | undefined> = new Map();
  /** Monotonic ms: earlier than that no new Pod is asked for. */
  #nextBatch = -Infinity;
  #isWaking = false;

  constructor(parts: PodRequestsParts) {
    this.#parts = parts;
  }

  /** @param wake is called when Pods of the next batch may be asked for, if there are any */
  of(waiting: readonly TrackedPod[], wake: () => void): readonly Request[] {
    const { clock, plan, batchInterval: interval } = this.#parts;
    const now = clock.monotonic();
    const before = this.#asked;
    const hasNew = waiting.some((pod) => !before.has(pod));
    let isOpen = now >= this.#nextBatch;
    if (hasNew && isOpen) this.#nextBatch = now + interval;
    const asked = new Map<TrackedPod, Request | undefined>();
    for (const pod of waiting) {
      // The same object says to the daemon that nothing in the request has changed.
      if (before.has(pod)) asked.set(pod, before.get(pod));
      else if (isOpen) {
        asked.set(pod, plan(pod));
        isOpen = clock.monotonic() - now < planTime;
      }
    }
    this.#asked = asked;
    if (asked.size < waiting.length) this.#wakeIn(this.#nextBatch - now, wake).catch(() => undefined);
    return [...this.#asked.values()].filter((request) => request !== undefined);
  }

  async #wakeIn(ms: number, wake: () => void): Promise<void> {
    if (this.#isWaking) return;
    this.#isWaking = true;
    await this.#parts.clock.sleep(ms);
    this.#isWaking = false;
    wake();
  }
}
