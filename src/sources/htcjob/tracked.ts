import type { Request } from '../../plugins/contracts/index.ts';
import { isOlder } from '../../clients/kubernetes/versions.ts';
import type { WorkerNews } from '../../worker/news.ts';
import type { Reason } from '../../worker/reason.ts';
import { Age } from '../../util/clock.ts';
import type { Meta } from './cluster.ts';
import { factsAfter, hasEnded, type JobFacts } from './facts.ts';
import { emptySpec, type Followed, type FollowedSpec } from './followed.ts';
import { judge, type Judgement } from './judge.ts';
import type { Hearer } from './last-words.ts';
import { WritePace } from './pace.ts';
import { takenOverFacts } from './taken-over.ts';
import { attemptOf, countOf, fromRanges } from '../../clients/htcjob/numbers.ts';
import {
  finalizer,
  type HtcJobSpec,
  type HtcJobStatus,
  isOfHtcOperator,
  jobCount,
  type SpecProblem,
} from '../../clients/htcjob/resource.ts';

/** Bytes of a stored object: beside its script, and its status for each job, whose id is there twice. */
const bytesBesideScript = 2000;
const bytesOfJob = 32;

/** A resource as the operator follows it, with all that is known of its jobs. */
export class Tracked {
  readonly uid: string;
  meta: Meta;
  generation: number | undefined;
  /** ms UTC. */
  createdAt: number;
  isDeleting: boolean;
  /** A read of it alone said so, too. */
  isDeletionRead = false;
  spec: FollowedSpec;
  /** Absent of a long one, of a finished one, and of one whose jobs were all asked for. */
  whole: HtcJobSpec | undefined;
  /** As the server has it, or as it was written last. */
  status: HtcJobStatus | undefined;
  /** The server no longer has it. That alone does not say that somebody deleted it: it may be another server, or an earlier state of it. */
  isGone = false;
  /** The watch told of its deletion. */
  isDeleted = false;
  /** A whole list is without it. */
  isMissing = false;
  /** The database was asked for its jobs. */
  isRestored = false;
  /** It was seen before it had the finalizer. */
  #wasNew = false;
  /** Why the object cannot be run as it is, and why it is not begun. */
  flaw: string | undefined;
  /** Its server takes a status of it, though it has a flaw. */
  hasStatusTaken = false;
  misfit: string | undefined;
  /** Indexes of the attempts whose end was asked for. */
  readonly ending = new Set<number>();
  /** Indexes that were asked for and of which nothing was heard: a pass of the queue may hold their requests in its hand. */
  readonly #offered = new Set<number>();
  /** In how many steps in a row another writer had changed it, as its server said. */
  conflicts = 0;
  /** The last word on why it stands still. */
  said: string | undefined;
  /** Monotonic ms since when its deletion waits, and when that was said last. */
  deletion: { readonly since: number; readonly said: number | undefined } | undefined;
  readonly pace = new WritePace();
  readonly #startAge = new Age();
  readonly #endAge = new Age();
  /** About what one version of the object takes in the store of its server. */
  bytes = 0;
  /** By index of the origin. */
  readonly attempts = new Map<number, JobFacts>();
  /** Return codes that its jobs reported, by job number. */
  readonly reports = new Map<number, number>();
  /** False once all its jobs were asked for: the spec of a retry is read anew. */
  #needsWhole = true;
  /** By job number: the index of the attempt that reported. */
  readonly #reporters = new Map<number, number>();
  /** Its requests that have no worker yet, by index: of those jobs that it may ask for now. */
  asked: ReadonlyMap<number, Request> = new Map();
  /** How many jobs it wants workers for. */
  wanted = 0;
  /** For how many of them it may ask the queue; undefined: no pass of the queue has shared them out yet. */
  turn: number | undefined;
  /** By queue: how many of its attempts live there. */
  readonly livingOn = new Map<string, number>();
  /** Counts what came from outside: a step that began before it has not judged it. */
  changes = 0;
  /** Monotonic ms since when nothing is to be judged; undefined: something is. */
  settledAt: number | undefined;
  /** Monotonic ms since when its first request waits. */
  askedAt: number | undefined;
  /** Why they wait. */
  waiting: Reason | undefined;
  /** How often in a row a Secret was not there. */
  secretLooks = 0;
  /** HTCondor's reason for its first held job. */
  holdReason: string | undefined;
  /** Why no machine takes the first of its jobs for which there is none. */
  noMachine: string | undefined;
  lastWords: Hearer['lastWords'];
  /** The queue that is asked. */
  queue: string | undefined;
  /** Mistakes in it; undefined until it was looked at. */
  problems: readonly SpecProblem[] | undefined;
  /** Nothing of it is left to be done. */
  isForgotten = false;

  constructor(object: Followed) {
    this.uid = object.metadata.uid;
    this.meta = object.metadata;
    this.createdAt = 0;
    this.isDeleting = false;
    this.spec = emptySpec;
    this.update(object);
  }

