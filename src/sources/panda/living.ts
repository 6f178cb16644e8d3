import type { Desk, WorkerNews } from '../../plugins/contracts/index.ts';
import { isFinal } from '../../worker/status.ts';

/** The living workers of the source as it heard of them, so that unchanged ones can be reported again without a look at the database. */
export class Living {
  readonly #workers = new Map<number, WorkerNews>();

  /** News of before the start were taken then, so that the database has to tell of these workers. */
  async load(desk: Desk): Promise<void> {
    for (const news of await desk.living()) this.heard(news);
  }

  heard(news: WorkerNews): void {
    const { workerId, status } = news.worker;
    if (workerId === null) return;
    if (status === 'withdrawn' || isFinal(status)) this.#workers.delete(workerId);
    else this.#workers.set(workerId, news);
  }

  get all(): ReadonlyMap<number, WorkerNews> {
    return this.#workers;
  }
}
