import type {
  Desk,
  Request,
  Source,
  SourceHttpAnswer,
  SourceHttpRequest,
  SourceQueue,
  Wanted,
  WorkerNews,
} from '../../plugins/contracts/index.ts';
import type { RetrievedPodData } from '../../clients/interlink/wire.ts';
import { messageOf, ThresherError, toReason } from '../../worker/errors.ts';
import { isFinal } from '../../worker/status.ts';
import { oneLine } from '../../util/one-line.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import { acceptedPod } from './accept.ts';
import { FreshEnds } from './looks/fresh-ends.ts';
import { isAtWork, isHeld } from './pods/facts.ts';
import type { Looks } from './looks/looks.ts';
import type { Peeks } from './looks/peeks.ts';
import { Pace } from './pods/pace.ts';
import { lostJob } from './pods/pod-book.ts';
import type { TrackedPod } from './pods/tracked-pod.ts';
import { deletion, PodService, type ServiceParts } from './pod-service.ts';
import type { ReportDoor } from './reports/report-door.ts';
import { isListed } from './status/backend-health.ts';
import { PodRequests } from './requests.ts';

export interface SidecarParts extends ServiceParts {
  /** How often reports of jobs and remains of deleted Pods are looked for, ms. */
  readonly lookInterval: number;
  /** The least time between two batches of Pods that get jobs, ms. */
  readonly batchInterval: number;
  /** How long a Pod that has ended is kept if no /delete comes, ms. */
  readonly keepEnded: number;
  /** Absent: jobs write their reports where the daemon reads them. */
  readonly machines?: { readonly peeks: Peeks; readonly looks: Looks };
  /** Absent: jobs send no reports. */
  readonly door?: ReportDoor;
  /** Listens until `signal` aborts. */
  serve(service: PodService, signal: AbortSignal): Promise<void>;
}

/** How long one round of looks may hold the next one, and what is still to be written down the end of a run, ms. */
const longestRound = 5000;

/** Letters of the reason of a hold. */
const longestReason = 1000;

const unknownPod = 'its Pod is unknown';

const lostMachine = 'its job lost its machine, and a Pod starts only once';

const nothing: Wanted = { requests: [], groups: [], reasons: [] };

/** Runs the Pods that interLink sends. Its truth is in its files, which say which Pods there are, and in the store's origins, which say which of them have a job. */
export class Sidecar implements Source {
  readonly #parts: SidecarParts;
  readonly #service: PodService;
  #requests: PodRequests;
  /** Longest life of a job, s, by its queue; 0: no limit. */
  #longest = 0;
  readonly #freshEnds: FreshEnds;
  readonly #pace: Pace;
  /** Passes of the queue since the start. */
  #passes = 0;

  constructor(parts: SidecarParts) {
    this.#parts = parts;
    this.#service = new PodService(parts);
    const { clock, log } = parts.host;
    this.#pace = new Pace(parts.lookInterval, log);
    this.#requests = this.#newRequests();
    this.#freshEnds = new FreshEnds(clock, () => parts.book.all);
  }

