import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type { Desk, Log, Request } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { HtcJobCluster } from './cluster.ts';
import { type EventWriter, notesOf } from './events.ts';
import type { JobMaker } from './job-maker.ts';
import type { Outputs } from './output/outputs.ts';
import type { Judgement } from './judge.ts';
import { requirementsOf } from './needs.ts';
import { attemptOf } from '../../clients/htcjob/numbers.ts';
import type { HtcJobStatus, SpecProblem } from '../../clients/htcjob/resource.ts';
import { isSame } from './same-status.ts';
import { isHeld, statusOf } from './status.ts';
import type { Tracked } from './tracked.ts';

export interface StepperParts {
  readonly factoryId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly desk: Desk;
  readonly cluster: HtcJobCluster;
  readonly events: Pick<EventWriter, 'write'>;
  readonly maker: JobMaker;
  readonly outputs: Outputs;
  /** The queue that runs the jobs of this resource, or why there is none. */
  readonly queueOf: (tracked: Tracked) => string | Reason;
}

/** When the resource needs the next look, ms from now; undefined: when something happens to it. */
type Next = number | undefined;

/** ms. */
const looks = { waiting: 2000, firstReason: 1500, finalizing: 500, failed: 5000, secret: 5000 };
/** Most bytes of scripts that the requests of one resource hold at a time. */
const mostBytes = 64 * 1024 * 1024;
/** Longest script, by the schema of the resource. */
const mostScriptBytes = 1_000_000;
/** Longest timer: a look too many does no harm. */
const longestLook = 3_600_000;

/**
 * Brings one resource a step on: towards its jobs, its status, or its end. A step reads all from the resource and the database, so a
 * crash at any place repeats a step and nothing more.
 */
export class Stepper {
  readonly #parts: StepperParts;

  constructor(parts: StepperParts) {
    this.#parts = parts;
  }

