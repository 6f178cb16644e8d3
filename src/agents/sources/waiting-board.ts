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

/** Why requests of one source wait at one queue. */
export interface WaitingUids {
  readonly queue: string;
  /** By the `uid` of their origins. */
  readonly reasons: ReadonlyMap<string, readonly Reason[]>;
  /** Why none of them gets a worker, where the pass itself failed. */
  readonly failure?: Reason;
}

/** Keeps in memory why requests wait: each pass of a queue writes it down, and sources and metrics read it. */
export class WaitingBoard {
  readonly #queues = new Map<string, WaitingRequests>();
  /** By queue and origin; made when a source first asks after a pass, because few ever do. */
  readonly #byOrigin = new Map<string, ReadonlyMap<string, Reason>>();
  /** By source and queue, and then by `uid`; likewise. */
  readonly #byUid = new Map<string, ReadonlyMap<string, readonly Reason[]>>();

  set(queue: string, waiting: WaitingRequests): void {
    this.#byOrigin.delete(queue);
    this.#byUid.clear();
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
    this.#byUid.clear();
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

  /** Why requests of this source wait whose origins have this `uid`: each reason once. */
  reasonsOf(queue: string, kind: string, uid: string): readonly Reason[] {
    const failure = this.#queues.get(queue)?.failure;
    return failure === undefined ? (this.#uids(queue, kind).get(uid) ?? []) : [failure];
  }

  /** The same for all requests of this source, by queue. */
  allOf(kind: string): WaitingUids[] {
    return [...this.#queues].flatMap(([queue, { failure, counts }]) => {
      const reasons = this.#uids(queue, kind);
      if (reasons.size === 0 && (failure === undefined || !counts.has(kind))) return [];
      return [failure === undefined ? { queue, reasons } : { queue, reasons, failure }];
    });
  }

  /** Made when it is first asked for after a pass. */
  #uids(queue: string, kind: string): ReadonlyMap<string, readonly Reason[]> {
    const key = `${kind}\0${queue}`;
    let reasons = this.#byUid.get(key);
    if (reasons === undefined) {
      reasons = reasonsByUid(this.#queues.get(queue)?.why ?? [], kind);
      this.#byUid.set(key, reasons);
    }
    return reasons;
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

function reasonsByUid(why: readonly Waiting[], kind: string): ReadonlyMap<string, readonly Reason[]> {
  const byIndex = new Map<string, Map<number, Reason>>();
  for (const { kind: its, requests, reason } of why) {
    if (its !== kind) continue;
    for (const { origin } of requests) {
      const indexes = byIndex.get(origin.uid) ?? new Map<number, Reason>();
      byIndex.set(origin.uid, indexes.set(origin.index, reason));
    }
  }
  return new Map(
    [...byIndex].map(([uid, indexes]) => {
      const once = new Map([...indexes.values()].map((reason) => [reason.message, reason]));
      return [uid, [...once.values()]];
    }),
  );
}