  #newRequests(): PodRequests {
    const { host, book, batchInterval } = this.#parts;
    return new PodRequests({
      host,
      batchInterval,
      read: (pod) => book.body(pod),
      plan: (pod, data) => this.#requestOf(pod, data),
    });
  }

  async wanted({ name, own, requirements }: SourceQueue): Promise<Wanted> {
    if (!own) return nothing;
    const { book } = this.#parts;
    await book.load();
    const queue = this.#service.queue;
    if (typeof queue !== 'string') return { ...nothing, reasons: [queue] };
    if (queue !== name) return nothing;
    if (this.#longest !== requirements.maxWalltime) {
      // What was planned counted by another one.
      this.#longest = requirements.maxWalltime;
      this.#requests = this.#newRequests();
    }
    // Which Pods have their jobs already is not known before.
    if (this.#service.desk === undefined) return nothing;
    this.#passes++;
    const waiting = book.all.filter(({ isWanted }) => isWanted);
    const requests = this.#requests.of(waiting, () => this.#service.desk?.wake(name));
    const all = [book.whyIncomplete, this.#requests.reason, this.#service.unread];
    const reasons = all.filter((reason) => reason !== undefined);
    return { requests, groups: [], reasons };
  }

  async told(news: readonly WorkerNews[]): Promise<void> {
    const { book, host } = this.#parts;
    await book.load();
    await book.hear(news, host.clock);
    this.#freshEnds.heard();
    const living = news.filter(({ worker: { status } }) => status !== 'withdrawn' && !isFinal(status));
    await this.#endStrangers(living);
  }

  /** Jobs send their reports here. */
  async answer(request: SourceHttpRequest): Promise<SourceHttpAnswer> {
    const { door, book } = this.#parts;
    if (door === undefined) return { status: 404, body: '{"message":"jobs send no reports here"}' };
    return door.answer(request, (uid, report) => {
      const pod = book.get(uid);
      if (pod === undefined || pod.hasEnded) return false;
      this.#parts.machines?.looks.told(pod);
      pod.takeReport(report);
      return true;
    });
  }

  async run(desk: Desk, signal: AbortSignal): Promise<void> {
    const { book, host } = this.#parts;
    const over = new AbortController();
    const ended = AbortSignal.any([signal, over.signal]);
    this.#passes = 0;
    try {
      await book.load();
      const living = await desk.living();
      this.#requireFiles(living);
      await book.prepare();
      await book.catchUp(desk, host.clock);
      // interLink may have heard of a job as soon as it had an id.
      for (const pod of book.all) pod.isAnswered = pod.outcome?.ok === true;
      this.#parts.machines?.peeks.begin(desk);
      this.#service.begin(desk);
      await this.#endStrangers(living);
      const lives = [this.#parts.serve(this.#service, ended), this.#look(desk, ended)];
      await Promise.all([...lives, this.#freshEnds.run((pod) => this.#lookAt(pod, desk), ended)]);
    } finally {
      over.abort();
      const late = new AbortController();
      await Promise.race([book.marked(), host.clock.sleep(longestRound, late.signal)]);
      late.abort();
    }
  }

  /**
   * A job of an unknown Pod has no other end. Before the service has begun, `run` finds it again. A damaged file is still the one of its
   * Pod, which may be repaired, or deleted. Several without their files are no Pods that somebody removed: a /delete has the job ended, and
   * leaves the file until it has. The directory is an older copy then, or has lost a part, and all of their jobs run on.
   */
  async #endStrangers(living: readonly WorkerNews[]): Promise<void> {
    const { book, host } = this.#parts;
    const strangers = living.filter(({ origin: { uid } }) => book.get(uid) === undefined);
    const { desk } = this.#service;
    if (desk === undefined) {
      this.#requireFiles(strangers);
      return;
    }
    const isLeft = (uid: string) => book.isDamaged(uid) || book.isLacking(uid);
    const fresh = strangers.filter(({ origin: { uid } }) => !isLeft(uid));
    if (fresh.length === 0) return;
    const origins = fresh.map(({ origin }) => origin);
    if (book.lack(origins.map(({ uid }) => uid))) {
      host.log.warn('jobs of Pods whose files are missing run on', { ...book.whyIncomplete });
      return;
    }
    host.log.warn('jobs of unknown Pods are ended', { jobs: origins.length });
    await desk.end(origins, unknownPod);
  }

  /**
   * The file of a Pod goes only after its job: jobs without any file are those of a directory that is not mounted, or was emptied.
   * @throws ThresherError `interlink-lost`
   */
  #requireFiles(living: readonly WorkerNews[]): void {
    const { book } = this.#parts;
    if (living.length === 0 || !book.isEmpty) return;
    book.unload();
    const { place } = book.files;
    throw new ThresherError(
      'interlink-lost',
      `${living.length} jobs of Pods live, and ${place} has no file of any Pod: is it mounted?`,
      { directory: place },
    );
  }

  /** Its job may take as long as the Pod says, and never longer than the queue allows. */
  #requestOf(pod: TrackedPod, data: RetrievedPodData): Request | undefined {
    const { planner, host } = this.#parts;
    const { uid, acceptedAt } = pod.record;
    try {
      const { payload, requirements } = acceptedPod(data, planner, acceptedAt).plan;
      const isBound = this.#longest > 0 && (requirements.maxWalltime ?? 0) > this.#longest;
      const bound = isBound && { maxWalltime: this.#longest };
      return { origin: pod.origin, requirements: { ...requirements, ...bound }, payload };
    } catch (error) {
      // It was possible when it was accepted: the operator has changed the options since.
      pod.endReason ??= `the Pod cannot become a job any more: ${messageOf(error)}`;
      host.log.error('a Pod cannot become a job any more', { pod: uid, error: messageOf(error) });
      return undefined;
    }
  }

  async #look(desk: Desk, signal: AbortSignal): Promise<void> {
    const { host, book, lookInterval, machines } = this.#parts;
    let looking: Promise<void> | undefined;
    while (!signal.aborted) {
      await this.#endJobs(desk).catch((error: unknown) => {
        host.log.warn('jobs of deleted Pods could not be ended', { ...toReason(error) });
      });
      const now = host.clock.monotonic();
      const due = book.all.filter((pod) => !this.#freshEnds.has(pod) && this.#pace.isDue(pod, now));
      const over = new AbortController();
      const looks = Promise.all(due.map((pod) => this.#lookAt(pod, desk)));
      await Promise.race([looks, host.clock.sleep(longestRound, AbortSignal.any([signal, over.signal]))]);
      over.abort();
      looking ??= machines?.looks.pass(book.all, signal).finally(() => {
        looking = undefined;
      });
      await host.clock.sleep(lookInterval, signal);
    }
    await looking;
  }

  /** Ends the jobs that no Pod needs any more, all of one reason at once. */
  async #endJobs(desk: Desk): Promise<void> {
    const { book, host } = this.#parts;
    for (const pod of this.#service.silence.forgotten(book.all, host.clock.monotonic())) {
      pod.endReason ??= 'interLink has not asked for its Pod for a long time';
      pod.silentFor = 0;
    }
    const due = book.all.filter(
      (pod) => !pod.isEndAsked && (pod.isDeleted || (pod.endReason !== undefined && !pod.hasEnded)),
    );
    for (const [reason, pods] of Map.groupBy(due, reasonOf)) {
      host.log.info('jobs of Pods are ended', { reason, pods: pods.map(({ record }) => record.uid) });
      const origins = pods.map(({ origin }) => origin);
      await desk.end(origins, reason);
      for (const pod of pods) pod.isEndAsked = true;
    }
  }

  #lookAt(pod: TrackedPod, desk: Desk): Promise<void> {
    const { clock } = this.#parts.host;
    return this.#pace.look(
      pod,
      () => clock.monotonic(),
      () => this.#lookAfter(pod, desk),
    );
  }

  async #lookAfter(pod: TrackedPod, desk: Desk): Promise<void> {
    const { book, host, keepEnded } = this.#parts;
    const { uid, end, heardAt } = pod.record;
    const now = host.clock.now();
    if (pod.facts !== undefined && !pod.hasEnded) book.mark(pod, pod.facts);
    if (pod.isDeleted) {
      if (pod.isEndAsked) await book.clear(pod, desk);
    } else if (pod.ending !== undefined) {
      await book.finish(pod, desk, host.clock.monotonic());
    } else if (end !== undefined) {
      // The end time is by the clock of a schedd.
      if (heardAt === undefined) await book.noteHeard(pod, now);
      // Its files go for good: no jump of a clock may age it.
      const age = heardAt === undefined ? 0 : pod.endAge.of(heardAt, now, host.clock.monotonic());
      if (age <= keepEnded) return;
      host.log.info('a Pod ended long ago and was not deleted: it is forgotten', { pod: uid });
      await book.forget(pod);
    } else if (pod.facts === undefined) {
      if (pod.hadJob && pod.endReason === undefined) await this.#lookForJob(pod, desk);
    } else if (pod.isLost) {
      pod.isLost = false;
      if (await this.#hasStarted(pod, desk)) pod.endReason ??= lostMachine;
    } else if (isHeld(pod.facts)) {
      pod.holdReason ??= await this.#holdReasonOf(pod, desk);
    } else if (isAtWork(pod.facts)) {
      const report = await book.newReport(pod);
      if (report !== undefined) pod.takeReport(report);
    }
  }

  /**
   * Its files tell of a job, and the database of none: it was lost, or restored to an earlier state. A job that lives is adopted by the listing
   * of its backend. One that is not there then has ended, and what it left says how; if it comes to light later, it is ended.
   */
  async #lookForJob(pod: TrackedPod, desk: Desk): Promise<void> {
    const { book, host } = this.#parts;
    const { queue } = this.#service;
    // The reasons of a queue are those of its last pass. The second one of this start is over what the first one has found.
    if (typeof queue !== 'string' || this.#passes < 2 || !desk.queues().includes(queue)) return;
    if (!isListed(desk.reasons(queue))) return;
    const found = await desk.find([pod.origin]);
    if (found.length > 0) await book.hear(found, host.clock);
    else {
      const { uid, job } = pod.record;
      host.log.warn('the job of a Pod is lost', { pod: uid, job, code: 'interlink-job-lost' });
      pod.endReason = lostJob;
    }
  }

  /** A job may lose its machine while its files are on the way there: it has started nothing then. */
  async #hasStarted({ facts }: TrackedPod, desk: Desk): Promise<boolean> {
    const workerId = facts?.workerId ?? undefined;
    const detail = workerId === undefined ? undefined : await desk.detail(workerId);
    return hasStarts(detail);
  }

  /** News bring no reason of a hold: HTCondor may still release the job. */
  async #holdReasonOf({ facts }: TrackedPod, desk: Desk): Promise<string | undefined> {
    const workerId = facts?.workerId ?? undefined;
    const detail = workerId === undefined ? undefined : await desk.detail(workerId);
    const { HoldReason: reason } = (detail ?? {}) as { readonly HoldReason?: unknown };
    if (typeof reason !== 'string') return undefined;
    const text = oneLine(fromOutside(reason)).slice(0, longestReason);
    return hasStarts(detail) ? `${text}; a release ends the Pod, whose containers may have started` : text;
  }
}

/** Whether HTCondor's ClassAd of a job tells of a start, or tells nothing. */
function hasStarts(detail: unknown): boolean {
  return (detail as { readonly NumJobStarts?: unknown } | undefined)?.NumJobStarts !== 0;
}

function reasonOf({ isDeleted, endReason }: TrackedPod): string {
  return isDeleted ? deletion : (endReason ?? deletion);
}
