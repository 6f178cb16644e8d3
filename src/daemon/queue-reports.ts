import type { QueueConfig, QueueFileResult } from '../config/queues.ts';
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

  /** Brings the rows in line with the files: `configured` and refused queues have one, others go. */
  async begin(configs: readonly QueueConfig[], file: QueueFileResult): Promise<void> {
    const starting = { code: 'not-listed', message: 'the daemon is starting' };
    for (const config of configs) await this.report(config, [starting]);
    for (const queue of file.refused) {
      const reasons = [{ code: 'queue-refused', message: whyRefused(queue, file) }];
      await this.#write({ queue, queueStatus: 'refused', limits: {}, reasons });
    }
    const known = new Set([...file.refused, ...configs.map(({ name }) => name)]);
    for (const { queue } of await this.#store.all()) if (!known.has(queue)) await this.#store.forget(queue);
  }

  async report(config: QueueConfig, reasons: readonly Reason[]): Promise<void> {
    const { queueStatus } = config.options;
    await this.#write({ queue: config.name, queueStatus, limits: { ...config.limits }, reasons });
  }

  /** Written only when it changed: an idle queue writes nothing. */
  async #write(report: Omit<QueueReport, 'control' | 'reportTime'>): Promise<void> {
    const text = JSON.stringify(report);
    if (this.#written.get(report.queue) === text) return;
    await this.#store.report({ ...report, reportTime: this.#clock.now() });
    this.#written.set(report.queue, text);
  }
}

function whyRefused(queue: string, file: QueueFileResult): string {
  const errors = file.problems.filter((problem) => problem.severity === 'error' && problem.queue === queue);
  const [first] = errors;
  if (first === undefined) return 'its configuration has errors';
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return `${first.file}:${first.line}: ${first.message}${more}`;
}
