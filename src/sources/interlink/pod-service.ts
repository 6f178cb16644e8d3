import type { NamedPod } from '../../clients/interlink/schemas.ts';
import type { CreateStruct, LogStruct, PodStatus, RetrievedPodData } from '../../clients/interlink/wire.ts';
import type { Desk, SourceHost } from '../../plugins/contracts/index.ts';
import { messageOf, toReason } from '../../worker/errors.ts';
import { isFinal } from '../../worker/status.ts';
import type { Reason } from '../../worker/reason.ts';
import { acceptedPod } from './accept.ts';
import { awaitOutcome } from './await-outcome.ts';
import { bounds } from './bounds.ts';
import { BackendHealth } from './status/backend-health.ts';
import { identityOf } from './identity.ts';
import { shown } from './pod/problem.ts';
import type { PodLogs } from './logs/pod-logs.ts';
import { isUnset } from './logs/read-log.ts';
import type { Planner } from './planner.ts';
import { isAtWork } from './pods/facts.ts';
import type { PodBook } from './pods/pod-book.ts';
import type { TrackedPod } from './pods/tracked-pod.ts';
import { PodStatuses } from './status/pod-statuses.ts';
import { Refusal } from './refusal.ts';
import { Silence } from './silence.ts';

/** For so long a question that could not be read is told of, ms. */
const missedFor = 600_000;

/** Why a job is ended. */
export const deletion = 'its Pod was deleted';

export interface ServiceParts {
  readonly host: Pick<SourceHost, 'clock' | 'log'>;
  readonly book: PodBook;
  readonly planner: Planner;
  readonly logs: PodLogs;
  /** Queue of the Pods; undefined: the one that takes Pods, if there is one alone. */
  readonly queue: string | undefined;
  /** How long interLink may leave out a living Pod in its questions, ms. */
  readonly longestSilence: number;
  /** How long /create waits for the job's id, ms. */
  readonly createTimeout: number;
}

/** Answers what interLink asks. */
export class PodService {
  readonly #parts: ServiceParts;
  /** Aborts when no further job is waited for. */
  #over = new AbortController();
  #desk: Desk | undefined;
  readonly #statuses: PodStatuses;
  readonly #health = new BackendHealth();
  readonly #removals = new Set<Promise<void>>();
  /** The last question that could not be read, and when that was, monotonic ms. */
  #missed: { readonly at: number; readonly why: string } | undefined;
  readonly silence: Silence;

