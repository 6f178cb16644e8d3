import type { PandaApi, ReportedWorker } from '../../clients/panda/api.ts';
import type { PandaCode, PandaFailure, PandaOutcome } from '../../clients/panda/outcome.ts';
import { bareReport } from './reports.ts';

/** A report of one worker, and the place of its news in their order. */
export interface Row {
  readonly report: ReportedWorker;
  readonly sequence: number;
  readonly isFinal: boolean;
}

export interface SenderParts {
  readonly api: Pick<PandaApi, 'updateWorkers'>;
  /** Workers in one call. */
  readonly batch: number;
  /** A call that writes to the server's database and that it takes unless it takes nothing: a heartbeat. */
  readonly probe: (signal: AbortSignal) => Promise<PandaOutcome<unknown>>;
  /** Hears the outcome of each call. */
  readonly note: (outcome: PandaOutcome<unknown>) => void;
}

/** Hears what became of each row. A row of which it hears nothing was not taken. */
export interface SenderEvents {
  taken(rows: readonly Row[]): void;
  /** The server takes other workers, and not this one. */
  refused(row: Row, why: string): void;
  /** The server may still carry out a call with these. */
  unknown(rows: readonly Row[]): void;
}

/**
 * Failures that one worker of a batch may cause: the server answers to a value that its table does not take as to a database that is
 * down. All others are of the server, the way to it or the login, and no smaller batch helps.
 */
const causedByData: ReadonlySet<PandaCode> = new Set([
  'panda-database',
  'panda-argument',
  'panda-server-error',
  'panda-refused',
]);

/**
 * Sends reports in batches. A worker that the server does not take must not hold up the others, and a database that is down must not
 * look like a worker that is refused. So a batch that fails is halved down to the worker, and this one is sent without its
 * texts. It counts as refused only if the server takes another call before and after it refuses the worker again.
 */
export class ReportSender {
  readonly #parts: SenderParts;
  readonly #events: SenderEvents;
  /** A report that the server took: it takes it again unless it takes none at all. */
  #witness: ReportedWorker | undefined;

  constructor(parts: SenderParts, events: SenderEvents) {
    this.#parts = parts;
    this.#events = events;
  }

  /** @returns why the server takes no reports now; undefined where it took all, or refused some for themselves */
  async send(rows: readonly Row[], signal: AbortSignal): Promise<PandaFailure | undefined> {
    const { batch } = this.#parts;
    for (let first = 0; first < rows.length; first += batch) {
      const some = rows.slice(first, first + batch);
      const failure = await this.#call(some, signal);
      if (failure === undefined) continue;
      const serious = causedByData.has(failure.code) ? await this.#isolate(some, signal) : failure;
      if (serious !== undefined) return serious;
    }
    return undefined;
  }

  /** Takes a batch apart that the server refused. @returns the failure if it is not of single workers */
  async #isolate(rows: readonly Row[], signal: AbortSignal): Promise<PandaFailure | undefined> {
    const down = await this.#isDown(signal);
    if (down !== undefined) return down;
    if (rows.length > 1) {
      const middle = Math.ceil(rows.length / 2);
      for (const half of [rows.slice(0, middle), rows.slice(middle)]) {
        const failure = await this.#call(half, signal);
        if (failure === undefined) continue;
        const serious = causedByData.has(failure.code) ? await this.#isolate(half, signal) : failure;
        if (serious !== undefined) return serious;
      }
      return undefined;
    }
    const [row] = rows;
    if (row === undefined) return undefined;
    const bare = { ...row, report: bareReport(row.report) };
    const failure = await this.#call([bare], signal);
    if (failure === undefined || !causedByData.has(failure.code)) return failure;
    const downNow = await this.#isDown(signal);
    if (downNow === undefined) this.#events.refused(row, failure.message);
    return downNow;
  }

  /** Why the server takes nothing at all; undefined while it takes what it took before. */
  async #isDown(signal: AbortSignal): Promise<PandaFailure | undefined> {
    const { probe } = this.#parts;
    const witness = this.#witness;
    const outcome = witness === undefined ? await probe(signal) : await this.#update([witness], signal);
    return outcome.kind === 'failed' ? outcome : undefined;
  }

  async #call(rows: readonly Row[], signal: AbortSignal): Promise<PandaFailure | undefined> {
    const outcome = await this.#update(
      rows.map(({ report }) => report),
      signal,
    );
    if (outcome.kind === 'failed') {
      // A call that the server answers has ended there.
      if (outcome.maybeDone && outcome.code === 'panda-no-answer') this.#events.unknown(rows);
      return outcome;
    }
    const taken: Row[] = [];
    for (const [at, row] of rows.entries()) {
      if (outcome.data[at] === true) taken.push(row);
      else this.#events.refused(row, 'its answer for this worker is false');
    }
    const last = taken.at(-1);
    if (last !== undefined) this.#witness = bareReport(last.report);
    if (taken.length > 0) this.#events.taken(taken);
    return undefined;
  }

  async #update(
    reports: readonly ReportedWorker[],
    signal: AbortSignal,
  ): Promise<PandaOutcome<readonly boolean[]>> {
    const { api, note } = this.#parts;
    const outcome = await api.updateWorkers(reports, signal);
    note(outcome);
    return outcome;
  }
}
