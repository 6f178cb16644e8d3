import pMap from 'p-map';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import { defaultsOf } from '../../util/schema-defaults.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import { isFinal } from '../../worker/status.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Worker, WorkerError } from '../../worker/worker.ts';
import type { Found, GoneOutcome, Sweeper } from '../contracts/sweeper.ts';
import { tell } from './events.ts';
import { fence, removeFence, standingOf } from './fence.ts';
import type { Following, ObjectName, OptionsOf } from './following/following.ts';
import type { K8sNamespace } from './namespace.ts';
import { jobMaker, type JobMaker } from './queue-template.ts';
import { keptFor } from './late-creation.ts';
import { listAll } from './following/listing.ts';
import { jobUidOf, lookUp } from './following/look-up.ts';
import type { PilotsStarter } from './starter/pilots-starter.ts';
import type { ProxySecrets } from './proxy-secrets.ts';
import { type K8sDaemon, K8sSweeperConfig } from './schema.ts';

export interface SweeperParts {
  readonly namespace: K8sNamespace;
  readonly proxies: ProxySecrets;
  readonly starter: PilotsStarter;
  readonly daemon: K8sDaemon;
  readonly options: OptionsOf;
}

/** How long one call waits for its deletions, ms. A longer one is `pending`, and the next call goes on. */
const patience = { kill: 5000, remove: 20_000 };
/** Between two looks, ms. */
const pauses = { first: 20, longest: 1000 };

/** Makes the requests for one worker. @returns why it stays for now, if so */
type Ask = (worker: Worker) => Promise<Reason | undefined>;

/** Between TERM and KILL for the Pods of a worker, s; undefined: as long as each Pod says itself. */
type GraceOf = (workerId: number) => number | undefined;
const podsOwn: GraceOf = () => undefined;

/** So long after it was to be gone, an object counts as one that does not go, ms. */
const lateAfter = 30_000;

const defaults = defaultsOf(K8sSweeperConfig);

/** Deletes Jobs and their Pods, each only while it is the one that was meant, and says gone when both are. */
export class K8sSweeper implements Sweeper {
  readonly #parts: SweeperParts;

  constructor(parts: SweeperParts) {
    this.#parts = parts;
  }

