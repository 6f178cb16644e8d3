import { join, resolve } from 'node:path';
import { jobIdText, parseJobId, whereJobs } from '../../clients/htcondor/classad.ts';
import { HTCondorError } from '../../clients/htcondor/errors.ts';
import { beginningFromOutside } from '../../util/beginning.ts';
import { eachGivingWay, givingWay } from '../../util/clock.ts';
import { removeTree } from '../../util/remove-tree.ts';
import { toReason } from '../../worker/errors.ts';
import type { Worker, WorkerError } from '../../worker/worker.ts';
import type { Found, GoneOutcome, Sweeper } from '../contracts/sweeper.ts';
import type { Asked } from './job-queue.ts';
import type { HTCondorSchedd } from './schedd.ts';
import { disputed, followed, inQueue, isHalf, queuedOf, wasNeverWhole, whereSame } from './look-up.ts';
import { type Job, marks } from './marks.ts';
import type { OptionsOf } from './monitor.ts';
import { SpooledOutputs } from './output/spooled.ts';
import type { HTCondorDaemon } from './schema.ts';
import { stateOf } from './state/job-state.ts';
import { isRemoved, removalReasonOf } from './state/removals.ts';

export interface SweeperParts {
  readonly schedd: HTCondorSchedd;
  readonly daemon: HTCondorDaemon;
  readonly options: OptionsOf;
}

/** How long one call waits for jobs that it removed, ms. A slower job is `pending`, and the next call goes on. */
const patience = { kill: 5000, remove: 20_000 };
/** Between two looks, ms: each is a process of its own, and a question to the schedd. Once a job has gone, its user waits for the answer. */
const pauses = { first: 200, longest: 2000, longestBehindGone: 500 };
/** No further job has gone for so long since the last one, ms: the others take their time, and a call reports what has gone. */
const still = 1000;
/** Jobs of one command: an argument has its longest, and a schedd does nothing else meanwhile. */
const atOnce = 500;

const removalAttributes: readonly string[] = [
  ...['ClusterId', 'ProcId', 'JobStatus', 'LastJobStatus', 'EnteredCurrentStatus', 'HoldReason'],
  ...['QDate', marks.worker],
];

const [removed, completed] = [3, 4];

/** The sweeper waits for an end that comes by itself; one that an operator has to see to is a failure. */
function keptOr(reason: WorkerError): GoneOutcome {
  return reason.code === 'late-creation' ? { kind: 'pending', reason } : { kind: 'failed', error: reason };
}

/** When a job was submitted, and the worker that its mark names: by these it is the one that was listed. Undefined where that is not known. */
function stampOf({ queuedAt, workerId }: Job): string | undefined {
  return queuedAt === undefined ? undefined : `${queuedAt} ${workerId ?? 'no worker'}`;
}

/** @throws HTCondorError where it cannot be said whether this job, which has the number of an orphan, is that one */
function isListed(job: Job, stamp: string | undefined): boolean {
  const now = stampOf(job);
  if (now !== undefined && stamp !== undefined) return now === stamp;
  const message = `job ${jobIdText(job.id)} has no QDate that is a number, so it cannot be said whether it is the orphan that was listed: see what it is, and remove it with condor_rm`;
  throw new HTCondorError({ code: 'condor-answer', message, maybeDone: false });
}

/** Removes jobs many at once by their marks, and says gone when the queue has them no more. */
export class HTCondorSweeper implements Sweeper {
  readonly #parts: SweeperParts;
  readonly #spooled: SpooledOutputs;

  constructor(parts: SweeperParts) {
    this.#parts = parts;
    this.#spooled = new SpooledOutputs(parts);
  }

  async kill(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { schedd } = this.#parts;
    // A submission that has not begun must not begin any more.
    const open = workers.filter(({ handle }) => handle === undefined);
    for (const { workerId, attempt } of open)
      schedd.fenced.set(workerId, Math.max(attempt, schedd.fenced.get(workerId) ?? 0));
    const living =
      open.length === 0
        ? new Map<number, WorkerError>()
        : await schedd.submits.end(new Set(open.map(({ workerId }) => workerId)), signal);
    const sure = workers.filter(({ workerId }) => !living.has(workerId));
    // One that has ended by itself is not to be removed before its end was seen.
    const lives = `JobStatus =!= ${completed}`;
    const outcomes = await this.#removeAll(sure, { which: lives, patience: patience.kill }, signal);
    const failed = [...living].map(([workerId, error]) => [workerId, { kind: 'failed', error }] as const);
    return new Map<number, GoneOutcome>([...outcomes, ...failed]);
  }

