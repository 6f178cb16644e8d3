import { toReason } from '../../../worker/errors.ts';
import { isKubernetesError } from '../../../clients/kubernetes/errors.ts';
import type { Handlers, ReflectorState } from '../../../clients/kubernetes/reflector.ts';
import { lastWarnings } from '../events.ts';
import type { Observation } from '../../../worker/observation.ts';
import type { ObservationSink } from '../../contracts/monitor.ts';
import { Following } from './following.ts';
import { GivingUp } from './giving-up.ts';
import type { K8sLogs } from '../logs.ts';
import type { MonitorParts } from './monitor-parts.ts';
import type { Kept, KeptPod } from './records.ts';

/** How long the end of a Job waits for that of its Pod, ms: the two watches are not of the same moment. */
const settling = 2000;
/** After something could not be given up, ms. */
const retryAfter = 10_000;
/** Longest end of a log that is kept, characters. */
const keptLog = 4096;
/** Longest wait for it, ms: the end of the worker waits with it. */
const logPatience = 30_000;
/** Logs read side by side: many workers may fail at once. */
const logsAtOnce = 4;
/** A worker that ended longer ago than this was most likely shown before the daemon's last start, ms. */
const logsOfLast = 3_600_000;

/** After so long a Job without a Pod is asked about, and again after that, ms. */
const withoutPod = { noticed: 10_000, again: 60_000 };

/** Clocks that differ by more are told of, ms. */
const clocksDiffer = 300_000;

type Source = 'jobs' | 'pods';

/** Makes observations of what two watches tell, and has given up what waited too long. */
export class Follower {
  readonly #parts: MonitorParts;
  readonly #logs: K8sLogs;
  readonly #sink: ObservationSink;
  readonly #signal: AbortSignal;
  readonly #following: Following;
  readonly #givingUp: GivingUp;
  /** Which of the two have listed everything once. */
  readonly #listed = new Set<Source>();
  /** Workers that time alone may change, and when, ms UTC of the cluster. */
  readonly #lookAgain = new Map<number, number>();
  /** Since when the end of a worker waits for what its Pod says, monotonic ms. */
  readonly #settling = new Map<number, number>();
  /** Workers on which a request is under way, or whose end was told: nothing more is shown of these. */
  readonly #busy = new Set<number>();
  readonly #logsWanted: { readonly observation: Observation; readonly lines: number }[] = [];
  #logReaders = 0;
  #toldOfLogs = false;
  /** When Jobs without a Pod are looked for next, monotonic ms. */
  #askAt = -Infinity;
  #toldOfClocks = false;
  /** Something was wrong since the last complete listing. */
  #troubled = false;
  #completedAt = -Infinity;

  constructor(parts: MonitorParts, logs: K8sLogs, sink: ObservationSink, signal: AbortSignal) {
    this.#parts = parts;
    this.#logs = logs;
    this.#sink = sink;
    this.#signal = signal;
    this.#following = new Following(parts.namespace);
    const show = (observation: Observation) => {
      this.#show(observation);
    };
    const release = (workerId: number) => {
      this.#busy.delete(workerId);
      this.#lookAgain.set(workerId, this.#parts.namespace.now() + retryAfter);
    };
    const withLog = async (observation: Observation, lines: number) => {
      const { workerId, status, exitCode } = observation;
      if (status !== 'failed' || exitCode === undefined || lines === 0) return observation;
      const log = await this.#logOf(workerId, lines);
      return log === '' ? observation : { ...observation, detail: { ...observation.detail, log } };
    };
    this.#givingUp = new GivingUp(parts, this.#following, { show, release, withLog }, signal);
  }