  async kill(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { namespace, daemon, options } = this.#parts;
    // Looked at first: what has ended by itself is not to be deleted before that was seen.
    const ids = workers.map(({ workerId }) => workerId);
    const found = await lookUp(namespace, ids, signal);
    const now = namespace.now();
    const hasEnded = (worker: Worker) => {
      const state = found.stateOf(worker.workerId, now, options, jobUidOf(worker));
      return isFinal(state?.observation.status ?? 'pending');
    };
    const over = new Set(workers.filter(hasEnded).map(({ workerId }) => workerId));
    const makeJob = jobMaker(daemon);
    const ask: Ask = async (worker) => {
      const { workerId, name, handle } = worker;
      const { job, pods } = found.objectsOf(workerId);
      // A worker that has not begun must not begin any more.
      const known = job?.uid ?? handle?.uid;
      const uid =
        known ?? (pods.length > 0 ? undefined : (await fence(namespace, worker, makeJob, signal))?.uid);
      if (job?.leaving === true) return undefined;
      if (typeof uid === 'string' && (await this.#deleteJob({ name, uid }, signal))) {
        const message = `worker ${workerId} of ${worker.queue} was ended by thresher`;
        tell(namespace, daemon, { job: { name, uid }, reason: 'Killed', message }, signal);
      }
      // Before its Pods are gone: the monitor may see the end of the worker earlier than this call, and nobody asks again.
      await this.#fenceEarlier([worker], makeJob, signal);
      return undefined;
    };
    const ending = workers.filter(({ workerId }) => !over.has(workerId));
    const graces = new Map(ending.map((worker) => [worker.workerId, this.#optionsOf(worker).killGrace]));
    const graceOf: GraceOf = (workerId) => graces.get(workerId);
    const outcomes = await this.#end(ending, ask, { wait: patience.kill, graceOf }, signal);
    const ended = [...over].map((workerId) => [workerId, { kind: 'gone' } as const] as const);
    // Again for those whose Job took its time, and for those whose Job a call deleted that died before its fence.
    const withoutJob = workers.filter(({ workerId }) =>
      over.has(workerId)
        ? found.objectsOf(workerId).job === undefined
        : outcomes.get(workerId)?.kind === 'gone',
    );
    return new Map([...outcomes, ...ended, ...(await this.#fenceEarlier(withoutJob, makeJob, signal))]);
  }

  async remove(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { namespace } = this.#parts;
    const ask: Ask = async (worker) => {
      const { workerId, name, handle } = worker;
      namespace.refused.delete(workerId);
      const own = handle?.uid;
      // A first attempt was one request, and this Job is its result: the sweeper need not look.
      const first = worker.attempt === 1 && typeof own === 'string';
      if (first && (await this.#deleteJob({ name, uid: own }, signal))) return undefined;
      const standing = await standingOf(namespace, worker, signal);
      const kept = keptFor(worker, standing, namespace.now());
      if (kept !== undefined) return kept;
      if (standing.kind === 'fence') await removeFence(namespace, name, standing, signal);
      if (standing.kind !== 'worker') return undefined;
      const uid = String(standing.handle.uid);
      if (own === undefined || own === uid) {
        await this.#deleteJob({ name, uid }, signal);
        return undefined;
      }
      const message = `the Job ${name} has the uid ${uid} now, and the worker's had ${String(own)}: another client created it anew; delete it if it is not needed`;
      throw new ThresherError('k8s-name-taken', message);
    };
    return this.#end(workers, ask, { wait: patience.remove, graceOf: podsOwn }, signal);
  }

  async list(signal: AbortSignal, isAlive?: (workerId: number) => boolean): Promise<readonly Found[]> {
    const { namespace, daemon, options, proxies, starter } = this.#parts;
    const found = await listAll(namespace, namespace.now(), options, signal, isAlive);
    try {
      await proxies.sweep(signal);
    } catch (error) {
      // Most queues have none, and their daemon no right to look.
      const expected = isKubernetesError(error, 'kubernetes-forbidden') && !proxies.areUsed;
      if (!expected) daemon.log.warn('unused proxy Secrets could not be removed', { ...toReason(error) });
    }
    try {
      await starter.tend(signal);
    } catch (error) {
      daemon.log.warn('the ConfigMap that pilots start from could not be seen to', { ...toReason(error) });
    }
    return found;
  }

  async removeOrphan({ place, handle, identity }: Found, signal: AbortSignal): Promise<GoneOutcome> {
    const { namespace } = this.#parts;
    const [, kind, name = ''] = place.split('/');
    const uid = String(kind === 'pods' ? handle.podUid : handle.uid);
    try {
      if (kind === 'jobs' && identity !== undefined) {
        const reason = keptFor(identity, await standingOf(namespace, identity, signal), namespace.now());
        if (reason !== undefined) return { kind: 'pending', reason };
      }
      if (kind === 'pods') await this.#deletePod({ name, uid }, undefined, signal);
      else await this.#deleteJob({ name, uid }, signal);
      if (identity === undefined) return { kind: 'gone' };
      const { workerId } = identity;
      const left = await this.#left([identity], podsOwn, new Set(), signal);
      return left.has(workerId) ? this.#pending(workerId, left) : { kind: 'gone' };
    } catch (error) {
      return { kind: 'failed', error: toReason(error) };
    }
  }

  /**
   * The Job of a later attempt kept creations of earlier ones out: a fence takes its place.
   * @returns what is not fenced
   */
  async #fenceEarlier(
    workers: readonly Worker[],
    makeJob: JobMaker,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { namespace } = this.#parts;
    const failures = new Map<number, GoneOutcome>();
    const due = workers.filter(({ attempt }) => attempt > 1);
    const fenceOne = async (worker: Worker) => {
      try {
        const late = await fence(namespace, worker, makeJob, signal);
        // One came in between: it is the next call's to end.
        if (late !== undefined) failures.set(worker.workerId, { kind: 'pending' });
      } catch (error) {
        failures.set(worker.workerId, { kind: 'failed', error: toReason(error) });
      }
    };
    await pMap(due, fenceOne, { concurrency: this.#atOnce(due) });
    return failures;
  }

  /** Asks for the end of each, and waits for it. */
  async #end(
    workers: readonly Worker[],
    ask: Ask,
    { wait, graceOf }: { readonly wait: number; readonly graceOf: GraceOf },
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { clock } = this.#parts.daemon;
    const outcomes = new Map<number, GoneOutcome>();
    const askOne = async (worker: Worker) => {
      try {
        const reason = await ask(worker);
        if (reason !== undefined) outcomes.set(worker.workerId, { kind: 'pending', reason });
      } catch (error) {
        outcomes.set(worker.workerId, { kind: 'failed', error: toReason(error) });
      }
    };
    await pMap(workers, askOne, { concurrency: this.#atOnce(workers) });
    const asked = workers.filter(({ workerId }) => !outcomes.has(workerId));
    let open = asked;
    let last: Following | undefined;
    const deadline = clock.monotonic() + wait;
    let failure: WorkerError | undefined;
    const shortened = new Set<string>();
    for (let pause = pauses.first; open.length > 0; pause = Math.min(pause * 2, pauses.longest)) {
      try {
        const left = await this.#left(open, graceOf, shortened, signal);
        last = left;
        failure = undefined;
        open = open.filter(({ workerId }) => left.has(workerId));
      } catch (error) {
        failure = toReason(error);
      }
      if (open.length === 0 || signal.aborted || clock.monotonic() + pause > deadline) break;
      await clock.sleep(pause, signal);
    }
    const late = new Set(open.map(({ workerId }) => workerId));
    for (const { workerId } of asked) {
      if (!late.has(workerId)) outcomes.set(workerId, { kind: 'gone' });
      else
        outcomes.set(workerId, failure ? { kind: 'failed', error: failure } : this.#pending(workerId, last));
    }
    return outcomes;
  }

  #pending(workerId: number, left: Following | undefined): GoneOutcome {
    const { namespace } = this.#parts;
    const reason = left && whyLeft(left.objectsOf(workerId), namespace.name, namespace.now());
    return { kind: 'pending', ...(reason && { reason }) };
  }

  /** Looks up what is left of these workers. Deletes Pods whose Job is gone, since the cluster takes its time. */
  async #left(
    workers: readonly Pick<Worker, 'workerId' | 'queue'>[],
    graceOf: GraceOf,
    shortened: Set<string>,
    signal: AbortSignal,
  ): Promise<Following> {
    const { namespace } = this.#parts;
    const ids = workers.map(({ workerId }) => workerId);
    const left = await lookUp(namespace, ids, signal, { namesOnly: true });
    const due = left.workerIds
      .toArray()
      .map((workerId) => ({ ...left.objectsOf(workerId), grace: graceOf(workerId) }))
      .filter(({ job }) => job === undefined)
      .flatMap(({ pods, grace }) => pods.map((pod) => ({ ...pod, grace })))
      // One that leaves already has a grace of its own, which a second deletion can shorten.
      .filter(({ uid, leaving, grace }) => !leaving || (grace !== undefined && !shortened.has(uid)));
    for (const { uid } of due) shortened.add(uid);
    const deleteOne = (pod: (typeof due)[number]) => this.#deletePod(pod, pod.grace, signal);
    await pMap(due, deleteOne, { concurrency: this.#atOnce(workers) });
    return left;
  }

  /** Jobs deleted at once: as many as the queue of the first of these workers says. */
  #atOnce([first]: readonly Pick<Worker, 'queue'>[]): number {
    return (first === undefined ? defaults() : this.#optionsOf(first)).nProcesses;
  }

  #optionsOf({ queue, configId }: Pick<Worker, 'queue'> & { readonly configId?: number }): K8sSweeperConfig {
    return this.#parts.daemon.queue(queue, configId)?.sweeper ?? defaults();
  }

  /** @returns whether it was there. @throws KubernetesError */
  async #deleteJob({ name, uid }: Pick<ObjectName, 'name' | 'uid'>, signal: AbortSignal): Promise<boolean> {
    const { namespace } = this.#parts;
    try {
      // At once, and not after its Pods: those are deleted here, since the cluster's own collector takes ten a second.
      await namespace.client.delete(namespace.job(name), { signal, uid, propagationPolicy: 'Background' });
      return true;
    } catch (error) {
      // Gone, or another one of the same name by now.
      if (isKubernetesError(error, 'kubernetes-not-found', 'kubernetes-conflict')) return false;
      throw error;
    }
  }

  async #deletePod(
    { name, uid }: Pick<ObjectName, 'name' | 'uid'>,
    grace: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace } = this.#parts;
    try {
      await namespace.client.delete(namespace.pod(name), {
        signal,
        uid,
        ...(grace !== undefined && { gracePeriodSeconds: grace }),
      });
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-not-found', 'kubernetes-conflict')) throw error;
    }
  }
}

/**
 * What keeps the objects of a worker though their grace is over; undefined where nothing is late. It says the same at each call: it is kept
 * in the database.
 */
function whyLeft(
  { job, pods }: ReturnType<Following['objectsOf']>,
  namespace: string,
  now: number,
): Reason | undefined {
  const all = [...pods.map((pod) => ({ ...pod, kind: 'Pod' })), ...(job ? [{ ...job, kind: 'Job' }] : [])];
  const late = all.find(({ goneAt = Infinity }) => now - goneAt > lateAfter);
  if (late?.goneAt === undefined) return undefined;
  const { kind, name, goneAt, finalizers } = late;
  // The cluster takes its own away by itself once the node has said so.
  const others = finalizers.filter((one) => one !== 'batch.kubernetes.io/job-tracking');
  const why =
    others.length > 0
      ? `its finalizers (${others.join(', ')}) keep it`
      : 'its node has not said that it ended';
  const message = `${kind} ${namespace}/${name} was to be gone at ${new Date(goneAt).toISOString()} and is still there: ${why}`;
  return { code: 'k8s-not-ending', message };
}
