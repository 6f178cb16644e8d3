import { ThresherError } from '../worker/errors.ts';
import type { Clock } from './clock.ts';

export interface FileLaneOptions {
  readonly clock: Clock;
  /** Which files these are, for messages: "local:/var/lib/thresher/local". */
  readonly name: string;
  /** Calls under way at the same time. Node has few threads for files, and all lanes share them. */
  readonly atOnce: number;
  /**
   * How long one call may take, its wait for a place included, ms. While calls that wait for the same place come back,
   * one may wait longer: that lane is busy, as on a slow machine, and its disk sound.
   */
  readonly timeoutMs: number;
}

/** One background call is under way at most, so that the other places are for those that are waited for. */
export type Importance = 'foreground' | 'background';

interface Waiting {
  readonly importance: Importance;
  readonly begin: () => void;
  /** Which call it is. */
  readonly done: AbortController;
}

/** Where file work waits for its turn. */
export type Lane = Pick<FileLane, 'run'>;

/**
 * Bounds the file work of one connection in number and time. A disk that hangs (a dead NFS or FUSE mount) keeps the
 * thread of each call for ever, and the kernel gives no way to end it: so a call that misses its deadline is given up by
 * its caller but keeps its place here until it really comes back. A dead disk costs at most `atOnce` threads.
 */
export class FileLane {
  readonly #options: FileLaneOptions;
  readonly #waiting: Waiting[] = [];
  #busy = 0;
  #background = 0;
  /** Calls that have come back, by whose wait they shorten: a foreground call takes the place of any other. */
  readonly #done: Record<Importance, number> = { foreground: 0, background: 0 };

  constructor(options: FileLaneOptions) {
    this.#options = options;
  }

  /** @throws ThresherError `file-timeout` at the deadline, else what `call` throws */
  async run<T>(what: string, call: () => Promise<T>, importance: Importance = 'foreground'): Promise<T> {
    const { clock, name, timeoutMs } = this.#options;
    const done = new AbortController();
    const isWaiting = () => this.#waiting.some((one) => one.done === done);
    let late = false;
    const passed = async (): Promise<void> => {
      const [hadToWait, before] = [isWaiting(), this.#done[importance]];
      await clock.sleep(timeoutMs, done.signal);
      if (!done.signal.aborted && hadToWait && this.#done[importance] > before) await passed();
    };
    const turn = this.#inTurn(call, done, () => late, importance);
    const deadline = passed().then(() => {
      if (done.signal.aborted) return undefined as never;
      late = true;
      const waiting = this.#waiting.findIndex((one) => one.done === done);
      if (waiting >= 0) this.#waiting.splice(waiting, 1);
      const message = `${what} (${name}) did not come back within ${timeoutMs / 1000} s`;
      throw new ThresherError('file-timeout', message, { name, what });
    });
    deadline.catch(() => undefined);
    try {
      return await Promise.race([turn, deadline]);
    } finally {
      done.abort();
    }
  }

  async #inTurn<T>(
    call: () => Promise<T>,
    done: AbortController,
    isLate: () => boolean,
    importance: Importance,
  ): Promise<T> {
    if (this.#busy < this.#options.atOnce && this.#mayBegin(importance)) this.#take(importance);
    else {
      await new Promise<void>((resolve) => {
        this.#waiting.push({ importance, begin: resolve, done });
      });
    }
    try {
      // Its caller has given it up in the same moment in which it got its place.
      if (isLate()) return undefined as never;
      return await call();
    } finally {
      this.#busy--;
      this.#done.foreground++;
      if (importance === 'background') {
        this.#background--;
        this.#done.background++;
      }
      this.#beginNext();
    }
  }

  #mayBegin(importance: Importance): boolean {
    return importance === 'foreground' || this.#background === 0;
  }

  #take(importance: Importance): void {
    this.#busy++;
    if (importance === 'background') this.#background++;
  }

  /** The place is taken for the next at once: a call that comes before that one goes on waits behind it. */
  #beginNext(): void {
    const at = this.#waiting.findIndex((one) => this.#mayBegin(one.importance));
    const [next] = at < 0 ? [] : this.#waiting.splice(at, 1);
    if (next === undefined) return;
    this.#take(next.importance);
    next.begin();
  }
}
