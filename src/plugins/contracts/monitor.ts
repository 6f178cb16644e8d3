import type { Observation } from '../../worker/observation.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Worker, WorkerError } from '../../worker/worker.ts';
import type { LogReader } from './log-reader.ts';
import type { OutputReader } from './output-reader.ts';

/** Takes a monitor's observations. Cheap to call: equal observations of a worker cost no SQL. */
export interface ObservationSink {
  /** A full listing begins: what lives on the connection is about to be shown. */
  begin(): void;
  observe(observation: Observation): void;
  /**
   * Everything that exists on the connection was shown since `begin`: the only moment at which absence means
   * something. Also the sign of life: without one for `monitor.maxStatusAge` the connection counts as unknown.
   */
  complete(): void;
  /**
   * The backend said that this worker is gone (a watch's delete event), or what it shows may be something else with the mark of the worker.
   * It is looked up by name before it counts.
   */
  gone(workerId: number): void;
  /** The backend gives no answer now, or a part: thresher concludes nothing, and submits nothing until `complete`. */
  trouble(reason: Reason): void;
}

export type CheckResult =
  | { readonly kind: 'observed'; readonly observation: Observation }
  /** Asked freshly and by name, the backend does not know it. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown'; readonly error: WorkerError };

/** Follows all workers of one connection, of whatever queue. */
export interface Monitor {
  /**
   * Runs until `signal` aborts. Returning earlier, or throwing, is a failure: it is called again after a pause.
   * Shows workers of this factory only.
   */
  observe(sink: ObservationSink, signal: AbortSignal): Promise<void>;
  /** Looks these up by name, past every cache. A missing result counts as unknown. */
  check(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, CheckResult>>;
  /**
   * Whether changes reach it at once by themselves now (a watch, a log that it follows). An early look at a worker is left out then.
   * Default: no.
   */
  hearsAtOnce?(): boolean;
  /** Present if the backend keeps logs. */
  readonly logs?: LogReader;
  /** Present if workers can leave an output for their source. */
  readonly outputs?: OutputReader;
}
