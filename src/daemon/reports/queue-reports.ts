import type { QueueConfig, QueueFileResult, QueueState, QueueVerdict } from '../../config/queues/queues.ts';
import { statusThatCounts } from '../../limits/limiters.ts';
import type { QueueReport, QueueStore } from '../../store/queues.ts';
import type { Clock } from '../../util/clock.ts';
import { reasonFromOutside } from '../../util/own-secrets.ts';
import { fromPointer, type Problem } from '../../util/located.ts';
import { isTrouble } from '../every-code.ts';
import type { Reason } from '../../worker/reason.ts';

/** Keeps in the database what operators ask of a queue, so that it can be read while the daemon is down. */
export class QueueReports {
  readonly #store: QueueStore;
  readonly #clock: Clock;
  /** The last report of each queue: as text before its reasons were masked, and what was written. */
  readonly #written = new Map<string, { readonly text: string; readonly reasons: readonly Reason[] }>();
  readonly #notes = new Map<string, Reason>();
  readonly #notesOn: (queue: string) => readonly Reason[];
  #noteOfAll: Reason | undefined;

  /** @param notesOn is asked at each report for what else is to be known of a queue */
  constructor(store: QueueStore, clock: Clock, notesOn: (queue: string) => readonly Reason[] = () => []) {
    this.#store = store;
    this.#notesOn = notesOn;
    this.#clock = clock;
  }

  /** Sets a note that stands beside the reasons of one queue, or of all; undefined takes all notes back. */
  note(reason: Reason | undefined, queue?: string): void {
    if (reason === undefined) {
      this.#notes.clear();
      this.#noteOfAll = undefined;
    } else if (queue === undefined) this.#noteOfAll = reason;
    else this.#notes.set(queue, reason);
  }

  /**
   * Brings the rows in line with the files. `begun` are the configurations that are starting and will report by themselves,
   * `known` the queues that do so already, `elsewhere` those that other daemons have.
   */
  async begin(
    begun: readonly QueueConfig[],
    known: readonly string[],
    file: QueueFileResult,
    elsewhere: ReadonlySet<string> = new Set(),
  ): Promise<void> {
    const starting = { code: 'not-listed', message: 'the queue is being started' };
    // One that reports already knows better.
    for (const config of begun) if (!this.#written.has(config.name)) await this.report(config, [starting]);
    const spokenFor = new Set([...known, ...elsewhere, ...begun.map(({ name }) => name)]);
    for (const verdict of file.verdicts) {
      if (verdict.state === 'ready' || spokenFor.has(verdict.name)) continue;
      await this.#refuse(verdict.name, whyNot(verdict), verdict.state);
      spokenFor.add(verdict.name);
    }
    for (const { queue, control } of await this.#store.all()) {
      if (spokenFor.has(queue)) continue;
      // A file that cannot be read says nothing about its queues; least of all does it end an operator's pause.
      if (!file.readable) await this.#refuse(queue, whyUnreadable(file));
      else await this.#remove(queue, control);
    }
  }

  /** These queues are in the file no more, and none of their workers is followed any longer. */
  async end(queues: readonly string[]): Promise<void> {
    const ended = new Set(queues);
    for (const { queue, control } of await this.#store.all())
      if (ended.has(queue)) await this.#remove(queue, control);
  }

  /** Other daemons have reported on these queues, or will: nothing is known of what they wrote. */
  leave(queues: ReadonlySet<string>): void {
    for (const queue of queues) this.#written.delete(queue);
  }

  async report(config: QueueConfig, reasons: readonly Reason[]): Promise<void> {
    const queueStatus = statusThatCounts(config.options);
    const notes = [this.#notes.get(config.name), this.#noteOfAll].filter((note) => note !== undefined);
    // A reason that an operator must fix comes before a limit that is reached: a table has room for the first reason only.
    const all = [...reasons, ...notes, ...this.#notesOn(config.name)].sort(
      (one, other) => Number(isTrouble(other)) - Number(isTrouble(one)),
    );
    await this.#write({ queue: config.name, queueStatus, limits: { ...config.limits }, reasons: all });
  }

  /** An operator's pause outlives the queue. */
  async #remove(queue: string, control: unknown): Promise<void> {
    if (control !== undefined) {
      await this.#write({ queue, queueStatus: 'removed', limits: {}, reasons: [removed] });
      return;
    }
    await this.#store.forget(queue);
    this.#written.delete(queue);
  }

  async #refuse(queue: string, message: string, state: QueueState = 'refused'): Promise<void> {
    const code = state === 'incomplete' ? 'queue-incomplete' : 'queue-refused';
    await this.#write({ queue, queueStatus: state, limits: {}, reasons: [{ code, message }] });
  }

  /** The reasons of the last report; undefined where none was written since the start. */
  reasonsOf(queue: string): readonly Reason[] | undefined {
    return this.#written.get(queue)?.reasons;
  }

  /** Written only when it changed: an idle queue writes nothing. */
  async #write(report: Omit<QueueReport, 'control' | 'reportTime'>): Promise<void> {
    const text = JSON.stringify(report);
    if (this.#written.get(report.queue)?.text === text) return;
    const reasons = report.reasons.map(reasonFromOutside);
    await this.#store.report({ ...report, reasons, reportTime: this.#clock.now() });
    this.#written.set(report.queue, { text, reasons });
  }
}

const removed = { code: 'queue-removed', message: 'the queue is not in the queue file any more' };

function whyUnreadable({ problems }: QueueFileResult): string {
  const [first] = problems;
  return first === undefined ? 'the queue file cannot be read' : placed(first);
}

/** A mistake after its place: file, line and pointer. */
export function placed({ file, line, pointer, message }: Problem): string {
  return `${file}:${line}${pointer === '' ? '' : ` ${pointer}`}: ${message}`;
}

/** A mistake with its place and how many more there are; of what is missing, all of it. */
export function whyNot({ problems, state }: QueueVerdict): string {
  const errors = problems.filter(({ severity }) => severity === 'error');
  if (state === 'incomplete') return whatIsMissing(errors);
  const [first] = errors;
  if (first === undefined) return 'its configuration has errors';
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return `${placed(first)}${more}`;
}

/** Everything, but each kind of thing in one clause: it is one cell of a table. */
function whatIsMissing(errors: readonly Problem[]): string {
  const of = (code: Problem['code']) => errors.filter((error) => error.code === code);
  const named = (found: readonly Problem[]) =>
    found.map(({ subject, message }) => subject ?? message).join(', ');
  const plugins = of('plugin-not-there');
  const dropped = of('plugin-dropped');
  const files = of('file-unreadable');
  const unset = [...of('ce-list-missing'), ...of('size-not-said')].map(({ pointer }) =>
    fromPointer(pointer).at(-1),
  );
  const options = new Set(of('file-not-said').map(({ pointer }) => fromPointer(pointer).at(-1)));
  const data = [...of('cache-missing'), ...of('cache-damaged')].map(({ message }) => message);
  return [
    ...data,
    ...(plugins.length > 0 ? [`thresher does not have yet: ${named(plugins)}`] : []),
    ...(dropped.length > 0 ? [`dropped by Harvester, with none in their place: ${named(dropped)}`] : []),
    ...(files.length > 0 ? [`not on this machine: ${named(files)}`] : []),
    ...(options.size > 0 ? [`to be set in the queue file: ${[...options].join(', ')}`] : []),
    ...(unset.length > 0 ? [`to be set in the queue file or in CRIC: ${unset.join(', ')}`] : []),
  ].join('; ');
}
