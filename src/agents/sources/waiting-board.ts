import type { OriginKey } from '../../worker/news.ts';
import type { Reason } from '../../worker/reason.ts';
import { keyOf } from '../submission/entries.ts';
import type { Waiting } from '../submission/why-waiting.ts';

/** The requests of one queue that wait, as its last pass left them. */
export interface WaitingRequests {
  /** Why each of them waits; a later part takes the place of an earlier one that names the same request. */
  readonly why: readonly Waiting[];
  /** How many wait, by source. */
  readonly counts: ReadonlyMap<string, number>;
  /** Why none of the queue's requests gets a worker, where the pass itself failed. */
  readonly failure?: Reason;
}

/** How many requests of one source wait at one queue. */
export interface WaitingCount {
  readonly queue: string;
  readonly source: string;
  readonly requests: number;
}

/** Keeps in memory why requests wait: each pass of a queue writes it down, and sources and metrics read it. */
export class WaitingBoard {
  readonly #queues = new Map<string, WaitingRequests>();
  /** By queue and origin; made when a source first asks after a pass, because few ever do. */
  readonly #byOrigin = new Map<string, ReadonlyMap<string, Reason>>();

  set(queue: string, waiting: WaitingRequests): void {
    this.#byOrigin.delete(queue);
    const { why, counts, failure } = waiting;
    if (why.length + counts.size === 0 && failure === undefined) this.#queues.delete(queue);
    else this.#queues.set(queue, waiting);
  }

  /** The pass of this queue failed: everything that waited goes on waiting, for this reason. */
  failed(queue: string, failure: Reason): void {
    const { counts = new Map<string, number>() } = this.#queues.get(queue) ?? {};
    this.set(queue, { why: [], counts, failure });
  }

  /** Forgets all other queues. */
  keepOnly(queues: ReadonlySet<string>): void {
    for (const kept of [this.#queues, this.#byOrigin])
      for (const queue of kept.keys()) if (!queues.has(queue)) kept.delete(queue);
  }

  /** Why this request waits; undefined where nothing holds it back, or no pass has seen it. */
  reason(queue: string, kind: string, origin: OriginKey): Reason | undefined {
    const waiting = this.#queues.get(queue);
    if (waiting === undefined) return undefined;
    if (waiting.failure !== undefined) return waiting.failure;
    let byOrigin = this.#byOrigin.get(queue);
    if (byOrigin === undefined) {
      byOrigin = reasonsOf(waiting.why);
      this.#byOrigin.set(queue, byOrigin);
    }
    return byOrigin.get(keyOf(kind, origin));
  }

  get counts(): WaitingCount[] {
    return [...this.#queues].flatMap(([queue, { counts }]) =>
      [...counts].map(([source, requests]) => ({ queue, source, requests })),
    );
  }
}

function reasonsOf(why: readonly Waiting[]): ReadonlyMap<string, Reason> {
  const reasons = new Map<string, Reason>();
  for (const { kind, requests, reason } of why)
    for (const { origin } of requests) reasons.set(keyOf(kind, origin), reason);
  return reasons;
}
