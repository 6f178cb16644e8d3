import type { Kysely, RawBuilder } from 'kysely';
import type { ColumnType, Tables } from './tables.ts';

/** How one value of a row is taken from what the caller has, and how the database keeps it. */
export interface RowColumn<Row> {
  readonly type: ColumnType;
  readonly of: (row: Row) => string | number | null | undefined;
}

/** Rows that a statement gets as a parameter and reads like a table. */
export interface RowSet<Name extends string> {
  /** Stands in FROM. */
  readonly from: RawBuilder<unknown>;
  /** Stands where a column's value is meant. */
  column(name: Name): RawBuilder<unknown>;
}

/**
 * The differences between databases in the texts of queries. Everything in `sql/` goes through these, so that a second
 * database is a second object, and the queries are written once.
 *
 * - The texts for SQLite are those of `test/store/fixtures/sqlite-queries.sql`: a test compares them, because a text that
 *   changes unseen may read every worker where an index has the answer.
 * - No text may depend on how many ids, names or rows a call brings: a database keeps a plan for each text. A list of
 *   statuses may stand in the text, since there are only nine of them.
 * - The rest of `sql/` is written in SQL that SQLite and PostgreSQL read alike: names with capitals are quoted, a subquery in
 *   FROM has a name, a column that two tables have is qualified, and null is compared by IS DISTINCT FROM.
 *   Upserts are ON CONFLICT with its columns named. JSON is kept as text, and no query looks into a column of it.
 * - No query asks the database for the time: times are parameters, ms UTC, from the daemon's clock.
 * - A database tells that another process wrote through `OpenDatabase.changedElsewhere`.
 */
export interface Dialect {
  /** A subquery that gives these values, for IN and NOT IN. */
  values(values: readonly (string | number)[], type: ColumnType): RawBuilder<unknown>;
  /** Rows under the name `alias`. */
  rows<Row, Name extends string>(
    alias: string,
    columns: Readonly<Record<Name, RowColumn<Row>>>,
    rows: readonly Row[],
  ): RowSet<Name>;
  /** A table in FROM that is to be read by this index alone, where the database takes such advice. */
  tableBy(table: string, index: string): RawBuilder<unknown>;
  /** A column in a condition for which no index is to be used, where the database takes such advice. */
  unindexed(column: string): RawBuilder<unknown>;
  /** The greater of two values. */
  greatest<Value>(one: RawBuilder<Value>, other: RawBuilder<Value>): RawBuilder<Value>;
  /** Runs `work`; everything that it deletes or moves in this transaction is overwritten in the files, where the database can. */
  erasing<T>(tx: Kysely<Tables>, work: () => Promise<T>): Promise<T>;
}
