import { type Kysely, sql } from 'kysely';
import type { Tables } from './tables.ts';

/** Hands out worker ids. An id is never used twice, also after the database was lost: see worker/identity.ts. */
export class WorkerIds {
  readonly #db: Kysely<Tables>;
  readonly #instance: string;

  constructor(db: Kysely<Tables>, instance: string) {
    this.#db = db;
    this.#instance = instance;
  }

  /** Takes `count` worker ids that nobody had before; @returns the first. */
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

  /** Makes sure that ids below `floor` are not given out any more. */
  async raise(floor: number): Promise<void> {
    await this.#db
      .insertInto('counters')
      .values({ instance: this.#instance, name: 'nextWorkerId', value: floor })
      .onConflict((conflict) =>
        conflict.columns(['instance', 'name']).doUpdateSet({ value: sql`max(value, excluded.value)` }),
      )
      .execute();
  }
}
