import type { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import { collectionPath } from '../../clients/kubernetes/paths.ts';
import { Reflector } from '../../clients/kubernetes/reflector.ts';
import type {
  Desk,
  Request,
  Source,
  SourceHost,
  SourceHttpAnswer,
  SourceHttpRequest,
  SourceQueue,
  Wanted,
  WorkerNews,
} from '../../plugins/contracts/index.ts';
import { messageOf, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import { Agenda } from './agenda.ts';
import { HtcJobCluster } from './cluster.ts';
import { EventWriter } from './events.ts';
import { hasEnded } from './facts.ts';
import { EventDoor, noEvents } from './job/event-door.ts';
import type { EventKey } from './job/token.ts';
import type { JobMaker } from './job-maker.ts';
import { LeaseHolder } from './lease.ts';
import type { HtcJobOptions, HtcJobQueueOptions } from '../../clients/htcjob/options.ts';
import { type HtcJob, htcJobs, type JobReport } from '../../clients/htcjob/resource.ts';
import { type KeeperParts, OutputKeeper } from './output/keeper.ts';
import { noOutputs } from './output/outputs.ts';
import { Stepper } from './stepper.ts';
import { Tracked } from './tracked.ts';

export type OutputOptions = Pick<KeeperParts, 'place' | 'onFiles' | 'bounds'>;
export type OperatorHost = Pick<SourceHost, 'factoryId' | 'clock' | 'random' | 'log'>;

/** Steps under way at the same time. */
const stepsAtOnce = 24;
/** Pause before a step that failed is repeated, ms; a conflict is over as soon as the resource was read again. */
const pauses = { failed: 5000, conflict: 100 };
/** Changes of one resource within this time are one status, ms. */
const together = 200;
/** A queue that was not asked for so long takes no HTCJobs any more, ms. */
const queueForgotten = 600_000;

/** Runs the HTCJobs of a cluster. */
export class HtcJobOperator implements Source<HtcJobQueueOptions> {
  readonly #options: HtcJobOptions;
  readonly #host: OperatorHost;
  readonly #client: KubernetesClient;
  readonly #maker: JobMaker;
  /** By uid. */
  readonly #tracked = new Map<string, Tracked>();
  readonly #agenda: Agenda;
  /** Queues that take HTCJobs, by name: when they were asked last, monotonic ms, and their options. */
  readonly #queues = new Map<string, { readonly at: number; readonly options: HtcJobQueueOptions }>();
  readonly #synced = new Set<string>();
  readonly #door: EventDoor | undefined;
  readonly #outputs: OutputOptions | undefined;
  #lease: LeaseHolder | undefined;
  #desk: Desk | undefined;
  #trouble: string | undefined;

  /**
   * @param eventKey absent: jobs send no events
   * @param outputs absent: outputs of jobs are kept nowhere
   */
  constructor(
    options: HtcJobOptions,
    client: KubernetesClient,
    maker: JobMaker,
    host: OperatorHost,
    eventKey?: EventKey,
    outputs?: OutputOptions,
  ) {
    this.#options = options;
    this.#client = client;
    this.#maker = maker;
    this.#host = host;
    this.#outputs = outputs;
    this.#agenda = new Agenda(host.clock);
    if (eventKey !== undefined) this.#door = new EventDoor(eventKey, (report) => this.reported(report));
  }

  async wanted({ name, own, options }: SourceQueue<HtcJobQueueOptions>): Promise<Wanted> {
    if (!own) return { requests: [], groups: [], reasons: [] };
    const isNew = !this.#queues.has(name);
    this.#queues.set(name, { at: this.#host.clock.monotonic(), options });
    if (isNew)
      for (const { uid, isFinished } of this.#tracked.values()) if (!isFinished) this.#agenda.add(uid);
    const holdUp = this.#holdUp();
    if (holdUp !== undefined) return { requests: [], groups: [], reasons: [holdUp] };
    const asking = [...this.#tracked.values()].filter((one) => one.asked.size > 0 && one.queue === name);
    const requests: Request[] = asking
      .sort((one, other) => one.createdAt - other.createdAt)
      .flatMap(({ asked }) => [...asked.values()]);
    return { requests, groups: [], reasons: [] };
  }

  /** The resource is written later: at a start all its jobs are looked up again. */
  async told(news: readonly WorkerNews[]): Promise<void> {
    const strangers: WorkerNews[] = [];
    for (const one of news) {
      const tracked = this.#tracked.get(one.origin.uid);
      if (tracked === undefined) strangers.push(one);
      else {
        tracked.hear(one);
        this.#agenda.add(tracked.uid, together);
      }
    }
    if (this.#holdUp() !== undefined) return;
    const living = strangers.filter(({ worker }) => !hasEnded(worker)).map(({ origin }) => origin);
    await this.#desk?.end(living, 'its HTCJob is gone');
  }

  /** A job sent word of its end. It decides nothing, and is shown beside the backend's word. @returns whether it is of use */
  reported({ uid, index, returnCode }: JobReport): boolean {
    const isOfUse = this.#tracked.get(uid)?.report(index, returnCode) === true;
    if (isOfUse) this.#agenda.add(uid, together);
    return isOfUse;
  }

  /** Jobs send their events here. */
  async answer(request: SourceHttpRequest): Promise<SourceHttpAnswer> {
    return this.#door?.answer(request) ?? noEvents;
  }

  async run(desk: Desk, signal: AbortSignal): Promise<void> {
    const { clock, log, factoryId } = this.#host;
    const { namespaces, leaseName, leaseNamespace = namespaces[0] ?? 'default' } = this.#options;
    const over = new AbortController();
    const ended = AbortSignal.any([signal, over.signal]);
    const changed = () => {
      // Finished ones, too: outputs, deletions and ends of life may have waited.
      for (const uid of this.#tracked.keys()) this.#agenda.add(uid);
      for (const queue of this.#queues.keys()) desk.wake(queue);
    };
    const place = { namespace: leaseNamespace, name: leaseName, holder: factoryId };
    const lease = new LeaseHolder(place, { client: this.#client, clock, log, changed });
    this.#desk = desk;
    this.#lease = lease;
    try {
      const collections = namespaces.length === 0 ? [undefined] : [...new Set(namespaces)];
      const follow = collections.map((namespace) => this.#follow(namespace, changed, ended));
      const cluster = new HtcJobCluster(this.#client);
      const events = new EventWriter(this.#client, factoryId, this.#host);
      const queueOf = (tracked: Tracked) => this.#queueOf(tracked);
      const look = (uid: string) => {
        this.#agenda.add(uid, together);
      };
      const keeper =
        this.#outputs && new OutputKeeper({ ...this.#host, ...this.#outputs, desk, changed: look });
      const outputs = keeper ?? noOutputs;
      const stepper = new Stepper({
        ...this.#host,
        desk,
        cluster,
        events,
        maker: this.#maker,
        outputs,
        queueOf,
      });
      const step = (uid: string) => this.#step(uid, stepper, cluster, ended);
      const steps = this.#agenda.run(stepsAtOnce, step, ended);
      await Promise.all([lease.run(ended), ...follow, steps, keeper?.run(ended)]);
    } finally {
      over.abort();
      this.#tracked.clear();
      this.#synced.clear();
    }
  }

  /** Why nothing is done at all. */
  #holdUp(): Reason | undefined {
    const lease = this.#lease;
    if (this.#synced.size < Math.max(1, new Set(this.#options.namespaces).size)) {
      const why = this.#trouble === undefined ? 'they are being listed' : this.#trouble;
      return { code: 'htcjob-unsynced', message: `HTCJobs are not known yet: ${why}` };
    }
    if (lease?.isHeld === true) return undefined;
    return { code: 'htcjob-lease', message: lease?.why ?? 'the operator has not begun' };
  }

  #queueOf({ spec, meta }: Tracked): string | Reason {
    const { clock } = this.#host;
    for (const [name, { at }] of this.#queues)
      if (clock.monotonic() - at > queueForgotten) this.#queues.delete(name);
    const known = [...this.#queues.keys()];
    const only = known.length === 1 ? known[0] : undefined;
    const name = spec.queueName ?? this.#options.queue ?? only;
    const choice = known.length === 0 ? 'none does now' : `these do: ${known.join(', ')}`;
    if (name === undefined)
      return { code: 'htcjob-queue', message: `spec.queueName names no queue that takes HTCJobs; ${choice}` };
    const queue = this.#queues.get(name);
    if (queue === undefined) {
      const isThere = this.#desk?.queues().includes(name) === true;
      if (!isThere) return { code: 'no-such-queue', message: `there is no queue ${name}; ${choice}` };
      return { code: 'htcjob-queue', message: `queue ${name} takes no HTCJobs; ${choice}` };
    }
    const { namespaces } = queue.options;
    if (namespaces.length === 0 || namespaces.includes(meta.namespace)) return name;
    const message = `queue ${name} takes no HTCJobs of namespace ${meta.namespace}`;
    return { code: 'htcjob-namespace', message };
  }

  #follow(namespace: string | undefined, synced: () => void, signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#host;
    const path = collectionPath(htcJobs, namespace);
    const isOf = (tracked: Tracked) => namespace === undefined || tracked.meta.namespace === namespace;
    const upsert = (object: HtcJob) => {
      const tracked = this.#tracked.get(object.metadata.uid);
      if (tracked === undefined) this.#tracked.set(object.metadata.uid, new Tracked(object));
      else if (!tracked.update(object)) return;
      this.#agenda.add(object.metadata.uid);
    };
    const gone = (tracked: Tracked) => {
      tracked.isGone = true;
      this.#agenda.add(tracked.uid);
    };
    const reflector = new Reflector<HtcJob>({
      client: this.#client,
      path,
      record: (object) => object as HtcJob,
      clock,
      random,
      handlers: {
        replace: (all) => {
          const there = new Set(all.map(({ metadata }) => metadata.uid));
          for (const tracked of this.#tracked.values())
            if (isOf(tracked) && !there.has(tracked.uid)) gone(tracked);
          for (const object of all) upsert(object);
          const isFirst = !this.#synced.has(path);
          this.#synced.add(path);
          if (isFirst) synced();
        },
        upsert,
        remove: ({ metadata }) => {
          const tracked = this.#tracked.get(metadata.uid);
          if (tracked !== undefined) gone(tracked);
        },
        changed: ({ trouble }) => {
          this.#trouble = trouble === undefined ? undefined : messageOf(trouble);
          if (trouble !== undefined) log.warn('HTCJobs cannot be followed', { path, ...toReason(trouble) });
        },
      },
    });
    return reflector.run(signal);
  }

  async #step(uid: string, stepper: Stepper, cluster: HtcJobCluster, signal: AbortSignal): Promise<void> {
    const tracked = this.#tracked.get(uid);
    if (tracked === undefined || this.#holdUp() !== undefined) return;
    const { log } = this.#host;
    try {
      const next = await stepper.step(tracked, signal);
      if (tracked.isForgotten) this.#tracked.delete(uid);
      else if (tracked.isGone) this.#agenda.add(uid);
      else if (next !== undefined) this.#agenda.add(uid, next);
    } catch (error) {
      if (signal.aborted) return;
      const isConflict = isKubernetesError(error, 'kubernetes-conflict');
      if (isConflict) await this.#readAgain(tracked, cluster, signal);
      else log.warn('HTCJob not brought on', { htcjob: tracked.name, ...toReason(error) });
      this.#agenda.add(uid, isConflict ? pauses.conflict : pauses.failed);
    }
  }

  /** Another writer changed it: what it is now decides. */
  async #readAgain(tracked: Tracked, cluster: HtcJobCluster, signal: AbortSignal): Promise<void> {
    try {
      const object = await cluster.read(tracked.meta, signal);
      if (object === undefined) tracked.isGone = true;
      else tracked.update(object);
    } catch (error) {
      if (!signal.aborted)
        this.#host.log.debug('HTCJob not read', { htcjob: tracked.name, ...toReason(error) });
    }
  }
}
