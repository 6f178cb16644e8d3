import pMap from 'p-map';
import { defaultsOf } from '../../util/schema-defaults.ts';
import { toReason } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Found, GoneOutcome, Sweeper } from '../contracts/sweeper.ts';
import type { Left } from './ending.ts';
import { fence } from './fence.ts';
import type { LocalHost } from './host.ts';
import { toHandle } from './host.ts';
import { toObservation } from './observation.ts';
import { scan } from './scan.ts';
import { type LocalDaemon, LocalSweeperConfig } from './schema.ts';

const removalsAtOnce = 16;
/** How long one call waits for ends, ms. A longer end is `pending`, and the next call goes on with its grace. */
const patience = 2000;

const defaults = defaultsOf(LocalSweeperConfig);

export class LocalSweeper implements Sweeper {
  readonly #host: LocalHost;
  readonly #daemon: LocalDaemon;

  constructor(host: LocalHost, daemon: LocalDaemon) {
    this.#host = host;
    this.#daemon = daemon;
  }

  async kill(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>> {
    const outcomes = new Map<number, GoneOutcome>();
    // A worker that has not begun must not begin any more.
    const fences = await fence(this.#host, workers);
    const fenced: Worker[] = [];
    for (const worker of workers) {
      const one = fences.get(worker.workerId);
      if (one?.kind === 'failed') outcomes.set(worker.workerId, failed(one.error));
      else fenced.push(worker);
    }
    for (const [grace, some] of Map.groupBy(fenced, (worker) => this.#graceOf(worker))) {
      const left = await this.#host.endings.end(some, { grace, patience, reason: 'killed' }, signal);
      for (const { workerId } of some)
        outcomes.set(workerId, pending(left.get(workerId)) ?? { kind: 'gone' });
    }
    return outcomes;
  }

  async remove(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>> {
    const outcomes = new Map<number, GoneOutcome>();
    const refused = await this.#refused();
    if (refused !== undefined) return new Map(workers.map(({ workerId }) => [workerId, refused]));
    // An ended worker may have left processes behind that still write into its directory.
    // Each ended long ago: a process that it left behind gets no grace.
    const left = await this.#host.endings.end(workers, { grace: 0, patience }, signal);
    await pMap(
      workers,
      async ({ workerId }) => outcomes.set(workerId, await this.#removeOne(workerId, left)),
      {
        concurrency: removalsAtOnce,
      },
    );
    return outcomes;
  }

  async list(): Promise<readonly Found[]> {
    const now = this.#daemon.clock.now();
    const { workers, damaged } = await scan(this.#host);
    const listed = workers.map(({ marked, state }): Found => {
      const {
        workerId,
        name,
        queue,
        computingSite,
        origin,
        requirements,
        attempt,
        accessPoint,
        groupId,
        payloadId,
      } = marked.worker;
      return {
        place: this.#host.directory.path(workerId),
        handle:
          state.kind === 'unclaimed' || state.kind === 'fenced' ? { batchID: '' } : toHandle(state.claim),
        identity: {
          workerId,
          name,
          queue,
          computingSite,
          origin,
          requirements,
          attempt,
          ...(accessPoint === undefined ? {} : { accessPoint }),
          ...(groupId === undefined ? {} : { groupId }),
          ...(payloadId === undefined ? {} : { payloadId }),
        },
        ...(state.kind === 'unclaimed' || state.kind === 'fenced'
          ? {}
          : { observation: toObservation(workerId, state, this.#host.hostname, now) }),
      };
    });
    const setAside = damaged.map(({ path, why }): Found => {
      return { place: path, handle: { batchID: '' }, damage: why };
    });
    return [...listed, ...setAside];
  }

  async removeOrphan(found: Found, signal: AbortSignal): Promise<GoneOutcome> {
    if (found.identity === undefined) {
      // Nothing says whose it is, or whether it is of use to anyone.
      const message = `${found.place} is damaged (${found.damage ?? 'it has no mark'}): look at it and remove it by hand`;
      return { kind: 'failed', error: { code: 'local-directory-damaged', message } };
    }
    const refused = await this.#refused();
    if (refused !== undefined) return refused;
    const known = { ...found.identity, handle: found.handle };
    const how = { grace: this.#graceOf(found.identity), patience, reason: 'killed' } as const;
    const left = await this.#host.endings.end([known], how, signal);
    return this.#removeOne(found.identity.workerId, left);
  }

  /** Why nothing may be ended by the marks of what is in the work directory: it is lost, or another factory's. */
  async #refused(): Promise<GoneOutcome | undefined> {
    try {
      await this.#host.root.require();
      return undefined;
    } catch (error) {
      return failed(error);
    }
  }

  async #removeOne(workerId: number, left: ReadonlyMap<number, Left>): Promise<GoneOutcome> {
    const outcome = pending(left.get(workerId));
    if (outcome !== undefined) return outcome;
    try {
      // A missing mount would look as if the directory were gone already. One that never was holds nothing.
      if (await this.#host.root.require()) await this.#host.directory.remove(workerId);
      this.#host.live.delete(workerId);
      return { kind: 'gone' };
    } catch (error) {
      return failed(error);
    }
  }

  /** Between TERM and KILL, ms. */
  #graceOf({ queue, configId }: Pick<Worker, 'queue'> & Partial<Pick<Worker, 'configId'>>): number {
    const { killGrace } = this.#daemon.queue(queue, configId)?.sweeper ?? defaults();
    return killGrace * 1000;
  }
}

/** Undefined: nothing is left. */
function pending(left: Left | undefined): GoneOutcome | undefined {
  return left && { kind: 'pending', ...(left.why && { reason: left.why }) };
}

function failed(error: unknown): GoneOutcome {
  return { kind: 'failed', error: toReason(error) };
}
