import type { WorkerStatus } from './status.ts';
import type { WorkerError } from './worker.ts';

/** The state of one worker as a monitor saw it. Times are ms UTC and come from the backend if it has them. */
export interface Observation {
  readonly workerId: number;
  readonly status: WorkerStatus;
  /** The backend's own word for the state. */
  readonly nativeStatus: string;
  /** Exit status as a shell gives it: 128+n where a signal n ended the worker. */
  readonly exitCode?: number;
  readonly error?: WorkerError;
  readonly node?: string;
  /** Endpoint of the computing element that the worker was sent to, where the backend has such. */
  readonly computingElement?: string;
  readonly startTime?: number;
  readonly endTime?: number;
  /** Bounded facts beside these, kept as JSON. */
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly observedAt: number;
}
