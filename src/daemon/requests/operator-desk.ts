import type { OperatorRequests } from '../../plugins/contracts/index.ts';
import type { QueueReport } from '../../store/queues.ts';
import type { AskedBy, RequestStore } from '../../store/requests.ts';
import type { Clock } from '../../util/clock.ts';
import type { Reason } from '../../worker/reason.ts';
import type { OperatorRequest, WithdrawnRequest } from '../../worker/operator-request.ts';
import { newRequest, type RequestInput } from './new-request.ts';

export interface OperatorDeskParts {
  readonly store: Pick<RequestStore, 'add' | 'open' | 'served' | 'withdraw' | 'toEnd' | 'ended'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly random: () => number;
  /** The queues as the daemon last reported them. */
  reports(): Promise<readonly QueueReport[]>;
  /** Asks for a pass of this queue. */
  wakeSubmitter(queue: string): void;
  /** Why this request waits, as the last pass of its queue left it. */
  why(queue: string, id: string): readonly Reason[];
  /** The requests could not be read: they are read again at the next pass. */
  failed(error: unknown): void;
}

/**
 * The requests of operators in this daemon. They are in the database, where the command line leaves them, and in memory as long
 * as they may get workers: a queue's pass reads nothing unless something was left since.
 */
export class OperatorDesk implements OperatorRequests {
  readonly #parts: OperatorDeskParts;
  readonly #open = new Map<string, OperatorRequest>();
  #isStale = true;
  #reading: Promise<void> = Promise.resolve();
  /** Resolves when requests may have been taken back since. */
  #mayBeWithdrawn = Promise.withResolvers<undefined>();

  constructor(parts: OperatorDeskParts) {
    this.#parts = parts;
    this.#mayBeWithdrawn.resolve(undefined);
  }

  /** An operator left something: wakes the queues that have requests that no pass saw yet. */
  async changed(): Promise<void> {
    this.#isStale = true;
    this.#mayBeWithdrawn.resolve(undefined);
    const before = new Set(this.#open.keys());
    try {
      await this.#read();
    } catch (error) {
      this.#parts.failed(error);
      return;
    }
    const added = [...this.#open.values()].filter(({ id }) => !before.has(id));
    for (const queue of new Set(added.map((request) => request.queue))) this.#parts.wakeSubmitter(queue);
  }

  /** @throws ThresherError `request-key-taken`, and those of `newRequest` */
  async ask(input: RequestInput, by: AskedBy): Promise<{ readonly id: string; readonly isNew: boolean }> {
    const { store, clock, random } = this.#parts;
    const request = newRequest(input, by, await this.#parts.reports(), random);
    const added = await store.add(request, clock.now());
    if (added.isNew) await this.changed();
    return added;
  }

  /** @returns false where it was taken back before, or is over */
  async withdraw(id: string, reason: string): Promise<boolean> {
    const done = await this.#parts.store.withdraw(id, reason, this.#parts.clock.now());
    if (done) await this.changed();
    return done;
  }

  /** Why this request waits, as far as a pass of its queue has said it. */
  reasonsOf({ queue, id }: Pick<OperatorRequest, 'queue' | 'id'>): readonly Reason[] {
    return this.#parts.why(queue, id);
  }

  async open(queue: string): Promise<readonly OperatorRequest[]> {
    if (this.#isStale) await this.#read();
    return [...this.#open.values()].filter((request) => request.queue === queue);
  }

  async served(ids: readonly string[]): Promise<void> {
    await this.#parts.store.served(ids, this.#parts.clock.now());
    for (const id of ids) this.#open.delete(id);
  }

  async withdrawn(signal: AbortSignal): Promise<readonly WithdrawnRequest[]> {
    while (!signal.aborted) {
      await untilAborted(this.#mayBeWithdrawn.promise, signal);
      this.#mayBeWithdrawn = Promise.withResolvers<undefined>();
      try {
        const found = await this.#parts.store.toEnd();
        if (found.length === 0) continue;
        // Some of them may fail: the next question is answered at once.
        this.#mayBeWithdrawn.resolve(undefined);
        return found;
      } catch (error) {
        this.#mayBeWithdrawn.resolve(undefined);
        throw error;
      }
    }
    return [];
  }

  async ended(ids: readonly string[]): Promise<void> {
    await this.#parts.store.ended(ids, this.#parts.clock.now());
  }

  /** One reading after the other: the earlier one may not have seen the last change. */
  #read(): Promise<void> {
    const mine = this.#reading.then(async () => {
      if (!this.#isStale) return;
      this.#isStale = false;
      try {
        const { ids, added } = await this.#parts.store.open(new Set(this.#open.keys()));
        const byId = new Map([...this.#open, ...added.map((request) => [request.id, request] as const)]);
        this.#open.clear();
        for (const id of ids) {
          const request = byId.get(id);
          if (request !== undefined) this.#open.set(id, request);
        }
      } catch (error) {
        this.#isStale = true;
        throw error;
      }
    });
    this.#reading = mine.catch(() => undefined);
    return mine;
  }
}

function untilAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    if (signal.aborted) resolve();
    signal.addEventListener('abort', done);
    promise.then(done, done);
  });
}