  /** @throws KubernetesError, and errors of the database: the step is to be repeated. */
  async step(tracked: Tracked, signal: AbortSignal): Promise<Next> {
    const { factoryId, cluster, clock } = this.#parts;
    if (tracked.isGone) return this.#endLost(tracked);
    const owner = tracked.status?.factory;
    if (owner !== undefined && owner !== factoryId) return undefined;
    if (tracked.isDeleting) return this.#finalize(tracked, signal);
    if (tracked.isFinished) {
      const isThere = await this.#keepOutputs(tracked, signal);
      return isThere ? this.#afterEnd(tracked, signal) : undefined;
    }
    if (!tracked.hasFinalizer) {
      const version = await cluster.setFinalizer(tracked.meta, true, signal);
      if (!this.#wrote(tracked, version)) return undefined;
      tracked.addFinalizer();
    }
    const problems = tracked.problems ?? this.#problems(tracked);
    tracked.problems = problems;
    // From here on its spec cannot change any more: jobs are made of the spec that users see.
    if (tracked.status?.uniqId !== tracked.uid && problems.length === 0) {
      if (!(await this.#write(tracked, this.#status(tracked, tracked.judge(false), undefined), signal)))
        return undefined;
    }
    await this.#restore(tracked);
    const now = clock.now();
    const isLate = tracked.deadline !== undefined && now >= tracked.deadline;
    const judgement = tracked.judge(isLate || problems.length > 0);
    const round = tracked.status?.round ?? 0;
    // The next round is on record before the jobs of this one end.
    if (tracked.round > round) {
      const isThere = await this.#write(tracked, this.#status(tracked, judgement, undefined), signal);
      return isThere ? 0 : undefined;
    }
    this.#parts.outputs.want(tracked, judgement);
    if (judgement.toEnd.length > 0) await this.#end(tracked, judgement.toEnd, isLate);
    await this.#ask(tracked, judgement, signal);
    tracked.holdReason = await this.#holdReason(judgement);
    const stopped = stoppedBy(tracked, problems, isLate);
    const status = this.#status(tracked, judgement, stopped);
    if (!isSame(tracked.status, status) && !(await this.#write(tracked, status, signal))) return undefined;
    if (status.completionTime !== undefined) return this.#afterEnd(tracked, signal);
    const untilDeadline = tracked.deadline === undefined || isLate ? longestLook : tracked.deadline - now;
    return Math.min(tracked.asked.size > 0 ? looks.waiting : longestLook, untilDeadline);
  }

  #problems(tracked: Tracked): readonly SpecProblem[] {
    try {
      const { spec, source = '' } = tracked;
      return this.#parts.maker.problems({ ...spec, script: { ...spec.script, source } });
    } catch (error) {
      return [{ at: '/spec', message: messageOf(error) }];
    }
  }

  #status(tracked: Tracked, judgement: Judgement, stopped: ReturnType<typeof stoppedBy>): HtcJobStatus {
    const status = statusOf({
      uid: tracked.uid,
      generation: tracked.generation,
      factory: this.#parts.factoryId,
      round: tracked.round,
      isSuspended: tracked.isSuspended,
      judgement,
      waiting: tracked.waiting,
      holdReason: tracked.holdReason,
      stopped,
      reports: tracked.reports,
      before: tracked.status,
      now: this.#parts.clock.now(),
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

  async #restore(tracked: Tracked): Promise<void> {
    if (tracked.isRestored) return;
    for (const news of await this.#parts.desk.find([{ uid: tracked.uid }])) tracked.hear(news);
    tracked.isRestored = true;
  }

  /** @returns false where it is gone, or is another one by now */
  async #write(tracked: Tracked, status: HtcJobStatus, signal: AbortSignal): Promise<boolean> {
    const before = tracked.status;
    const version = await this.#parts.cluster.applyStatus(tracked.meta, status, signal);
    if (!this.#wrote(tracked, version)) return false;
    tracked.status = status;
    this.#parts.events.write(tracked.meta, notesOf(before, status), signal);
    return true;
  }

  #wrote(tracked: Tracked, version: string | undefined): boolean {
    if (version === undefined) tracked.isGone = true;
    else tracked.meta = { ...tracked.meta, resourceVersion: version };
    return version !== undefined;
  }

  async #end(tracked: Tracked, indexes: readonly number[], isLate: boolean): Promise<void> {
    const why = isLate
      ? `the activeDeadlineSeconds of HTCJob ${tracked.name} are over`
      : `HTCJob ${tracked.name} is suspended`;
    await this.#parts.desk.end(
      indexes.map((index) => ({ uid: tracked.uid, index })),
      why,
    );
  }

  async #holdReason({ jobs }: Judgement): Promise<string | undefined> {
    const workerId = jobs.find(isHeld)?.facts?.workerId;
    const detail = workerId == null ? undefined : await this.#parts.desk.detail(workerId);
    const { HoldReason: reason } = (detail ?? {}) as { readonly HoldReason?: unknown };
    return typeof reason === 'string' ? reason : undefined;
  }

  /** Decides what the queue is asked for from now on, and why it gives nothing. */
  async #ask(tracked: Tracked, { jobs }: Judgement, signal: AbortSignal): Promise<void> {
    const { desk, clock, queueOf } = this.#parts;
    const wanted = jobs.filter(({ outcome }) => outcome === 'wanted');
    if (wanted.length === 0) {
      tracked.stopAsking(jobs.every(({ outcome }) => outcome !== 'waits'));
      return;
    }
    tracked.askedAt ??= clock.monotonic();
    const queue = queueOf(tracked);
    if (typeof queue !== 'string') {
      tracked.asked = new Map();
      tracked.waiting = queue;
      return;
    }
    const size = tracked.source?.length ?? mostScriptBytes;
    const next = wanted.slice(0, Math.max(1, Math.floor(mostBytes / Math.max(1, size))));
    const indexes = next.map(({ index }) => index);
    if (tracked.queue !== queue || indexes.some((index) => !tracked.asked.has(index))) {
      try {
        tracked.asked = await this.#requests(tracked, indexes, signal);
      } catch (error) {
        if (isKubernetesError(error)) throw error;
        tracked.asked = new Map();
        tracked.waiting = toReason(error);
        return;
      }
      tracked.queue = queue;
      desk.wake(queue);
    } else if (tracked.asked.size > indexes.length) {
      const isWanted = new Set(indexes);
      tracked.asked = new Map([...tracked.asked].filter(([index]) => isWanted.has(index)));
    }
    const [first] = tracked.asked.keys();
    // A pass of the queue takes a moment.
    if (clock.monotonic() - tracked.askedAt < looks.firstReason || first === undefined) return;
    const [reason] = desk.reasons(queue, { uid: tracked.uid, index: first });
    // A message with a number in it changes all the time.
    if (reason?.code !== tracked.waiting?.code) tracked.waiting = reason;
  }

  /** @throws ThresherError `htcjob-secret`, and why a payload cannot be made */
  async #requests(
    tracked: Tracked,
    indexes: readonly number[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Request>> {
    const { cluster, maker } = this.#parts;
    const { meta, spec, uid } = tracked;
    const source = tracked.source ?? (await cluster.read(meta, signal))?.spec.script.source;
    if (source === undefined) return new Map();
    const secrets = await cluster.secretsOf(meta.namespace, spec.secrets ?? [], signal);
    const resource = { metadata: meta, spec: { ...spec, script: { ...spec.script, source } } };
    const requirements = requirementsOf(spec);
    const requests = indexes.map((index): [number, Request] => {
      const { number } = attemptOf(index);
      const payload = maker.payload({ resource, number, index, secrets });
      return [index, { origin: { uid, index }, groupId: uid, requirements, payload }];
    });
    return new Map(requests);
  }

  async #afterEnd(tracked: Tracked, signal: AbortSignal): Promise<Next> {
    tracked.stopAsking(true);
    const { endOfLife } = tracked;
    if (endOfLife === undefined) return undefined;
    const left = endOfLife - this.#parts.clock.now();
    if (left <= 0) await this.#parts.cluster.delete(tracked.meta, signal);
    return left <= 0 ? looks.failed : Math.min(left, longestLook);
  }

  /** Another client took the finalizer away: the jobs end, too. */
  async #endLost(tracked: Tracked): Promise<Next> {
    tracked.stopAsking(true);
    const { desk, log } = this.#parts;
    await desk.end(tracked.origins, `HTCJob ${tracked.name} is gone`);
    await this.#parts.outputs.remove(tracked);
    if (tracked.living.length > 0)
      log.warn('jobs of a HTCJob that was removed without its finalizer were ended', {
        htcjob: tracked.name,
      });
    tracked.isForgotten = true;
    return undefined;
  }

