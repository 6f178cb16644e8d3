import { type Kysely, sql } from 'kysely';
import type { WorkerStatus } from '../worker/status.ts';
import { alive } from './conditions.ts';
import type { Tables } from './tables.ts';

/** Living workers of one queue in one status. */
export interface AliveCount {
  readonly queue: string;
  readonly status: WorkerStatus;
  readonly workers: number;
}

/** What is counted for monitoring, again and again: each answer comes from an index alone. */
export class FigureStore {
  readonly #db: Kysely<Tables>;
  readonly #instance: string;

  constructor(db: Kysely<Tables>, instance: string) {
    this.#db = db;
    this.#instance = instance;
  }

  /** The living of all queues; ended workers, the great majority, are not looked at. */
  async alive(): Promise<AliveCount[]> {
    const result = await sql<AliveCount>`
      SELECT queue, status, count(*) AS workers
      FROM workers INDEXED BY workers_alive
      WHERE instance = ${this.#instance} AND ${alive} GROUP BY queue, status`.execute(this.#db);
    return result.rows;
  }

  /** How many orphans the last listings found. */
  async orphans(): Promise<number> {
    const row = await this.#db
      .selectFrom('orphans')
      .select((eb) => eb.fn.countAll<number>().as('orphans'))
      .where('instance', '=', this.#instance)
      .executeTakeFirstOrThrow();
    return row.orphans;
  }
}
