import { isFinal } from '../../../worker/status.ts';
import type { WorkerStatus } from '../../../worker/status.ts';
import type { CeCounts } from './ce-weight.ts';

/** A worker at a CE, as the monitor last saw it. */
export interface CeWorker {
  readonly workerId: number;
  readonly queue: string;
  readonly ce: string;
  readonly status: WorkerStatus;
  /** ms UTC */
  readonly queuedAt: number;
}

interface Fresh {
  readonly worker: CeWorker;
  /** Whether it was not among all that were seen. */
  readonly missed: boolean;
}

/** A worker queued within this time counts as recent, ms. Source: Harvester's get_ce_weighting. */
const window = 6 * 3600 * 1000;

/** Workers at each CE, as the monitors of all schedds see them: thresher shares out the next submission by that. */
export class CeTally {
  /** By connection, the living. */
  readonly #living = new Map<string, readonly CeWorker[]>();
  /** By connection and worker: those that were submitted since all were seen. */
  readonly #fresh = new Map<string, Map<number, Fresh>>();
  /** By worker: those that ended and still count. */
  readonly #ended = new Map<number, CeWorker>();

  /** All that lives on a connection; those of before that are not among them are forgotten, unless they are `ended`. */
  see(connection: string, living: readonly CeWorker[]): void {
    this.#living.set(connection, living);
    const fresh = this.#fresh.get(connection) ?? new Map<number, Fresh>();
    for (const { workerId } of living) fresh.delete(workerId);
    for (const [workerId, one] of fresh) {
      // The first time the question may have been older than the worker.
      if (one.missed) fresh.delete(workerId);
      else fresh.set(workerId, { ...one, missed: true });
    }
  }

  /** It counts at once, and not only when it is seen: the next submission may be sooner. */
  submitted(connection: string, worker: CeWorker): void {
    const { workerId } = worker;
    // The monitor may have been quicker.
    const seen = this.#living.get(connection)?.some((one) => one.workerId === workerId) ?? false;
    if (seen || this.#ended.has(workerId)) return;
    const fresh = this.#fresh.get(connection) ?? new Map<number, Fresh>();
    this.#fresh.set(connection, fresh.set(workerId, { worker, missed: false }));
  }

  ended(worker: CeWorker): void {
    for (const fresh of this.#fresh.values()) fresh.delete(worker.workerId);
    this.#ended.set(worker.workerId, worker);
  }

  /** Counts of one queue by the endpoint of the CE, and how many run at all. */
  of(
    queue: string,
    now: number,
  ): { readonly counts: ReadonlyMap<string, CeCounts>; readonly running: number } {
    for (const [workerId, { queuedAt }] of this.#ended)
      if (queuedAt < now - window) this.#ended.delete(workerId);
    const fresh = this.#fresh.values().flatMap((some) => some.values().map(({ worker }) => worker));
    const all = [...[...this.#living.values()].flat(), ...fresh, ...this.#ended.values()].filter(
      (one) => one.queue === queue,
    );
    // Two connections that lead to one schedd show the same workers.
    const each = new Map(all.map((one) => [one.workerId, one]));
    const byCe = Map.groupBy(each.values(), ({ ce }) => ce);
    const counts = new Map([...byCe].map(([ce, workers]) => [ce, countsOf(workers, now)]));
    return { counts, running: counts.values().reduce((sum, one) => sum + one.running, 0) };
  }
}

function countsOf(workers: readonly CeWorker[], now: number): CeCounts {
  const of = (some: readonly CeWorker[]) => ({
    queued: some.filter(({ status }) => status !== 'running' && !isFinal(status)).length,
    running: some.filter(({ status }) => status === 'running').length,
    finished: some.filter(({ status }) => status === 'finished').length,
  });
  const recent = of(workers.filter(({ queuedAt }) => queuedAt >= now - window));
  const { queued, running } = of(workers);
  return { queued, running, recent };
}
