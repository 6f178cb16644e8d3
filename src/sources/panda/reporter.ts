import type { Log, LogUrls, WorkerNews } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { ThresherError } from '../../worker/errors.ts';
import { isFinal } from '../../worker/status.ts';
import type { RefusedReports } from './refused-reports.ts';
import { ReportSender, type Row, type SenderParts } from './report-sender.ts';
import { isReported, reportOf } from './reports.ts';

export interface ReporterParts extends SenderParts {
  readonly clock: Clock;
  readonly log: Log;
  /** A living worker is reported again after so long without a change, ms. */
  readonly repeatAfter: number;
  /** `harvesterHost` of each worker. */
  readonly host: string;
  /** Absent: nothing serves the logs to others. */
  readonly logUrls?: ((workerId: number) => LogUrls) | undefined;
  /** Absent: a restart forgets the final reports that the server refuses. */
  readonly kept?: Pick<RefusedReports, 'load' | 'keep'> | undefined;
}

/** The state of the reports, for operators. Times are ms UTC. */
export interface ReporterFacts {
  /** When the server last took a report. */
  readonly lastTaken: number | undefined;
  /** Workers that the server took since the start, each as often as it was reported. */
  readonly taken: number;
  /** Workers that the server refuses though it takes others: they are tried again from time to time. */
  readonly refused: readonly number[];
}

/** A worker that is reported once more, though its news count as told. */
interface Later {
  readonly row: Row;
  /** ms UTC */
  readonly at: number;
}

/**
 * A call whose outcome is unknown may still be carried out, and its older status then takes the place of a final one. The final one is
 * sent once more after this time, when the server has surely ended that call, ms.
 */
export const callsEndWithin = 300_000;
/** So many workers at most are kept to be reported once more: of more the oldest are forgotten, living ones first. */
const mostLater = 10_000;

/**
 * Tells the server of each change of a worker, and of unchanged ones from time to time. Its outbox is the store: news that the server
 * did not take come again. All calls go one after the other, so that the order of a worker's changes stays.
 */
export class Reporter {
  readonly #parts: ReporterParts;
  readonly #sender: ReportSender;
  /** When each living worker was reported last, ms UTC. */
  readonly #reportedAt = new Map<number, number>();
  /** The last sequence of each worker that the server took, while its news do not count as told yet. */
  readonly #done = new Map<number, number>();
  readonly #later = new Map<number, Later>();
  /** Living workers in calls without a known outcome, and the time of the call, ms UTC. */
  readonly #doubtful = new Map<number, number>();
  #last: Promise<unknown> = Promise.resolve();
  #lastTaken: number | undefined;
  #taken = 0;
  readonly #refused = new Set<number>();
  /** Whether the final reports that the server refuses are those of the file. */
  #isKept = true;
  #isLoaded = false;

