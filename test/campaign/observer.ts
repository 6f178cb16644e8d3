import { setTimeout as sleep } from 'node:timers/promises';
import { type Arena, limits, type Seen } from './arena.ts';

/** Looks in a row that must agree before something counts that another process may be about to put right. */
const looksToAgree = 3;

/** All that the observer needs of an arena. */
type Watched = Pick<Arena, 'living' | 'starts'>;

/** Looks at the backend all the time, and remembers what must not be. */
export class Observer {
  looks = 0;
  readonly broken: string[] = [];
  readonly #arena: Watched;
  readonly #stop = new AbortController();
  readonly #last: string[] = [];
  readonly #told = new Set<string>();
  readonly #suspected = new Map<string, number>();
  #watching: Promise<void> = Promise.resolve();

  constructor(arena: Watched) {
    this.#arena = arena;
  }

  begin(): void {
    this.#watching = this.#watch();
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  strikes(line: string): void {
    this.#last.push(line);
    if (this.#last.length > 6) this.#last.shift();
  }

  breaks(what: string): void {
    this.broken.push(`${what}\n  before it: ${this.#last.join('; ')}`);
  }

  async #watch(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const living = await this.#arena.living();
      if (living !== undefined) {
        this.looks++;
        this.#judge(living);
      }
      for (const [id, starts] of this.#arena.starts())
        if (starts > 1) this.#once(`promise 1: worker ${id} was started ${starts} times`);
      await sleep(100);
    }
  }

  /** A look at many processes or jobs is no moment: only what several looks agree on counts. */
  #judge(living: readonly Seen[]): void {
    const found = new Map<string, string>();
    for (const [queue, limit] of Object.entries(limits)) {
      const count = living.filter((one) => one.queue === queue).length;
      if (count > limit)
        found.set(`limit ${queue}`, `promise 4: ${count} workers of ${queue} live, ${limit} may`);
    }
    for (const [id, seen] of Map.groupBy(living, ({ workerId }) => workerId))
      if (seen.length > 1) found.set(`twice ${id}`, `promise 1: worker ${id} lives ${seen.length} times`);
    for (const key of this.#suspected.keys()) if (!found.has(key)) this.#suspected.delete(key);
    for (const [key, what] of found) {
      const agreeing = (this.#suspected.get(key) ?? 0) + 1;
      this.#suspected.set(key, agreeing);
      if (agreeing >= looksToAgree) this.#once(what);
    }
  }

  #once(what: string): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    this.breaks(what);
  }
}
