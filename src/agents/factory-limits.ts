import type { QueueConfig } from '../config/queues.ts';
import { siteFamilyOf } from '../config/queues.ts';
import type { Clock } from '../util/clock.ts';
import { TokenBucket } from '../util/token-bucket.ts';

/** What the limits of one queue share with those of the others; it outlives a reload. */
export class FactoryLimits {
  /** For all queues together; undefined: no such limit. */
  readonly bucket: TokenBucket | undefined;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, TokenBucket>();
  #last: Promise<void> = Promise.resolve();
  #queues: readonly QueueConfig[] = [];

  /** `rate` per second. */
  constructor(rate: number | undefined, burst: number, clock: Clock) {
    this.#clock = clock;
    this.bucket = rate === undefined ? undefined : new TokenBucket(rate, burst, clock);
  }

  /** The queues as they are configured now. */
  configure(queues: readonly QueueConfig[]): void {
    this.#queues = queues;
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