  constructor(parts: ReporterParts) {
    this.#parts = parts;
    this.#sender = new ReportSender(parts, {
      taken: (rows) => {
        this.#wereTaken(rows);
      },
      refused: (row, failure) => {
        this.#wasRefused(row, failure);
      },
      unknown: (rows) => {
        for (const row of rows) if (!row.isFinal) this.#doubtful.set(row.report.workerID, parts.clock.now());
      },
    });
  }

  get facts(): ReporterFacts {
    return {
      lastTaken: this.#lastTaken,
      taken: this.#taken,
      refused: [...this.#refused],
    };
  }

  /**
   * The body of `told`.
   * @throws ThresherError with the code of the failure, where the server did not take them: the same come again
   */
  report(news: readonly WorkerNews[], signal: AbortSignal): Promise<void> {
    return this.#inTurn(async () => {
      // The server keeps one row for each worker, so the last of its changes says all.
      const latest = new Map<number, Row>();
      for (const one of news) {
        const row = isReported(one) ? this.#rowOf(one) : undefined;
        if (row !== undefined) latest.set(row.report.workerID, row);
      }
      const rows = [...latest.values()].filter(
        ({ report: { workerID }, sequence }) => (this.#done.get(workerID) ?? -1) < sequence,
      );
      await this.#sendAll(rows, signal);
      this.#done.clear();
    });
  }

  /** Reports these workers whatever the server heard of them. @throws ThresherError as `report` does */
  again(workers: readonly WorkerNews[], signal: AbortSignal): Promise<void> {
    return this.#inTurn(() =>
      this.#sendAll(
        workers.flatMap((one) => this.#rowOf(one) ?? []),
        signal,
      ),
    );
  }

  /**
   * Reports those of the living workers again of which the server heard nothing for long. Call it every minute or so. It never throws,
   * since the next call does what this one could not.
   * @param living by worker id, as they are now: one that changes meanwhile is left to its news
   */
  async repeat(living: ReadonlyMap<number, WorkerNews>, signal: AbortSignal): Promise<void> {
    const { batch } = this.#parts;
    try {
      await this.#inTurn(() => this.#load());
    } catch {
      // The next report says why.
      return;
    }
    const due = this.#due(living);
    for (let first = 0; first < due.length && !signal.aborted; first += batch) {
      try {
        await this.#inTurn(() => {
          const rows = due.slice(first, first + batch).flatMap((id) => this.#repeated(id, living) ?? []);
          return this.#sendAll(rows, signal);
        });
      } catch {
        // The server takes no more of them now; who notes the calls has the failure.
        return;
      }
    }
  }

  /** Workers to report once more, those whose ends are in doubt first. */
  #due(living: ReadonlyMap<number, WorkerNews>): readonly number[] {
    const { clock, repeatAfter } = this.#parts;
    const now = clock.now();
    for (const id of this.#reportedAt.keys()) if (!living.has(id)) this.#reportedAt.delete(id);
    for (const [id, at] of this.#doubtful) if (at < now - callsEndWithin) this.#doubtful.delete(id);
    const later = [...this.#later].filter(([, { at }]) => at <= now).map(([id]) => id);
    const silent: number[] = [];
    for (const id of living.keys()) {
      const at = this.#reportedAt.get(id);
      // After a start it is not known when each was reported: they come in turn, and not all at once.
      if (at === undefined) this.#reportedAt.set(id, now - ((id % 1000) / 1000) * repeatAfter);
      else if (at <= now - repeatAfter) silent.push(id);
    }
    return [...new Set([...later, ...silent])];
  }

  #repeated(id: number, living: ReadonlyMap<number, WorkerNews>): Row | undefined {
    const { clock, repeatAfter } = this.#parts;
    const now = clock.now();
    const later = this.#later.get(id);
    if (later !== undefined && later.at <= now) return later.row;
    const news = living.get(id);
    const at = this.#reportedAt.get(id);
    if (news === undefined || at === undefined || at > now - repeatAfter) return undefined;
    return this.#rowOf(news);
  }

  #rowOf({ worker, queue, sequence }: WorkerNews): Row | undefined {
    const { host, logUrls } = this.#parts;
    const logs = worker.workerId === null ? undefined : logUrls?.(worker.workerId);
    const report = reportOf(worker, { host, queue, logs });
    const { status } = worker;
    if (report === undefined || status === 'withdrawn') return undefined;
    return { report, sequence, isFinal: isFinal(status) };
  }

  /** One after the other: an older status must not overtake a newer one on another connection. */
  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(task);
    this.#last = mine.catch(() => undefined);
    return mine;
  }

  async #sendAll(rows: readonly Row[], signal: AbortSignal): Promise<void> {
    // The caller may have waited in vain for its turn.
    signal.throwIfAborted();
    await this.#load();
    const failure = await this.#sender.send(rows, signal);
    await this.#keep();
    if (failure === undefined) return;
    throw new ThresherError(failure.code, `the PanDA server takes no reports: ${failure.message}`);
  }

  /** Takes up the final reports that the server refused before the start. */
  async #load(): Promise<void> {
    const { kept, log, clock } = this.#parts;
    if (this.#isLoaded || kept === undefined) return;
    const rows = await kept.load();
    this.#isLoaded = true;
    if (rows === undefined) log.error('the kept final reports that the PanDA server refused are damaged');
    for (const row of rows ?? []) {
      this.#later.set(row.report.workerID, { row, at: clock.now() });
      this.#refused.add(row.report.workerID);
    }
  }

  /** Before news count as told: nothing else remembers a final report that the server refused. */
  async #keep(): Promise<void> {
    if (this.#isKept) return;
    const refused = [...this.#later.values()].map(({ row }) => row);
    await this.#parts.kept?.keep(
      refused.filter(({ isFinal: hasEnded, report }) => hasEnded && this.#refused.has(report.workerID)),
    );
    this.#isKept = true;
  }

  #wereTaken(rows: readonly Row[]): void {
    const now = this.#parts.clock.now();
    this.#lastTaken = now;
    this.#taken += rows.length;
    for (const row of rows) {
      const id = row.report.workerID;
      this.#done.set(id, row.sequence);
      this.#later.delete(id);
      if (this.#refused.delete(id)) this.#isKept = false;
      if (!row.isFinal) {
        this.#reportedAt.set(id, now);
        continue;
      }
      this.#reportedAt.delete(id);
      if (this.#doubtful.delete(id)) this.#sendLater(row, callsEndWithin);
    }
  }

  #wasRefused(row: Row, failure: string): void {
    const id = row.report.workerID;
    this.#done.set(id, row.sequence);
    if (!this.#refused.has(id))
      this.#parts.log.warn('the PanDA server refuses the report of a worker, and takes those of others', {
        workerId: id,
        status: row.report.status,
        error: failure,
      });
    this.#refused.add(id);
    if (row.isFinal) this.#isKept = false;
    this.#sendLater(row, this.#parts.repeatAfter);
  }

  #sendLater(row: Row, after: number): void {
    const id = row.report.workerID;
    this.#later.delete(id);
    this.#later.set(id, { row, at: this.#parts.clock.now() + after });
    if (this.#later.size <= mostLater) return;
    const living = this.#later.entries().find(([, later]) => !later.row.isFinal);
    const oldest = living?.[0] ?? this.#later.keys().next().value;
    if (oldest === undefined) return;
    if (living === undefined && this.#refused.has(oldest))
      this.#parts.log.error('a final report that the PanDA server refuses is forgotten: there are too many', {
        workerId: oldest,
      });
    this.#later.delete(oldest);
    this.#refused.delete(oldest);
  }
}
