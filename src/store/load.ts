import { type Kysely, sql } from 'kysely';
import type { WorkerStatus } from '../worker/status.ts';
import { alive, ended } from './conditions.ts';
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

/** An ended worker as limits look at it. Times are ms UTC. */
export interface EndedRow {
  readonly status: WorkerStatus;
  readonly startTime: number | null;
  readonly endTime: number | null;
}

/** When a worker began to run: as the backend says, or else when it was first seen running. */
const started = sql.raw(`coalesce(start_time,
  (SELECT min(at) FROM transitions WHERE worker_id = workers.worker_id AND to_status = 'running'))`);

/** What limits count. */
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

  /** The last workers of a queue that ended by themselves, newest first. */
  async lastEnded(queue: string, limit: number): Promise<EndedRow[]> {
    const result = await sql<EndedRow>`
      SELECT status, ${started} AS startTime, end_time AS endTime FROM workers
      WHERE instance = ${this.#instance} AND queue = ${queue} AND ${ended} AND status IN ('finished', 'failed')
      ORDER BY end_time DESC LIMIT ${limit}`.execute(this.#db);
    return result.rows;
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

  /** Workers that were missed since then (ms UTC): of a site, of a queue, or on a computing element. */
  async missed(level: 'site' | 'pq' | 'ce', value: string, since: number): Promise<number> {
    const column = { site: 'computing_site', pq: 'queue', ce: 'computing_element' }[level];
    const result = await sql<{ workers: number }>`
      SELECT count(*) AS workers FROM workers
      WHERE instance = ${this.#instance} AND status = 'missed' AND ${sql.ref(column)} = ${value}
        AND end_time > ${since}`.execute(this.#db);
    return result.rows[0]?.workers ?? 0;
  }
}