  /**
   * @param isNewest what the server had last is older than the version that is known: its etcd was restored to an earlier state
   * @returns whether anything is new: the watch tells of our own writes, too.
   */
  update(object: Followed, isNewest = false): boolean {
    const { metadata, spec, status, whole, scriptLength } = object;
    const { namespace, name, uid, resourceVersion, finalizers, hasMoreFinalizers, generation } = metadata;
    if (!isNewest && isOlder(resourceVersion, this.meta.resourceVersion)) return false;
    const isSame = !this.isGone && this.meta.resourceVersion === resourceVersion && this.meta !== metadata;
    this.isGone = false;
    this.isDeleted = false;
    this.isMissing = false;
    if (!isSame) this.hasChanged();
    this.meta = {
      namespace,
      name,
      uid,
      resourceVersion,
      ...(finalizers && { finalizers }),
      ...(hasMoreFinalizers && { hasMoreFinalizers }),
    };
    this.#wasNew ||= !this.hasFinalizer;
    if (this.generation !== generation) {
      this.problems = undefined;
      this.#needsWhole = true;
    }
    this.generation = generation;
    this.createdAt = Date.parse(metadata.creationTimestamp ?? '') || 0;
    this.isDeleting = Boolean(metadata.deletionTimestamp);
    this.isDeletionRead &&= this.isDeleting;
    this.status = status;
    this.flaw = object.flaw;
    this.hasStatusTaken = object.hasStatusTaken === true;
    this.misfit = object.misfit;
    if (this.flaw !== undefined) return !isSame;
    this.bytes = scriptLength + bytesBesideScript + jobCount(spec) * bytesOfJob;
    const isOver = this.isFinished || this.isDeleting || !this.#needsWhole;
    this.whole = isOver ? undefined : whole;
    this.spec = spec;
    return !isSame;
  }

  get name(): string {
    return `${this.meta.namespace}/${this.meta.name}`;
  }

  addFinalizer(): void {
    this.meta = { ...this.meta, finalizers: [...(this.meta.finalizers ?? []), finalizer] };
  }

  /** It is to be judged anew. */
  hasChanged(): void {
    this.changes++;
    this.settledAt = undefined;
  }

  ask(requests: ReadonlyMap<number, Request>): void {
    // Those that it had wait as before.
    if (this.asked.size === 0) this.waiting = undefined;
    this.asked = requests;
    this.secretLooks = 0;
    for (const index of requests.keys()) this.#offered.add(index);
  }

  /** Its turn is over, too. */
  dropRequests(): void {
    this.asked = new Map();
    this.turn = undefined;
  }

  /** @param forGood its script is needed no more */
  stopAsking(forGood: boolean): void {
    this.dropRequests();
    this.askedAt = undefined;
    this.waiting = undefined;
    if (!forGood) return;
    this.whole = undefined;
    this.#needsWhole = false;
  }

  get hasFinalizer(): boolean {
    return this.meta.finalizers?.includes(finalizer) === true;
  }

  /**
   * Whether htc-operator counts its jobs, which puts its finalizer first. Another writer may put counts into any status, and take `factory` out
   * of one: it is ours where our claim is there, or the database has a job that this factory submitted. A job of htc-operator that an import
   * marked is adopted, and nobody submitted it here: its HTCJob waits for the status that the import writes last.
   */
  get isOfHtcOperator(): boolean {
    if (!this.hasFinalizer || this.#wasNew || !isOfHtcOperator(this.status ?? {})) return false;
    if (this.status?.uniqId === this.uid) return false;
    return ![...this.attempts.values()].some(({ submitTime }) => submitTime !== null);
  }

  get isFinished(): boolean {
    return Boolean(this.status?.completionTime);
  }

  /** Whether another writer changed the counts of a finished one, which its numbers of ended jobs contradict. */
  get isFalsified(): boolean {
    if (!this.isFinished || this.flaw !== undefined) return false;
    const { active, held, succeeded, failed, completedIndexes, failedIndexes } = this.status ?? {};
    const count = jobCount(this.spec);
    const [completed, lost] = [
      fromRanges(completedIndexes, count).size,
      fromRanges(failedIndexes, count).size,
    ];
    if (completed + lost !== count) return false;
    return active !== 0 || held !== 0 || succeeded !== completed || failed !== lost;
  }

  /** Whether its jobs may have been submitted. Another writer may have taken the claim out of the status. */
  get isClaimed(): boolean {
    return this.status?.uniqId === this.uid || this.attempts.size > 0;
  }

  /** Whether jobs of it may be this factory's: those that the database has are, whatever its status says. */
  isClaimedBy(factoryId: string): boolean {
    const { uniqId, factory = factoryId } = this.status ?? {};
    return this.attempts.size > 0 || (uniqId === this.uid && factory === factoryId);
  }

  /** Whether it is this factory's beyond doubt, also while another operator holds the Lease: without `factory` in its status both may think so. */
  isSurelyOf(factoryId: string): boolean {
    const { uniqId, factory } = this.status ?? {};
    return this.attempts.size > 0 || (uniqId === this.uid && factory === factoryId);
  }

  get isSuspended(): boolean {
    return this.spec.suspend === true;
  }

  /** A suspension ends the jobs of its round, and begins the next. */
  get round(): number {
    const before = countOf(this.status?.round);
    return this.isSuspended && !this.#wasSuspended ? before + 1 : before;
  }

  /** It was resumed, and its status does not say so yet. */
  get isResumed(): boolean {
    return this.#wasSuspended && !this.isSuspended;
  }

  get #wasSuspended(): boolean {
    const { conditions = [] } = this.status ?? {};
    return conditions.some(({ type, status }) => type === 'Suspended' && status === 'True');
  }

