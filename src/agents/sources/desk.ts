import type {
  Desk,
  LeftOutput,
  LogReader,
  LogRequest,
  OutputReader,
  PeekRequest,
  WorkerNews,
} from '../../plugins/contracts/index.ts';
import type { LoadStore } from '../../store/load.ts';
import type { OriginStore } from '../../store/origins.ts';
import type { WorkerRecord } from '../../store/rows.ts';
import type { WorkerIds } from '../../store/worker-ids.ts';
import type { WorkerStore } from '../../store/workers.ts';
import type { Clock } from '../../util/clock.ts';
import { reasonFromOutside } from '../../util/own-secrets.ts';
import { highestForeignId } from '../../worker/identity.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Census, OriginFilter, OriginKey } from '../../worker/news.ts';
import { isStorable, whatIsWrongWithOrigin } from '../../worker/origin.ts';
import type { Reason } from '../../worker/reason.ts';
import { isFinal, isQueued } from '../../worker/status.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Emit } from '../events.ts';
import type { WaitingBoard } from './waiting-board.ts';

export interface DeskParts {
  readonly clock: Pick<Clock, 'now'>;
  readonly ledger: Pick<Ledger, 'endOrigins' | 'withdrawOrigins' | 'discard' | 'whyLeft'>;
  readonly waiting: Pick<WaitingBoard, 'reason'>;
  readonly events: Emit;
  readonly store: {
    readonly origins: Pick<OriginStore, 'find' | 'living' | 'census' | 'madeSince'>;
    readonly load: Pick<LoadStore, 'alive'>;
    readonly workers: Pick<WorkerStore, 'byIds' | 'fates'>;
    readonly ids: Pick<WorkerIds, 'raise'>;
    errorOf(error: unknown): ThresherError;
  };
  /** Names of the queues that run. */
  queues(): readonly string[];
  /** Those among them whose own source has this kind. */
  queuesOf(kind: string): ReturnType<Desk['ownQueues']>;
  /** Why a queue gets no more workers, as it was reported last; undefined where no such queue is known. */
  reasonsOf(queue: string): readonly Reason[] | undefined;
  /** Why workers of a queue may live that have no row, if so. */
  unlistedOf(queue: string): Reason | undefined;
  wakeSubmitter(queue: string): void;
  /** @throws ThresherError `no-log` */
  logsOf(worker: WorkerRecord): Promise<LogReader>;
  /** @throws ThresherError `no-log` */
  outputsOf(worker: WorkerRecord): Promise<OutputReader | undefined>;
}

/** Origins that one transaction ends or withdraws. */
const atOnce = 1000;

/** The side of the daemon that one source works with: it sees the workers of its own kind alone. */
export class SourceDesk implements Desk {
  readonly #kind: string;
  readonly #parts: DeskParts;

  constructor(kind: string, parts: DeskParts) {
    this.#kind = kind;
    this.#parts = parts;
  }

  wake(queue: string): void {
    this.#parts.wakeSubmitter(queue);
  }

  /** @throws ThresherError `request-refused`, and those of the store */
  async end(origins: readonly OriginKey[], reason: string): Promise<void> {
    await this.#require(origins);
    // Between two transactions others get their turn.
    for (let at = 0; at < origins.length; at += atOnce)
      await this.#parts.ledger.endOrigins(this.#kind, origins.slice(at, at + atOnce), reason);
  }

  /** @throws ThresherError `request-refused`, and those of the store */
  async withdraw(origins: readonly OriginKey[]): Promise<void> {
    await this.#require(origins);
    for (let at = 0; at < origins.length; at += atOnce)
      await this.#parts.ledger.withdrawOrigins(this.#kind, origins.slice(at, at + atOnce));
  }

  /** @throws ThresherError `request-refused`, and those of the store */
  async discard(uid: string, isUnwanted = false): Promise<number> {
    await this.#require([{ uid }]);
    return this.#parts.ledger.discard(this.#kind, uid, isUnwanted);
  }

  whyLeft(workerId: number): Reason | undefined {
    const why = this.#parts.ledger.whyLeft.get(workerId);
    return why && reasonFromOutside(why);
  }

  expectEnd(workerIds: readonly number[]): void {
    if (workerIds.length > 0) this.#parts.events.emit('endsExpected', { workerIds });
  }

  /** @throws ThresherError `request-refused`, and those of the store */
  async find(filters: readonly OriginFilter[]): Promise<readonly WorkerNews[]> {
    await this.#require(filters);
    return this.#ask(({ origins }) => origins.find(this.#kind, filters));
  }

  /** @throws ThresherError, those of the store */
  living(): Promise<readonly WorkerNews[]> {
    return this.#ask(({ origins }) => origins.living(this.#kind));
  }

  /** @throws ThresherError, those of the store */
  async alive(workerIds: readonly number[]): Promise<ReadonlySet<number>> {
    if (workerIds.length === 0) return new Set();
    const fates = await this.#ask(({ workers }) => workers.fates(workerIds));
    return new Set([...fates].flatMap(([workerId, { status }]) => (isFinal(status) ? [] : [workerId])));
  }

  /** @throws ThresherError, those of the store */
  census(): Promise<Census> {
    return this.#ask(({ origins }) => origins.census(this.#kind, this.#parts.clock.now()));
  }

  /** @throws ThresherError, those of the store */
  madeSince(computingSite: string, since: Pick<Census, 'at' | 'upTo'>): Promise<ReadonlyMap<string, number>> {
    return this.#ask(({ origins }) => origins.madeSince(this.#kind, computingSite, since));
  }