  readonly ofJobs: Handlers<Kept> = {
    replace: (all) => {
      const before = [...this.#following.workerIds];
      this.#following.replaceJobs(all);
      this.#relisted('jobs', before);
    },
    upsert: (job) => {
      this.#following.putJob(job, true);
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

  readonly ofPods: Handlers<KeptPod> = {
    replace: (all) => {
      const before = [...this.#following.workerIds];
      this.#following.replacePods(all);
      this.#relisted('pods', before);
    },
    upsert: (pod) => {
      this.#following.putPod(pod, true);
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
    const now = this.#parts.namespace.now();
    for (const [workerId, at] of this.#lookAgain) if (at <= now) this.#look(workerId);
    if (!states.every(({ synced }) => synced)) return;
    this.#compareClocks();
    const { clock } = this.#parts.context;
    if (clock.monotonic() >= this.#askAt) this.#askWhy(now, clock.monotonic());
    // The older of the two watches counts: while it is silent, nothing new is known. The end of a break is news.
    const aliveAt = Math.min(...states.map((state) => state.aliveAt));
    if (aliveAt <= this.#completedAt && !this.#troubled) return;
    this.#completedAt = aliveAt;
    this.#troubled = false;
    this.#sink.complete();
  }

  /** Why a Pod is not made (a quota, a class or an account that is missing) stands in Events of its Job alone. */
  #askWhy(now: number, monotonic: number): void {
    const without = this.#following.withoutPod(now - withoutPod.noticed);
    this.#askAt = monotonic + (without.size === 0 ? withoutPod.noticed : withoutPod.again);
    lastWarnings(this.#parts.namespace, [...without.keys()], this.#signal)
      .then((warnings) => {
        for (const [uid, warning] of warnings) {
          const workerId = without.get(uid);
          if (workerId === undefined) continue;
          this.#following.explain(workerId, warning);
          this.#look(workerId);
        }
      })
      .catch((error: unknown) => {
        this.#parts.context.log.debug('why Pods are missing cannot be asked', { ...toReason(error) });
      });
  }

  #compareClocks(): void {
    const { namespace, context } = this.#parts;
    const ahead = namespace.client.clockOffset;
    const differ = Math.abs(ahead) > clocksDiffer;
    if (differ && !this.#toldOfClocks)
      context.log.warn('the clocks of this machine and of the API server, or of what is before it, differ', {
        namespace: namespace.name,
        secondsAhead: Math.round(ahead / 1000),
        effect: 'limits to waits are kept by the one that is behind',
      });
    this.#toldOfClocks = differ;
  }

  #changed({ trouble, synced }: ReflectorState): void {
    if (trouble === undefined) return;
    this.#troubled = true;
    const reason = toReason(trouble);
    if (!synced && isKubernetesError(trouble, 'kubernetes-rewound'))
      this.#parts.context.log.warn('the API server went back to an older state', { ...reason });
    this.#sink.trouble(reason);
  }

  /** @param before workers of which something was there until now */
  #relisted(source: Source, before: readonly number[]): void {
    this.#listed.add(source);
    // A Job without its Pods, or Pods without their Job, would be shown as something else than they are.
    if (this.#listed.size < 2) return;
    this.#sink.begin();
    for (const workerId of this.#following.workerIds) this.#look(workerId, true);
    for (const map of [this.#lookAgain, this.#settling, this.#busy]) {
      for (const workerId of map.keys()) if (!this.#following.has(workerId)) map.delete(workerId);
    }
    // No watch tells of what went while nothing was watched.
    for (const workerId of before) if (!this.#following.has(workerId)) this.#sink.gone(workerId);
  }

  #look(workerId: number, listed = false): void {
    if (this.#listed.size < 2 || this.#signal.aborted) return;
    const now = this.#parts.namespace.now();
    const state = this.#following.stateOf(workerId, now, this.#parts.options);
    if (state === undefined) {
      for (const map of [this.#lookAgain, this.#settling, this.#busy]) map.delete(workerId);
      this.#sink.gone(workerId);
      return;
    }
    if (this.#busy.has(workerId)) return;
    const { observation, verdict, lookAgainAt, settled, logLines } = state;
    if (!settled && !this.#waitedForPod(workerId)) {
      this.#lookAgain.set(workerId, now + settling);
      return;
    }
    this.#settling.delete(workerId);
    if (lookAgainAt === undefined) this.#lookAgain.delete(workerId);
    else this.#lookAgain.set(workerId, lookAgainAt);
    const isOld = listed && now - (observation.endTime ?? now) > logsOfLast;
    if (observation.status === 'failed' && logLines > 0 && !isOld) {
      // Later changes of it are no news: this is the end.
      this.#busy.add(workerId);
      this.#logsWanted.push({ observation, lines: logLines });
      this.#readLogs();
      return;
    }
    this.#show(observation);
    if (verdict === undefined) return;
    this.#busy.add(workerId);
    this.#givingUp.add(workerId);
  }

  #show(observation: Observation): void {
    const { clockOffset } = this.#parts.namespace.client;
    // When we saw it is by our own clock.
    const observedAt = this.#parts.context.clock.now();
    this.#sink.observe(clockOffset === 0 ? observation : { ...observation, observedAt });
  }

  #waitedForPod(workerId: number): boolean {
    const now = this.#parts.context.clock.monotonic();
    const since = this.#settling.get(workerId);
    if (since === undefined) this.#settling.set(workerId, now);
    return since !== undefined && now - since >= settling;
  }

  /** A few at once, beside what the watches tell. */
  #readLogs(): void {
    if (this.#logReaders >= logsAtOnce) return;
    this.#logReaders++;
    const read = async () => {
      for (let next = this.#logsWanted.shift(); next; next = this.#logsWanted.shift()) {
        const { observation, lines } = next;
        const log = await this.#logOf(observation.workerId, lines);
        this.#show(log === '' ? observation : { ...observation, detail: { ...observation.detail, log } });
      }
    };
    read()
      .catch((error: unknown) => {
        this.#parts.context.log.error('failed workers could not be shown', { ...toReason(error) });
      })
      .finally(() => {
        this.#logReaders--;
      });
  }

  async #logOf(workerId: number, lines: number): Promise<string> {
    const { clock, log } = this.#parts.context;
    const read = new AbortController();
    const signal = AbortSignal.any([this.#signal, read.signal]);
    const late = clock.sleep(logPatience, signal).then(() => {
      read.abort();
    });
    try {
      return await this.#logs.end(workerId, lines, keptLog, signal);
    } catch (error) {
      // A right that is missing is missing for all of them.
      if (!this.#toldOfLogs)
        log.warn('the log of a failed worker is not kept', { workerId, ...toReason(error) });
      this.#toldOfLogs = true;
      return '';
    } finally {
      read.abort();
      await late;
    }
  }
}
