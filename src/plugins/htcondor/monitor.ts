import { type JobId, jobIdText, whereJobs } from '../../clients/htcondor/classad.ts';
import { toReason } from '../../worker/errors.ts';
import type { Observation } from '../../worker/observation.ts';
import { isFinal } from '../../worker/status.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { CheckResult, Monitor, ObservationSink } from '../contracts/monitor.ts';
import type { CeTally } from './ce-tally.ts';
import type { HTCondorHub } from './hub.ts';
import { HTCondorLogs } from './logs.ts';
import { byId, followed, inQueue, jobOfWorker, lookUp } from './look-up.ts';
import { type Job, jobOf } from './marks.ts';
import type { HTCondorMonitorConfig } from './schema.ts';
import { type JobState, stateOf } from './state/job-state.ts';

/** What the queue of a job says of it: `undefined` where nobody knows the queue here. */
export type OptionsOf = (queue: string | undefined, configId: number | undefined) => HTCondorMonitorConfig;

export interface MonitorParts {
  readonly hub: HTCondorHub;
  readonly config: HTCondorMonitorConfig;
  readonly context: Context;
  readonly options: OptionsOf;
  readonly tally: CeTally;
}

/** Jobs of the history that the first look takes in. */
const mostOfHistory = 20_000;

/** A job that was alive when it was last looked at. */
interface Known {
  readonly id: JobId;
  readonly workerId: number;
}

/** Looks at all jobs of a schedd by one `condor_q`, and asks the history only for those that left since. */
export class HTCondorMonitor implements Monitor {
  readonly logs: HTCondorLogs;
  readonly #parts: MonitorParts;

  constructor(parts: MonitorParts) {
    this.#parts = parts;
    this.logs = new HTCondorLogs(parts.hub, parts.context.clock);
  }

  async observe(sink: ObservationSink, signal: AbortSignal): Promise<void> {
    const { config, context } = this.#parts;
    let known: ReadonlyMap<string, Known> | undefined;
    while (!signal.aborted) {
      try {
        known = await this.#look(sink, known, signal);
      } catch (error) {
        if (!isOver(signal)) sink.trouble(toReason(error));
      }
      await context.clock.sleep(config.pollInterval * 1000, signal);
    }
  }

