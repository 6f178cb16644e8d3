import { jobIdText, whereJobs } from '../../clients/htcondor/classad.ts';
import type { JobEvent } from '../../clients/htcondor/event-types.ts';
import { eachGivingWay, givingWay } from '../../util/clock.ts';
import { defaultsOf } from '../../util/schema-defaults.ts';
import { isCounted } from '../../worker/counted.ts';
import { toReason } from '../../worker/errors.ts';
import type { MarkedWorker } from '../../worker/marked.ts';
import type { Observation } from '../../worker/observation.ts';
import { isFinal, type WorkerStatus } from '../../worker/status.ts';
import type { Worker } from '../../worker/worker.ts';
import { sharedMonitorOptions } from '../contracts/backend.ts';
import type { CheckResult, Monitor, ObservationSink } from '../contracts/monitor.ts';
import { LogEnds, shortestPause } from './following/log-ends.ts';
import type { CeTally } from './place/ce-tally.ts';
import { elementOf } from './place/grid-endpoint.ts';
import type { HTCondorSchedd } from './schedd.ts';
import { HTCondorLogs } from './logs.ts';
import { HTCondorOutputs } from './output/outputs.ts';
import {
  byId,
  followed,
  idTextOf,
  inQueue,
  isHalf,
  jobOfWorker,
  lookUp,
  portions,
  sparing,
  wasNeverWhole,
  whereSame,
  whereUnchanged,
} from './look-up.ts';
import { type Job, jobOf, marks } from './marks.ts';
import { bundledBefore, dropLeftOver } from './payload/left-over.ts';
import { defaultQueueTimeLimit, type HTCondorDaemon, HTCondorMonitorConfig } from './schema.ts';
import { endedReason, type JobState, givenUpReason, stateOf, waitedReason } from './state/job-state.ts';
import { hasEnded } from './state/events.ts';
import { isRemoved, removalReasonOf } from './state/removals.ts';
import { TooLargeJobs } from './state/too-large.ts';

/** The monitor options of a job's queue; options that only look, and give up no job, where no queue of that name is known. */
export type OptionsOf = (queue: string | undefined, configId: number | undefined) => HTCondorMonitorConfig;

export interface MonitorParts {
  readonly schedd: HTCondorSchedd;
  readonly daemon: HTCondorDaemon;
  readonly options: OptionsOf;
  readonly tally: CeTally;
}

/** A held or waiting job whose worker is to be given up. */
interface GivenUp extends Required<Pick<JobState, 'verdict'>> {
  readonly job: Job;
  /** What the schedd has to say of it at its removal, as a constraint. */
  readonly isDue: string;
  /** The reason of its removal. */
  readonly reason: string;
  /** It waits, and its queue sets no limit: only a pilot is given up. */
  readonly onlyPilot: boolean;
}

/** Jobs of the history that the first look takes in. */
const mostOfHistory = 20_000;
/** How often logs of job events are read on, ms. */
const logInterval = 200;

const defaults = defaultsOf(HTCondorMonitorConfig);

/**
 * Looks at all jobs of a schedd by one `condor_q`, and asks the history only for those that left since. Between two looks it
 * follows the log of job events, where there is one; looks are rare then. An end in the log counts as soon as the queue agrees: HTCondor runs a
 * job again whose shadow or schedd broke behind that word.
 */
export class HTCondorMonitor implements Monitor {
  readonly logs: HTCondorLogs;
  readonly outputs: HTCondorOutputs;
  readonly #parts: MonitorParts;
  readonly #ends: LogEnds;
  /** By `cluster.proc`: those that the log named while they were late. */
  readonly #toldRemoving = new Set<string>();
  /** By `cluster.proc`: of jobs that are given up and still in the queue. */
  readonly #verdicts = new Map<string, Observation>();
  /** By `cluster.proc`: workers that may wait in the queue for as long as they like, of jobs that were over the default limit. */
  readonly #unlimited = new Map<string, number>();
  /** Workers with more than one job, by looks. Which of them counts is known where their numbers are kept, and so to `check` alone. */
  readonly #doubled = new Set<number>();
  readonly #tooLarge: TooLargeJobs;
  /** Whether the logs are being read for the first time. */
  #isCatchingUp = false;
  #hasHeard = false;
  /** When jobs were counted last, monotonic ms. */
  #countedAt = -Infinity;

