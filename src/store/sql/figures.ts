import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../dialect.ts';
import type { AliveCount, ElementCount, FigureStore } from '../figures.ts';
import type { Tables } from '../tables.ts';
import { alive } from './conditions.ts';
import type { FactoryRows } from './open-database.ts';

export class SqlFigureStore implements FigureStore {
  readonly #db: Kysely<Tables>;
  readonly #dialect: Dialect;
  readonly #instance: string;

  constructor({ db, dialect, instance }: FactoryRows) {
    this.#db = db;
    this.#dialect = dialect;
    this.#instance = instance;
  }

  async alive(): Promise<AliveCount[]> {
    const result = await sql<AliveCount>`
      SELECT queue, status, count(*) AS workers
      FROM ${this.#dialect.tableBy('workers', 'workers_alive')}
      WHERE instance = ${this.#instance} AND ${alive} GROUP BY queue, status`.execute(this.#db);
    return result.rows;
  }

  async aliveAtElements(): Promise<ElementCount[]> {
    const result = await sql<ElementCount>`
      SELECT queue, computing_element AS "computingElement", status, count(*) AS workers
      FROM ${this.#dialect.tableBy('workers', 'workers_alive_by_element')}
      WHERE instance = ${this.#instance} AND computing_element IS NOT NULL AND ${alive}
      GROUP BY queue, computing_element, status`.execute(this.#db);
    return result.rows;
  }

  async orphans(): Promise<number> {
    const row = await this.#db
      .selectFrom('orphans')
      .select((eb) => eb.fn.countAll<number>().as('orphans'))
      .where('instance', '=', this.#instance)
      .executeTakeFirstOrThrow();
    return row.orphans;
  }
}