  /** Jobs, spool and files go first, and then the resource. */
  async #finalize(tracked: Tracked, signal: AbortSignal): Promise<Next> {
    const { desk, cluster, log } = this.#parts;
    tracked.stopAsking(true);
    if (!tracked.hasFinalizer) return undefined;
    const wasClaimed = tracked.status?.uniqId === tracked.uid;
    if (wasClaimed && !tracked.isEnding) {
      await desk.end(tracked.origins, `HTCJob ${tracked.name} was deleted`);
      tracked.isEnding = true;
    }
    if (wasClaimed) await this.#parts.outputs.remove(tracked);
    // Retries and rounds before a crash may be unknown here, and the database knows them.
    if (wasClaimed && (await desk.discard(tracked.uid)) > 0) return looks.finalizing;
    await cluster.setFinalizer(tracked.meta, false, signal);
    log.info('HTCJob deleted', { htcjob: tracked.name });
    tracked.isForgotten = true;
    return undefined;
  }
}

function stoppedBy(tracked: Tracked, problems: readonly SpecProblem[], isLate: boolean) {
  if (problems.length > 0)
    return {
      reason: 'Invalid',
      message: problems.map(({ at, message }) => `${at}: ${message}`).join('; '),
    };
  if (!isLate) return undefined;
  const { activeDeadlineSeconds = 0 } = tracked.spec;
  return {
    reason: 'DeadlineExceeded',
    message: `its jobs did not end within activeDeadlineSeconds ${activeDeadlineSeconds}`,
  };
}
