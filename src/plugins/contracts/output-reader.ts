import type { Worker } from '../../worker/worker.ts';

/** The file that a worker left for its source. It is disposed of after it was read. */
export interface LeftOutput extends AsyncDisposable {
  readonly bytes: number;
  read(): AsyncIterable<Uint8Array>;
}

/** Outputs that workers left for their source: `output` of their payloads. */
export interface OutputReader {
  /**
   * The output of a worker that has ended, brought here if it is not here yet.
   * @returns undefined where it left none, and none will come
   * @throws ThresherError, and what the file system says, where it cannot be had now
   */
  open(worker: Worker, signal: AbortSignal): Promise<LeftOutput | undefined>;
  /** Nothing of them is needed any more. The sweeper leaves a worker whose output is still needed. */
  drop(workers: readonly Worker[]): Promise<void>;
}
