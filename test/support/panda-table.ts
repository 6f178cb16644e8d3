import type { PandaApi, ReportedWorker } from '../../src/clients/panda/api.ts';
import type { PandaFailure, PandaOutcome } from '../../src/clients/panda/outcome.ts';
import type { KnownWorker, WorkerNews } from '../../src/worker/news.ts';

const finals = new Set(['finished', 'failed', 'cancelled', 'missed']);

export function pandaFailure(code: PandaFailure['code'], maybeDone = false): PandaFailure {
  return { kind: 'failed', code, message: `${code} in a test`, maybeDone };
}

/**
 * The table of workers of a PanDA server, as far as reports see it: it stores a batch worker by worker until one fails, and then
 * answers a database error for the whole; a final status stays.
 */
export class PandaTable implements Pick<PandaApi, 'updateWorkers'> {
  readonly rows = new Map<number, ReportedWorker>();
  /** All statuses that each worker ever had here. */
  readonly history = new Map<number, string[]>();
  /** The worker ids of each call. */
  readonly calls: number[][] = [];
  /** Workers that it does not take. */
  refuses: (worker: ReportedWorker) => boolean = () => false;
  /** Workers on which a call hangs. */
  hangs: (worker: ReportedWorker) => boolean = () => false;
  /** What the next call meets, and the one after it. */
  readonly next: ('down' | 'lost-answer' | 'unreachable')[] = [];
  /** Until it is undefined again all calls meet it. */
  always: 'down' | 'lost-answer' | 'unreachable' | undefined;

  async updateWorkers(workers: readonly ReportedWorker[]): Promise<PandaOutcome<readonly boolean[]>> {
    this.calls.push(workers.map(({ workerID }) => workerID));
    const meets = this.next.shift() ?? this.always;
    if (meets === 'unreachable') return pandaFailure('panda-unreachable');
    if (meets === 'down') return pandaFailure('panda-database', true);
    for (const worker of workers) {
      if (this.hangs(worker)) return pandaFailure('panda-no-answer', true);
      if (this.refuses(worker)) return pandaFailure('panda-database', true);
      this.#store(worker);
    }
    if (meets === 'lost-answer') return pandaFailure('panda-no-answer', true);
    return { kind: 'ok', data: workers.map(() => true) };
  }

  /** A write that a bad worker does not disturb. */
  async probe(): Promise<PandaOutcome<unknown>> {
    const meets = this.next[0] ?? this.always;
    if (meets === undefined) return { kind: 'ok', data: null };
    return pandaFailure(meets === 'unreachable' ? 'panda-unreachable' : 'panda-database');
  }

  #store(worker: ReportedWorker): void {
    const had = this.rows.get(worker.workerID);
    const status = had !== undefined && finals.has(had.status) ? had.status : worker.status;
    this.rows.set(worker.workerID, { ...had, ...worker, status });
    const history = this.history.get(worker.workerID) ?? [];
    if (history.at(-1) !== status) history.push(status);
    this.history.set(worker.workerID, history);
  }
}

/** One change of a worker. */
export function workerNews(
  workerId: number,
  sequence: number,
  facts: Partial<KnownWorker> = {},
  what: WorkerNews['what'] = 'changed',
): WorkerNews {
  return {
    sequence,
    at: sequence,
    what,
    origin: { uid: 'SITE#1', index: workerId },
    queue: 'SITE',
    worker: {
      workerId,
      status: 'running',
      computingSite: 'SITE',
      resourceType: 'SCORE',
      jobType: 'managed',
      nCore: 1,
      minRamCount: 2000,
      batchId: `job-${workerId}`,
      nativeStatus: null,
      exitCode: null,
      errorCode: null,
      diagMessage: null,
      node: null,
      computingElement: null,
      placement: 'local:/work',
      creationTime: 1,
      submitTime: 2,
      startTime: null,
      endTime: null,
      ...facts,
    },
  };
}
