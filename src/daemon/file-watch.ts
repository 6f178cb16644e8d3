import { createHash } from 'node:crypto';
import type { Clock } from '../util/clock.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';

export interface FileWatchParts {
  /** A file must stay as it is for so long to count as changed, ms. */
  readonly settle: number;
  readonly clock: Clock;
  readonly files: OperatorFiles;
}

/**
 * Notices changes of a file by its content, whatever was done to get it there: an editor's rename, a copy in place, or a
 * symbolic link that now leads elsewhere, as Kubernetes does with ConfigMaps. What was read once only may be half written.
 */
export class FileWatch {
  readonly #path: string;
  readonly #settle: number;
  readonly #clock: Clock;
  readonly #files: OperatorFiles;
  /** Digest of what is in use, and of what was seen at the last look. */
  #used: string | undefined;
  #seen: string | undefined;
  /** Since when (monotonic ms) it is as it was seen at the last look. */
  #since = 0;

  constructor(path: string, { settle, clock, files }: FileWatchParts) {
    this.#path = path;
    this.#settle = settle;
    this.#clock = clock;
    this.#files = files;
  }

  /** That the file is used as it is now. */
  async use(): Promise<void> {
    this.#used = await this.#digest().catch(messageOf);
    this.#seen = this.#used;
  }

  /** That what is there is not in use after all. */
  forget(): void {
    this.#used = undefined;
  }

  /**
   * Whether the file changed and stayed so; `changing`: look again soon.
   * @throws ThresherError `file-timeout`: whether it changed is unknown then
   */
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
      const { bytes } = await this.#files.read(this.#path, 'queues');
      return createHash('sha256').update(bytes).digest('hex');
    } catch (error) {
      if (error instanceof ThresherError) throw error;
      // That it cannot be read is a state of its own.
      return messageOf(error);
    }
  }
}