  constructor(parts: MonitorParts) {
    this.#parts = parts;
    this.logs = new HTCondorLogs(parts.schedd, parts.daemon.clock);
    this.outputs = new HTCondorOutputs(parts);
    const { client, mine } = parts.schedd;
    this.#tooLarge = new TooLargeJobs({ client, mine, clock: parts.daemon.clock, log: parts.daemon.log });
    this.#ends = new LogEnds(parts.schedd, parts.daemon, () => 1000 * this.#options.pollInterval);
  }

  async observe(sink: ObservationSink, signal: AbortSignal): Promise<void> {
    const { schedd, daemon } = this.#parts;
    const { clock } = daemon;
    let lookedAt = -Infinity;
    // The log cannot say it, or something has to be done about it.
    let soon = false;
    while (!signal.aborted) {
      // Before the question: what comes after it is read when it is answered, and is never older than the answer.
      soon = (await this.#followLogs(sink)) || soon;
      soon = this.#tooLarge.takeNews() || soon;
      const { pollInterval, listInterval } = this.#options;
      const trusted = this.hearsAtOnce() && !soon;
      const interval = 1000 * (trusted ? Math.max(pollInterval, listInterval) : pollInterval);
      const now = clock.monotonic();
      const wait = lookedAt + interval - now;
      if (wait > 0) {
        const followed = schedd.logs.any;
        // A look that comes so soon says it, too.
        if (wait > shortestPause) soon = (await this.#askForEnds(sink, signal)) || soon;
        const unfollowed = () => lookedAt + 1000 * this.#options.pollInterval - now;
        await daemon.pause(followed ? () => Math.min(wait, logInterval) : unfollowed, signal);
        if (followed || isOver(signal)) continue;
      }
      soon = false;
      try {
        await this.#look(sink, signal);
        this.#tooLarge.askIfDue(schedd.jobs.living?.values() ?? [], signal);
        await schedd.logs.keep().catch((error: unknown) => {
          daemon.log.warn('how far logs of job events were read is not kept', { ...toReason(error) });
        });
      } catch (error) {
        this.#ends.doubtOfOther();
        // Ends that were read wait for the queue to agree, so that they have to be read again after a restart.
        if (!isOver(signal)) {
          sink.trouble(toReason(error));
          await this.#callOtherwise(signal);
        }
        soon = true;
      }
      lookedAt = clock.monotonic();
    }
  }

  /** The log is read on all the time. Before it has proved itself, a question is better. */
  hearsAtOnce(): boolean {
    const { logs, jobs, jobQueue } = this.#parts.schedd;
    return logs.any && jobs.logIsTrusted && !jobQueue.logsAreOfOther;
  }

  async check(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, CheckResult>> {
    const { schedd, options, daemon } = this.#parts;
    const results = new Map<number, CheckResult>();
    const giveWay = givingWay(daemon.clock);
    try {
      const started = await schedd.jobQueue.started(signal);
      const history = this.#options.useCondorHistory;
      const { jobs, unsaid } = await lookUp(schedd, workers, signal, { history });
      // Also of what is in the queue: in another one the numbers of workers are those of other jobs.
      await schedd.jobQueue.require(started, signal);
      const absent: Worker[] = [];
      for (const worker of workers) {
        await giveWay();
        const { workerId } = worker;
        const job = jobOfWorker(worker, jobs.get(workerId)) ?? this.#ends.of(worker);
        const observation = job && this.#stateOf({ ...job, workerId })?.observation;
        const error = unsaid.get(workerId);
        if (job !== undefined && observation !== undefined)
          results.set(workerId, { kind: 'observed', observation: this.#judged(job, observation) });
        else if (job !== undefined) results.set(workerId, { kind: 'unknown', error: silent(job) });
        else if (error !== undefined) results.set(workerId, { kind: 'unknown', error });
        // Its end may stand in what is still to be read.
        else if (this.#isCatchingUp) results.set(workerId, { kind: 'unknown', error: unheard });
        else absent.push(worker);
      }
      for (const { workerId, queue, configId } of absent)
        if (options(queue, configId).cancelUnknown)
          results.set(workerId, { kind: 'observed', observation: this.#cancelled(workerId) });
        else results.set(workerId, { kind: 'absent' });
    } catch (error) {
      const open = workers.filter(({ workerId }) => !results.has(workerId));
      for (const { workerId } of open) results.set(workerId, { kind: 'unknown', error: toReason(error) });
      // A history that cannot be asked keeps no end from counting of which the log has told, where the queue agrees.
      const told = open.flatMap((worker) => this.#ends.of(worker) ?? []);
      const ended = told.filter(({ id }) => !this.#parts.schedd.jobs.isDoubtful(jobIdText(id)));
      for (const job of await this.#ends.byQueue(ended, signal).catch(() => [])) {
        const observation = this.#stateOf(job)?.observation;
        if (observation !== undefined)
          results.set(observation.workerId, {
            kind: 'observed',
            observation: this.#judged(job, observation),
          });
      }
    }
    return results;
  }

  get #options(): HTCondorMonitorConfig {
    return sharedMonitorOptions(this.#parts.daemon, defaults);
  }

  async #callOtherwise(signal: AbortSignal): Promise<void> {
    const { schedd, daemon } = this.#parts;
    try {
      if (!(await schedd.jobQueue.callOtherwise(signal)) || !schedd.jobQueue.logsAreOfOther) return;
      // What the logs told before is of the jobs of this machine.
      schedd.jobs.forgetTold();
      this.#ends.keepOpen();
    } catch (error) {
      daemon.log.debug('another name of a schedd cannot be found', { ...toReason(error) });
    }
  }

  /** Shows what the logs said since. @returns whether the schedd must be asked. */
  async #followLogs(sink: ObservationSink): Promise<boolean> {
    const { schedd, daemon } = this.#parts;
    if (!schedd.logs.any) return false;
    let soon = false;
    let changes = 0;
    const take = (events: readonly JobEvent[]) => {
      // The jobs of another queue have numbers of ours.
      if (schedd.jobQueue.logsAreOfOther) return;
      for (const job of schedd.jobs.apply(events, schedd.fresh)) {
        changes++;
        const id = jobIdText(job.id);
        if (this.#ends.take(id, job)) continue;
        // Its number is that of another job: the queue cannot agree any more.
        if (hasEnded(job.ad)) {
          if (job.workerId !== undefined) {
            sink.gone(job.workerId);
            this.#ends.numberGone(job.workerId);
          }
          continue;
        }
        const state = wasNeverWhole(job) ? undefined : this.#stateOf(job);
        if (state === undefined) continue;
        if (state.verdict === undefined) this.#tell(sink, this.#judged(job, state.observation));
        else soon = true;
        this.#countEnded(job, state.observation.status);
      }
    };
    this.#isCatchingUp = !this.#hasHeard;
    // Of jobs that were submitted meanwhile the log may have spoken before.
    take([]);
    if (await schedd.logs.read(daemon.log, take)) soon = true;
    this.#isCatchingUp = false;
    this.#hasHeard = true;
    const now = daemon.clock.monotonic();
    const { pollInterval } = this.#options;
    if (changes > 0 && schedd.jobs.living && this.#countedAt + pollInterval * 1000 < now)
      this.#count(schedd.jobs.living.values());
    return soon;
  }

  async #look(sink: ObservationSink, signal: AbortSignal): Promise<void> {
    const { schedd, daemon } = this.#parts;
    const begun = daemon.clock.monotonic();
    // A job submitted before the question may have left the queue by the answer.
    const fresh = new Map(schedd.fresh);
    const { living } = schedd.jobs;
    const bundled = await bundledBefore(schedd, daemon.log);
    const started = await schedd.jobQueue.started(signal);
    const all = await inQueue(schedd, 'true', signal);
    await schedd.jobQueue.require(started, signal);
    const inQueueNow = new Set(all.map(({ id }) => jobIdText(id)));
    const { ours: queued } = await schedd.owners.part(all, signal);
    await this.#removeFurther(queued, inQueueNow, signal);
    const before = living && new Map([...fresh, ...living]);
    const left = before && [...before].filter(([id]) => !inQueueNow.has(id) && !schedd.jobs.endOf(id));
    // Of these the log has told how they ended.
    const over = this.#ends.open().filter(({ id }) => !inQueueNow.has(jobIdText(id)));
    const isDoubtful = ({ id }: Job) => schedd.jobs.isDoubtful(jobIdText(id));
    const sure = over.filter((job) => !isDoubtful(job));
    const ended = await this.#ended(
      left?.map(([, job]) => job),
      signal,
    );
    const doubtful = over.filter(isDoubtful);
    const otherwise = left === undefined ? [] : await this.#otherwise(doubtful, signal);
    // What the history does not tell now is asked for at the next look.
    const open = otherwise === undefined ? doubtful.map(({ id }) => jobIdText(id)) : [];
    const settled = [...(otherwise === undefined ? [] : [...doubtful, ...otherwise]), ...ended, ...sure];
    // If a worker has two jobs, the one in the queue counts here, and the last of these.
    const jobs = new Map<number, Job>();
    for (const job of [...settled.toSorted(older), ...queued.toSorted(older)])
      if (job.workerId !== undefined && !wasNeverWhole(job)) {
        const other = jobs.get(job.workerId);
        // One that leaves the queue meanwhile may be in the history, too.
        if (other !== undefined && byId(other.id, job.id) !== 0) this.#doubled.add(job.workerId);
        jobs.set(job.workerId, job);
      }
    sink.begin();
    const alive = new Map<string, Job>();
    const contradicting: Job[] = [];
    const givenUp: GivenUp[] = [];
    const giveWay = givingWay(daemon.clock);
    for (const job of jobs.values()) {
      // Reasons that are cut are masked.
      await giveWay();
      const id = jobIdText(job.id);
      const state = isHalf(job) ? undefined : this.#stateOf(job);
      if (state === undefined) {
        // The job exists, in an unknown state.
        if (inQueueNow.has(id) && schedd.jobs.endOf(id) === undefined) alive.set(id, job);
        continue;
      }
      const { observation, verdict } = state;
      if (isFinal(observation.status)) this.#ends.settle(id);
      else if (schedd.jobs.endOf(id) !== undefined) {
        // The log was quicker: it has ended, and HTCondor is about to write that down. Or it has not.
        this.#ends.doubt(job, begun);
        if (isRemoved(job.ad) || !this.#ends.isLate(id, begun)) {
          this.#tell(sink, observation);
          continue;
        }
        contradicting.push(job);
      }
      if (verdict !== undefined) givenUp.push({ job, verdict, ...this.#dueOf(job, state) });
      else this.#tell(sink, this.#judged(job, observation));
      if (!isFinal(observation.status)) alive.set(id, job);
    }
    this.#ends.tellAlive(contradicting, inQueueNow);
    this.#count(jobs.values());
    for (const [id, { workerId = 0 }] of left ?? []) {
      if (jobs.has(workerId)) continue;
      const verdict = this.#verdictOf(id, workerId);
      if (verdict === undefined) sink.gone(workerId);
      else this.#tell(sink, verdict);
    }
    for (const workerId of this.#doubled) if (!jobs.has(workerId)) this.#doubled.delete(workerId);
    for (const ids of [this.#verdicts, this.#unlimited])
      for (const id of ids.keys()) if (!inQueueNow.has(id)) ids.delete(id);
    const gaveUp = new Set<number>();
    for (const observation of await this.#giveUp(givenUp, signal)) {
      this.#tell(sink, observation);
      if (isFinal(observation.status)) gaveUp.add(observation.workerId);
    }
    for (const [id, { workerId }] of alive) if (gaveUp.has(workerId ?? 0)) alive.delete(id);
    for (const id of fresh.keys()) schedd.fresh.delete(id);
    const gone = left?.map(([id]) => id) ?? [];
    schedd.jobs.see(alive, gone, new Set([...inQueueNow, ...open]));
    this.#ends.keepOpen();
    await dropLeftOver(bundled, all, schedd, daemon.log);
    sink.complete();
  }

  /**
   * Asks whether the queue agrees with ends that the log told, by one `condor_q` for 500 of them. What it does not agree with is asked for again,
   * with longer and longer pauses, and then left to the looks.
   * @returns whether a look has to say it: the schedd gave no answer, or the history knows more than the log
   */
  async #askForEnds(sink: ObservationSink, signal: AbortSignal): Promise<boolean> {
    const { schedd, daemon } = this.#parts;
    const begun = daemon.clock.monotonic();
    const ended = this.#ends.due(begun);
    if (ended.length === 0) return false;
    let soon = false;
    try {
      for (const job of await this.#ends.byQueue(ended, signal)) {
        const id = jobIdText(job.id);
        if (!job.queued && schedd.jobs.isDoubtful(id)) {
          soon = true;
          continue;
        }
        const isNone = wasNeverWhole(job);
        const state = isNone ? undefined : this.#stateOf(job);
        if (isNone || (state !== undefined && isFinal(state.observation.status))) this.#ends.settle(id);
        // An ad in the queue of which nothing can be read says nothing against the end.
        if (state === undefined) continue;
        if (!isFinal(state.observation.status)) {
          this.#ends.doubt(job, begun);
          continue;
        }
        this.#tell(sink, this.#judged(job, state.observation));
        this.#countEnded(job, state.observation.status);
      }
    } catch {
      this.#ends.doubtOfOther();
      soon = true;
    }
    this.#ends.asked(begun);
    return soon;
  }

  /**
   * HTCondor asks a CE that it cannot reach again and again, and holds what the CE refuses; after a while an operator has to know. Whoever
   * removed such a job (thresher, an operator, an expression in its ad), it holds the place of a worker until it has left.
   */
  async #removeFurther(
    queued: readonly Job[],
    names: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<void> {
    const { schedd, daemon } = this.#parts;
    const now = daemon.clock.now();
    schedd.removals.keepOnly(names);
    for (const name of this.#toldRemoving) if (!names.has(name)) this.#toldRemoving.delete(name);
    const seen = await eachGivingWay(givingWay(daemon.clock), queued, (job) => {
      const why = schedd.removals.see(job, now);
      return why === undefined || this.#toldRemoving.has(jobIdText(job.id)) ? [] : [{ job, why }];
    });
    const late = seen.flat();
    for (const { job } of late) this.#toldRemoving.add(jobIdText(job.id));
    const [first] = late;
    if (first !== undefined) {
      const workerIds = late.slice(0, 10).map(({ job }) => job.workerId);
      const facts = { code: first.why.code, workers: late.length, workerIds, reason: first.why.message };
      daemon.log.warn('removed jobs are still in the queue', facts);
    }
    const moment = { now, monotonic: daemon.clock.monotonic() };
    const again = queued.filter((job) => schedd.removals.isToRepeat(job, moment));
    try {
      for (const [reason, jobs] of Map.groupBy(again, (job) => removalReasonOf(job, 'removed before')))
        for (const some of portions(jobs)) {
          const constraint = `${schedd.mine} && JobStatus == 5 && LastJobStatus == 3 && (${whereSame(some)})`;
          await schedd.removals.remove(some, daemon.clock.monotonic(), () =>
            schedd.client.act('remove', constraint, reason, signal),
          );
        }
    } catch (error) {
      // The look goes on: it is about all jobs.
      daemon.log.warn('jobs that were held while they were removed could not be removed further', {
        submissionHost: schedd.submissionHost,
        ...toReason(error),
      });
    }
  }

  /** What is said of a worker with two jobs may be of the other one: it is looked up by its number. */
  #tell(sink: ObservationSink, observation: Observation): void {
    if (this.#doubled.has(observation.workerId)) sink.gone(observation.workerId);
    else sink.observe(observation);
  }

  /** Of a job that was given up and was removed, the verdict counts: HTCondor tells of the removal alone. */
  #judged({ id }: Job, observation: Observation): Observation {
    if (observation.nativeStatus !== 'removed') return observation;
    return this.#verdictOf(jobIdText(id), observation.workerId) ?? observation;
  }

  /** A schedd that began anew gives a number again: what is said of its first job is nothing of that of another worker. */
  #verdictOf(id: string, workerId: number): Observation | undefined {
    const verdict = this.#verdicts.get(id);
    return verdict?.workerId === workerId ? verdict : undefined;
  }

  /** Those that left the queue, from the history; at the first look all that ended of late. @throws HTCondorError */
  async #ended(left: readonly Job[] | undefined, signal: AbortSignal): Promise<Job[]> {
    const { schedd, daemon } = this.#parts;
    const config = this.#options;
    if (!config.useCondorHistory || left?.length === 0) return [];
    // A look-up by name finds jobs that are further back, or that left late.
    const seconds = Math.floor(daemon.clock.now() / 1000) - config.useCondorHistoryMaxAge;
    const since = `EnteredCurrentStatus < ${seconds}`;
    const ask = async (these: string, limit: number) => {
      const history = (which: string, some: readonly string[]) =>
        schedd.client.history(which, some, limit, signal, since);
      const ads = await sparing(these, followed, history, idTextOf);
      return ads.flatMap((ad) => jobOf(ad, false) ?? []);
    };
    if (left === undefined) {
      const { where } = await schedd.owners.now(signal);
      const jobs = await ask(`${schedd.mine} && ${where}`, mostOfHistory);
      return [...(await schedd.owners.part(jobs, signal)).ours];
    }
    const jobs: Job[] = [];
    for (const some of portions(left))
      jobs.push(...(await ask(`${schedd.mine} && (${whereJobs(some.map(({ id }) => id))})`, some.length)));
    return jobs;
  }

  /** How doubtful jobs ended by the history; undefined if it cannot be asked, by which the look is about all others. */
  async #otherwise(doubtful: readonly Job[], signal: AbortSignal): Promise<readonly Job[] | undefined> {
    const { schedd, daemon } = this.#parts;
    try {
      return await this.#ended(doubtful, signal);
    } catch (error) {
      const facts = { submissionHost: schedd.submissionHost, workers: doubtful.length, ...toReason(error) };
      daemon.log.warn(
        'the history could not be asked how jobs ended whose end in the log is doubtful',
        facts,
      );
      return undefined;
    }
  }

  /** How a job that is given up is removed. A job that was released or has started at that moment goes on. */
  #dueOf({ queue, configId }: Job, { heldFor, waitedFor }: JobState): Omit<GivenUp, 'job' | 'verdict'> {
    const since = (seconds: number) => `time() - EnteredCurrentStatus >= ${seconds}`;
    if (waitedFor === undefined) {
      if (heldFor === undefined) return { isDue: 'JobStatus == 5', reason: endedReason, onlyPilot: false };
      return { isDue: `JobStatus == 5 && ${since(heldFor)}`, reason: givenUpReason, onlyPilot: false };
    }
    const onlyPilot = this.#parts.options(queue, configId).queueTimeLimit === undefined;
    return { isDue: `JobStatus == 1 && ${since(waitedFor)}`, reason: waitedReason(waitedFor), onlyPilot };
  }

  /** Removes the jobs of workers that are given up. @returns what is true of them after that. */
  async #giveUp(asked: readonly GivenUp[], signal: AbortSignal): Promise<Observation[]> {
    const { schedd } = this.#parts;
    if (asked.length === 0) return [];
    const started = await schedd.jobQueue.started(signal);
    const givenUp = await this.#limited(asked, signal);
    const removed = new Set<GivenUp>();
    const left: Job[] = [];
    for (const [isDue, alike] of Map.groupBy(givenUp, (one) => one.isDue))
      for (const some of portions(alike)) {
        const jobs = some.map(({ job }) => job);
        const these = whereSame(jobs);
        const constraint = `${schedd.mine} && ${isDue} && (${whereUnchanged(jobs)})`;
        const reason = some[0]?.reason ?? '';
        const { succeeded } = await schedd.client.act('remove', constraint, reason, signal);
        // A job that HTCondor is still removing has not ended: its remote part may run.
        left.push(...(await inQueue(schedd, these, signal)));
        // Where some were not removed, one that is gone may have started and ended meanwhile: the history says which at the next look.
        if (succeeded >= some.length) for (const one of some) removed.add(one);
      }
    const still = new Map(left.map((job) => [jobIdText(job.id), job]));
    if (still.size < givenUp.length) await schedd.jobQueue.require(started, signal);
    return asked.flatMap((one) => {
      const { job, verdict } = one;
      const id = jobIdText(job.id);
      const now = still.get(id);
      if (now === undefined && removed.has(one)) return [verdict];
      if (now !== undefined && isRemoved(now.ad)) this.#verdicts.set(id, verdict);
      return this.#stateOf(now ?? job)?.observation ?? [];
    });
  }

  /**
   * Leaves out the workers that may wait in the queue for as long as they like. The identity of a job says which they are; it is long, so it is
   * asked for only once a job is over the default limit.
   */
  async #limited(asked: readonly GivenUp[], signal: AbortSignal): Promise<readonly GivenUp[]> {
    const open = asked.filter(({ onlyPilot }) => onlyPilot);
    const pilots = new Set<string>();
    for (const some of portions(open)) {
      const these = whereJobs(some.map(({ job }) => job.id));
      const attributes = ['ClusterId', 'ProcId', 'Owner', marks.worker, marks.identity];
      for (const { id, workerId, identity } of await inQueue(this.#parts.schedd, these, signal, attributes))
        if (identity !== undefined && isPilot(identity)) pilots.add(jobIdText(id));
        else if (workerId !== undefined) this.#unlimited.set(jobIdText(id), workerId);
    }
    return asked.filter(({ job, onlyPilot }) => !onlyPilot || pilots.has(jobIdText(job.id)));
  }

  #stateOf(job: Job): JobState | undefined {
    const { options, daemon } = this.#parts;
    if (job.workerId === undefined) return undefined;
    const { heldTimeout, queueTimeLimit, payloadType } = options(job.queue, job.configId);
    const tooLarge = this.#tooLarge.of(jobIdText(job.id));
    const isUnlimited = this.#unlimited.get(jobIdText(job.id)) === job.workerId;
    const how = {
      heldTimeout,
      queueTimeLimit: queueTimeLimit ?? (isUnlimited ? 0 : defaultQueueTimeLimit),
      queued: job.queued,
      ...(job.queuedAt !== undefined && { queuedAt: job.queuedAt }),
      ...(payloadType !== undefined && { payloadType }),
      ...elementOf(job.ce),
      ...(tooLarge !== undefined && { tooLarge }),
    };
    return stateOf(job.workerId, job.ad, daemon.clock.now(), how);
  }

  /** For those who submit: how many are held, and who is at which CE. */
  #count(jobs: Iterable<Job>): void {
    const { schedd, tally, daemon } = this.#parts;
    const held = new Map<string, number>();
    const living = [...jobs].flatMap((job) => {
      const { workerId = 0, queue, ce, ad, queuedAt = 0 } = job;
      if (queue === undefined) return [];
      if (ad.JobStatus === 5) held.set(queue, (held.get(queue) ?? 0) + 1);
      if (ce === undefined) return [];
      const status = this.#stateOf(job)?.observation.status;
      if (status === undefined) return [];
      this.#countEnded(job, status);
      return isFinal(status) ? [] : [{ workerId, queue, ce, status, queuedAt: queuedAt * 1000 }];
    });
    this.#countedAt = daemon.clock.monotonic();
    schedd.held = held;
    tally.see(daemon.connection, living);
  }

  /** A job that ended counts at its CE for a while, too. */
  #countEnded({ workerId = 0, queue, ce, queuedAt = 0 }: Job, status: WorkerStatus): void {
    if (queue === undefined || ce === undefined || !isFinal(status)) return;
    this.#parts.tally.ended({ workerId, queue, ce, status, queuedAt: queuedAt * 1000 });
  }

  /** Harvester's `cancelUnknown`. */
  #cancelled(workerId: number): Observation {
    const now = this.#parts.daemon.clock.now();
    const error = { code: 'lost', message: 'neither the queue nor the history of the schedd knows its job' };
    return { workerId, status: 'cancelled', nativeStatus: 'unknown', error, endTime: now, observedAt: now };
  }
}

/**
 * Whether a worker is a pilot like all others of its queue, so that a later one takes its place. The PanDA server orders pilots, which their source
 * names to start none twice. Every other source names a worker for a request that gets no second one.
 */
function isPilot(worker: MarkedWorker): boolean {
  return isCounted(worker) || worker.origin.kind === 'panda';
}

const unheard = {
  code: 'condor-answer',
  message: 'the log of job events is not read to its end yet',
} as const;

function silent({ id, ad }: Job) {
  const message = `job ${jobIdText(id)} has the JobStatus ${ad.JobStatus ?? '?'}, which says nothing`;
  return { code: 'condor-answer', message };
}

/** It may have become so while something else was waited for. */
const isOver = (signal: AbortSignal): boolean => signal.aborted;

const older = (a: Job, b: Job) => byId(a.id, b.id);