  constructor(parts: ServiceParts) {
    this.#parts = parts;
    this.#statuses = new PodStatuses({
      book: parts.book,
      clock: parts.host.clock,
      whyPending: (pod) => this.#whyPending(pod),
    });
    this.silence = new Silence(parts.longestSilence);
  }

  get desk(): Desk | undefined {
    return this.#desk;
  }

  begin(desk: Desk): void {
    this.#over = new AbortController();
    this.#desk = desk;
    this.#wake();
  }

  /** The queue of the Pods, or why there is none. */
  get queue(): string | Reason {
    const { queue } = this.#parts;
    if (queue !== undefined) return queue;
    const names = (this.#desk?.ownQueues() ?? []).map(({ name }) => name);
    const [only] = names;
    if (only !== undefined && names.length === 1) return only;
    const which =
      names.length === 0 ? 'no queue takes Pods' : `several queues take Pods: ${names.join(', ')}`;
    return { code: 'interlink-queue', message: `${which}; set queue of sources.interlink` };
  }

  /** Why the backend counts as down, for a ping; undefined: it does not. */
  get trouble(): string | undefined {
    const { queue } = this;
    if (typeof queue !== 'string') return queue.message;
    return this.#health.trouble(this.#desk?.reasons(queue) ?? [], this.#parts.host.clock.monotonic());
  }

  get counts() {
    const { all } = this.#parts.book;
    const running = all.filter(({ facts }) => facts !== undefined && isAtWork(facts)).length;
    return { pods: all.length, running, ended: all.filter((pod) => pod.hasEnded).length };
  }

  /** Accepts a Pod once, however often it is sent. @throws Refusal */
  async accept(data: RetrievedPodData): Promise<TrackedPod> {
    const identity = identityOf(data.pod);
    if (typeof identity === 'string') throw new Refusal(400, identity);
    const { uid } = identity;
    // A Pod that was accepted once is not judged again: the operator may have changed the options since.
    return this.#parts.book.get(uid) ?? this.#accepted(uid, data);
  }

  /** The answer to /create: it comes when the job of the Pod has an id. @throws Refusal */
  async created(pod: TrackedPod, signal: AbortSignal): Promise<CreateStruct> {
    const { host, book, createTimeout: limit } = this.#parts;
    const { uid } = pod.record;
    const whyLate = () => this.#whyLate(pod);
    const { signal: over } = this.#over;
    const outcome = await awaitOutcome(pod, { clock: host.clock, limit, whyLate, over }, signal);
    if (outcome.ok) {
      pod.isAnswered = true;
      return { PodUID: uid, PodJID: outcome.jid };
    }
    // The Pod fails by this answer, and nothing may be left of it: its /delete may never come.
    if (book.get(uid) === pod && !pod.hasFailed) await this.#forget(pod);
    throw new Refusal(500, outcome.message);
  }

  /** A new Pod, written down. @throws Refusal */
  async #accepted(uid: string, data: RetrievedPodData): Promise<TrackedPod> {
    const { book, planner, host } = this.#parts;
    const { queue } = this;
    if (typeof queue !== 'string') throw new Refusal(503, queue.message);
    const { record, plan } = acceptedPod(data, planner, host.clock.now());
    await this.#requireNew(uid);
    // Another request may have accepted it meanwhile.
    const other = book.get(uid);
    if (other !== undefined) return other;
    const pod = await book.accept(record, data).catch(refuse);
    this.#statuses.created(uid);
    const { name, namespace } = record;
    host.log.info('Pod accepted', { pod: uid, name, namespace });
    this.#warn(uid, plan.warnings);
    this.#wake();
    return pod;
  }

  #warn(uid: string, warnings: readonly string[]): void {
    const { log } = this.#parts.host;
    const told = warnings.slice(0, bounds.podWarnings).map((one) => one.slice(0, bounds.warning));
    const more = warnings.length - told.length;
    for (const warning of [...told, ...(more > 0 ? [`${more} further parts`] : [])])
      log.warn('a part of a Pod is left out', { pod: uid, warning });
  }

  /** Ends the job of a Pod and has all removed that is left of it, whatever is known of it. @throws Refusal */
  async remove(named: NamedPod): Promise<void> {
    const removal = this.#remove(named);
    this.#removals.add(removal);
    try {
      await removal;
    } finally {
      this.#removals.delete(removal);
    }
  }

  /** Looks up the jobs that /create waits for: at the end of the daemon no news come any more. */
  async lookUp(): Promise<void> {
    const { book, host } = this.#parts;
    const isAwaited = book.all.some(({ outcome }) => outcome === undefined);
    if (this.#desk !== undefined && isAwaited) await book.catchUp(this.#desk, host.clock);
  }

  /** Each /create that still waits for a job is refused, and nothing is left of its Pod. */
  giveUp(): void {
    this.#over.abort();
  }

  /** Waits for the deletions that are under way: interLink may send each of them only once. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#removals]);
  }

  async #remove(named: NamedPod): Promise<void> {
    const identity = identityOf(named);
    if (typeof identity === 'string') throw new Refusal(400, identity);
    const { book, host } = this.#parts;
    const { uid } = identity;
    const known = book.get(uid);
    const found = (known === undefined ? await this.#desk?.find([{ uid }]).catch(refuse) : undefined) ?? [];
    // A request beside this one may have accepted it meanwhile.
    const pod = known ?? book.get(uid);
    if (pod !== undefined) await this.#forget(pod);
    else if (book.isDamaged(uid) || found.some(({ worker: { status } }) => status !== 'withdrawn'))
      await this.#forget(await book.bury(identity, host.clock.now()).catch(refuse));
    // interLink may still be at work on its /create, and send it after this.
    else if (found.length === 0) await this.#desk?.end([{ uid, index: 0 }], deletion).catch(refuse);
  }

  /** interLink is there. */
  heardPing(): void {
    this.silence.heardPing(this.#parts.host.clock.monotonic());
  }

  /**
   * A question that was refused before it was read, or broke off, may have been for any Pod: no Pod counts as forgotten for it. An older
   * virtual kubelet asks for all of its Pods at once, so that one that cannot be asked for would cost the jobs of all others.
   */
  missed(why: string): void {
    const { book, host } = this.#parts;
    for (const pod of book.all) pod.silentFor = 0;
    const isTold = this.unread !== undefined;
    this.#missed = { at: host.clock.monotonic(), why };
    const facts = { code: 'interlink-unread', reason: why };
    if (!isTold) host.log.warn('a question of interLink for its Pods could not be read', facts);
  }

  /** Why questions of interLink could not be read of late; undefined: all were. */
  get unread(): Reason | undefined {
    const { at = -Infinity, why = '' } = this.#missed ?? {};
    if (this.#parts.host.clock.monotonic() - at >= missedFor) return undefined;
    const message = `interLink asks for Pods and gets no answer: ${why}; no job is ended for that`;
    return { code: 'interlink-unread', message };
  }

  /** From memory alone. @throws Refusal */
  status(named: readonly NamedPod[]): Promise<readonly PodStatus[]> {
    return this.#statuses.of(named);
  }

  /** The log of a container in pieces, as they come. @throws Refusal */
  async logs(request: LogStruct, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { PodUID: uid, ContainerName: container, Opts } = request;
    const { book, logs } = this.#parts;
    const pod = book.get(uid);
    if (pod === undefined) throw new Refusal(404, `no Pod with the UID ${shown(uid)} is known`);
    const names = [...pod.record.initContainers, ...pod.record.containers].map(({ name }) => name);
    if (!names.includes(container))
      throw new Refusal(
        400,
        `the Pod has no container ${shown(container)}; its containers: ${names.join(', ')}`,
      );
    if (Opts.Previous)
      throw new Refusal(400, `container ${container} has run at most once, so it has no previous log`);
    if (!isUnset(Opts.SinceTime) && !Number.isFinite(Date.parse(Opts.SinceTime)))
      throw new Refusal(400, `SinceTime is ${shown(Opts.SinceTime)}; it must be a time of RFC 3339`);
    return logs.open(pod, container, Opts, signal);
  }

  /** A UID stands for one Pod for good: a request that comes after its /delete makes no second job. @throws Refusal */
  async #requireNew(uid: string): Promise<void> {
    const [before] = (await this.#desk?.find([{ uid, index: 0 }])) ?? [];
    if (before === undefined) return;
    const { batchId, status } = before.worker;
    if (status !== 'withdrawn' && !isFinal(status)) return;
    const what = batchId === null ? 'deleted' : `created before, and its job ${batchId} was ended: ${status}`;
    throw new Refusal(500, `the Pod was ${what}`);
  }

  /** Why the job of a Pod has not begun to be submitted. */
  #whyPending({ origin }: TrackedPod): string | undefined {
    const { queue } = this;
    if (typeof queue !== 'string') return queue.message;
    return this.#desk?.reasons(queue, origin)[0]?.message;
  }

  #wake(): void {
    const { queue } = this;
    if (typeof queue === 'string') this.#desk?.wake(queue);
  }

  #whyLate({ origin }: TrackedPod): string | undefined {
    const { queue } = this;
    if (typeof queue !== 'string') return queue.message;
    const [why] = [...(this.#desk?.reasons(queue, origin) ?? []), ...(this.#desk?.reasons(queue) ?? [])];
    return why?.message;
  }

  /** When this returns, a crash brings neither the Pod nor its job back. */
  async #forget(pod: TrackedPod): Promise<void> {
    try {
      await this.#parts.book.forget(pod);
    } catch (error) {
      // A full disk keeps the Pod's file, and not its job: interLink may send no second /delete.
      await this.#desk?.end([pod.origin], deletion).catch(() => undefined);
      throw new Refusal(500, messageOf(error));
    }
    if (this.#desk === undefined || pod.isEndAsked) return;
    try {
      await this.#desk.end([pod.origin], deletion);
      pod.isEndAsked = true;
    } catch (error) {
      // The deletion is written down: the next look asks again.
      this.#parts.host.log.warn('the job of a deleted Pod could not be ended yet', {
        pod: pod.record.uid,
        ...toReason(error),
      });
    }
  }
}

/** @throws Refusal */
function refuse(error: unknown): never {
  throw new Refusal(500, messageOf(error));
}
