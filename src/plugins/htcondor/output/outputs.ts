import { ThresherError } from '../../../worker/errors.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { LeftOutput, OutputReader } from '../../contracts/output-reader.ts';
import { fetchSpooled, type SpoolParts } from './spooled.ts';

/** Workers whose output one command brings. */
const atOnce = 50;

interface Asked {
  readonly worker: Worker;
  /** A fetch of it was cut off, maybe since many came together. */
  readonly isAlone: boolean;
  readonly signal: AbortSignal;
  readonly done: PromiseWithResolvers<undefined>;
}

/** Reads the outputs of jobs. Those that lie in the spool are brought together: each command is a process and a conversation. */
export class HTCondorOutputs implements OutputReader {
  readonly #parts: SpoolParts;
  #asked: Asked[] = [];
  #isFetching = false;

  constructor(parts: SpoolParts) {
    this.#parts = parts;
  }

  async open(worker: Worker, signal: AbortSignal): Promise<LeftOutput | undefined> {
    const { workerId } = worker;
    const { outputs, jobQueue } = this.#parts.schedd;
    await outputs.settled([workerId], signal);
    let bytes = await outputs.bytesOf(workerId);
    const isCut = bytes !== undefined && !(await outputs.isWhole(workerId));
    // A job of a schedd without a spool brings it before it ends.
    if (bytes === 0 || isCut) {
      const started = await jobQueue.started(signal);
      await this.#fetched(worker, isCut, signal);
      bytes = await outputs.bytesOf(workerId);
      if (bytes === 0) await jobQueue.require(started, signal);
      // The job may have left the queue, with all that it left in the spool.
      if (bytes !== undefined && bytes > 0 && !(await outputs.isWhole(workerId)))
        throw new ThresherError(
          'output-awaited',
          `the output of worker ${workerId} was cut off when it was fetched, and cannot be fetched again: its job is in the queue no more, or is fetched by another call`,
        );
    }
    return bytes === undefined || bytes === 0 ? undefined : outputs.open(workerId, bytes);
  }

  async drop(workers: readonly Worker[]): Promise<void> {
    await this.#parts.schedd.outputs.drop(workers.map(({ workerId }) => workerId));
  }

  #fetched(worker: Worker, isAlone: boolean, signal: AbortSignal): Promise<unknown> {
    const done = Promise.withResolvers<undefined>();
    this.#asked.push({ worker, isAlone, signal, done });
    const fetching = this.#isFetching ? undefined : this.#fetchAll();
    return Promise.all([done.promise, fetching]);
  }

  #next(): readonly Asked[] {
    const first = this.#asked.findIndex(({ isAlone }) => isAlone);
    const together = first < 0 ? atOnce : Math.min(first, atOnce);
    return this.#asked.splice(0, Math.max(together, 1));
  }

  async #fetchAll(): Promise<void> {
    this.#isFetching = true;
    // Those that ask in this moment go together.
    await Promise.resolve();
    for (;;) {
      const some = this.#next();
      const [first] = some;
      if (first === undefined) break;
      try {
        const workers = some.map(({ worker }) => worker);
        await fetchSpooled(this.#parts, workers, first.signal);
        for (const { done } of some) done.resolve(undefined);
      } catch (error) {
        for (const { done } of some) done.reject(error);
      }
    }
    this.#isFetching = false;
  }
}
