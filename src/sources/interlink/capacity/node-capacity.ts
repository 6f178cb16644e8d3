import type { PingResponse } from '../../../clients/interlink/wire.ts';
import type { Log } from '../../../plugins/contracts/index.ts';
import type { Clock } from '../../../util/clock.ts';
import { toReason } from '../../../worker/errors.ts';

/** A part of the answer to the ping. A part that is absent leaves the node as it is. */
export type Capacity = Pick<PingResponse, 'resources' | 'taints'>;

export interface Learned extends Capacity {
  /** The totals of the pool in HTCondor's own words. */
  readonly totals?: string;
  /** Sentences on parts that make no sense, and are left out. */
  readonly warnings?: readonly string[];
}

/** Asks once. It throws where it learns nothing. */
export type AskCapacity = (signal: AbortSignal) => Promise<Learned>;

/** The resources that the node has. It keeps what it learned last: a collector that is away for a while drains no node. */
export class NodeCapacity {
  readonly #ask: AskCapacity;
  readonly #parts: { readonly clock: Clock; readonly log: Log };
  #learned: Learned = {};
  #trouble: string | undefined;
  #warned = '';

  constructor(ask: AskCapacity, parts: { readonly clock: Clock; readonly log: Log }) {
    this.#ask = ask;
    this.#parts = parts;
  }

  get known(): Capacity {
    const { resources, taints } = this.#learned;
    return { ...(resources && { resources }), ...(taints && { taints }) };
  }

  get totals(): string | undefined {
    return this.#learned.totals;
  }

  /** Why the last question had no answer. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Asks every so often until `signal` aborts. @param interval ms */
  async run(interval: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.ask(signal);
      await this.#parts.clock.sleep(interval, signal);
    }
  }

  async ask(signal: AbortSignal): Promise<void> {
    try {
      this.#learned = await this.#ask(signal);
      this.#trouble = undefined;
      this.#warn(this.#learned.warnings ?? []);
    } catch (error) {
      if (signal.aborted) return;
      const reason = toReason(error);
      this.#trouble = reason.message;
      this.#warn([reason.message]);
    }
  }

  /** Once for each change: the same would be said each minute. */
  #warn(sentences: readonly string[]): void {
    const { log } = this.#parts;
    const said = sentences.join('\n');
    if (said !== this.#warned && said === '') log.info('the resources of the node are known again', {});
    if (said !== this.#warned)
      for (const why of sentences) log.warn('the resources of the node are not all known', { why });
    this.#warned = said;
  }
}
