/**
 * SIGHUPs of a daemon. Without a listener one ends the process, and a service manager takes that for a clean end: so they are
 * held back before anything else is loaded, and delivered once there is a daemon that can reload.
 */
export class HangUps {
  #held = false;
  #listening = false;
  #deliver = () => {
    this.#held = true;
  };
  readonly #listener = (): void => {
    this.#deliver();
  };

  /** From here on none ends the process. */
  hold(): void {
    if (this.#listening) return;
    this.#listening = true;
    process.on('SIGHUP', this.#listener);
  }

  /** Those that came meanwhile count as one. */
  deliverTo(act: () => void): void {
    this.#deliver = act;
    if (this.#held) act();
    this.#held = false;
  }
}
