import pMap from 'p-map';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type { Worker, WorkerError } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { Found, GoneOutcome, Sweeper } from '../contracts/sweeper.ts';
import { tell } from './events.ts';
import { fence, removeFence, standingOf } from './fence.ts';
import type { Following, ObjectName } from './following.ts';
import type { KubernetesHub } from './hub.ts';
import { listAll } from './listing.ts';
import { lookUp } from './look-up.ts';
import type { StateOptions } from './pod-state.ts';
import { problemOf } from './problem.ts';
import type { ProxySecrets } from './proxy-secrets.ts';
import type { K8sSweeperConfig } from './schema.ts';

export interface SweeperParts {
  readonly hub: KubernetesHub;
  readonly proxies: ProxySecrets;
  readonly config: K8sSweeperConfig;
  readonly context: Context;
  readonly options: (queue: string | undefined) => StateOptions;
}

/** How long one call waits for what it deleted, ms. What takes longer is `pending`, and the next call goes on. */
const patience = { kill: 5000, remove: 20_000 };
/** Between two looks, ms. */
const pauses = { first: 20, longest: 1000 };

/** What is asked of the cluster for one worker. */
type Ask = (worker: Worker) => Promise<void>;

/** Deletes Jobs and their Pods, each only while it is the one that was meant, and says gone when both are. */
export class K8sSweeper implements Sweeper {
  readonly #parts: SweeperParts;

  constructor(parts: SweeperParts) {
    this.#parts = parts;
  }

  async kill(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { hub, context, config } = this.#parts;
    const ask: Ask = async (worker) => {
      const { name, handle } = worker;
      // What has not begun must not begin any more.
      const uid = handle?.uid ?? (await fence(hub, worker, signal))?.uid;
      if (typeof uid !== 'string') return;
      const message = `worker ${worker.workerId} of ${worker.queue} was ended by thresher`;
      if (await this.#deleteJob({ name, uid }, signal))
        await tell(hub, context, { job: { name, uid }, reason: 'Killed', message }, signal);
    };
    return this.#end(workers, ask, patience.kill, config.killGrace, signal);
  }

  async remove(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { hub, context } = this.#parts;
    const ask: Ask = async (worker) => {
      const { name, handle } = worker;
      if (typeof handle?.uid === 'string') {
        await this.#deleteJob({ name, uid: handle.uid }, signal);
        return;
      }
      const standing = await standingOf(hub, worker, signal);
      if (standing.kind === 'worker')
        await this.#deleteJob({ name, uid: String(standing.handle.uid) }, signal);
      if (standing.kind === 'fence') await removeFence(hub, name, standing.uid, signal);
    };
    const outcomes = await this.#end(workers, ask, patience.remove, undefined, signal);
    for (const { workerId } of workers) hub.refused.delete(workerId);
    try {
      await this.#parts.proxies.sweep(signal);
    } catch (error) {
      // Most queues have none, and their daemon no right to look.
      context.log.debug('unused proxy Secrets not looked for', { ...problemOf(error) });
    }
    return outcomes;
  }

  list(signal: AbortSignal): Promise<readonly Found[]> {
    const { hub, context, options } = this.#parts;
    return listAll(hub, context.clock.now(), options, signal);
  }

  async removeOrphan({ place, handle, identity }: Found, signal: AbortSignal): Promise<GoneOutcome> {
    const [, kind, name = ''] = place.split('/');
    const uid = String(handle.uid);
    try {
      if (kind === 'pods') await this.#deletePod({ name, uid }, undefined, signal);
      else await this.#deleteJob({ name, uid }, signal);
      if (identity === undefined) return { kind: 'gone' };
      const { workerId } = identity;
      const left = await this.#left([workerId], undefined, signal);
      return { kind: left.has(workerId) ? 'pending' : 'gone' };
    } catch (error) {
      return { kind: 'failed', error: problemOf(error) };
    }
  }

  /** Asks for the end of each, and waits for it. */
  async #end(
    workers: readonly Worker[],
    ask: Ask,
    wait: number,
    grace: number | undefined,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, GoneOutcome>> {
    const { clock } = this.#parts.context;
    const outcomes = new Map<number, GoneOutcome>();
    const askOne = async (worker: Worker) => {
      try {
        await ask(worker);
      } catch (error) {
        outcomes.set(worker.workerId, { kind: 'failed', error: problemOf(error) });
      }
    };
    await pMap(workers, askOne, { concurrency: this.#parts.config.nProcesses });
    const asked = workers.filter(({ workerId }) => !outcomes.has(workerId));
    let open = asked.map(({ workerId }) => workerId);
    const deadline = clock.monotonic() + wait;
    let failure: WorkerError | undefined;
    for (let pause = pauses.first; open.length > 0; pause = Math.min(pause * 2, pauses.longest)) {
      try {
        const left = await this.#left(open, grace, signal);
        failure = undefined;
        open = open.filter((workerId) => left.has(workerId));
      } catch (error) {
        failure = problemOf(error);
      }
      if (open.length === 0 || signal.aborted || clock.monotonic() + pause > deadline) break;
      await clock.sleep(pause, signal);
    }
    const late = new Set(open);
    for (const { workerId } of asked) {
      if (!late.has(workerId)) outcomes.set(workerId, { kind: 'gone' });
      else outcomes.set(workerId, failure ? { kind: 'failed', error: failure } : { kind: 'pending' });
    }
    return outcomes;
  }

  /** What is still there of these workers; Pods whose Job is gone are deleted here, since the cluster takes its time. */
  async #left(
    workerIds: readonly number[],
    grace: number | undefined,
    signal: AbortSignal,
  ): Promise<Following> {
    const { hub, config } = this.#parts;
    const left = await lookUp(hub, workerIds, signal, { namesOnly: true });
    const due = left.workerIds
      .toArray()
      .map((workerId) => left.objectsOf(workerId))
      .filter(({ job }) => job === undefined)
      .flatMap(({ pods }) => pods.filter(({ leaving }) => !leaving));
    await pMap(due, (pod) => this.#deletePod(pod, grace, signal), { concurrency: config.nProcesses });
    return left;
  }

  /** @returns whether it was there. @throws KubernetesError */
  async #deleteJob({ name, uid }: Pick<ObjectName, 'name' | 'uid'>, signal: AbortSignal): Promise<boolean> {
    const { hub } = this.#parts;
    try {
      // At once, and not after its Pods: those are deleted here, since the cluster's own collector takes ten a second.
      await hub.client.delete(hub.job(name), { signal, uid, propagationPolicy: 'Background' });
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
    const { hub } = this.#parts;
    try {
      await hub.client.delete(hub.pod(name), {
        ...{ signal, uid },
        ...(grace !== undefined && { gracePeriodSeconds: grace }),
      });
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-not-found', 'kubernetes-conflict')) throw error;
    }
  }
}
