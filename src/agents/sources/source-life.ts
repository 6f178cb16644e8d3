import type { Desk, Log, Source } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';

export interface LifeParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Called after each change of `failure`. */
  readonly changed: () => void;
}

/** The first pause after a life that failed, and the longest, ms. */
const pauses = { first: 1000, longest: 300_000 };
/** A life that lasts so long counts as well, and its earlier failures are forgotten, ms. */
const wellFor = 60_000;

/**
 * Runs a source's own life, and starts it again after a growing pause when it throws. It lives beside the loops of the daemon: a
 * life that fails, hangs or takes all its time delays none of them.
 */
export class SourceLife {
  readonly #kind: string;
  readonly #source: Pick<Source, 'run'>;
  readonly #desk: Desk;
  readonly #parts: LifeParts;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #failures = 0;
  #failure: Reason | undefined;

  constructor(kind: string, source: Pick<Source, 'run'>, desk: Desk, parts: LifeParts) {
    this.#kind = kind;
    this.#source = source;
    this.#desk = desk;
    this.#parts = parts;
  }

  /** Why it ended last, until it has lasted for a while. */
  get failure(): Reason | undefined {
    return this.#failure;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Comes back when the life has ended, which a source may delay for ever. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock } = this.#parts;
    const stop = this.#stop.signal;
    const isOver = () => stop.aborted;
    while (!isOver()) {
      const reason = await this.#once(stop);
      // An error on the way to the end that was asked for is none.
      if (isOver()) return;
      const pause = Math.min(pauses.first * 2 ** Math.min(this.#failures, 20), pauses.longest);
      this.#failures++;
      this.#failure = reason;
      this.#parts.log.error('a source ended and is started again', {
        source: this.#kind,
        failures: this.#failures,
        pause: pause / 1000,
        ...reason,
      });
      this.#parts.changed();
      await clock.sleep(pause, stop);
    }
  }

  /** @returns why it ended */
  async #once(stop: AbortSignal): Promise<Reason> {
    const ended = new AbortController();
    this.#forgetFailures(AbortSignal.any([stop, ended.signal])).catch(() => undefined);
    try {
      await this.#source.run?.(this.#desk, stop);
      return { code: 'source-failed', message: `source ${this.#kind} came to its end by itself` };
    } catch (error) {
      return { code: 'source-failed', message: `source ${this.#kind}: ${toReason(error).message}` };
    } finally {
      ended.abort();
    }
  }

  async #forgetFailures(over: AbortSignal): Promise<void> {
    if (this.#failures === 0) return;
    await this.#parts.clock.sleep(wellFor, over);
    if (over.aborted) return;
    this.#failures = 0;
    this.#failure = undefined;
    this.#parts.log.info('a source that failed goes on', { source: this.#kind });
    this.#parts.changed();
  }
}
