import { type Kysely, sql } from 'kysely';
import { highestOwnId } from '../../worker/identity.ts';
import type { Dialect } from '../dialect.ts';
import type { Tables } from '../tables.ts';
import type { WorkerIds } from '../worker-ids.ts';
import type { FactoryRows } from './open-database.ts';

export class SqlWorkerIds implements WorkerIds {
  readonly #db: Kysely<Tables>;
  readonly #dialect: Dialect;
  readonly #instance: string;

  constructor({ db, dialect, instance }: FactoryRows) {
    this.#db = db;
    this.#dialect = dialect;
    this.#instance = instance;
  }

  async take(count: number): Promise<number> {
    const row = await this.#db
      .updateTable('counters')
      .set((eb) => ({ value: eb('value', '+', count) }))
      .where('instance', '=', this.#instance)
      .where('name', '=', 'nextWorkerId')
      .returning('value')
      .executeTakeFirstOrThrow();
    return row.value - count;
  }

  async raise(floor: number): Promise<void> {
    const higher = this.#dialect.greatest(sql<number>`counters.value`, sql<number>`excluded.value`);
    await this.#db
      .insertInto('counters')
      .values({ instance: this.#instance, name: 'nextWorkerId', value: floor })
      .onConflict((conflict) => conflict.columns(['instance', 'name']).doUpdateSet({ value: higher }))
      .execute();
  }

  async begin(floor: number): Promise<void> {
    const last = sql<number>`(SELECT max(worker_id) + 1 FROM workers
      WHERE instance = ${this.#instance} AND worker_id <= ${highestOwnId})`;
    const back = this.#dialect.greatest(
      sql<number>`CAST(${floor} AS bigint)`,
      sql<number>`coalesce(${last}, 0)`,
    );
    await this.#db
      .updateTable('counters')
      .set({ value: back })
      .where('instance', '=', this.#instance)
      .where('name', '=', 'nextWorkerId')
      // PanDA's column has 11 digits, and from 2^53 on it would not even count.
      .where('value', '>', highestOwnId)
      .execute();
    await this.raise(floor);
  }
}
