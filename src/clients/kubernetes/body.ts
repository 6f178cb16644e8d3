import { type Clock, givingWay } from '../../util/clock.ts';
import { givenUp, silent } from './connection-failures.ts';
import type { Asked, KubernetesError } from './errors.ts';

/** Why a request is ended from this side. `sent`: whether any of it went out. */
export type Ending = (asked: Asked, sent: boolean) => KubernetesError;

/** A request on its way. */
export interface Exchange {
  /** The sink gets the failure at once, even while the request still waits for a connection. */
  end(why: Ending): void;
  pause(): void;
  resume(): void;
}

/** Bytes of a stream that may wait for a slow reader. */
const mostWaiting = 1024 * 1024;
/** And pieces of it: one may have a single byte. */
const mostPieces = 10_000;

/** The part of a stream that arrived and was not read yet. */
export class Body {
  exchange: Exchange | undefined;
  readonly #clock: Clock;
  readonly #silence: number;
  #chunks: Buffer[] = [];
  #waiting = 0;
  #over = false;
  #error: KubernetesError | undefined;
  /** Monotonic ms of the last byte. */
  #lastAt: number;
  #wake: () => void = () => undefined;

  constructor(clock: Clock, silence: number) {
    this.#clock = clock;
    this.#silence = silence;
    this.#lastAt = clock.monotonic();
  }

  put(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#waiting += chunk.length;
    this.#lastAt = this.#clock.monotonic();
    if (this.#isFull) this.exchange?.pause();
    this.#wake();
  }

  close(error?: KubernetesError): void {
    this.#over = true;
    this.#error = error;
    this.#wake();
  }

  /** Others have their turn between two pieces, by the time that their reader took: more may come all the while. */
  async *read(signal: AbortSignal): AsyncGenerator<Buffer> {
    const done = new AbortController();
    const abort = () => this.exchange?.end(givenUp);
    signal.addEventListener('abort', abort);
    const watched = this.#watchSilence(done.signal);
    const giveWay = givingWay(this.#clock);
    try {
      if (signal.aborted) abort();
      for (;;) {
        const paused = this.#isFull;
        const chunks = this.#chunks;
        this.#chunks = [];
        // Before it goes on: what was held back comes within the call, and may be too much again.
        this.#waiting = 0;
        if (paused) this.exchange?.resume();
        for (const chunk of chunks) {
          await giveWay();
          yield chunk;
        }
        if (this.#chunks.length > 0) continue;
        if (this.#error !== undefined) throw this.#error;
        if (this.#over) return;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      done.abort();
      signal.removeEventListener('abort', abort);
      this.exchange?.end(givenUp);
      await watched;
    }
  }

  get #isFull(): boolean {
    return this.#waiting > mostWaiting || this.#chunks.length > mostPieces;
  }

  /** A peer that is gone without a word leaves the connection open for ever: only silence tells. */
  async #watchSilence(done: AbortSignal): Promise<void> {
    while (!done.aborted && this.#silence !== Infinity) {
      const left = this.#lastAt + this.#silence - this.#clock.monotonic();
      if (left > 0) await this.#clock.sleep(left, done);
      else {
        this.exchange?.end((asked) => silent(asked, this.#silence));
        return;
      }
    }
  }
}
