import type { Log } from '../../plugins/contracts/index.ts';
import type { Reason } from '../../worker/reason.ts';

/** Logs what a queue's preflight finds, once when it changes: the pass itself has not failed, and would leave no line. */
export class PreflightLog {
  readonly #queue: string;
  readonly #log: Log;
  #problems: string = JSON.stringify([]);
  #notes: readonly Reason[] = [];

  constructor(queue: string, log: Log) {
    this.#queue = queue;
    this.#log = log;
  }

  /** The notes of the last preflight. */
  get notes(): readonly Reason[] {
    return this.#notes;
  }

  /** Problems stop the submitter. */
  takeProblems(problems: readonly Reason[]): void {
    const queue = this.#queue;
    const text = JSON.stringify(problems);
    if (text === this.#problems) return;
    this.#problems = text;
    if (problems.length === 0) this.#log.info('nothing stops the submitter any more', { queue });
    for (const { code, message } of problems)
      this.#log.warn('the submitter is stopped', { queue, code, message });
  }

  /** Notes do not. */
  takeNotes(notes: readonly Reason[]): void {
    const queue = this.#queue;
    const known = new Set(this.#notes.map(({ message }) => message));
    this.#notes = notes;
    for (const { code, message } of notes)
      if (!known.has(message))
        this.#log.warn('the submitter goes on, with a warning', { queue, code, message });
  }
}
