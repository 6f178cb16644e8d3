import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import { isOlder } from '../../clients/kubernetes/versions.ts';
import type { Desk, Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import { toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Asking } from './asking.ts';
import { awaitImport } from './await-import.ts';
import type { HtcJobCluster } from './cluster.ts';
import { kept } from './followed.ts';
import { type EventWriter, notesOf } from './events.ts';
import { type JobMaker, problemsOf } from './job-maker.ts';
import type { Outputs } from './output/outputs.ts';
import type { Judged, Judgement } from './judge.ts';
import { LastWordsReader } from './last-words.ts';
import { afterConflicts, longestLook, looks, nextLook } from './looks.ts';
import { Notices } from './notices.ts';
import { countOf } from '../../clients/htcjob/numbers.ts';
import { type HtcJobStatus, writtenStatus } from '../../clients/htcjob/resource.ts';
import { isHeld, isTooLarge, type Leftover, type StatusFacts, statusOf, stoppedBy } from './status.ts';
import { sizeProblems } from './needs.ts';
import type { Tracked } from './tracked.ts';
import { isRefused } from './turns.ts';
import { isDeepStrictEqual } from 'node:util';

export interface StepperParts {
  readonly factoryId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly desk: Desk;
  readonly cluster: HtcJobCluster;
  readonly events: Pick<EventWriter, 'write'>;
  readonly maker: JobMaker;
  readonly outputs: Outputs;
  readonly asking: Asking;
  /** Why jobs of it may live that the database does not have. */
  readonly whyUnlisted: (tracked: Tracked) => Reason | undefined;
  /** What was made so far and is not in the cluster is not ended for that. @throws Error of the memory */
  readonly leaveBehind: () => Promise<void>;
}

/** When the resource needs the next look, ms from now; undefined: when something happens to it. */
type Next = number | undefined;

/**
 * Brings one resource a step on: towards its jobs, its status, or its end. A step reads all from the resource and the database, so a
 * crash at any place repeats a step and nothing more.
 */
export class Stepper {
  readonly #parts: StepperParts;
  readonly #notices: Notices;
  readonly #lastWords: LastWordsReader;

  constructor(parts: StepperParts) {
    this.#parts = parts;
    this.#notices = new Notices(parts);
    this.#lastWords = new LastWordsReader(parts);
  }

  /** @throws KubernetesError, and errors of the database: the step is to be repeated. */
  async step(tracked: Tracked, signal: AbortSignal): Promise<Next> {
    const { factoryId, cluster, clock, maker } = this.#parts;
    if (tracked.isGone) return this.#lose(tracked, signal);
    const { factory = factoryId, uniqId } = tracked.status ?? {};
    if (factory !== factoryId && uniqId === tracked.uid) {
      this.#notices.foreign(tracked, factory, signal);
      return undefined;
    }
    // Its own status may have been spoilt: the database knows whose jobs they are.
    if (tracked.isOfHtcOperator) await this.#restore(tracked);
    if (tracked.isOfHtcOperator) {
      const parts = { ...this.#parts, notices: this.#notices };
      this.#wrote(tracked, await awaitImport(tracked, parts, signal));
      return undefined;
    }
    if (tracked.isDeleting) return this.#finalize(tracked, signal);
    if (tracked.isFinished && !tracked.isFalsified) {
      const isThere = await this.#keepOutputs(tracked, signal);
      return isThere ? this.#afterEnd(tracked, signal) : undefined;
    }
    const flaw = tracked.flaw ?? tracked.misfit;
    if (flaw !== undefined) this.#notices.flawed(tracked, flaw, signal);
    if (tracked.flaw !== undefined && tracked.hasStatusTaken)
      return this.#refuse(tracked, tracked.flaw, signal);
    if (tracked.flaw !== undefined || (tracked.misfit !== undefined && !tracked.isClaimed)) return undefined;
    if (!tracked.hasFinalizer) {
      const version = await cluster.setFinalizer(tracked.meta, true, signal);
      if (!this.#wrote(tracked, version)) return undefined;
      tracked.addFinalizer();
      // Jobs are asked for behind the finalizer and the claim in the status: no job of it can be there.
      if (tracked.status === undefined) tracked.isRestored = true;
    }
    const isLate = (this.#untilDeadline(tracked) ?? Infinity) <= 0;
    if (!isLate && !isUnchecked(tracked) && this.#parts.asking.standsStill(tracked))
      return this.#nextLook(tracked, isLate);
    const { changes } = tracked;
    tracked.settledAt = undefined;
    await this.#restore(tracked);
    // Jobs that were submitted run on, whatever a later version or other settings would say of their spec. No job runs of a size that no
    // machine has: an earlier version claimed such a HTCJob, and its queue would refuse it for good.
    if (isUnchecked(tracked)) {
      const spec = await this.#parts.asking.spec(tracked, signal);
      if (spec === undefined) return looks.waiting;
      tracked.problems = tracked.isClaimed ? sizeProblems(spec.requests) : problemsOf(spec, maker);
    }
    const problems = tracked.problems ?? [];
    const judgement = tracked.judge(isLate || problems.length > 0);
    const round = countOf(tracked.status?.round);
    // While the server takes no write and gives no answer none is begun, either: a pass of the queue may be about to submit one that was
    // asked for.
    if (isLate || tracked.isSuspended) this.#parts.asking.stop(tracked, false);
    // The next round is on record before the jobs of this one end, and the end of a suspension before new ones are asked for.
    if (tracked.round > round || tracked.isResumed) {
      const isThere = await this.#write(tracked, this.#status(tracked, judgement, undefined), signal);
      return isThere ? 0 : undefined;
    }
    this.#parts.outputs.want(tracked, judgement);
    const toEnd = isLate ? tracked.open : judgement.toEnd;
    const over = `the activeDeadlineSeconds of HTCJob ${tracked.name} are over`;
    const why = isLate ? over : `HTCJob ${tracked.name} is suspended`;
    if (!(await this.#endIfUnchanged(tracked, toEnd, why, signal))) return 0;
    if (!(await this.#ask(tracked, judgement, signal))) return looks.waiting;
    tracked.holdReason = await this.#wordsOf(judgement.jobs.find(isHeld), 'HoldReason');
    tracked.noMachine = await this.#wordsOf(judgement.jobs.find(isTooLarge), 'Waiting');
    const stopped = stoppedBy(tracked.spec, problems, isLate);
    if (judgement.isOver && stopped === undefined) await this.#lastWords.hear(tracked, judgement, signal);
    const status = this.#status(tracked, judgement, stopped);
    if (!isSame(tracked.status, status)) {
      const pause = status.completionTime === undefined ? tracked.pace.pause(clock.monotonic()) : 0;
      if (pause > 0) return pause;
      if (!(await this.#write(tracked, status, signal))) return undefined;
    }
    if (status.completionTime !== undefined) return this.#afterEnd(tracked, signal);
    if (tracked.changes === changes) tracked.settledAt = clock.monotonic();
    return this.#nextLook(tracked, isLate);
  }

  /** Ends one that can never run: whoever waits for its end by its status waits no longer. */
  async #refuse(tracked: Tracked, flaw: string, signal: AbortSignal): Promise<Next> {
    await this.#restore(tracked);
    if (tracked.isClaimed) return undefined;
    const stopped = stoppedBy(tracked.spec, [{ at: '/spec/script/command', message: flaw }], false);
    await this.#write(tracked, this.#status(tracked, tracked.judge(true), stopped), signal);
    return undefined;
  }

  /** ms UTC by the clock of the status. */
  #now(): number {
    const { clock, cluster } = this.#parts;
    return cluster.now(clock.now());
  }

  #untilDeadline(tracked: Tracked): number | undefined {
    return tracked.untilDeadline(this.#now(), this.#parts.clock.monotonic());
  }

  #nextLook(tracked: Tracked, isLate: boolean): Next {
    const left = isLate ? Infinity : (this.#untilDeadline(tracked) ?? Infinity);
    const next = Math.min(nextLook(tracked), left === Infinity ? Infinity : Math.min(left, longestLook));
    return next === Infinity ? undefined : next;
  }

  #status(tracked: Tracked, judgement: Judgement, stopped: StatusFacts['stopped']): HtcJobStatus {
    const status = statusOf({
      uid: tracked.uid,
      generation: tracked.generation,
      factory: this.#parts.factoryId,
      isClaimed: tracked.isClaimed,
      round: tracked.round,
      isSuspended: tracked.isSuspended,
      judgement,
      waiting: tracked.waiting,
      holdReason: tracked.holdReason,
      noMachine: tracked.noMachine,
      lastWords: tracked.lastWords?.said,
      stopped,
      reports: tracked.reports,
      before: tracked.status,
      now: this.#now(),
    });
    return this.#parts.outputs.inStatus(tracked, status);
  }

  /** Outputs come after the end, too, and after a restart. @returns false where the resource is gone */
  async #keepOutputs(tracked: Tracked, signal: AbortSignal): Promise<boolean> {
    const { outputs } = this.#parts;
    if (tracked.status === undefined || !outputs.isOpen(tracked)) return true;
    await this.#restore(tracked);
    outputs.want(tracked, tracked.judge(true));
    const status = outputs.inStatus(tracked, tracked.status);
    return isSame(tracked.status, status) || this.#write(tracked, status, signal);
  }

  /** @returns false where it is gone, or has changed since */
  async #write(tracked: Tracked, status: HtcJobStatus, signal: AbortSignal): Promise<boolean> {
    const before = tracked.status;
    tracked.pace.wrote(tracked.bytes, this.#parts.clock.monotonic());
    const version = await this.#parts.cluster.applyStatus(tracked.meta, status, signal);
    const isLast = this.#wrote(tracked, version);
    if (isLast) tracked.wrote(status, before, this.#parts.clock.monotonic());
    if (!tracked.isGone) this.#parts.events.write(tracked.meta, notesOf(before, status), signal);
    return isLast;
  }

  /** @returns false where it is gone, or where the watch told first of what another writer wrote behind us, which has a step of its own */
  #wrote(tracked: Tracked, version: string | undefined): boolean {
    if (version === undefined) tracked.isGone = true;
    else if (isOlder(version, tracked.meta.resourceVersion)) return false;
    else tracked.meta = { ...tracked.meta, resourceVersion: version };
    return version !== undefined;
  }

  async #restore(tracked: Tracked): Promise<void> {
    if (tracked.isRestored) return;
    for (const news of await this.#parts.desk.find([{ uid: tracked.uid }])) tracked.hear(news);
    tracked.isRestored = true;
  }

  /**
   * Its users may have changed it, and what is known of it may be old: nothing tells of a watch that hangs, and a list may be of a server that is
   * behind. So it is read once more before anything of it is ended or deleted.
   * @returns whether it is there, and as it is known; else its next step decides by what was read
   * @throws KubernetesError: while nothing answers, nothing is ended
   */
  async #isUnchanged(tracked: Tracked, signal: AbortSignal): Promise<boolean> {
    const { resourceVersion } = tracked.meta;
    const object = await this.#parts.cluster.read(tracked.meta, signal);
    // The watch may have told of it meanwhile.
    if (tracked.isGone || tracked.meta.resourceVersion !== resourceVersion) return false;
    if (object === undefined) tracked.isGone = true;
    else if (object.metadata.resourceVersion !== resourceVersion) tracked.update(kept(object), true);
    else return true;
    return false;
  }

  /** @returns false where nothing was ended, since it is gone or has changed */
  async #endIfUnchanged(
    tracked: Tracked,
    indexes: readonly number[],
    why: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (indexes.every((index) => tracked.ending.has(index))) return true;
    if (!(await this.#isUnchanged(tracked, signal))) return false;
    await this.#end(tracked, indexes, why);
    return true;
  }

  async #end(tracked: Tracked, indexes: readonly number[], why: string): Promise<void> {
    const { uid, ending } = tracked;
    const fresh = indexes.filter((index) => !ending.has(index));
    if (fresh.length === 0) return;
    await this.#parts.desk.end(
      fresh.map((index) => ({ uid, index })),
      why,
    );
    for (const index of fresh) ending.add(index);
  }

  /** What HTCondor says of a job, by this part of its worker's details. */
  async #wordsOf(job: Judged | undefined, part: 'HoldReason' | 'Waiting'): Promise<string | undefined> {
    const workerId = job?.facts?.workerId;
    const detail = workerId == null ? undefined : await this.#parts.desk.detail(workerId);
    const words = (detail as Readonly<Record<string, unknown>> | undefined)?.[part];
    // They are of HTCondor and of what it ran, and everybody who may read the HTCJob reads them.
    return typeof words === 'string' ? fromOutside(words) : undefined;
  }

  /** @returns false where the resource is gone, or has changed since */
  async #ask(tracked: Tracked, judgement: Judgement, signal: AbortSignal): Promise<boolean> {
    const { asking } = this.#parts;
    const wanted = judgement.jobs.flatMap(({ outcome, index }) => (outcome === 'wanted' ? [index] : []));
    tracked.wanted = wanted.length;
    if (wanted.length > 0)
      return asking.ask(tracked, wanted, () => this.#claim(tracked, judgement, signal), signal);
    asking.stop(
      tracked,
      judgement.jobs.every(({ outcome }) => outcome !== 'waits'),
    );
    return true;
  }

  /**
   * From here on its spec cannot change any more: jobs are made of the spec that users see. Up to here it can, so that they correct it.
   * @returns false where it is gone, or has changed since
   */
  async #claim(tracked: Tracked, judgement: Judgement, signal: AbortSignal): Promise<boolean> {
    if (tracked.status?.uniqId === tracked.uid) return true;
    tracked.waiting = undefined;
    return this.#write(
      tracked,
      { ...this.#status(tracked, judgement, undefined), uniqId: tracked.uid },
      signal,
    );
  }

  async #afterEnd(tracked: Tracked, signal: AbortSignal): Promise<Next> {
    this.#parts.asking.stop(tracked, true);
    // A pass may have submitted one after all, before a crash or while the deadline went by.
    if (!(await this.#endIfUnchanged(tracked, tracked.open, `HTCJob ${tracked.name} has ended`, signal)))
      return 0;
    const left = tracked.untilEndOfLife(this.#now(), this.#parts.clock.monotonic());
    if (left === undefined) return undefined;
    if (left > 0) return Math.min(left, longestLook);
    if (!(await this.#isUnchanged(tracked, signal))) return 0;
    await this.#parts.cluster.delete(tracked.meta, signal);
    return looks.failed;
  }

  /**
   * thresher itself lets a HTCJob go, once its jobs have ended. Where another client took the finalizer away, the watch says that it was deleted,
   * and the server that it is not there: one word of a watch ends nothing. A server that merely does not have it may be another one at the same address, or have had its etcd restored: nobody deleted anything.
   */
  async #lose(tracked: Tracked, signal: AbortSignal): Promise<Next> {
    this.#parts.asking.stop(tracked, true);
    if (tracked.isDeleting && tracked.isDeletionRead) return this.#endLost(tracked);
    if (tracked.isDeleting || tracked.isDeleted || !tracked.isMissing)
      return this.#findAgain(tracked, signal);
    if (tracked.isClaimedBy(this.#parts.factoryId)) await this.#parts.leaveBehind();
    // It may have come back meanwhile.
    if (!tracked.isGone) return 0;
    this.#parts.outputs.letGo(tracked);
    tracked.isForgotten = true;
    return undefined;
  }

  /**
   * Either a request or the watch alone says that it is gone: a server behind the others answered, or the watch is one. What it is now
   * decides, and while nothing answers it is asked for again.
   */
  async #findAgain(tracked: Tracked, signal: AbortSignal): Promise<Next> {
    const { isDeleting, isDeleted, isMissing } = tracked;
    const object = await this.#parts.cluster.read(tracked.meta, signal);
    // The watch may have told of it meanwhile.
    if (!tracked.isGone || tracked.isDeleted !== isDeleted || tracked.isMissing !== isMissing) return 0;
    if (object === undefined) return isDeleting || isDeleted ? this.#endLost(tracked) : looks.failed;
    tracked.update(kept(object), true);
    return 0;
  }

  async #endLost(tracked: Tracked): Promise<Next> {
    const unlisted = this.#whyUnlisted(tracked);
    await this.#restore(tracked);
    await this.#end(tracked, tracked.open, `HTCJob ${tracked.name} is gone`);
    if (!tracked.isGone) return 0;
    // They may be over before its outputs are removed.
    const ended = 'jobs of a HTCJob that was removed without its finalizer were ended';
    if (tracked.living.length > 0 && tracked.said !== ended) {
      tracked.said = ended;
      this.#parts.log.warn(ended, { htcjob: tracked.name });
    }
    // It stays known until a listing has shown its jobs: nothing else would end them then.
    if (unlisted !== undefined) {
      tracked.isRestored = false;
      return looks.failed;
    }
    if (this.#parts.outputs.remove(tracked) !== undefined) return looks.failed;
    tracked.isForgotten = true;
    return undefined;
  }

  /**
   * Why jobs of it may live that the database does not have, as after its loss: a listing adopts them. It counts as it was before the database
   * was asked.
   */
  #whyUnlisted(tracked: Tracked): Reason | undefined {
    // Of a finished one no job lives.
    const mayLive = tracked.isClaimedBy(this.#parts.factoryId) && !tracked.isFinished;
    return mayLive ? this.#parts.whyUnlisted(tracked) : undefined;
  }

  /** Says in the status of a deleted resource what it waits for. */
  async #waitToGo(tracked: Tracked, what: Leftover, signal: AbortSignal): Promise<Next> {
    const { clock } = this.#parts;
    const status = this.#notices.kept(tracked, what, { now: this.#now(), monotonic: clock.monotonic() });
    if (status !== undefined && !isSame(tracked.status, status)) await this.#write(tracked, status, signal);
    return looks.finalizing;
  }

  /**
   * Says in the status of a deleted resource what its server refuses, where it takes that.
   * @throws what it said: the step is to be repeated
   */
  async #orSay<T>(
    tracked: Tracked,
    left: Leftover['left'],
    asked: Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      const isOrdinary =
        isKubernetesError(error, 'kubernetes-conflict') && !afterConflicts(tracked.conflicts + 1).isNews;
      if (!signal.aborted && !isOrdinary)
        await this.#waitToGo(tracked, { left, whys: [toReason(error)] }, signal).catch(() => undefined);
      throw error;
    }
  }

  /** Jobs, spool and files go first, and then the resource. */
  async #finalize(tracked: Tracked, signal: AbortSignal): Promise<Next> {
    const { desk, cluster, log } = this.#parts;
    this.#parts.asking.stop(tracked, true);
    this.#parts.outputs.letGo(tracked);
    const unlisted = this.#whyUnlisted(tracked);
    await this.#restore(tracked);
    // One word of a list or a watch ends nothing. Nothing takes a deletion back, so that it is asked about once.
    const hasMore = tracked.open.length > 0 || (tracked.hasFinalizer && tracked.isClaimed);
    if (hasMore && !tracked.isDeletionRead) {
      const read = this.#isUnchanged(tracked, signal);
      if (!(await this.#orSay(tracked, 'read', read, signal))) return 0;
      tracked.isDeletionRead = true;
    }
    await this.#end(tracked, tracked.open, `HTCJob ${tracked.name} was deleted`);
    if (!tracked.hasFinalizer) return undefined;
    const left = await desk.discard(tracked.uid, true);
    if (left > 0) {
      const reasons = [...tracked.attempts.values()].map(({ workerId }) => desk.whyLeft(workerId ?? 0));
      // Of a queue that cannot run no worker says why it is left.
      const whys = [reasons.find((reason) => reason !== undefined), unlisted];
      return this.#waitToGo(tracked, { left, whys }, signal);
    }
    if (unlisted !== undefined) return this.#waitToGo(tracked, { left: 'listing', whys: [unlisted] }, signal);
    const outputs = tracked.isClaimed ? this.#parts.outputs.remove(tracked) : undefined;
    if (outputs !== undefined) {
      await this.#waitToGo(tracked, { left: 'outputs', whys: [outputs.why] }, signal);
      return looks.failed;
    }
    const change = cluster.setFinalizer(tracked.meta, false, signal);
    const version = await this.#orSay(tracked, 'finalizer', change, signal);
    if (version === undefined) {
      // A server that is behind the others may have said so: it is asked once more.
      const read = this.#isUnchanged(tracked, signal);
      const isSame = await this.#orSay(tracked, 'finalizer', read, signal);
      if (!tracked.isGone) {
        log.warn(
          'a deleted HTCJob is there, though its server did not know it when its finalizer was to go',
          {
            htcjob: tracked.name,
          },
        );
        return isSame ? looks.failed : 0;
      }
    }
    log.info('HTCJob deleted', { htcjob: tracked.name });
    tracked.isForgotten = true;
    return undefined;
  }
}

/** Whether it is still to be looked for mistakes: before it is claimed, and where its queue refuses its jobs all the same. */
function isUnchecked(tracked: Tracked): boolean {
  return tracked.problems === undefined && (!tracked.isClaimed || isRefused(tracked));
}

/**
 * Whether a status says the same as it is written: times of conditions follow from the rest. Both are compared without our own secrets: what the
 * server keeps has none, and one that puts them back in all that it gives must not be written to for ever.
 */
function isSame(known: HtcJobStatus | undefined, wanted: HtcJobStatus): boolean {
  if (known === undefined) return false;
  const [before, after] = [writtenStatus(known), writtenStatus(wanted)];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)] as (keyof HtcJobStatus)[]);
  return [...keys].every((key) => sameValue(before[key], after[key]));
}

/** The server leaves out empty lists, and may give objects back with their keys in another order. */
function sameValue(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) || Array.isArray(other)) return isDeepStrictEqual(one ?? [], other ?? []);
  return one === other;
}
