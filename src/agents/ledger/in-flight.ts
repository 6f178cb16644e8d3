type Held = readonly { readonly workerId: number }[];

/** Workers in a submission under way: no other agent may touch them until its outcome is written. */
export class InFlight {
  readonly #ids = new Set<number>();
  #releases = 0;

  has(workerId: number): boolean {
    return this.#ids.has(workerId);
  }

  hold(workers: Held): void {
    for (const { workerId } of workers) this.#ids.add(workerId);
  }

  /** Counts how often workers were let go of. */
  get releases(): number {
    return this.#releases;
  }

  letGo(workers: Held): void {
    this.#releases++;
    for (const { workerId } of workers) this.#ids.delete(workerId);
  }

  /** Holds these workers while `work` runs, and lets go of them however it ends. */
  async during(workers: Held, work: () => Promise<void>): Promise<void> {
    this.hold(workers);
    try {
      await work();
    } finally {
      this.letGo(workers);
    }
  }
}
