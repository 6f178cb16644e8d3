import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type {
  Desk,
  Payload,
  Request,
  Source,
  SourceHttpAnswer,
  SourceHttpRequest,
  SourceQueue,
  Wanted,
  WorkerNews,
} from '../../plugins/contracts/index.ts';
import { givingWay } from '../../util/clock.ts';
import { toReason } from '../../worker/errors.ts';
import type { OriginKey } from '../../worker/news.ts';
import type { Reason } from '../../worker/reason.ts';
import { Agenda } from './agenda.ts';
import { Asking } from './asking.ts';
import { HtcJobCluster, readsAtOnce } from './cluster.ts';
import { type CollectionHandlers, Collections } from './collections.ts';
import { Doubts } from './doubts.ts';
import { EventWriter } from './events.ts';
import { hasEnded } from './facts.ts';
import { type Followed, kept } from './followed.ts';
import { EventDoor, noEvents } from './job/event-door.ts';
import type { JobKey } from '../job-key.ts';
import type { JobMaker } from './job-maker.ts';
import type { Jobs } from './job-request.ts';
import { LeaseHistory, LeaseHolder } from './lease.ts';
import type { HtcJobOptions, HtcJobQueueOptions } from '../../clients/htcjob/options.ts';
import type { JobReport } from '../../clients/htcjob/resource.ts';
import { Names } from './names.ts';
import { QueueWaker } from './queue-waker.ts';
import { afterConflicts } from './looks.ts';
import type { OperatorClient, OperatorHost } from './operator-host.ts';
import { type KeeperParts, OutputKeeper } from './output/keeper.ts';
import { noOutputs } from './output/outputs.ts';
import { Stepper } from './stepper.ts';
import { takes, TakingQueues } from './taking-queues.ts';
import { Tracked } from './tracked.ts';
import { Turns } from './turns.ts';

export type OutputOptions = Pick<KeeperParts, 'place' | 'onFiles' | 'bounds'>;

/** Steps under way at the same time. */
const stepsAtOnce = 24;
/** Characters of payloads that are brought at a time, about; beyond it the HTCJobs that are being read. */
const mostBrought = 64 * 1024 * 1024;
/** Pause before a step that failed is repeated, ms. */
const pauses = { failed: 5000 };
/** Changes of one resource within this time are one status, ms. */
const together = 200;
/** Kubernetes lets no user delete it. With `namespaces`, the settings name another. */
const defaultLeaseNamespace = 'default';
/**
 * On the agenda for all workers whose HTCJob is over or gone, for those whose HTCJob may be gone, and for the names of those that are there. No
 * resource has such a uid.
 */
const [leftovers, doubts, names] = ['', 'doubts', 'names'];
/** Names are written down so long after the first that is new, and what is in doubt is asked for again after a failure, ms. */
const later = { names: 60_000, doubts: 30_000 };

/** Runs the HTCJobs of a cluster. */
export class HtcJobOperator implements Source<HtcJobQueueOptions> {
  readonly #options: HtcJobOptions;
  readonly #host: OperatorHost;
  readonly #client: OperatorClient;
  readonly #maker: JobMaker;
  /** By uid. */
  readonly #tracked = new Map<string, Tracked>();
  readonly #agenda: Agenda;
  readonly #queues: TakingQueues;
  readonly #turns = new Turns();
  readonly #collections: Collections;
  /** Uids of HTCJobs in none of the namespaces, or in another cluster, whose jobs live: the log tells of each once. */
  readonly #strangers = new Set<string>();
  readonly #door: EventDoor | undefined;
  readonly #outputs: OutputOptions | undefined;
  readonly #leases: LeaseHistory;
  readonly #names: Names;
  /** The note that what was made before is not of this cluster, since the last list without HTCJobs that nobody deleted. */
  #begunAnew: Promise<void> | undefined;
  #lease: LeaseHolder | undefined;
  #asking: Asking | undefined;
  #doubts: Doubts | undefined;
  #desk: Desk | undefined;

