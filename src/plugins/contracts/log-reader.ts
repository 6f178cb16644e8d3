import type { Worker } from '../../worker/worker.ts';

export interface LogRequest {
  /** `job-log`: what the backend itself wrote down of the job; not every backend does. */
  readonly stream: 'stdout' | 'stderr' | 'job-log';
  /** Go on until the worker has ended. */
  readonly follow: boolean;
  /** Only this many last lines first. */
  readonly tail?: number;
}

export interface LogReader {
  /**
   * The log in pieces as they come.
   * @throws ThresherError `no-log` when there is none.
   */
  read(worker: Worker, request: LogRequest, signal: AbortSignal): AsyncIterable<Uint8Array>;
}
