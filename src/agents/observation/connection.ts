import type { Reason } from '../../worker/reason.ts';
import type { Clock } from '../../util/clock.ts';

/** What is known of one connection (a cluster and namespace, a schedd, a directory), shared by all who work on it. */
export class Connection {
  readonly name: string;
  /** Counts listings of its workers, by whichever monitor; a living worker carries the number of the last it was seen in. */
  listing = 0;
  readonly #clock: Clock;
  readonly #maxStatusAge: number;
  #listed = false;
  #listTrouble: Reason | undefined;
  #trouble: Reason | undefined;
  #completedAt: number | undefined;
  #onOpen: () => void = () => undefined;
  #note: () => Reason | undefined = () => undefined;

  /** `maxStatusAge` in ms. */
  constructor(name: string, clock: Clock, maxStatusAge: number) {
    this.name = name;
    this.#clock = clock;
    this.#maxStatusAge = maxStatusAge;
  }

  /** Called whenever it stops being closed: somebody may be waiting to submit. */
  onOpen(tell: () => void): void {
    this.#onOpen = tell;
  }

  /** Everything with our mark was listed and matched to rows, once since the start. `note`: what it says beside that. */
  listed(note: () => Reason | undefined = () => undefined): void {
    this.#note = note;
    this.#opening(() => {
      this.#listed = true;
      this.#listTrouble = undefined;
    });
  }

  listFailed(reason: Reason): void {
    this.#listTrouble = reason;
  }

  /** The monitor showed all that exists. */
  completed(): void {
    this.#opening(() => {
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

  /** What its queues say beside their reasons. */
  get note(): Reason | undefined {
    return this.#note();
  }

  /** Why nothing may be submitted here, if so. Unknown is never zero. */
  get closed(): Reason | undefined {
    if (!this.#listed) {
      const why =
        this.#listTrouble === undefined
          ? 'is being listed'
          : `could not be listed: ${this.#listTrouble.message}`;
      return { code: 'not-listed', message: `${this.name} ${why}` };
    }
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

  #opening(change: () => void): void {
    const before = this.closed;
    change();
    if (before !== undefined && this.closed === undefined) this.#onOpen();
  }
}
