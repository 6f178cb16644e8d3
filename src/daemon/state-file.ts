import { readFileSync } from 'node:fs';
import type { Log } from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';
import { writeFileAtomically } from '../util/files.ts';
import { messageOf } from '../worker/errors.ts';

export interface StateFileOptions {
  /** Logged when it cannot be written. */
  readonly failure: string;
  readonly log: Log;
  /** The file is written once in so many ms at most. Default: as often as it changes. */
  readonly pause?: { readonly clock: Clock; readonly ms: number };
}

/**
 * A JSON list in the state directory, which the command line reads beside the daemon, also after its end. The newest content counts:
 * changes that come faster than the writes become one. The same content is not written again.
 */
export class StateFile {
  readonly #path: string;
  readonly #options: StateFileOptions;
  readonly #stop = new AbortController();
  #next: (() => readonly unknown[]) | undefined;
  #text = '';
  #writing: Promise<void> | undefined;

  constructor(path: string, options: StateFileOptions) {
    this.#path = path;
    this.#options = options;
  }

  /** @param content is asked when it is written */
  write(content: () => readonly unknown[]): void {
    this.#next = content;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      // It came after the last look, and before this turn.
      if (this.#next !== undefined) this.write(this.#next);
    });
  }

  /** Comes back when the last content is written, or has failed. It pauses no more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    const { failure, log, pause } = this.#options;
    for (let next = this.#next; next !== undefined; next = this.#next) {
      this.#next = undefined;
      const text = `${JSON.stringify(next())}\n`;
      if (text === this.#text) continue;
      try {
        await writeFileAtomically(this.#path, text);
        this.#text = text;
      } catch (error) {
        log.warn(failure, { error: messageOf(error) });
      }
      if (pause !== undefined) await pause.clock.sleep(pause.ms, this.#stop.signal);
    }
  }
}

/** The list that the daemon wrote last; empty where it never did, or where the file is damaged. */
export function readStateFile(path: string): readonly unknown[] {
  try {
    const written: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return Array.isArray(written) ? written : [];
  } catch {
    return [];
  }
}
