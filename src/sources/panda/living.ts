import type { Desk, WorkerNews } from '../../plugins/contracts/index.ts';
import { isFinal } from '../../worker/status.ts';

/** The living workers of the source as it heard of them, so that unchanged ones can be reported again without a look at the database. */
export class Living {
  readonly #workers = new Map<number, WorkerNews>();
  /** Workers whose news came while the database was read: these are newer than its rows. */
  #heardMeanwhile: Set<number> | undefined;

  /** News of before the start were taken then, so that the database has to tell of these workers. */
  async load(desk: Desk): Promise<void> {
    const meanwhile = new Set<number>();
    this.#heardMeanwhile = meanwhile;
    try {
      const found = await desk.living();
      for (const news of found) if (!meanwhile.has(news.worker.workerId ?? 0)) this.heard(news);
    } finally {
      this.#heardMeanwhile = undefined;
    }
  }

  heard(news: WorkerNews): void {
    const { workerId, status } = news.worker;
    if (workerId === null) return;
    this.#heardMeanwhile?.add(workerId);
    if (status === 'withdrawn' || isFinal(status)) this.#workers.delete(workerId);
    else this.#workers.set(workerId, news);
  }

  get all(): ReadonlyMap<number, WorkerNews> {
    return this.#workers;
  }
}
