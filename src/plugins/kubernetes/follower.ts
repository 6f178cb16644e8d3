import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type { Handlers, ReflectorState } from '../../clients/kubernetes/reflector.ts';
import type { Observation } from '../../worker/observation.ts';
import type { Context } from '../contracts/context.ts';
import type { ObservationSink } from '../contracts/monitor.ts';
import { tell } from './events.ts';
import { Following } from './following.ts';
import type { KubernetesHub } from './hub.ts';
import type { K8sLogs } from './logs.ts';
import { lookUp } from './look-up.ts';
import type { StateOptions } from './pod-state.ts';
import { problemOf } from './problem.ts';
import type { Kept } from './records.ts';

/** How long the end of a Job waits for that of its Pod, ms: the two watches are not of the same moment. */
const settling = 2000;
/** After something could not be given up, ms. */
const retryAfter = 10_000;
/** Longest end of a log that is kept, bytes. */
const keptLog = 4096;
/** Longest wait for it, ms: the end of the worker waits with it. */
const logPatience = 10_000;

type Source = 'jobs' | 'pods';

export interface MonitorParts {
  readonly hub: KubernetesHub;
  readonly context: Context;
  /** Longest time without a byte before a watch counts as dead, ms. Default: the reflector's. */
  readonly silence?: number;
  /** By queue, since one monitor follows the workers of all queues in its namespace. */
  readonly options: (queue: string | undefined) => StateOptions & { readonly failedLogLines: number };
}

/** Makes observations of what two watches tell, and gives up what has waited too long. */
export class Follower {
  readonly #parts: MonitorParts;
  readonly #logs: K8sLogs;
  readonly #sink: ObservationSink;
  readonly #signal: AbortSignal;
  readonly #following = new Following();
  /** Which of the two have listed everything once. */
  readonly #listed = new Set<Source>();
  /** Workers that time alone may change, and when, ms UTC. */
  readonly #lookAgain = new Map<number, number>();
  /** Since when the end of a worker waits for what its Pod says, monotonic ms. */
  readonly #settling = new Map<number, number>();
  /** Workers on which a request is under way, or that were given up: nothing more is shown of these. */
  readonly #busy = new Set<number>();
  #completedAt = -Infinity;

  constructor(parts: MonitorParts, logs: K8sLogs, sink: ObservationSink, signal: AbortSignal) {
    this.#parts = parts;
    this.#logs = logs;
    this.#sink = sink;
    this.#signal = signal;
  }

  readonly ofJobs: Handlers<Kept> = {
    replace: (all) => {
      this.#following.replaceJobs(all);
      this.#relisted('jobs');
    },
    upsert: (job) => {
      this.#following.putJob(job);
      this.#look(job.workerId);
    },
    remove: (job) => {
      this.#following.removeJob(job);
      this.#look(job.workerId);
    },
    changed: (state) => {
      this.#changed(state);
    },
  };

  readonly ofPods: Handlers<Kept> = {
    replace: (all) => {
      this.#following.replacePods(all);
      this.#relisted('pods');
    },
    upsert: (pod) => {
      this.#following.putPod(pod);
      this.#look(pod.workerId);
    },
    remove: (pod) => {
      this.#following.removePod(pod);
      this.#look(pod.workerId);
    },
    changed: (state) => {
      this.#changed(state);
    },
  };

