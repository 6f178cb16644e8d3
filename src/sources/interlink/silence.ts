import type { TrackedPod } from './pods/tracked-pod.ts';

/** interLink is there for so long after a ping of its own, ms: it sends one each 30 s. */
const signOfLife = 120_000;
/** The most that one look counts, ms. After a daemon stood still for hours, its first look must not take that for the silence of others. */
const longestStep = 60_000;
/** A Pod whose /create got no answer is waited for so long, ms: the virtual kubelet takes it for failed, and asks for it no more. */
const unanswered = 600_000;

/**
 * Finds Pods that interLink has forgotten. The virtual kubelet asks for each living Pod every 5 s, and sends a /delete only once: a Pod
 * for which no question comes, while pings come, was given up or deleted there.
 */
export class Silence {
  readonly #longest: number;
  #lastPing = -Infinity;
  #lastLook: number | undefined;

  /** @param longest ms for which no question for a Pod may come */
  constructor(longest: number) {
    this.#longest = longest;
  }

  /** @param now monotonic ms */
  heardPing(now: number): void {
    this.#lastPing = now;
  }

  /** @returns the Pods whose jobs are to be ended. Only time in which interLink was there counts. */
  forgotten(pods: readonly TrackedPod[], now: number): readonly TrackedPod[] {
    const passed = Math.min(now - (this.#lastLook ?? now), longestStep);
    this.#lastLook = now;
    if (now - this.#lastPing > signOfLife) return [];
    const living = pods.filter((pod) => !pod.hasEnded && !pod.isDeleted && pod.ending === undefined);
    return living.filter((pod) => {
      pod.silentFor = pod.waitingRequests > 0 ? 0 : pod.silentFor + passed;
      return pod.silentFor > (pod.isAnswered ? this.#longest : Math.min(unanswered, this.#longest));
    });
  }
}