  /**
   * @param eventKey absent: jobs send no events
   * @param outputs absent: outputs of jobs are kept nowhere
   */
  constructor(
    options: HtcJobOptions,
    client: OperatorClient,
    maker: JobMaker,
    host: OperatorHost,
    eventKey?: JobKey,
    outputs?: OutputOptions,
  ) {
    this.#options = options;
    this.#client = client;
    this.#maker = maker;
    this.#host = host;
    this.#outputs = outputs;
    this.#agenda = new Agenda(host.clock);
    this.#collections = new Collections(options.namespaces, { ...host, client });
    this.#queues = new TakingQueues(options.queue);
    this.#names = new Names(host);
    this.#leases = new LeaseHistory(host, async () => {
      const living = (await this.#desk?.living()) ?? [];
      return living.reduce((latest, news) => Math.max(latest, madeAt(news)), -Infinity);
    });
    if (eventKey !== undefined) this.#door = new EventDoor(eventKey, (report) => this.reported(report));
  }

  async wanted({ name, own, options }: SourceQueue<HtcJobQueueOptions>): Promise<Wanted> {
    if (!own) return { requests: [], groups: [], reasons: [] };
    if (this.#queues.asked(name, options))
      for (const { uid, isFinished } of this.#tracked.values()) if (!isFinished) this.#look(uid);
    const holdUp = this.#holdUp();
    const reasons = [...this.#collections.unsynced, ...(holdUp === undefined ? [] : [holdUp])];
    // Those that asked under earlier options of the queue look for another one in their next step.
    const all = [...this.#tracked.values()];
    const asking = all.filter((tracked) => {
      const { asked, queue, meta } = tracked;
      return asked.size > 0 && queue === name && takes(options, meta.namespace) && this.#decidesOn(tracked);
    });
    const requests = this.#turns.share(name, asking, livingOn(name, all), ({ uid }) => {
      this.#look(uid);
    });
    return { requests, groups: [], reasons };
  }

  async payloads(requests: readonly Request[], signal: AbortSignal): Promise<ReadonlyMap<Request, Payload>> {
    const brought = new Map<Request, Payload>();
    const waiting = Map.groupBy(requests, ({ origin }) => origin.uid).entries();
    let room = mostBrought;
    const giveWay = givingWay(this.#host.clock);
    const read = async () => {
      // All of them take from the same iterator.
      while (room > 0 && !signal.aborted) {
        const next = waiting.next();
        if (next.done) return;
        const [uid, some] = next.value;
        await this.#bring(uid, signal, async (tracked, { payloadOf, size }) => {
          for (const request of some) {
            await giveWay();
            if (room <= 0 || signal.aborted) return;
            if (tracked.asked.get(request.origin.index) !== request) continue;
            brought.set(request, payloadOf(request.origin.index));
            room -= size;
          }
        });
      }
    };
    await Promise.all(Array.from({ length: readsAtOnce }, read));
    return brought;
  }

  /** Calls `take` with jobs that asked for workers. Where they cannot be made, the HTCJob asks for none until a step of it has looked why. */
  async #bring(
    uid: string,
    signal: AbortSignal,
    take: (tracked: Tracked, jobs: Jobs) => Promise<void>,
  ): Promise<void> {
    const tracked = this.#tracked.get(uid);
    if (tracked === undefined || tracked.isGone || !this.#decidesOn(tracked)) return;
    try {
      const jobs = await this.#asking?.jobs(tracked, signal);
      if (jobs !== undefined) {
        await take(tracked, jobs);
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      this.#host.log.warn('HTCJob not brought on', { htcjob: tracked.name, ...toReason(error) });
    }
    tracked.dropRequests();
    this.#look(uid, pauses.failed);
  }

  /** The resource is written later: at a start all its jobs are looked up again. */
  async told(news: readonly WorkerNews[]): Promise<void> {
    const strangers: WorkerNews[] = [];
    for (const one of news) {
      const tracked = this.#tracked.get(one.origin.uid);
      if (tracked === undefined) strangers.push(one);
      else {
        tracked.hear(one);
        this.#expectEnd(tracked, one.origin.index);
        this.#look(tracked.uid, together);
      }
    }
    this.#doubt(strangers);
  }

  /** Workers end whose HTCJob is gone, once that is sure. */
  #doubt(strangers: readonly WorkerNews[]): void {
    this.#doubts?.ended(strangers.filter(({ worker }) => hasEnded(worker)));
    // The resource of a stranger may be one that is not known yet.
    if (this.#holdUp() !== undefined || !this.#collections.areKnown) return;
    const living = strangers.filter(({ worker }) => !hasEnded(worker));
    if (living.length === 0) return;
    const ofHere = living.filter((one) => this.#isOfHere(one));
    this.#elsewhere(living.filter((one) => !this.#isOfHere(one)));
    if (this.#options.namespaces.length > 0) {
      this.#notFollowed(ofHere.map(({ origin }) => origin));
      return;
    }
    this.#doubts?.add(ofHere);
    this.#agenda.add(doubts);
  }

  #isOfHere(worker: WorkerNews): boolean {
    return this.#leases.covers(madeAt(worker));
  }

  #tellMissing(missing: readonly Tracked[]): void {
    if (missing.length === 0) return;
    this.#host.log.warn(
      'HTCJobs are missing that nobody deleted: their jobs run on, and their outputs stay',
      {
        count: missing.length,
        htcjobs: missing.slice(0, 10).map(({ name }) => name),
      },
    );
  }

  /** They were made while another Lease was held. */
  #elsewhere(workers: readonly WorkerNews[]): void {
    const fresh = workers.filter(({ origin }) => !this.#strangers.has(origin.uid));
    for (const { origin } of fresh) this.#strangers.add(origin.uid);
    if (fresh.length === 0) return;
    this.#host.log.warn('jobs run on whose HTCJobs are not in this cluster', { jobs: fresh.length });
  }

  /**
   * A job sent word of its end. It decides nothing: it is shown beside the backend's word, and makes the monitor look now.
   * @returns whether it is of use
   */
  reported({ uid, index, returnCode }: JobReport): boolean {
    const tracked = this.#tracked.get(uid);
    if (tracked?.report(index, returnCode) !== true) return false;
    this.#expectEnd(tracked, index);
    this.#look(uid, together);
    return true;
  }

  /** It may be in a namespace that was followed once: its jobs are not ended on a guess. */
  #notFollowed(origins: readonly OriginKey[]): void {
    for (const { uid } of origins) {
      if (this.#strangers.has(uid)) continue;
      this.#strangers.add(uid);
      this.#host.log.warn('jobs of a HTCJob that is in none of the namespaces run on', { uid });
    }
  }

  #expectEnd(tracked: Tracked, index: number): void {
    const workerId = tracked.endingWorker(index);
    if (workerId !== undefined) this.#desk?.expectEnd([workerId]);
  }

  /** Jobs send their events here. */
  async answer(request: SourceHttpRequest): Promise<SourceHttpAnswer> {
    return this.#door?.answer(request) ?? noEvents;
  }

  async run(desk: Desk, signal: AbortSignal): Promise<void> {
    const { clock, log, factoryId } = this.#host;
    const { leaseName, leaseNamespace = defaultLeaseNamespace } = this.#options;
    const over = new AbortController();
    const ended = AbortSignal.any([signal, over.signal]);
    // Finished ones, too: a deletion and the end of a life may have come meanwhile.
    const changed = () => {
      for (const uid of [...this.#tracked.keys(), leftovers]) this.#look(uid);
      for (const queue of this.#queues.names) desk.wake(queue);
    };
    const place = { namespace: leaseNamespace, name: leaseName, holder: factoryId };
    const lease = new LeaseHolder(place, {
      client: this.#client,
      clock,
      log,
      changed,
      history: this.#leases,
    });
    this.#desk = desk;
    this.#lease = lease;
    try {
      const follow = this.#collections.run(this.#handlers(changed), ended);
      const cluster = new HtcJobCluster(this.#client);
      const events = new EventWriter(this.#client, factoryId, this.#host);
      const queueOf = ({ spec, meta }: Tracked) => this.#queues.queueOf(spec, meta.namespace, desk);
      const whyUnlisted = ({ spec }: Tracked) => this.#queues.whyUnlisted(spec, desk);
      const waker = new QueueWaker(clock, this.#agenda, (queue) => {
        desk.wake(queue);
      });
      const look = (uid: string) => {
        this.#look(uid, together);
      };
      const keeper =
        this.#outputs && new OutputKeeper({ ...this.#host, ...this.#outputs, desk, changed: look });
      const outputs = keeper ?? noOutputs;
      const turns = this.#turns;
      const maker = this.#maker;
      // One for all that a list is without.
      const leaveBehind = () =>
        (this.#begunAnew ??= this.#leases.beginAnew().catch((error: unknown) => {
          this.#begunAnew = undefined;
          throw error;
        }));
      const asking = new Asking({ clock, desk, cluster, maker, queueOf, waker, turns });
      const stepper = new Stepper({
        ...this.#host,
        desk,
        cluster,
        events,
        maker,
        outputs,
        asking,
        whyUnlisted,
        leaveBehind,
      });
      this.#asking = asking;
      this.#doubts = new Doubts({
        ...this.#host,
        client: this.#client,
        cluster,
        names: this.#names,
        isKnown: (uid) => this.#tracked.has(uid),
        isOfHere: (worker) => this.#isOfHere(worker),
        mayEnd: () => this.#holdUp() === undefined,
        found: (object) => {
          this.#upsert(object);
        },
        end: (origins) => desk.end(origins, 'its HTCJob is gone'),
      });
      const step = async (uid: string) => {
        await this.#step(uid, stepper, cluster, ended);
        waker.stepped();
      };
      const steps = this.#agenda.run(stepsAtOnce, step, ended);
      await Promise.all([lease.run(ended), follow, steps, keeper?.run(ended)]);
      await lease.release();
    } finally {
      over.abort();
      this.#asking = undefined;
      this.#doubts = undefined;
      this.#tracked.clear();
      this.#collections.forget();
    }
  }

  /** Something of it may have changed. @param after ms */
  #look(uid: string, after = 0): void {
    const tracked = this.#tracked.get(uid);
    tracked?.hasChanged();
    this.#agenda.add(uid, after);
  }

  /** Why nothing is claimed, and nothing done but for HTCJobs that this factory has claimed already. */
  #holdUp(): Reason | undefined {
    const lease = this.#lease;
    if (lease?.isHeld === true) return undefined;
    return { code: 'htcjob-lease', message: lease?.why ?? 'the operator has not begun' };
  }

  /** Whether this daemon decides what becomes of a HTCJob: the Lease says who claims it, and its own factory alone knows its jobs from then on. */
  #decidesOn(tracked: Tracked): boolean {
    if (this.#holdUp() === undefined) return true;
    return this.#lease?.isWithOther === true && tracked.isSurelyOf(this.#host.factoryId);
  }

  /** A watch tells of the resources. */
  #handlers(synced: () => void): CollectionHandlers {
    /** Versions that were known when the list of a namespace was asked for, by UID: what it has is newer, whatever its version. */
    const before = new Map<string | undefined, ReadonlyMap<string, string>>();
    const gone = (tracked: Tracked) => {
      tracked.isGone = true;
      tracked.dropRequests();
      this.#look(tracked.uid);
    };
    return {
      synced,
      upsert: (object) => {
        this.#upsert(object);
      },
      listing: (namespace) => {
        const versions = [...this.#tracked.values()].map(
          ({ uid, meta }) => [uid, meta.resourceVersion] as const,
        );
        before.set(namespace, new Map(versions));
      },
      replace: (namespace, all) => {
        const versions = before.get(namespace);
        before.delete(namespace);
        const there = new Set(all.map(({ metadata }) => metadata.uid));
        const missing = [...this.#tracked.values()].filter(({ uid, meta }) => {
          return (namespace === undefined || meta.namespace === namespace) && !there.has(uid);
        });
        const isNew = ({ isMissing, isDeleted, isDeleting }: Tracked) =>
          !isMissing && !isDeleted && !isDeleting;
        const left = missing.filter((tracked) => isNew(tracked) && tracked.isClaimedBy(this.#host.factoryId));
        for (const tracked of missing) {
          tracked.isMissing = true;
          gone(tracked);
        }
        if (missing.length > 0) this.#begunAnew = undefined;
        this.#tellMissing(left);
        for (const object of all) this.#upsert(object, versions?.get(object.metadata.uid));
      },
      remove: ({ metadata }) => {
        const tracked = this.#tracked.get(metadata.uid);
        if (tracked === undefined) return;
        tracked.isDeleted = true;
        gone(tracked);
      },
    };
  }

  /** @param versionBefore the version that was known when a list was asked for, which has this object */
  #upsert(object: Followed, versionBefore?: string): void {
    const tracked = this.#tracked.get(object.metadata.uid);
    if (tracked === undefined) this.#tracked.set(object.metadata.uid, new Tracked(object));
    else if (!tracked.update(object, tracked.meta.resourceVersion === versionBefore)) return;
    this.#look(object.metadata.uid);
  }

  async #step(uid: string, stepper: Stepper, cluster: HtcJobCluster, signal: AbortSignal): Promise<void> {
    // Once the Lease is held, or another operator holds it, all come to the agenda anew.
    const tracked = this.#tracked.get(uid);
    if (tracked === undefined ? this.#holdUp() !== undefined : !this.#decidesOn(tracked)) return;
    if (uid === leftovers) return this.#endLeftovers(signal);
    if (uid === doubts) return this.#settle(signal);
    if (uid === names) return this.#keepNames(signal);
    if (tracked === undefined) return;
    const { log } = this.#host;
    const wasGone = tracked.isGone;
    try {
      const next = await stepper.step(tracked, signal);
      tracked.conflicts = 0;
      if (tracked.isForgotten) this.#tracked.delete(uid);
      else if (tracked.isGone && !wasGone) this.#look(uid);
      else if (next !== undefined) this.#agenda.add(uid, next);
      if (this.#mayHaveJobs(tracked) && !this.#names.has(uid)) this.#agenda.add(names, later.names);
    } catch (error) {
      if (signal.aborted) return;
      const isConflict = isKubernetesError(error, 'kubernetes-conflict');
      if (isConflict) await this.#readAgain(tracked, cluster, signal);
      tracked.conflicts = isConflict ? tracked.conflicts + 1 : 0;
      const { pause, isNews } = isConflict
        ? afterConflicts(tracked.conflicts)
        : { pause: pauses.failed, isNews: true };
      if (isNews) log.warn('HTCJob not brought on', { htcjob: tracked.name, ...toReason(error) });
      this.#look(uid, pause);
    }
  }

  /** Workers that live, and whose HTCJob ended or went while nobody looked after them: no news may come of them for days. */
  async #endLeftovers(signal: AbortSignal): Promise<void> {
    try {
      await this.told((await this.#desk?.living()) ?? []);
    } catch (error) {
      if (signal.aborted) return;
      this.#host.log.warn('jobs of earlier HTCJobs not looked for', { ...toReason(error) });
      this.#agenda.add(leftovers, pauses.failed);
    }
  }

  async #settle(signal: AbortSignal): Promise<void> {
    try {
      const next = await this.#doubts?.settle(signal);
      if (next !== undefined) this.#agenda.add(doubts, next);
    } catch (error) {
      if (signal.aborted) return;
      this.#host.log.warn('whether HTCJobs are gone is not known, and their jobs run on', {
        ...toReason(error),
      });
      this.#agenda.add(doubts, later.doubts);
    }
  }

  /** Where some namespaces alone are followed, no HTCJob that is not listed counts as gone, and none is asked for by its name. */
  #mayHaveJobs(tracked: Tracked): boolean {
    const { factoryId } = this.#host;
    return this.#options.namespaces.length === 0 && tracked.isClaimedBy(factoryId) && !tracked.isFinished;
  }

  async #keepNames(signal: AbortSignal): Promise<void> {
    try {
      const those = [...this.#tracked.values()].filter((tracked) => this.#mayHaveJobs(tracked));
      await this.#names.keep(
        those.map(({ meta }) => meta),
        this.#doubts?.uids ?? [],
      );
    } catch (error) {
      if (signal.aborted) return;
      this.#host.log.warn('the names of HTCJobs are not written down', { ...toReason(error) });
      this.#agenda.add(names, later.names);
    }
  }

  /** Another writer changed it: what it is now decides. */
  async #readAgain(tracked: Tracked, cluster: HtcJobCluster, signal: AbortSignal): Promise<void> {
    const { resourceVersion } = tracked.meta;
    try {
      const object = await cluster.read(tracked.meta, signal);
      // The watch knows more by now.
      if (tracked.isGone) return;
      if (object === undefined) tracked.isGone = true;
      else tracked.update(kept(object), tracked.meta.resourceVersion === resourceVersion);
    } catch (error) {
      if (!signal.aborted)
        this.#host.log.debug('HTCJob not read', { htcjob: tracked.name, ...toReason(error) });
    }
  }
}

/** ms UTC. An adopted one was made before it was adopted. */
function madeAt({ worker: { creationTime, submitTime } }: WorkerNews): number {
  return Math.min(creationTime ?? 0, submitTime ?? Infinity);
}

/** How many jobs of HTCJobs live in a queue, by namespace. */
function livingOn(queue: string, all: readonly Tracked[]): ReadonlyMap<string, number> {
  const living = new Map<string, number>();
  for (const { meta, livingOn } of all) {
    const count = livingOn.get(queue) ?? 0;
    if (count > 0) living.set(meta.namespace, (living.get(meta.namespace) ?? 0) + count);
  }
  return living;
}