  /** @throws the errors of the store */
  async detail(workerId: number): Promise<unknown> {
    return (await this.#worker(workerId))?.detail ?? undefined;
  }

  /** @throws ThresherError `no-such-worker`, `no-log`, `unknown-plugin`, and those of the store */
  async logs(workerId: number, request: LogRequest, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const worker = await this.#ownWorker(workerId);
    return (await this.#parts.logsOf(worker)).read(worker, request, signal);
  }

  /** @throws ThresherError `no-such-worker`, `no-log`, `unknown-plugin`, and those of the backend and of the store */
  async peek(workerId: number, request: PeekRequest, signal: AbortSignal): Promise<Uint8Array | undefined> {
    const worker = await this.#ownWorker(workerId);
    const reader = await this.#parts.logsOf(worker);
    if (reader.peek !== undefined) return reader.peek(worker, request, signal);
    const message = `the backend of worker ${workerId} shows no files of running workers`;
    throw new ThresherError('no-log', message);
  }

  /** @throws ThresherError `no-such-worker`, and those of the backend and of the store */
  async output(workerId: number, signal: AbortSignal): Promise<LeftOutput | undefined> {
    const worker = await this.#ownWorker(workerId);
    return (await this.#parts.outputsOf(worker))?.open(worker, signal);
  }

  /** @throws those of the backend and of the store */
  async dropOutputs(workerIds: readonly number[]): Promise<void> {
    const workers = await this.#ask(({ workers }) => workers.byIds(workerIds));
    for (const worker of workers)
      if (worker.origin.kind === this.#kind) await (await this.#parts.outputsOf(worker))?.drop([worker]);
  }

  reasons(queue: string, origin?: OriginKey): readonly Reason[] {
    const parts = this.#parts;
    const reported = parts.reasonsOf(queue);
    if (!parts.queues().includes(queue)) return reported ?? [noSuchQueue(queue)];
    if (origin === undefined) return reported ?? [];
    const waiting = parts.waiting.reason(queue, this.#kind, origin);
    const reason = waiting && reasonFromOutside(waiting);
    return reason === undefined ? [] : [reason];
  }

  unlisted(queue: string): Reason | undefined {
    const why = this.#parts.unlistedOf(queue);
    return why && reasonFromOutside(why);
  }

  queues(): readonly string[] {
    return this.#parts.queues();
  }

  ownQueues(): ReturnType<Desk['ownQueues']> {
    return this.#parts.queuesOf(this.#kind);
  }

  async keepIdsAbove(workerId: number): Promise<void> {
    if (!Number.isSafeInteger(workerId) || workerId < 0 || workerId > highestForeignId)
      throw new ThresherError('request-refused', `worker ids cannot be kept above ${workerId}`);
    const { store } = this.#parts;
    try {
      await store.ids.raise(workerId + 1);
    } catch (error) {
      throw store.errorOf(error);
    }
  }

  /** @throws ThresherError, those of the store */
  async queued(queue: string): Promise<number> {
    const load = await this.#ask(({ load }) => load.alive([queue]));
    return load.reduce((sum, { status, workers }) => sum + (isQueued(status) ? workers : 0), 0);
  }

  /**
   * Refuses what is no origin. Earlier versions took any text as the uid from marks, so that a worker in the database may have an origin that
   * no source can have: it is as good as others here, since a list with it must not fail for the others.
   * @throws ThresherError `request-refused`, and those of the store
   */
  async #require(filters: readonly OriginFilter[]): Promise<void> {
    const odd = filters.flatMap((filter) => {
      const wrong = whatIsWrongWithOrigin({ uid: filter.uid, index: filter.index ?? 0 });
      return wrong === undefined ? [] : [{ filter, wrong }];
    });
    const refused = (wrong: string) => new ThresherError('request-refused', wrong);
    // The database cannot have these.
    const never = odd.find(
      ({ filter: { uid, index = 0 } }) => !isStorable(uid) || !Number.isSafeInteger(index) || index < 0,
    );
    if (never !== undefined) throw refused(never.wrong);
    if (odd.length === 0) return;
    const uids = [...new Set(odd.map(({ filter }) => filter.uid))].map((uid) => ({ uid }));
    const stored = await this.#ask(({ origins }) => origins.find(this.#kind, uids));
    const known = new Set(stored.map(({ origin }) => origin.uid));
    const unknown = odd.find(({ filter }) => !known.has(filter.uid));
    if (unknown !== undefined) throw refused(unknown.wrong);
  }

  async #ask<Answer>(question: (store: DeskParts['store']) => Promise<Answer>): Promise<Answer> {
    const { store } = this.#parts;
    try {
      return await question(store);
    } catch (error) {
      throw store.errorOf(error);
    }
  }

  /** @throws ThresherError `no-such-worker`, and those of the store */
  async #ownWorker(workerId: number): Promise<WorkerRecord> {
    const worker = await this.#worker(workerId);
    if (worker !== undefined) return worker;
    throw new ThresherError('no-such-worker', `source ${this.#kind} has no worker ${workerId}`);
  }

  async #worker(workerId: number): Promise<WorkerRecord | undefined> {
    const { store } = this.#parts;
    if (!Number.isSafeInteger(workerId) || workerId < 1) return undefined;
    try {
      const [worker] = await store.workers.byIds([workerId]);
      return worker?.origin.kind === this.#kind ? worker : undefined;
    } catch (error) {
      throw store.errorOf(error);
    }
  }
}

function noSuchQueue(queue: string): Reason {
  return { code: 'no-such-queue', message: `there is no queue ${queue}` };
}
