import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolBed } from './bed.ts';
import { brokenCaps, type CapFacts } from './caps-kept.ts';

/** Looks at processes from one question of the record to the next. */
const looksBetween = 5;

/** Looks all the time which workers live, by their processes, and judges in the end whether caps were kept. */
export class Census {
  looks = 0;
  readonly #bed: PoolBed;
  readonly #stop = new AbortController();
  readonly #lastSeen = new Map<number, number>();
  readonly #taken: CapFacts['taken'][number][] = [];
  #watching: Promise<void> = Promise.resolve();

  constructor(bed: PoolBed) {
    this.#bed = bed;
  }

  /** All that ever lived. */
  get workers(): ReadonlySet<number> {
    return new Set(this.#lastSeen.keys());
  }

  begin(): void {
    this.#watching = this.#watch();
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  /** How caps were exceeded. */
  async broken(): Promise<string[]> {
    const workers = await this.#bed.recorded();
    return brokenCaps({ written: this.#bed.written, workers, lastSeen: this.#lastSeen, taken: this.#taken });
  }

  async #watch(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      // Before the look: a worker that it finds lived at this moment at least.
      const now = Date.now();
      for (const id of this.#bed.site.liveShims().keys()) this.#lastSeen.set(id, now);
      if (this.looks++ % looksBetween === 0) await this.#askForVersions();
      await sleep(150);
    }
  }

  async #askForVersions(): Promise<void> {
    const versions = await this.#bed.versions();
    // After the answer: thresher ran by them before.
    const at = Date.now();
    for (const [queue, version] of versions)
      if (this.#taken.findLast((one) => one.queue === queue)?.version !== version)
        this.#taken.push({ queue, version, at });
  }
}