  /** In how many ms its jobs have to end. @param now ms UTC by the clock of the status */
  untilDeadline(now: number, monotonic: number): number | undefined {
    const { activeDeadlineSeconds } = this.spec;
    const started = startOf(this.status);
    if (activeDeadlineSeconds === undefined || started === undefined) return undefined;
    return activeDeadlineSeconds * 1000 - this.#startAge.of(started, now, monotonic);
  }

  /** In how many ms it is to be deleted. @param now ms UTC by the clock of the status */
  untilEndOfLife(now: number, monotonic: number): number | undefined {
    const { ttlSecondsAfterFinished } = this.spec;
    const ended = endOf(this.status);
    if (ttlSecondsAfterFinished === undefined || ended === undefined) return undefined;
    return ttlSecondsAfterFinished * 1000 - this.#endAge.of(ended, now, monotonic);
  }

  /** The status is written. What it says first of its start and of its end is of just now: the clock that says when may be wrong. */
  wrote(status: HtcJobStatus, before: HtcJobStatus | undefined, monotonic: number): void {
    const [started, ended] = [startOf(status), endOf(status)];
    if (started !== undefined && startOf(before) === undefined) this.#startAge.begin(started, monotonic);
    if (ended !== undefined && endOf(before) === undefined) this.#endAge.begin(ended, monotonic);
    this.status = status;
  }

  hear(news: WorkerNews): void {
    const { index } = news.origin;
    this.hasChanged();
    this.#offered.delete(index);
    const before = this.attempts.get(index);
    const after = factsAfter(before, news);
    this.attempts.set(index, after);
    const lived = before !== undefined && !hasEnded(before);
    const change = Number(!hasEnded(after)) - Number(lived);
    if (change !== 0) this.livingOn.set(news.queue, (this.livingOn.get(news.queue) ?? 0) + change);
  }

  judge(isExpired: boolean): Judgement {
    const { spec, status, attempts } = this;
    const count = jobCount(spec);
    const completed = fromRanges(status?.completedIndexes, count);
    const failed = fromRanges(status?.failedIndexes, count);
    const isTakenOver = status?.takenOver === true;
    return judge({
      count,
      round: this.round,
      isSuspended: this.isSuspended,
      isExpired,
      backoffLimit: isTakenOver ? 0 : (spec.backoffLimit ?? 0),
      attempts: isTakenOver ? takenOverFacts({ count, attempts, completed, failed }) : attempts,
      completed,
      failed,
      retried: countOf(status?.retried),
      asked: this.#offered,
    });
  }

  get living(): readonly number[] {
    return [...this.attempts].filter(([, facts]) => !hasEnded(facts)).map(([index]) => index);
  }

  /** Attempts that live, or may come to life: a crash ends the passes, and the database knows all others. */
  get open(): readonly number[] {
    return [...this.living, ...this.#offered];
  }

  /**
   * A job's report counts for the number of its job. Its backend may run one attempt twice, so the last word of the last attempt counts.
   * @returns false for one that comes again or late, and changes nothing
   */
  report(index: number, returnCode: number): boolean {
    const { number } = attemptOf(index);
    if (this.isFinished || number >= jobCount(this.spec)) return false;
    const reporter = this.#reporters.get(number) ?? -1;
    if (index < reporter || (index === reporter && this.reports.get(number) === returnCode)) return false;
    this.hasChanged();
    this.#reporters.set(number, index);
    this.reports.set(number, returnCode);
    return true;
  }

  /** The worker of an attempt that has reported its end, and lives by all that is known. */
  endingWorker(index: number): number | undefined {
    const facts = this.attempts.get(index);
    if (facts === undefined || hasEnded(facts)) return undefined;
    return this.#reporters.get(attemptOf(index).number) === index ? (facts.workerId ?? undefined) : undefined;
  }
}

/** ms UTC by the clock of the status. */
function startOf(status: HtcJobStatus | undefined): number | undefined {
  const started = Date.parse(status?.startTime ?? '');
  return Number.isNaN(started) ? undefined : started;
}

/** When its end was written down here, ms UTC by the clock of the status: the end itself is by clocks of others. */
function endOf({ completionTime = '', conditions = [] }: HtcJobStatus = {}): number | undefined {
  const ended = Date.parse(completionTime);
  if (Number.isNaN(ended)) return undefined;
  const written = conditions.flatMap(({ type, status, lastTransitionTime }) =>
    (type === 'Complete' || type === 'Failed') && status === 'True'
      ? Date.parse(lastTransitionTime) || []
      : [],
  );
  return Math.max(ended, ...written);
}
