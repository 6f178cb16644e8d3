import { defaultsOf } from '../../util/schema-defaults.ts';
import { messageOf, toReason } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import { sharedMonitorOptions } from '../contracts/backend.ts';
import type { CheckResult, Monitor, ObservationSink } from '../contracts/monitor.ts';
import type { BegunState, LocalHost, LocalState } from './host.ts';
import { LocalLogs } from './logs.ts';
import { toObservation } from './observation.ts';
import { takeSnapshot } from './processes.ts';
import { scan } from './scan.ts';
import { type LocalDaemon, LocalMonitorConfig } from './schema.ts';

/** How long processes may take to vanish after KILL, ms: the kernel may first have to end a disk access. */
const killWait = 5000;

const defaults = defaultsOf(LocalMonitorConfig);

/** Looks at the living workers of one directory, and ends those over their wall time, as a batch system does. */
export class LocalMonitor implements Monitor {
  readonly logs: LocalLogs;
  readonly #host: LocalHost;
  readonly #daemon: LocalDaemon;
  readonly #ending = new Set<number>();

  constructor(host: LocalHost, daemon: LocalDaemon) {
    this.#host = host;
    this.#daemon = daemon;
    this.logs = new LocalLogs(host, daemon.clock, daemon.log);
  }

  async observe(sink: ObservationSink, signal: AbortSignal): Promise<void> {
    const interval = () => this.#options.pollInterval * 1000;
    // Ended workers are shown once; only what may live is looked at again.
    let scanned = false;
    do {
      try {
        sink.begin();
        const seen = scanned ? await this.#host.lookAtLiving() : await this.#scan();
        const ended = seen.flatMap(({ worker, state }) => this.#show(worker, state, sink, signal));
        this.#endLeftovers(ended, signal);
        sink.complete();
        scanned = true;
      } catch (error) {
        // The next look may be better, and until then nothing is concluded.
        sink.trouble(toReason(error));
      }
      await this.#daemon.pause(interval, signal);
    } while (!signal.aborted);
  }

  async #scan(): Promise<{ worker: Worker; state: LocalState }[]> {
    const { workers } = await scan(this.#host);
    return workers.map(({ marked: { worker }, state }) => ({ worker, state }));
  }

  async check(workers: readonly Worker[]): Promise<ReadonlyMap<number, CheckResult>> {
    const results = new Map<number, CheckResult>();
    const snapshot = takeSnapshot();
    for (const worker of workers) {
      const { workerId } = worker;
      try {
        await this.#host.root.require();
        const state = await this.#host.look(worker, snapshot);
        if (state.kind === 'unclaimed' || state.kind === 'fenced') {
          // Its slots are free again, and looks pass over it: nothing is left to look at.
          this.#host.live.delete(workerId);
          results.set(workerId, { kind: 'absent' });
        } else results.set(workerId, { kind: 'observed', observation: this.#observation(workerId, state) });
      } catch (error) {
        results.set(workerId, { kind: 'unknown', error: toReason(error) });
      }
    }
    return results;
  }

  get #options(): LocalMonitorConfig {
    return sharedMonitorOptions(this.#daemon, defaults);
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
    const age = (this.#host.ageOf(state.claim) ?? 0) * 1000;
    if (limit > 0 && age > limit) this.#end([worker], 'walltime', signal);
    return [];
  }

  /** Processes that workers left in the background end with them, as in every batch system. */
  #endLeftovers(ended: readonly Worker[], signal: AbortSignal): void {
    if (ended.length > 0) this.#end(ended, undefined, signal);
  }

  #observation(workerId: number, state: BegunState) {
    return toObservation(workerId, state, this.#host.hostname, this.#daemon.clock.now());
  }

  /** Ends workers beside the looking, which must not wait for their grace. */
  #end(workers: readonly Worker[], reason: 'walltime' | undefined, signal: AbortSignal): void {
    const due = workers.filter(({ workerId }) => !this.#ending.has(workerId));
    if (due.length === 0) return;
    for (const { workerId } of due) this.#ending.add(workerId);
    const grace = this.#options.killGrace * 1000;
    const how = { grace, patience: grace + killWait, ...(reason && { reason }) };
    this.#host.endings
      .end(due, how, signal)
      .catch((error: unknown) => {
        const workerIds = due.map(({ workerId }) => workerId);
        this.#daemon.log.warn('workers could not be ended', { workerIds, error: messageOf(error) });
      })
      .finally(() => {
        for (const { workerId } of due) this.#ending.delete(workerId);
      });
  }
}
