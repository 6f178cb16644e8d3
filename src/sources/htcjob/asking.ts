import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import { countingSpec, type HtcJobSpec } from '../../clients/htcjob/resource.ts';
import type { Desk } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { HtcJobCluster } from './cluster.ts';
import { kept } from './followed.ts';
import type { JobMaker } from './job-maker.ts';
import { type Jobs, jobsOf, requestsOf } from './job-request.ts';
import { looks } from './looks.ts';
import type { QueueWaker } from './queue-waker.ts';
import type { Tracked } from './tracked.ts';
import { isRefused, isWorthMaking, type Turns } from './turns.ts';

export interface AskingParts {
  readonly clock: Clock;
  readonly desk: Pick<Desk, 'reasons'>;
  readonly cluster: HtcJobCluster;
  readonly maker: JobMaker;
  /** The queue that runs the jobs of this resource, or why there is none; undefined where it is not known yet. */
  readonly queueOf: (tracked: Tracked) => string | Reason | undefined;
  readonly waker: Pick<QueueWaker, 'hasRequests'>;
  readonly turns: Pick<Turns, 'limit' | 'take' | 'isFull'>;
}

/** Asks queues for the workers of HTCJobs: for how many of them, why they get none, and what jobs they are to run. */
export class Asking {
  readonly #parts: AskingParts;

  constructor(parts: AskingParts) {
    this.#parts = parts;
  }

  /**
   * Decides what the queue is asked for from now on, and why it gives nothing.
   * @param wanted indexes of the attempts that want a worker, one at least
   * @param claim puts it on record, before the first request, that jobs are made; false where that cannot be
   * @returns false where the resource is gone, or has changed since
   * @throws KubernetesError
   */
  async ask(
    tracked: Tracked,
    wanted: readonly number[],
    claim: () => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { clock, queueOf, turns, waker } = this.#parts;
    const now = clock.monotonic();
    tracked.askedAt ??= now;
    const queue = queueOf(tracked);
    if (typeof queue !== 'string') {
      tracked.dropRequests();
      tracked.waiting = queue;
      return true;
    }
    if (tracked.queue !== queue) tracked.dropRequests();
    const { waiting } = tracked;
    const wasRefused = isRefused(tracked);
    // What was wrong with it may have been mended since, in a Secret.
    if (wasRefused && now - tracked.askedAt >= looks.unheard) tracked.dropRequests();
    const limit = turns.limit(tracked, queue, wanted.length);
    // Those that were asked for stay the same requests: a pass of the queue may have them in its hand.
    const asked = wanted.filter((index) => tracked.asked.has(index));
    const others = wanted.filter((index) => !tracked.asked.has(index));
    if (isWorthMaking(limit - asked.length, asked.length, wanted.length)) {
      let jobs: Jobs | undefined;
      try {
        jobs = await this.jobs(tracked, signal);
        if (jobs === undefined) return false;
        // One payload that cannot be made stands for all of them.
        for (const index of others.slice(0, 1)) jobs.payloadOf(index);
      } catch (error) {
        if (isKubernetesError(error)) throw error;
        tracked.dropRequests();
        tracked.waiting = toReason(error);
        tracked.secretLooks = tracked.waiting.code === 'htcjob-secret' ? tracked.secretLooks + 1 : 0;
        return true;
      }
      if (!(await claim())) return false;
      // Others may have asked meanwhile.
      const taken = turns.take(tracked, queue, wanted.length);
      const unheard = [...asked, ...others].filter((index) => !tracked.attempts.has(index));
      const requests = requestsOf(jobs, unheard.slice(0, Math.max(taken, asked.length)), tracked.asked);
      const [first] = requests.keys();
      if (first !== undefined && !tracked.asked.has(first)) tracked.askedAt = clock.monotonic();
      tracked.ask(requests);
      if (wasRefused) tracked.waiting = waiting;
      tracked.queue = queue;
      waker.hasRequests(queue);
    } else if (tracked.asked.size > Math.min(asked.length, limit)) {
      const isKept = new Set(asked.slice(0, limit));
      tracked.asked = new Map([...tracked.asked].filter(([index]) => isKept.has(index)));
    }
    const reason = this.#whyWaiting(tracked, queue);
    // A message with a number in it changes all the time.
    if (reason?.code !== tracked.waiting?.code) tracked.waiting = reason;
    return true;
  }

  /** Its turn goes to others with the next pass. @param isForGood its script is needed no more */
  stop(tracked: Tracked, isForGood: boolean): void {
    const { turns, waker } = this.#parts;
    const { queue, asked } = tracked;
    if (asked.size > 0 && queue !== undefined && turns.isFull(queue)) waker.hasRequests(queue);
    tracked.stopAsking(isForGood);
  }

  /** Whether nothing is new, but perhaps why its jobs wait: to judge all of them for that, of hundreds of resources, takes all time that there is. */
  standsStill(tracked: Tracked): boolean {
    const { clock, queueOf } = this.#parts;
    const { settledAt, asked, queue } = tracked;
    if (settledAt === undefined || asked.size === 0 || queue === undefined) return false;
    if (clock.monotonic() - settledAt >= looks.unheard || queueOf(tracked) !== queue) return false;
    return this.#whyWaiting(tracked, queue)?.code === tracked.waiting?.code;
  }

  /** Why the queue gives its first request no worker. A pass of the queue takes a moment: until then it is what it was. */
  #whyWaiting({ uid, asked, askedAt, waiting }: Tracked, queue: string): Reason | undefined {
    const { desk, clock } = this.#parts;
    const [first] = asked.keys();
    if (first === undefined || clock.monotonic() - (askedAt ?? Infinity) < looks.firstReason) return waiting;
    const [reason] = desk.reasons(queue, { uid, index: first });
    return reason;
  }

  /**
   * The jobs of a resource as they are made now.
   * @returns undefined where it is gone, or has changed meanwhile
   * @throws ThresherError `htcjob-secret`, and those of the server
   */
  async jobs(tracked: Tracked, signal: AbortSignal): Promise<Jobs | undefined> {
    const spec = await this.spec(tracked, signal);
    if (spec === undefined) return undefined;
    const { generation } = tracked;
    const jobs = await jobsOf({ meta: tracked.meta, spec }, this.#parts, signal);
    // Its user may have changed it while its Secrets were read: what it is now is not judged yet.
    return tracked.generation === generation ? jobs : undefined;
  }

  /** The whole spec, of which the short parts alone may be in memory. @returns undefined where it is gone, or has changed since */
  async spec(tracked: Tracked, signal: AbortSignal): Promise<HtcJobSpec | undefined> {
    if (tracked.whole !== undefined) return tracked.whole;
    const { generation } = tracked;
    const object = await this.#parts.cluster.read(tracked.meta, signal);
    if (object === undefined) tracked.isGone = true;
    if (object === undefined || tracked.generation !== generation) return undefined;
    if (object.metadata.generation === generation) return countingSpec(object.spec);
    // The watch tells nothing new of this version any more.
    tracked.update(kept(object));
    return undefined;
  }
}
