import type { WorkerRecord } from '../store/rows.ts';
import type { SweepBefore } from '../store/workers.ts';
import { messageOf } from '../worker/errors.ts';
import { absenceChange, observationChange } from './outcomes.ts';
import { type AgentContext, callPlugin, type ConnectedPlugins, type QueueRuntime } from './queue-runtime.ts';

export interface SweeperOptions {
  /** How long ended workers are kept, ms, by final status. */
  readonly keep: SweepBefore;
}

/** Workers in one call. */
const atOnce = 500;
/** How often, and with what pause (ms), a pass asks again for ends that are not there yet. */
const killTurns = 20;
const killPause = 500;

/** Ends the workers of one queue that are to end, and removes what ended ones left. */
export class SweeperAgent {
  readonly #runtime: QueueRuntime;
  readonly #context: AgentContext;
  readonly #options: SweeperOptions;

  constructor(runtime: QueueRuntime, context: AgentContext, options: SweeperOptions) {
    this.#runtime = runtime;
    this.#context = context;
    this.#options = options;
  }

  async pass(signal: AbortSignal): Promise<void> {
    // What takes its time to end is not left until the next full pass; what does not end at all is.
    try {
      for (let turn = 0; turn < killTurns && !signal.aborted; turn++) {
        if (await this.kill()) break;
        await this.#context.clock.sleep(killPause, signal);
      }
    } finally {
      await this.sweep();
    }
  }

  /** Ends what is to end, as many as one call takes. @returns whether nothing is left to be ended. */
  async kill(): Promise<boolean> {
    const { ledger, clock, log, step } = this.#context;
    const { config, configId } = this.#runtime;
    const wanted = await ledger.store.workers.toKill(config.name, configId, atOnce);
    const ready = wanted.filter(({ workerId }) => !ledger.inFlight.has(workerId));
    let all = ready.length === wanted.length && wanted.length < atOnce;
    for (const [{ monitor, sweeper }, workers] of this.#byConnection(ready)) {
      const outcomes = await callPlugin(this.#context, `kill of ${config.name}`, (signal) =>
        sweeper.kill(workers, signal),
      );
      step('kill:after-kill');
      const gone = workers.filter(({ workerId }) => outcomes.get(workerId)?.kind === 'gone');
      all &&= gone.length === workers.length;
      for (const { workerId } of workers) {
        const outcome = outcomes.get(workerId);
        if (outcome?.kind === 'failed') log.warn('worker could not be ended', { workerId, ...outcome.error });
      }
      if (gone.length === 0) continue;
      // How it ended is looked up freshly: the monitor may be late, and what never started is seen by none.
      const results = await callPlugin(this.#context, `check of ${config.name}`, (signal) =>
        monitor.check(gone, signal),
      );
      await ledger.change(
        gone.flatMap(({ workerId }) => {
          const result = results.get(workerId);
          if (result?.kind === 'observed') return [observationChange(result.observation, true)];
          return result?.kind === 'absent' ? [absenceChange(workerId, true, clock.now())] : [];
        }),
      );
      log.info('ended workers on request', { queue: config.name, workers: gone.length });
    }
    return all;
  }

  /** Removes the traces of workers whose keep time is over; @returns how many. */
  async sweep(): Promise<number> {
    const { ledger, clock } = this.#context;
    const { config, configId } = this.#runtime;
    let swept = 0;
    for (;;) {
      const now = clock.now();
      const { finished, failed, cancelled, missed } = this.#options.keep;
      const before = {
        finished: now - finished,
        failed: now - failed,
        cancelled: now - cancelled,
        missed: now - missed,
      };
      const due = await ledger.store.workers.toSweep(config.name, configId, before, atOnce);
      const gone = await this.#remove(due);
      swept += gone;
      // What would not go is tried again in the next pass, not at once.
      if (due.length < atOnce || gone === 0) return swept;
    }
  }

  async #remove(due: readonly WorkerRecord[]): Promise<number> {
    const { ledger, clock, log, step } = this.#context;
    const { config, messenger } = this.#runtime;
    let removed = 0;
    for (const [{ sweeper }, workers] of this.#byConnection(due)) {
      step('sweep:before-remove');
      const outcomes = await callPlugin(this.#context, `remove of ${config.name}`, (signal) =>
        sweeper.remove(workers, signal),
      );
      step('sweep:after-remove');
      const swept: number[] = [];
      for (const { workerId, accessPoint } of workers) {
        const outcome = outcomes.get(workerId);
        if (outcome?.kind !== 'gone') {
          if (outcome?.kind === 'failed')
            log.warn('worker could not be removed', { workerId, ...outcome.error });
          continue;
        }
        try {
          if (accessPoint !== undefined && messenger !== undefined) {
            const what = `access point of ${workerId}`;
            await callPlugin(this.#context, what, () => messenger.remove(accessPoint, workerId));
          }
          swept.push(workerId);
        } catch (error) {
          log.warn('access point could not be removed', { workerId, accessPoint, error: messageOf(error) });
        }
      }
      step('sweep:after-access-point');
      await ledger.store.workers.markSwept(swept, clock.now());
      step('sweep:after-mark');
      removed += swept.length;
    }
    if (removed > 0) log.info('swept workers', { queue: config.name, workers: removed });
    return removed;
  }

  #byConnection(workers: readonly WorkerRecord[]): Map<ConnectedPlugins, WorkerRecord[]> {
    const { connected } = this.#runtime;
    const known = workers.filter(({ workerId, placement }) => {
      if (!connected.has(placement))
        this.#context.log.error('worker on an unknown connection', { workerId, placement });
      return connected.has(placement);
    });
    return Map.groupBy(known, ({ placement }) => connected.get(placement) as ConnectedPlugins);
  }
}
