import type { QueueConfig, QueueFileResult, QueueState, QueueVerdict } from '../config/queues.ts';
import type { QueueReport, QueueStore } from '../store/queues.ts';
import type { Clock } from '../util/clock.ts';
import type { Reason } from '../worker/reason.ts';

/** Keeps in the database what operators ask of a queue, so that it can be read while the daemon is down. */
export class QueueReports {
  readonly #store: QueueStore;
  readonly #clock: Clock;
  /** Of each queue the last report, as text. */
  readonly #written = new Map<string, string>();

  constructor(store: QueueStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Brings the rows in line with the files. `followed` are the configurations that will report by themselves. */
  async begin(followed: readonly QueueConfig[], file: QueueFileResult): Promise<void> {
    const starting = { code: 'not-listed', message: 'the daemon is starting' };
    for (const config of followed) await this.report(config, [starting]);
    const standing = file.verdicts.filter(({ state }) => state !== 'ready');
    for (const verdict of standing) await this.#refuse(verdict.name, whyNot(verdict), verdict.state);
    const known = new Set([...standing, ...followed].map(({ name }) => name));
    for (const { queue, control } of await this.#store.all()) {
      if (known.has(queue)) continue;
      // A file that cannot be read says nothing about its queues; least of all does it end somebody's pause.
      if (!file.readable) await this.#refuse(queue, whyUnreadable(file));
      else if (control === undefined) await this.#store.forget(queue);
      else await this.#write({ queue, queueStatus: 'removed', limits: {}, reasons: [removed] });
    }
  }

  async report(config: QueueConfig, reasons: readonly Reason[]): Promise<void> {
    const { queueStatus } = config.options;
    await this.#write({ queue: config.name, queueStatus, limits: { ...config.limits }, reasons });
  }

  async #refuse(queue: string, message: string, state: QueueState = 'refused'): Promise<void> {
    const code = state === 'incomplete' ? 'queue-incomplete' : 'queue-refused';
    await this.#write({ queue, queueStatus: state, limits: {}, reasons: [{ code, message }] });
  }

  /** Written only when it changed: an idle queue writes nothing. */
  async #write(report: Omit<QueueReport, 'control' | 'reportTime'>): Promise<void> {
    const text = JSON.stringify(report);
    if (this.#written.get(report.queue) === text) return;
    await this.#store.report({ ...report, reportTime: this.#clock.now() });
    this.#written.set(report.queue, text);
  }
}

const removed = { code: 'queue-removed', message: 'the queue is not in the queue file any more' };

function whyUnreadable({ problems }: QueueFileResult): string {
  const [first] = problems;
  return first === undefined
    ? 'the queue file cannot be read'
    : `${first.file}:${first.line}: ${first.message}`;
}

/** A mistake with its place and how many more there are; of what is missing, all of it. */
export function whyNot({ problems, state }: QueueVerdict): string {
  const errors = problems.filter(({ severity }) => severity === 'error');
  if (state === 'incomplete') return errors.map(({ message }) => message).join('; ');
  const [first] = errors;
  if (first === undefined) return 'its configuration has errors';
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return `${first.file}:${first.line}: ${first.message}${more}`;
}
