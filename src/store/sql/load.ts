import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../dialect.ts';
import type { LoadRow, LoadStore } from '../load.ts';
import type { Tables } from '../tables.ts';
import { alive, started } from './conditions.ts';
import type { FactoryRows } from './open-database.ts';

export class SqlLoadStore implements LoadStore {
  readonly #db: Kysely<Tables>;
  readonly #dialect: Dialect;
  readonly #instance: string;

  constructor({ db, dialect, instance }: FactoryRows) {
    this.#db = db;
    this.#dialect = dialect;
    this.#instance = instance;
  }

  async alive(queues: readonly string[]): Promise<LoadRow[]> {
    // A sum of integers that users wrote may be larger than any: SQLite would refuse the whole answer.
    const result = await sql<LoadRow>`
      SELECT queue, status, resource_type AS "resourceType", job_type AS "jobType",
        count(*) AS workers, sum(CAST(n_core AS double precision)) AS cores,
        sum(CAST(min_ram_count AS double precision)) AS memory
      FROM workers
      WHERE instance = ${this.#instance} AND queue IN (${this.#dialect.values(queues, 'text')})
        AND ${alive}
      GROUP BY queue, status, resource_type, job_type`.execute(this.#db);
    return result.rows;
  }

  async runningSince(queue: string, startedBefore: number): Promise<number> {
    const result = await sql<{ workers: number }>`
      SELECT count(*) AS workers FROM workers
      WHERE instance = ${this.#instance} AND queue = ${queue} AND ${alive} AND status = 'running'
        AND ${started} < ${startedBefore}`.execute(this.#db);
    return result.rows[0]?.workers ?? 0;
  }

  async lastMade(queue: string): Promise<number | undefined> {
    // The newest has the highest id.
    const result = await sql<{ at: number }>`
      SELECT creation_time AS at FROM workers
      WHERE instance = ${this.#instance} AND queue = ${queue}
      ORDER BY worker_id DESC LIMIT 1`.execute(this.#db);
    return result.rows[0]?.at;
  }
}
