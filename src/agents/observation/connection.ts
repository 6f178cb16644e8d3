import type { Reason } from '../../worker/reason.ts';
import type { Clock } from '../../util/clock.ts';

/** The state of one connection (a cluster and namespace, a schedd, a directory), shared by all agents that work on it. */
export class Connection {
  readonly name: string;
  readonly #clock: Clock;
  readonly #maxStatusAge: number;
  #listed = false;
  #listTrouble: Reason | undefined;
  #trouble: Reason | undefined;
  #listing = 0;
  #completedAt: number | undefined;
  #note: () => Reason | undefined = () => undefined;

  /** `maxStatusAge` in ms. */
  constructor(name: string, clock: Clock, maxStatusAge: number) {
    this.name = name;
    this.#clock = clock;
    this.#maxStatusAge = maxStatusAge;
  }

  /** The number of the last listing of its workers, by any monitor; a living worker carries the number of its last one. */
  get listing(): number {
    return this.#listing;
  }

  /** A monitor begins to show all workers that exist. */
  beginListing(): void {
    this.#listing++;
  }

  /**
   * Everything with our mark was listed and matched to rows, once since the start.
   * @param note gives what the listings say beside that
   * @returns whether the connection was closed until now, and is open
   */
  listed(note: () => Reason | undefined = () => undefined): boolean {
    this.#note = note;
    return this.#opens(() => {
      this.#listed = true;
      this.#listTrouble = undefined;
    });
  }

  listFailed(reason: Reason): void {
    this.#listTrouble = reason;
  }

  /** The monitor showed all that exists. @returns whether the connection was closed until now, and is open */
  completed(): boolean {
    return this.#opens(() => {
      this.#completedAt = this.#clock.monotonic();
      this.#trouble = undefined;
    });
  }

  troubled(reason: Reason): void {
    this.#trouble = reason;
  }

  /** Whether all that lives here was shown once since the start, or could not be. */
  get heard(): boolean {
    return this.#listed && (this.#completedAt !== undefined || this.#trouble !== undefined);
  }

  /** A note that its queues show beside their reasons. */
  get note(): Reason | undefined {
    return this.#note();
  }

  /** Why workers may live here that have no row, if so: it was not listed since the start. */
  get unlisted(): Reason | undefined {
    if (this.#listed) return undefined;
    const why =
      this.#listTrouble === undefined
        ? 'is being listed'
        : `could not be listed: ${this.#listTrouble.message}`;
    return { code: 'not-listed', message: `${this.name} ${why}` };
  }

  /** Why nothing may be submitted here, if so. Unknown is never zero. */
  get closed(): Reason | undefined {
    if (this.unlisted !== undefined) return this.unlisted;
    if (this.#trouble !== undefined) {
      return { code: 'status-unknown', message: `${this.name}: ${this.#trouble.message}` };
    }
    if (this.#completedAt === undefined) {
      return { code: 'status-unknown', message: `${this.name} has not shown its workers yet` };
    }
    const age = this.#clock.monotonic() - this.#completedAt;
    if (age <= this.#maxStatusAge) return undefined;
    const message = `${this.name} showed its workers last ${Math.round(age / 1000)} s ago`;
    return { code: 'status-unknown', message };
  }

  #opens(change: () => void): boolean {
    const before = this.closed;
    change();
    return before !== undefined && this.closed === undefined;
  }
}
