import pMap from 'p-map';
import { messageOf } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { CheckResult, Monitor, ObservationSink } from '../contracts/monitor.ts';
import type { LocalHost, LocalState } from './host.ts';
import { toObservation } from './host.ts';
import { LocalLogs } from './logs.ts';
import type { LocalMonitorConfig } from './schema.ts';

/** Workers looked at side by side. */
const looksAtOnce = 16;

/** Looks at the living workers of one directory, and ends those over their wall time, as a batch system does. */
export class LocalMonitor implements Monitor {
  readonly logs: LocalLogs;
  readonly #host: LocalHost;
  readonly #config: LocalMonitorConfig;
  readonly #context: Context;
  readonly #ending = new Set<number>();

  constructor(host: LocalHost, config: LocalMonitorConfig, context: Context) {
    this.#host = host;
    this.#config = config;
    this.#context = context;
    this.logs = new LocalLogs(host, context.clock);
  }

  async observe(sink: ObservationSink, signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    sink.begin();
    for (const { marked, state } of await this.#host.scan()) this.#show(marked.worker, state, sink, signal);
    sink.complete();
    while (!signal.aborted) {
      await clock.sleep(this.#config.pollInterval * 1000, signal);
      // Ended workers are shown once; only what may live is looked at again.
      sink.begin();
      const living = [...this.#host.live.values()];
      await pMap(living, ({ worker }) => this.#look(worker, sink, signal), { concurrency: looksAtOnce });
      sink.complete();
    }
  }

  async check(workers: readonly Worker[]): Promise<ReadonlyMap<number, CheckResult>> {
    const results = new Map<number, CheckResult>();
    for (const { workerId, attempt } of workers) {
      try {
        const state = await this.#host.look(workerId, attempt);
        if (state.kind === 'unclaimed') results.set(workerId, { kind: 'absent' });
        else results.set(workerId, { kind: 'observed', observation: this.#observation(workerId, state) });
      } catch (error) {
        results.set(workerId, {
          kind: 'unknown',
          error: { code: 'plugin-failed', message: messageOf(error) },
        });
      }
    }
    return results;
  }

  async #look(worker: Worker, sink: ObservationSink, signal: AbortSignal): Promise<void> {
    this.#show(worker, await this.#host.look(worker.workerId, worker.attempt), sink, signal);
  }

  #show(worker: Worker, state: LocalState, sink: ObservationSink, signal: AbortSignal): void {
    const { workerId } = worker;
    switch (state.kind) {
      case 'unclaimed':
        return;
      case 'running': {
        const limit = worker.requirements.maxWalltime * 1000;
        const age = this.#context.clock.now() - state.claim.at;
        if (limit > 0 && age > limit) this.#end(worker, 'walltime', signal);
        break;
      }
      case 'ended':
        this.#host.live.delete(workerId);
        // What it left running in the background ends with it, as in every batch system.
        this.#end(worker, undefined, signal);
        break;
    }
    sink.observe(this.#observation(workerId, state));
  }

  #observation(workerId: number, state: Exclude<LocalState, { kind: 'unclaimed' }>) {
    return toObservation(workerId, state, this.#host.hostname, this.#context.clock.now());
  }

  /** Ends a worker beside the looking, which must not wait for its grace. */
  #end(worker: Worker, reason: 'walltime' | undefined, signal: AbortSignal): void {
    const { workerId } = worker;
    if (this.#ending.has(workerId)) return;
    this.#ending.add(workerId);
    this.#host
      .end([worker], reason, this.#config.killGrace * 1000, signal)
      .catch((error: unknown) => {
        this.#context.log.warn('worker could not be ended', { workerId, error: messageOf(error) });
      })
      .finally(() => this.#ending.delete(workerId));
  }
}
