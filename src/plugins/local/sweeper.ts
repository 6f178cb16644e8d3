import pMap from 'p-map';
import { messageOf } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { Found, GoneOutcome, Sweeper } from '../contracts/sweeper.ts';
import type { LocalHost } from './host.ts';
import { toObservation } from './host.ts';
import type { LocalSweeperConfig } from './schema.ts';

const removalsAtOnce = 16;

export class LocalSweeper implements Sweeper {
  readonly #host: LocalHost;
  readonly #config: LocalSweeperConfig;
  readonly #context: Context;

  constructor(host: LocalHost, config: LocalSweeperConfig, context: Context) {
    this.#host = host;
    this.#config = config;
    this.#context = context;
  }

  async kill(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>> {
    // What has not begun must not begin any more.
    for (const worker of workers) await this.#host.fence(worker);
    const gone = await this.#host.end(workers, 'killed', this.#config.killGrace * 1000, signal);
    return new Map(
      workers.map(({ workerId }) => [workerId, { kind: gone.has(workerId) ? 'gone' : 'pending' }]),
    );
  }

  async remove(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>> {
    const outcomes = new Map<number, GoneOutcome>();
    // An ended worker may have left processes behind that still write into its directory.
    const gone = await this.#host.end(workers, undefined, this.#config.killGrace * 1000, signal);
    await pMap(
      workers,
      async ({ workerId }) => outcomes.set(workerId, await this.#removeOne(workerId, gone)),
      {
        concurrency: removalsAtOnce,
      },
    );
    return outcomes;
  }

  async list(): Promise<readonly Found[]> {
    const now = this.#context.clock.now();
    const scanned = await this.#host.scan();
    return scanned.map(({ marked, state }): Found => {
      const { workerId, name, queue, computingSite, origin, requirements, attempt, accessPoint } =
        marked.worker;
      return {
        place: this.#host.directory.path(workerId),
        handle:
          state.kind === 'unclaimed'
            ? { batchID: '' }
            : { batchID: String(state.claim.pid), pid: state.claim.pid },
        identity: {
          ...{ workerId, name, queue, computingSite, origin, requirements, attempt },
          ...(accessPoint === undefined ? {} : { accessPoint }),
        },
        ...(state.kind === 'unclaimed'
          ? {}
          : { observation: toObservation(workerId, state, this.#host.hostname, now) }),
      };
    });
  }

  async removeOrphan(found: Found, signal: AbortSignal): Promise<GoneOutcome> {
    if (found.identity === undefined) return { kind: 'gone' };
    const gone = await this.#host.end([found.identity], 'killed', this.#config.killGrace * 1000, signal);
    return this.#removeOne(found.identity.workerId, gone);
  }

  async #removeOne(workerId: number, gone: ReadonlySet<number>): Promise<GoneOutcome> {
    if (!gone.has(workerId)) return { kind: 'pending' };
    try {
      await this.#host.directory.remove(workerId);
      this.#host.live.delete(workerId);
      return { kind: 'gone' };
    } catch (error) {
      return { kind: 'failed', error: { code: 'plugin-failed', message: messageOf(error) } };
    }
  }
}
