/** How long a Pod that interLink asks for may be without a /create, ms: interLink waits 5 minutes for its volumes. */
const patience = 15 * 60_000;

/** Pods that are kept in mind; beyond them those that were asked for first are forgotten. */
const most = 10_000;

/** Pods that interLink asks for, and that it has not asked to create. Times are ms of a clock that only grows. */
export class UnknownPods {
  /** By UID: when it was asked for first. */
  readonly #asked = new Map<string, number>();

  /** Whether the /create of a Pod may still come. */
  mayCome(uid: string, now: number): boolean {
    const first = this.#asked.get(uid);
    if (first !== undefined) return now - first < patience;
    const [oldest] = this.#asked.size < most ? [] : this.#asked.keys();
    if (oldest !== undefined) this.#asked.delete(oldest);
    this.#asked.set(uid, now);
    return true;
  }

  /** It is known now. */
  forget(uid: string): void {
    this.#asked.delete(uid);
  }
}