  /** Time has gone by. */
  tick(states: readonly ReflectorState[]): void {
    const now = this.#parts.context.clock.now();
    for (const [workerId, at] of this.#lookAgain) if (at <= now) this.#look(workerId);
    if (!states.every(({ synced }) => synced)) return;
    // As fresh as the older of the two; where neither was heard of since, nothing new is known.
    const aliveAt = Math.min(...states.map((state) => state.aliveAt));
    if (aliveAt <= this.#completedAt) return;
    this.#completedAt = aliveAt;
    this.#sink.complete();
  }

  #changed({ trouble }: ReflectorState): void {
    if (trouble !== undefined) this.#sink.trouble(problemOf(trouble));
  }

  #relisted(source: Source): void {
    this.#listed.add(source);
    // A Job without its Pods, or Pods without their Job, would be shown as something else than they are.
    if (this.#listed.size < 2) return;
    this.#sink.begin();
    for (const workerId of this.#following.workerIds) this.#look(workerId);
    for (const map of [this.#lookAgain, this.#settling, this.#busy]) {
      for (const workerId of map.keys()) if (!this.#following.has(workerId)) map.delete(workerId);
    }
  }

  #look(workerId: number): void {
    if (this.#listed.size < 2 || this.#signal.aborted) return;
    const { clock } = this.#parts.context;
    const state = this.#following.stateOf(workerId, clock.now(), this.#parts.options);
    if (state === undefined) {
      for (const map of [this.#lookAgain, this.#settling, this.#busy]) map.delete(workerId);
      this.#sink.gone(workerId);
      return;
    }
    if (this.#busy.has(workerId)) return;
    const { observation, verdict, lookAgainAt, settled, queue } = state;
    if (!settled && !this.#waitedForPod(workerId)) {
      this.#lookAgain.set(workerId, clock.now() + settling);
      return;
    }
    this.#settling.delete(workerId);
    if (lookAgainAt === undefined) this.#lookAgain.delete(workerId);
    else this.#lookAgain.set(workerId, lookAgainAt);
    const lines = observation.status === 'failed' ? this.#parts.options(queue).failedLogLines : 0;
    if (lines > 0) {
      // What comes later of it is no news: this is the end.
      this.#busy.add(workerId);
      this.#apart(workerId, this.#showWithLog(observation, lines));
      return;
    }
    this.#sink.observe(observation);
    if (verdict === undefined) return;
    this.#busy.add(workerId);
    this.#apart(workerId, this.#giveUp(workerId));
  }

  /** What asks the server must not hold up what the watches tell. */
  #apart(workerId: number, work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.#parts.context.log.error('worker could not be shown', { workerId, ...problemOf(error) });
    });
  }

  /** Judged once more by what is there now: a watch may lag. Its end is told when the server has taken the deletion. */
  async #giveUp(workerId: number): Promise<void> {
    const { hub, context, options } = this.#parts;
    const { clock, log } = context;
    const signal = this.#signal;
    try {
      const fresh = await lookUp(hub, [workerId], signal);
      const { verdict } = fresh.stateOf(workerId, clock.now(), options) ?? {};
      const { job, pods } = fresh.objectsOf(workerId);
      if (verdict !== undefined) {
        if (job !== undefined)
          await hub.client.delete(hub.job(job.name), {
            signal,
            uid: job.uid,
            propagationPolicy: 'Background',
          });
        else for (const { name, uid } of pods) await hub.client.delete(hub.pod(name), { signal, uid });
        this.#sink.observe(verdict.observation);
        const { message = '' } = verdict.observation.error ?? {};
        log.info('worker given up', { workerId, job: job?.name, error: message });
        if (job !== undefined) await tell(hub, context, { job, reason: 'GivenUp', message }, signal);
        return;
      }
    } catch (error) {
      // Whatever took it away meanwhile is told by the watch.
      if (!isKubernetesError(error, 'kubernetes-not-found', 'kubernetes-conflict') && !signal.aborted)
        log.warn('worker could not be given up', { workerId, ...problemOf(error) });
    }
    this.#busy.delete(workerId);
    this.#lookAgain.set(workerId, clock.now() + retryAfter);
  }

  async #showWithLog(observation: Observation, lines: number): Promise<void> {
    const { clock } = this.#parts.context;
    const patience = new AbortController();
    const signal = AbortSignal.any([this.#signal, patience.signal]);
    const late = clock.sleep(logPatience, signal).then(() => {
      patience.abort();
    });
    const log = await this.#logs.end(observation.workerId, lines, keptLog, signal);
    patience.abort();
    await late;
    this.#sink.observe(log === '' ? observation : { ...observation, detail: { ...observation.detail, log } });
  }

  #waitedForPod(workerId: number): boolean {
    const now = this.#parts.context.clock.monotonic();
    const since = this.#settling.get(workerId);
    if (since === undefined) this.#settling.set(workerId, now);
    return since !== undefined && now - since >= settling;
  }
}
