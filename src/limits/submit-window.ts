import type { Limit } from './limiters.ts';

/**
 * How many may be tried at once after submissions failed: no more than were accepted the last time, then twice as many with
 * each time that all went well. A backend in trouble gets a trickle instead of the whole demand again and again.
 */
export class SubmitWindow {
  #size = Infinity;
  #last: { readonly sent: number; readonly accepted: number; readonly error: string } | undefined;
  /** The largest call that failed since all was well. */
  #most = 0;

  /** Takes the outcome of the last call; `error` is the message of its failures. */
  record(sent: number, accepted: number, error: string): void {
    if (sent === 0) return;
    if (accepted < sent) {
      this.#size = Math.max(1, accepted);
      this.#last = { sent, accepted, error };
      this.#most = Math.max(this.#most, sent);
    } else if (this.#last !== undefined) {
      this.#size *= 2;
      // Once more than ever failed went through there is nothing left to be careful of.
      if (this.#size > this.#most) {
        this.#size = Infinity;
        this.#last = undefined;
        this.#most = 0;
      }
    }
  }

  get limit(): Limit | undefined {
    if (this.#last === undefined) return undefined;
    const { sent, accepted, error } = this.#last;
    const message = `${accepted} of the last ${sent} submissions were accepted (${error}): no more than ${this.#size} at once for now`;
    return { atMost: this.#size, reason: { code: 'submission-backoff', message } };
  }
}