  async check(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, CheckResult>> {
    const { hub, config, options } = this.#parts;
    const results = new Map<number, CheckResult>();
    try {
      const ids = workers.map(({ workerId }) => workerId);
      const jobs = await lookUp(hub, ids, signal, { history: config.useCondorHistory });
      for (const worker of workers) {
        const { workerId, queue, configId } = worker;
        const job = jobOfWorker(worker, jobs.get(workerId));
        const observation = job && this.#stateOf({ ...job, workerId })?.observation;
        if (observation !== undefined) results.set(workerId, { kind: 'observed', observation });
        else if (job !== undefined) results.set(workerId, { kind: 'unknown', error: silent(job) });
        else if (options(queue, configId).cancelUnknown)
          results.set(workerId, { kind: 'observed', observation: this.#cancelled(workerId) });
        else results.set(workerId, { kind: 'absent' });
      }
    } catch (error) {
      for (const { workerId } of workers)
        if (!results.has(workerId)) results.set(workerId, { kind: 'unknown', error: toReason(error) });
    }
    return results;
  }

  /** @param known undefined at the first look. @returns the living. */
  async #look(
    sink: ObservationSink,
    known: ReadonlyMap<string, Known> | undefined,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Known>> {
    const { hub } = this.#parts;
    // What was submitted before the question is among those who may have left by the answer.
    const fresh = new Map(hub.fresh);
    const before = known && new Map([...known, ...fresh]);
    const queued = await inQueue(hub, 'true', signal);
    const inQueueNow = new Set(queued.map(({ id }) => jobIdText(id)));
    const left = before?.values().filter(({ id }) => !inQueueNow.has(jobIdText(id)));
    const ended = await this.#ended(left && [...left], signal);
    // Of two jobs of one worker the queue's counts, and of these the last.
    const jobs = new Map<number, Job>();
    for (const job of [...ended.toSorted(older), ...queued.toSorted(older)])
      if (job.workerId !== undefined) jobs.set(job.workerId, job);
    sink.begin();
    const alive = new Map<string, Known>();
    const givenUp: { job: Job; verdict: Observation }[] = [];
    for (const [workerId, job] of jobs) {
      const state = this.#stateOf(job);
      if (state === undefined) {
        // It is there, and nobody knows how it is.
        if (inQueueNow.has(jobIdText(job.id))) alive.set(jobIdText(job.id), { id: job.id, workerId });
        continue;
      }
      if (state.verdict !== undefined) givenUp.push({ job, verdict: state.verdict });
      else sink.observe(state.observation);
      if (!isFinal(state.observation.status)) alive.set(jobIdText(job.id), { id: job.id, workerId });
    }
    this.#count(jobs);
    for (const { workerId } of before?.values() ?? []) if (!jobs.has(workerId)) sink.gone(workerId);
    for (const observation of await this.#giveUp(givenUp, signal)) {
      sink.observe(observation);
      if (isFinal(observation.status)) {
        for (const [id, one] of alive) if (one.workerId === observation.workerId) alive.delete(id);
      }
    }
    for (const id of fresh.keys()) hub.fresh.delete(id);
    sink.complete();
    return alive;
  }

  /** Those that left the queue, from the history; at the first look all that ended of late. @throws HTCondorError */
  async #ended(left: readonly Known[] | undefined, signal: AbortSignal): Promise<Job[]> {
    const { hub, config, context } = this.#parts;
    if (!config.useCondorHistory || left?.length === 0) return [];
    // What is further back, or left late, is found when it is looked up by name.
    const seconds = Math.floor(context.clock.now() / 1000) - config.useCondorHistoryMaxAge;
    const since = `EnteredCurrentStatus < ${seconds}`;
    const [these, limit] =
      left === undefined
        ? [hub.mine, mostOfHistory]
        : [`${hub.mine} && (${whereJobs(left.map(({ id }) => id))})`, left.length];
    const ads = await hub.client.history(these, followed, limit, signal, since);
    return ads.flatMap((ad) => jobOf(ad) ?? []);
  }

  /** Removes the jobs of workers that are given up. @returns what is true of them after that. */
  async #giveUp(
    givenUp: readonly { readonly job: Job; readonly verdict: Observation }[],
    signal: AbortSignal,
  ): Promise<Observation[]> {
    const { hub } = this.#parts;
    if (givenUp.length === 0) return [];
    const these = whereJobs(givenUp.map(({ job }) => job.id));
    // Who was released in this moment goes on.
    const constraint = `${hub.mine} && JobStatus == 5 && (${these})`;
    await hub.client.act('remove', constraint, 'held for too long: given up by thresher', signal);
    const left = await inQueue(hub, `(${these}) && JobStatus =!= 3`, signal);
    const still = new Map(left.map((job) => [jobIdText(job.id), job]));
    return givenUp.flatMap(({ job, verdict }) => {
      const now = still.get(jobIdText(job.id));
      return now === undefined ? [verdict] : (this.#stateOf(now)?.observation ?? []);
    });
  }

  #stateOf(job: Job): JobState | undefined {
    const { options, context } = this.#parts;
    if (job.workerId === undefined) return undefined;
    const { heldTimeout, payloadType } = options(job.queue, job.configId);
    const state = { heldTimeout, ...(payloadType !== undefined && { payloadType }) };
    return stateOf(job.workerId, job.ad, context.clock.now(), state);
  }

  /** For those who submit: how many are held, and who is at which CE. */
  #count(jobs: ReadonlyMap<number, Job>): void {
    const { hub, tally, context } = this.#parts;
    const held = new Map<string, number>();
    const living = [...jobs].flatMap(([workerId, job]) => {
      const { queue, ce, ad, queuedAt = 0 } = job;
      if (queue === undefined) return [];
      if (ad.JobStatus === 5) held.set(queue, (held.get(queue) ?? 0) + 1);
      const status = this.#stateOf(job)?.observation.status;
      if (ce === undefined || status === undefined) return [];
      const worker = { workerId, queue, ce, status, queuedAt: queuedAt * 1000 };
      if (isFinal(status)) tally.ended(worker);
      return isFinal(status) ? [] : [worker];
    });
    hub.held = held;
    tally.see(context.connection, living);
  }

  /** Harvester's `cancelUnknown`. */
  #cancelled(workerId: number): Observation {
    const now = this.#parts.context.clock.now();
    const error = { code: 'lost', message: 'neither the queue nor the history of the schedd knows its job' };
    return { workerId, status: 'cancelled', nativeStatus: 'unknown', error, endTime: now, observedAt: now };
  }
}

function silent({ id, ad }: Job) {
  const message = `job ${jobIdText(id)} has the JobStatus ${ad.JobStatus ?? '?'}, which says nothing`;
  return { code: 'condor-answer', message };
}

/** It may have become so while something else was waited for. */
const isOver = (signal: AbortSignal): boolean => signal.aborted;

const older = (a: Job, b: Job) => byId(a.id, b.id);
