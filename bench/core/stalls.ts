/** How long the process answered nothing: the longest time between two turns of the event loop. */
export class Stalls {
  #last = 0;
  #longest = 0;
  #timer: NodeJS.Timeout | undefined;

  start(): void {
    this.#last = performance.now();
    this.#tick();
  }

  /** @returns ms, the time since the last turn included. */
  stop(): number {
    clearTimeout(this.#timer);
    this.#turn();
    return this.#longest;
  }

  #tick(): void {
    this.#turn();
    this.#timer = setTimeout(() => {
      this.#tick();
    }, 2);
  }

  #turn(): void {
    const now = performance.now();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }
}