  async remove(
    workers: readonly Worker[],
    signal: AbortSignal,
    isUnwanted = false,
  ): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { schedd, daemon } = this.#parts;
    // A job submitted after the removal would run: each `condor_submit` has to have ended first.
    const unfinished = await schedd.submits.unfinished(new Set(workers.map(({ workerId }) => workerId)));
    const ended = workers.filter(({ workerId }) => !unfinished.has(workerId));
    const none = new Map<number, WorkerError>();
    const { awaited, unanswered } = isUnwanted
      ? { awaited: none, unanswered: none }
      : await this.#fetched(ended, signal);
    const over = ended.filter(({ workerId }) => !awaited.has(workerId) && !unanswered.has(workerId));
    const how = { which: 'true', patience: patience.remove };
    const outcomes = new Map(await this.#removeAll(over, how, signal));
    for (const [workerId, reason] of unfinished) outcomes.set(workerId, keptOr(reason));
    for (const [workerId, reason] of awaited) outcomes.set(workerId, { kind: 'pending', reason });
    for (const [workerId, error] of unanswered) outcomes.set(workerId, { kind: 'failed', error });
    await this.#dropFiles(outcomes);
    for (const { workerId, queue, configId } of over) {
      if (outcomes.get(workerId)?.kind !== 'gone') continue;
      schedd.refused.delete(workerId);
      this.#spooled.forget(workerId);
      const { configDir = '', sweeper } = daemon.queue(queue, configId) ?? {};
      if (sweeper?.preparatorBasePath === undefined) continue;
      const directory = join(resolve(configDir, sweeper.preparatorBasePath), String(workerId));
      try {
        await removeTree(directory, schedd.files);
      } catch (error) {
        outcomes.set(workerId, { kind: 'failed', error: toReason(error) });
      }
    }
    return outcomes;
  }

  async list(
    signal: AbortSignal,
    isAlive: (workerId: number) => boolean = () => false,
  ): Promise<readonly Found[]> {
    const { schedd, daemon, options } = this.#parts;
    await schedd.submits.endEarlier(signal);
    const started = await schedd.jobQueue.started(signal);
    const all = await inQueue(schedd, 'true', signal, [...followed, marks.identity]);
    // The jobs of another queue are no orphans, and the workers of this one are not missing.
    await schedd.jobQueue.require(started, signal);
    // A removed job may run until it has left the queue. It is left out where it is no worker's, or where nothing of it runs: nothing is left to do then.
    const mayRun = (job: Job) => {
      const id = jobIdText(job.id);
      const isOver = schedd.jobs.endOf(id) !== undefined && !schedd.jobs.isDoubtful(id);
      return job.identity !== undefined && !wasNeverWhole(job) && !isOver;
    };
    const jobs = all.filter((job) => job.ad.JobStatus !== removed || mayRun(job));
    const now = daemon.clock.now();
    const { others } = await schedd.owners.part(jobs, signal);
    const { unanswered } = schedd.owners;
    const isOfNone = ({ workerId }: Job) => workerId === undefined || !isAlive(workerId);
    const unclear = others.filter(isOfNone);
    // Workers of a database that was lost would be taken for jobs of others, and be started a second time.
    if (unclear[0] !== undefined && unanswered !== undefined) {
      const message = `it cannot be said whose ${unclear.length} jobs on ${schedd.submissionHost} are, such as ${jobIdText(unclear[0].id)}: ${unanswered.message}`;
      throw new HTCondorError({ code: unanswered.code, message, maybeDone: false });
    }
    const foreign = new Set(others);
    // Jobs of living workers are most likely ours, and are looked up by their numbers or marks. A job that others removed is nobody's to see to.
    const listed = jobs.filter(
      (job) => !foreign.has(job) || (unanswered === undefined && job.ad.JobStatus !== removed),
    );
    return eachGivingWay(givingWay(daemon.clock), listed, (job): Found => {
      const { id, identity, ad, workerId, queue, configId, owner = '' } = job;
      const place = `${schedd.submissionHost} ${jobIdText(id)}`;
      const handle = { batchID: jobIdText(id), submissionHost: schedd.submissionHost };
      const stamp = stampOf(job);
      const here = { place, handle, ...(stamp !== undefined && { stamp }) };
      if (foreign.has(job)) {
        const damage = `it is of user ${beginningFromOutside(owner, 200)}, as whom thresher does not submit`;
        // thresher may have submitted it, as a user that it was before its state directory was made.
        return { ...here, damage, isDoubtful: true };
      }
      // By whichever name the schedd is called, it is the same job.
      if (identity === undefined || workerId === undefined)
        return { ...here, handle: { batchID: jobIdText(id) } };
      // Its files may never come: whether it is one at all is for the submitter to say.
      if (isHalf(job)) return { ...here, identity };
      const { heldTimeout } = options(queue, configId);
      const state = stateOf(workerId, ad, now, { heldTimeout, queued: true });
      return { ...here, identity, ...(state && { observation: state.observation }) };
    });
  }

