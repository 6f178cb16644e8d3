import { type Kysely, sql } from 'kysely';
import type { WorkerStatus } from '../worker/status.ts';
import { alive, started } from './conditions.ts';
import type { Tables } from './tables.ts';

/** Living workers of one queue and one kind. */
export interface LoadRow {
  readonly queue: string;
  readonly status: WorkerStatus;
  readonly resourceType: string;
  readonly jobType: string;
  readonly workers: number;
  readonly cores: number;
  /** MB. */
  readonly memory: number;
}

/** What limits count of the living. */
export class LoadStore {
  readonly #db: Kysely<Tables>;
  readonly #instance: string;

  constructor(db: Kysely<Tables>, instance: string) {
    this.#db = db;
    this.#instance = instance;
  }

  /** The living of these queues by kind: intents in flight are among them. */
  async alive(queues: readonly string[]): Promise<LoadRow[]> {
    const result = await sql<LoadRow>`
      SELECT queue, status, resource_type AS resourceType, job_type AS jobType,
        count(*) AS workers, sum(n_core) AS cores, sum(min_ram_count) AS memory
      FROM workers
      WHERE instance = ${this.#instance} AND queue IN (SELECT value FROM json_each(${JSON.stringify(queues)}))
        AND ${alive}
      GROUP BY queue, status, resource_type, job_type`.execute(this.#db);
    return result.rows;
  }

  /** Running workers that started before `startedBefore` (ms UTC). */
  async runningSince(queue: string, startedBefore: number): Promise<number> {
    const result = await sql<{ workers: number }>`
      SELECT count(*) AS workers FROM workers
      WHERE instance = ${this.#instance} AND queue = ${queue} AND ${alive} AND status = 'running'
        AND ${started} < ${startedBefore}`.execute(this.#db);
    return result.rows[0]?.workers ?? 0;
  }

  /** When the newest worker of a queue was recorded, ms UTC. */
  async lastMade(queue: string): Promise<number | undefined> {
    // The newest has the highest id.
    const result = await sql<{ at: number }>`
      SELECT creation_time AS at FROM workers
      WHERE instance = ${this.#instance} AND queue = ${queue}
      ORDER BY worker_id DESC LIMIT 1`.execute(this.#db);
    return result.rows[0]?.at;
  }
}
