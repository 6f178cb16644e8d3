import type { Request } from '../../plugins/contracts/index.ts';
import { isOlder } from '../../clients/kubernetes/versions.ts';
import type { OriginKey, WorkerNews } from '../../worker/news.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Meta } from './cluster.ts';
import { factsAfter, hasEnded, type JobFacts } from './facts.ts';
import { judge, type Judgement } from './judge.ts';
import { attemptOf, fromRanges, indexOf } from '../../clients/htcjob/numbers.ts';
import {
  finalizer,
  type HtcJob,
  type HtcJobSpec,
  type HtcJobStatus,
  jobCount,
  type SpecProblem,
} from '../../clients/htcjob/resource.ts';

/** A resource as the operator follows it, with all that is known of its jobs. */
export class Tracked {
  readonly uid: string;
  meta: Meta;
  generation: number | undefined;
  /** ms UTC. */
  createdAt: number;
  isDeleting: boolean;
  /** Absent of a finished one, and of one whose jobs were all asked for: a script may have 1 MB. */
  source: string | undefined;
  spec: HtcJobSpec;
  /** As the server has it, or as it was written last. */
  status: HtcJobStatus | undefined;
  /** The server no longer has it. */
  isGone = false;
  /** The database was asked for its jobs. */
  isRestored = false;
  /** The end of all its jobs was asked for. */
  isEnding = false;
  /** By index of the origin. */
  readonly attempts = new Map<number, JobFacts>();
  /** Return codes that its jobs reported, by job number. */
  readonly reports = new Map<number, number>();
  /** Its requests that have no worker yet, by index. */
  asked: ReadonlyMap<number, Request> = new Map();
  /** Monotonic ms since when requests of it wait. */
  askedAt: number | undefined;
  /** Why they wait. */
  waiting: Reason | undefined;
  /** HTCondor's reason for its first held job. */
  holdReason: string | undefined;
  /** The queue that is asked. */
  queue: string | undefined;
  /** Mistakes in it; undefined until it was looked at. */
  problems: readonly SpecProblem[] | undefined;
  /** Nothing of it is left to be done. */
  isForgotten = false;

  constructor(object: HtcJob) {
    this.uid = object.metadata.uid;
    this.meta = object.metadata;
    this.createdAt = 0;
    this.isDeleting = false;
    this.spec = object.spec;
    this.update(object);
  }

  /** @returns whether anything is new: the watch tells of our own writes, too. */
  update(object: HtcJob): boolean {
    const { metadata, spec, status } = object;
    const { namespace, name, uid, resourceVersion, finalizers, generation } = metadata;
    if (isOlder(resourceVersion, this.meta.resourceVersion)) return false;
    const isSame = this.meta.resourceVersion === resourceVersion && this.meta !== metadata;
    this.meta = { namespace, name, uid, resourceVersion, ...(finalizers && { finalizers }) };
    this.generation = generation;
    this.createdAt = Date.parse(metadata.creationTimestamp ?? '') || 0;
    this.isDeleting = metadata.deletionTimestamp !== undefined;
    this.status = status;
    const { source } = spec.script;
    this.source = this.isFinished || this.isDeleting ? undefined : source;
    // What is kept of thousands of them is small.
    this.spec = { ...spec, script: { ...spec.script, source: '' } };
    return !isSame;
  }

  get name(): string {
    return `${this.meta.namespace}/${this.meta.name}`;
  }

  addFinalizer(): void {
    this.meta = { ...this.meta, finalizers: [...(this.meta.finalizers ?? []), finalizer] };
  }

  /** @param forGood its script is needed no more */
  stopAsking(forGood: boolean): void {
    this.asked = new Map();
    this.askedAt = undefined;
    this.waiting = undefined;
    if (forGood) this.source = undefined;
  }

  get hasFinalizer(): boolean {
    return this.meta.finalizers?.includes(finalizer) === true;
  }

  get isFinished(): boolean {
    return this.status?.completionTime !== undefined;
  }

  /** Whether another writer changed the counts of a finished one, which its numbers of ended jobs contradict. */
  get isFalsified(): boolean {
    const { active, held, succeeded, failed, completedIndexes, failedIndexes } = this.status ?? {};
    const count = jobCount(this.spec);
    const [completed, lost] = [
      fromRanges(completedIndexes, count).size,
      fromRanges(failedIndexes, count).size,
    ];
    if (!this.isFinished || completed + lost !== count) return false;
    return active !== 0 || held !== 0 || succeeded !== completed || failed !== lost;
  }

  get isSuspended(): boolean {
    return this.spec.suspend === true;
  }

  /** A suspension ends the jobs of its round, and begins the next. */
  get round(): number {
    const before = this.status?.round ?? 0;
    const wasSuspended = this.status?.conditions?.some(
      ({ type, status }) => type === 'Suspended' && status === 'True',
    );
    return this.isSuspended && wasSuspended !== true ? before + 1 : before;
  }

  /** When its jobs have to end, ms UTC. */
  get deadline(): number | undefined {
    const { activeDeadlineSeconds } = this.spec;
    const started = Date.parse(this.status?.startTime ?? '');
    if (activeDeadlineSeconds === undefined || Number.isNaN(started)) return undefined;
    return started + activeDeadlineSeconds * 1000;
  }

  /** When it is to be deleted, ms UTC. */
  get endOfLife(): number | undefined {
    const { ttlSecondsAfterFinished } = this.spec;
    const ended = Date.parse(this.status?.completionTime ?? '');
    if (ttlSecondsAfterFinished === undefined || Number.isNaN(ended)) return undefined;
    return ended + ttlSecondsAfterFinished * 1000;
  }

  hear(news: WorkerNews): void {
    const { index } = news.origin;
    this.attempts.set(index, factsAfter(this.attempts.get(index), news));
  }

  judge(isExpired: boolean): Judgement {
    const { spec, status } = this;
    const count = jobCount(spec);
    return judge({
      count,
      round: this.round,
      isSuspended: this.isSuspended,
      isExpired,
      backoffLimit: spec.backoffLimit ?? 0,
      attempts: this.attempts,
      completed: fromRanges(status?.completedIndexes, count),
      failed: fromRanges(status?.failedIndexes, count),
      retried: status?.retried ?? 0,
    });
  }

  /** Every origin that may have been asked for. */
  get origins(): readonly OriginKey[] {
    const indexes = new Set([...this.attempts.keys(), ...this.asked.keys()]);
    for (let round = 0; round <= this.round; round++)
      for (let number = 0; number < jobCount(this.spec); number++)
        indexes.add(indexOf({ round, attempt: 0, number }));
    return [...indexes].map((index) => ({ uid: this.uid, index }));
  }

  get living(): readonly OriginKey[] {
    return [...this.attempts]
      .filter(([, facts]) => !hasEnded(facts))
      .map(([index]) => ({ uid: this.uid, index }));
  }

  /** A job's report counts for the number of its job, whichever attempt it was. @returns whether it is of use */
  report(index: number, returnCode: number): boolean {
    const { number } = attemptOf(index);
    if (this.isFinished || number >= jobCount(this.spec)) return false;
    this.reports.set(number, returnCode);
    return true;
  }
}
