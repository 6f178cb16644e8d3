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
 * A call that the server does not end may be caused by one worker as well, whose row is locked. The server may also be slow for a while:
 * the same batch is sent again once before it is taken apart.
 */
const hanging: ReadonlySet<PandaCode> = new Set(['panda-no-answer', 'panda-busy']);

/**
 * Sends reports in batches. A worker that the server does not take must not hold up the others, and a database that is down must not
 * look like a worker that is refused. So a batch that fails is halved down to the worker, and this one is sent without its
 * texts. It counts as refused only if the server takes another call before and after it refuses the worker again.
 */
export class ReportSender {
  readonly #parts: SenderParts;
  readonly #events: SenderEvents;
  /** The last reports of two workers that the server took: it takes them again unless it takes none at all. */
  #witnesses: readonly ReportedWorker[] = [];
  /** The first workers of batches that the server did not end when they came last. */
  readonly #hung = new Set<number>();

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
      const serious = this.#isOfBatch(failure, some) ? await this.#isolate(some, failure, signal) : failure;
      if (serious !== undefined) return serious;
    }
    return undefined;
  }

  /** Whether single workers of the batch may cause the failure. */
  #isOfBatch({ code }: PandaFailure, [first]: readonly Row[]): boolean {
    if (!hanging.has(code)) return causedByData.has(code);
    const id = first?.report.workerID;
    if (id === undefined || this.#hung.delete(id)) return true;
    this.#hung.add(id);
    return false;
  }

  /** Takes a batch apart that the server refused. @returns the failure if it is not of single workers */
  async #isolate(
    rows: readonly Row[],
    why: PandaFailure,
    signal: AbortSignal,
  ): Promise<PandaFailure | undefined> {
    const down = await this.#isDown(rows, why, signal);
    if (down !== undefined) return down;
    if (rows.length > 1) {
      const middle = Math.ceil(rows.length / 2);
      const refused: (readonly [half: readonly Row[], failure: PandaFailure])[] = [];
      // Both halves first: a report that the server takes is the witness for the other half.
      for (const half of [rows.slice(0, middle), rows.slice(middle)]) {
        const failure = await this.#call(half, signal);
        if (failure === undefined) continue;
        if (!mayBeOfOne(failure)) return failure;
        refused.push([half, failure]);
      }
      for (const [half, failure] of refused) {
        const serious = await this.#isolate(half, failure, signal);
        if (serious !== undefined) return serious;
      }
      return undefined;
    }
    const [row] = rows;
    if (row === undefined) return undefined;
    const bare = bareReport(row.report);
    const { errorCode, ...barest } = bare;
    let failure = await this.#call([{ ...row, report: bare }], signal);
    if (failure !== undefined && causedByData.has(failure.code) && errorCode !== undefined)
      failure = await this.#call([{ ...row, report: barest }], signal);
    if (failure === undefined || !mayBeOfOne(failure)) return failure;
    // Without a report of another worker that the server took, all may hang: a heartbeat goes to another table.
    if (hanging.has(failure.code) && this.#witnessBeside([row]) === undefined) return failure;
    const downNow = await this.#isDown([row], failure, signal);
    if (downNow === undefined) this.#events.refused(row, failure.message);
    return downNow;
  }

  /** A report that the server took, of a worker that is none of these. */
  #witnessBeside(rows: readonly Row[]): ReportedWorker | undefined {
    const ids = new Set(rows.map(({ report }) => report.workerID));
    return this.#witnesses.find(({ workerID }) => !ids.has(workerID));
  }

  /** Why the server takes nothing at all; undefined while it takes what it took before. */
  async #isDown(
    rows: readonly Row[],
    { code }: PandaFailure,
    signal: AbortSignal,
  ): Promise<PandaFailure | undefined> {
    const { probe } = this.#parts;
    // The report of a worker whose row is locked hangs again.
    const own = hanging.has(code) ? undefined : this.#witnesses[0];
    const witness = this.#witnessBeside(rows) ?? own;
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
    const first = rows[0]?.report.workerID;
    if (first !== undefined) this.#hung.delete(first);
    const ids = new Set(taken.map(({ report }) => report.workerID));
    const older = this.#witnesses.filter(({ workerID }) => !ids.has(workerID));
    this.#witnesses = [...taken.slice(-2).map(({ report }) => bareReport(report)), ...older].slice(0, 2);
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

function mayBeOfOne({ code }: PandaFailure): boolean {
  return causedByData.has(code) || hanging.has(code);
}
