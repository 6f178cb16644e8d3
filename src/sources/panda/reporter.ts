import type { PandaApi } from '../../clients/panda/api.ts';
import type { PandaFailure, PandaOutcome } from '../../clients/panda/outcome.ts';
import type { Log, WorkerNews } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { ThresherError } from '../../worker/errors.ts';
import { reportOf } from './reports.ts';

/** Addresses at which people read the logs of a worker. */
export interface LogUrls {
  readonly stdout: string;
  readonly stderr: string;
  readonly batchLog: string;
  readonly rendered: string;
}

export interface ReporterParts {
  readonly api: Pick<PandaApi, 'updateWorkers'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Workers in one call. */
  readonly batch: number;
  /** A living worker is reported again after so long without a change, ms. */
  readonly repeatAfter: number;
  /** `harvesterHost` of each worker. */
  readonly host: string;
  /** Absent: nothing serves the logs to others. */
  readonly logUrls?: (workerId: number) => LogUrls;
  /** Hears the outcome of each call. */
  readonly note: (outcome: PandaOutcome<unknown>) => void;
}

/** The state of the reports, for operators. */
export interface ReporterFacts {
  /** When the server last took a report, ms UTC. */
  readonly lastTaken: number | undefined;
  readonly failure: { readonly since: number; readonly failure: PandaFailure } | undefined;
  /** Reports that the server took since the start. */
  readonly taken: number;
  /** Workers that the server refuses one by one: they are tried again with those that are repeated. */
  readonly refused: readonly number[];
}

/** Tells the server of each change of a worker, and of unchanged ones from time to time. */
export class Reporter {
  readonly #parts: ReporterParts;

  constructor(parts: ReporterParts) {
    this.#parts = parts;
  }

  get facts(): ReporterFacts {
    return { lastTaken: undefined, failure: undefined, taken: 0, refused: [] };
  }

  /**
   * The body of `told`.
   * @throws ThresherError with the code of the failure, where the server did not take them: the same come again
   */
  async report(news: readonly WorkerNews[], signal: AbortSignal): Promise<void> {
    const { api, host, note } = this.#parts;
    const reports = news.flatMap(({ worker, queue }) => reportOf(worker, { host, queue }) ?? []);
    const outcome = await api.updateWorkers(reports, signal);
    note(outcome);
    if (outcome.kind === 'failed') throw new ThresherError(outcome.code, outcome.message);
  }

  /**
   * Reports those of these living workers again of which the server heard nothing for long. Call it every minute or so; it never
   * throws, since the next call does what this one could not.
   */
  async repeat(living: Iterable<WorkerNews>, signal: AbortSignal): Promise<void> {
    void living;
    void signal;
  }
}
