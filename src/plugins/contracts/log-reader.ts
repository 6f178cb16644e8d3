import type { Worker } from '../../worker/worker.ts';

export interface LogRequest {
  /** `job-log`: what the backend itself wrote down of the job; not every backend does. */
  readonly stream: 'stdout' | 'stderr' | 'job-log';
  /** Go on until the worker has ended. */
  readonly follow: boolean;
  /** Only this many last lines first. */
  readonly tail?: number;
}

/** The end of a file that a running worker writes. */
export interface PeekRequest {
  /** Name of the file in the directory that the worker starts in. */
  readonly file: string;
  readonly mostBytes: number;
}

export interface LogReader {
  /**
   * The log in pieces as they come.
   * @throws ThresherError `no-log` when there is none.
   */
  read(worker: Worker, request: LogRequest, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /**
   * The end of a file of a running worker, byte for byte. Present where the backend can look into the directory of a worker that
   * shares no file system with the daemon. Each call may cost a process.
   * @returns undefined while the worker does not run, or has no such file yet
   * @throws ThresherError `no-log` if the backend never gives out this file of the worker
   */
  peek?(worker: Worker, request: PeekRequest, signal: AbortSignal): Promise<Uint8Array | undefined>;
}
