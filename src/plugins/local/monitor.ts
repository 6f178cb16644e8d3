import pMap from 'p-map';
import { messageOf } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { CheckResult, Monitor, ObservationSink } from '../contracts/monitor.ts';
import { type BegunState, type LocalHost, type LocalState, toObservation } from './host.ts';
import { LocalLogs } from './logs.ts';
import type { LocalMonitorConfig } from './schema.ts';

/** Workers looked at side by side. */
const looksAtOnce = 16;
/** How long processes may take to vanish after KILL, ms: the kernel may first have to end a disk access. */
const killWait = 5000;

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
    const scanned = await this.#host.scan();
    this.#endLeftovers(
      scanned.flatMap(({ marked, state }) => this.#show(marked.worker, state, sink, signal)),
      signal,
    );
    sink.complete();
    while (!signal.aborted) {
      await clock.sleep(this.#config.pollInterval * 1000, signal);
      // Ended workers are shown once; only what may live is looked at again.
      sink.begin();
      const living = [...this.#host.live.values()];
      const ended = await pMap(
        living,
        async ({ worker }) =>
          this.#show(worker, await this.#host.look(worker.workerId, worker.attempt), sink, signal),
        { concurrency: looksAtOnce },
      );
      this.#endLeftovers(ended.flat(), signal);
      sink.complete();
    }
  }

  async check(workers: readonly Worker[]): Promise<ReadonlyMap<number, CheckResult>> {
    const results = new Map<number, CheckResult>();
    for (const { workerId, attempt } of workers) {
      try {
        const state = await this.#host.look(workerId, attempt);
        if (state.kind === 'unclaimed' || state.kind === 'fenced') results.set(workerId, { kind: 'absent' });
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

  /** @returns the worker when it has ended by itself. */
  #show(worker: Worker, state: LocalState, sink: ObservationSink, signal: AbortSignal): Worker[] {
    const { workerId } = worker;
    if (state.kind === 'unclaimed') return [];
    if (state.kind === 'fenced') {
      this.#host.live.delete(workerId);
      return [];
    }
    sink.observe(this.#observation(workerId, state));
    if (state.kind === 'ended') {
      this.#host.live.delete(workerId);
      return [worker];
    }
    const limit = worker.requirements.maxWalltime * 1000;
    const age = this.#context.clock.now() - state.claim.at;
    if (limit > 0 && age > limit) this.#end([worker], 'walltime', signal);
    return [];
  }

  /** What workers left running in the background ends with them, as in every batch system. */
  #endLeftovers(ended: readonly Worker[], signal: AbortSignal): void {
    if (ended.length > 0) this.#end(ended, undefined, signal);
  }

  #observation(workerId: number, state: BegunState) {
    return toObservation(workerId, state, this.#host.hostname, this.#context.clock.now());
  }

  /** Ends workers beside the looking, which must not wait for their grace. */
  #end(workers: readonly Worker[], reason: 'walltime' | undefined, signal: AbortSignal): void {
    const due = workers.filter(({ workerId }) => !this.#ending.has(workerId));
    if (due.length === 0) return;
    for (const { workerId } of due) this.#ending.add(workerId);
    const grace = this.#config.killGrace * 1000;
    const how = { grace, patience: grace + killWait, ...(reason && { reason }) };
    this.#host
      .end(due, how, signal)
      .catch((error: unknown) => {
        const workerIds = due.map(({ workerId }) => workerId);
        this.#context.log.warn('workers could not be ended', { workerIds, error: messageOf(error) });
      })
      .finally(() => {
        for (const { workerId } of due) this.#ending.delete(workerId);
      });
  }
}