  async removeOrphan({ handle, stamp }: Found, signal: AbortSignal): Promise<GoneOutcome> {
    const id = parseJobId(handle.batchID);
    if (id === undefined) return { kind: 'gone' };
    const { schedd } = this.#parts;
    try {
      const started = await schedd.jobQueue.started(signal);
      const jobs = async () => {
        const there = await inQueue(schedd, whereJobs([id]), signal, removalAttributes);
        // A number has another job in another queue, and a mark may have been given to this one since.
        return there.filter((job) => isListed(job, stamp));
      };
      const listed = await jobs();
      await schedd.jobQueue.require(started, signal);
      await this.#act(listed, signal);
      const left = await this.#untilGone(jobs, listed, patience.kill, signal);
      return left.length > 0 ? { kind: 'pending' } : await this.#gone(started, signal);
    } catch (error) {
      return { kind: 'failed', error: toReason(error) };
    }
  }

  /** What is true of jobs that are not in the queue. */
  async #gone(started: Asked | undefined, signal: AbortSignal): Promise<GoneOutcome> {
    try {
      await this.#parts.schedd.jobQueue.require(started, signal);
      return { kind: 'gone' };
    } catch (error) {
      return { kind: 'failed', error: toReason(error) };
    }
  }

  /**
   * Fetches what workers left in the spool.
   * @returns those whose output is still to come, or to be taken by its source; and those of which the schedd does not say it
   */
  async #fetched(
    workers: readonly Worker[],
    signal: AbortSignal,
  ): Promise<Record<'awaited' | 'unanswered', ReadonlyMap<number, WorkerError>>> {
    const { givenUp, open, unanswered } = await this.#spooled.fetch(workers, signal);
    const reasons = new Map<number, WorkerError>();
    for (const [workerId, message] of open) reasons.set(workerId, { code: 'output-awaited', message });
    const settled = workers.filter(({ workerId }) => !open.has(workerId) && !unanswered.has(workerId));
    return { awaited: new Map([...reasons, ...(await this.#awaited(settled, givenUp))]), unanswered };
  }

  /** Workers that left an output which their source has not taken yet. */
  async #awaited(
    workers: readonly Worker[],
    unfetched: ReadonlyMap<number, WorkerError>,
  ): Promise<ReadonlyMap<number, WorkerError>> {
    const { schedd, daemon } = this.#parts;
    const reasons = new Map<number, WorkerError>();
    for (const { workerId, origin } of workers) {
      const failure = unfetched.get(workerId);
      const mayCome = failure !== undefined;
      if (!(await schedd.outputs.isAwaited(workerId, daemon.clock, mayCome))) continue;
      const message =
        failure === undefined
          ? `source ${origin.kind} has not taken the output of worker ${workerId} yet`
          : `the output of worker ${workerId} cannot be fetched yet: ${failure.message}`;
      reasons.set(workerId, { code: 'output-awaited', message });
    }
    return reasons;
  }

  /** A payload or an output that cannot be removed keeps its worker, and no other: the next call tries again. */
  async #dropFiles(outcomes: Map<number, GoneOutcome>): Promise<void> {
    const { bundles, outputs } = this.#parts.schedd;
    const gone = [...outcomes].filter(([, { kind }]) => kind === 'gone').map(([workerId]) => workerId);
    const failed = (error: unknown): GoneOutcome => ({ kind: 'failed', error: toReason(error) });
    try {
      await bundles.dropAll(new Set(gone));
    } catch (error) {
      for (const workerId of gone) outcomes.set(workerId, failed(error));
      return;
    }
    let hanging: GoneOutcome | undefined;
    for (const workerId of gone) {
      if (hanging === undefined)
        try {
          await outputs.remove(workerId);
          continue;
        } catch (error) {
          outcomes.set(workerId, failed(error));
          if (toReason(error).code === 'file-timeout') hanging = failed(error);
        }
      else outcomes.set(workerId, hanging);
    }
  }

  /** Removes by marks, and so also jobs whose number never reached thresher. */
  async #removeAll(
    workers: readonly Worker[],
    how: { readonly which: string; readonly patience: number },
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { schedd } = this.#parts;
    const outcomes = new Map<number, GoneOutcome>();
    for (let first = 0; first < workers.length; first += atOnce) {
      const some = workers.slice(first, first + atOnce);
      let others: readonly Job[] = [];
      const jobs = async () => {
        const found = await queuedOf(schedd, some, how.which, signal, removalAttributes);
        others = found.others;
        return found.ours;
      };
      let left: readonly Job[] = [];
      let failure: WorkerError | undefined;
      // As they were before this call.
      const reasons = new Map<number | undefined, WorkerError | undefined>();
      let started: Asked | undefined;
      try {
        started = await schedd.jobQueue.started(signal);
        left = await jobs();
        if (left.length > 0) await schedd.jobQueue.require(started, signal);
        const now = this.#parts.daemon.clock.now();
        for (const job of left) reasons.set(job.workerId, schedd.removals.see(job, now));
        const told = await this.#act(left, signal);
        // A job that ignores its signal has the time of its machine: a call that waited for it again would keep all others waiting.
        if (told.length > 0) left = await this.#untilGone(jobs, told, how.patience, signal);
      } catch (error) {
        failure = toReason(error);
      }
      const remaining = new Set(left.map(({ workerId }) => workerId));
      const isAnyGone = failure === undefined && some.some(({ workerId }) => !remaining.has(workerId));
      const gone: GoneOutcome = isAnyGone ? await this.#gone(started, signal) : { kind: 'gone' };
      for (const worker of some) {
        const { workerId } = worker;
        const dispute = disputed(schedd, worker, others);
        const reason = reasons.get(workerId) ?? dispute;
        if (failure !== undefined) outcomes.set(workerId, { kind: 'failed', error: failure });
        else if (!remaining.has(workerId) && dispute === undefined) outcomes.set(workerId, gone);
        else outcomes.set(workerId, { kind: 'pending', ...(reason && { reason }) });
      }
    }
    return outcomes;
  }

  /**
   * One command for all; what was removed before, and is still on its way out, is not told again.
   * @returns the jobs that were told
   */
  async #act(jobs: readonly Job[], signal: AbortSignal): Promise<readonly Job[]> {
    const { schedd } = this.#parts;
    // One that was held while it was removed is removed further, and asked seldom: its CE has refused it just now.
    const { clock } = this.#parts.daemon;
    const moment = { now: clock.now(), monotonic: clock.monotonic() };
    const fresh = jobs.filter((job) => !isRemoved(job.ad) || schedd.removals.isToRepeat(job, moment));
    for (const [reason, some] of Map.groupBy(fresh, (job) => removalReasonOf(job, 'ended by thresher'))) {
      await schedd.removals.remove(some, clock.monotonic(), () =>
        schedd.client.act('remove', `${schedd.mine} && (${whereSame(some)})`, reason, signal),
      );
    }
    return fresh;
  }

  /**
   * Waits for jobs that were told to go, and no longer than others of them go.
   * @returns the jobs that are left, also those that were told earlier
   */
  async #untilGone(
    look: () => Promise<readonly Job[]>,
    told: readonly Job[],
    longest: number,
    signal: AbortSignal,
  ): Promise<readonly Job[]> {
    const { clock } = this.#parts.daemon;
    const deadline = clock.monotonic() + longest;
    const awaited = new Set(told.map(({ id }) => jobIdText(id)));
    let before = awaited.size;
    let movedAt = Infinity;
    for (let pause = pauses.first; ;) {
      const left = await look();
      const now = clock.monotonic();
      const staying = left.filter(({ id }) => awaited.has(jobIdText(id))).length;
      if (staying < before) movedAt = now;
      before = staying;
      if (staying === 0 || signal.aborted || now + pause > deadline || now - movedAt >= still) return left;
      await clock.sleep(pause, signal);
      pause = Math.min(pause * 2, movedAt === Infinity ? pauses.longest : pauses.longestBehindGone);
    }
  }
}
