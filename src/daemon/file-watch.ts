import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../worker/errors.ts';

/**
 * Notices changes of a file by its content, whatever was done to get it there: an editor's rename, a copy in place, or a
 * symbolic link that now leads elsewhere, as Kubernetes does with ConfigMaps. What was read once only may be half written.
 */
export class FileWatch {
  readonly #path: string;
  readonly #settle: number;
  readonly #clock: Clock;
  /** Digest of what is in use, and of what was seen at the last look. */
  #used: string | undefined;
  #seen: string | undefined;
  /** Since when (monotonic ms) it is as it was seen at the last look. */
  #since = 0;

  /** A file must stay as it is for `settle` ms to count as changed. */
  constructor(path: string, settle: number, clock: Clock) {
    this.#path = path;
    this.#settle = settle;
    this.#clock = clock;
  }

  /** That the file is used as it is now. */
  async use(): Promise<void> {
    this.#used = await this.#digest();
    this.#seen = this.#used;
  }

  /** That what is there is not in use after all. */
  forget(): void {
    this.#used = undefined;
  }

  /** Whether the file changed and stayed so; `changing`: look again soon. */
  async look(): Promise<'same' | 'changing' | 'changed'> {
    const now = await this.#digest();
    const at = this.#clock.monotonic();
    if (now !== this.#seen) this.#since = at;
    this.#seen = now;
    if (now === this.#used) return 'same';
    return at - this.#since >= this.#settle ? 'changed' : 'changing';
  }

  async #digest(): Promise<string> {
    try {
      return createHash('sha256')
        .update(await readFile(this.#path))
        .digest('hex');
    } catch (error) {
      // That it cannot be read is a state of its own.
      return messageOf(error);
    }
  }
}
