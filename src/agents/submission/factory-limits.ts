import type { QueueConfig } from '../../config/queues/queues.ts';
import { siteFamilyOf } from '../../config/queues/queues.ts';
import type { Clock } from '../../util/clock.ts';
import { TokenBucket } from '../../util/token-bucket.ts';
import { type Cycle, noCycle } from '../../limits/cycle.ts';
import { SubmitWindow } from '../../limits/submit-window.ts';

/** The memory that limits keep of a queue from pass to pass, through changes of its configuration. */
export interface QueueMemory {
  readonly window: SubmitWindow;
  cycle: Cycle;
}

/** The state that the limits of all queues share; it outlives a reload. */
export class FactoryLimits {
  /** For all queues together; undefined: no such limit. */
  readonly bucket: TokenBucket | undefined;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #memories = new Map<string, QueueMemory>();
  #last: Promise<void> = Promise.resolve();
  #queues: readonly QueueConfig[] = [];

  /** `rate` per second. */
  constructor(rate: number | undefined, burst: number, clock: Clock) {
    this.#clock = clock;
    this.bucket = rate === undefined ? undefined : new TokenBucket(rate, burst, clock);
  }

  /** The queues as they are configured now, and those that are only followed to their end. */
  configure(queues: readonly QueueConfig[]): void {
    this.#queues = queues;
    // A queue that comes back later is a new one.
    const names = new Set(queues.map(({ name }) => name));
    for (const kept of [this.#buckets, this.#memories])
      for (const name of kept.keys()) if (!names.has(name)) kept.delete(name);
  }

  /** The queues that share what a family may have. */
  family(siteFamily: string): QueueConfig[] {
    return this.#queues.filter((queue) => siteFamilyOf(queue) === siteFamily);
  }

  /** The queue's own bucket; a reload that leaves its rate alone leaves what is in it. */
  queueBucket({ name, options }: QueueConfig): TokenBucket | undefined {
    const { submissionRate: rate, submissionBurst: burst } = options;
    const known = this.#buckets.get(name);
    if (rate === undefined) return undefined;
    if (known?.rate === rate && known.burst === burst) return known;
    const bucket = new TokenBucket(rate, burst, this.#clock);
    this.#buckets.set(name, bucket);
    return bucket;
  }

  memory(queue: string): QueueMemory {
    const known = this.#memories.get(queue);
    if (known !== undefined) return known;
    const memory = { window: new SubmitWindow(), cycle: noCycle };
    this.#memories.set(queue, memory);
    return memory;
  }

  /** One after the other: who counts what others have must be done before these count. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    this.#last = mine.then(
      () => undefined,
      () => undefined,
    );
    return mine;
  }
}
