import { type Insertable, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Dialect, RowColumn, RowSet } from '../dialect.ts';
import {
  type Column,
  newsColumns,
  payloadColumns,
  payloadShareColumns,
  spentOriginColumns,
  type Tables,
  transitionColumns,
  workerColumns,
} from '../tables.ts';

const columnsOf = {
  workers: workerColumns,
  transitions: transitionColumns,
  news: newsColumns,
  payloads: payloadColumns,
  payload_shares: payloadShareColumns,
  spent_origins: spentOriginColumns,
} as const;
type BulkTable = keyof typeof columnsOf;
type NewRow = Readonly<Record<string, string | number | null | undefined>>;

/**
 * Inserts any number of rows that have the same columns, by one statement whose text does not depend on how many. With
 * values written out, a statement for 500 workers takes three megabytes, and longer to read than to carry out.
 */
export async function insertRows<Table extends BulkTable>(
  db: Kysely<Tables>,
  dialect: Dialect,
  table: Table,
  rows: readonly Insertable<Tables[Table]>[],
): Promise<void> {
  if (rows.length > 0) await insertion(dialect, table, rows).execute(db);
}

/** That statement. `which` says, after the rows, which of them are inserted; they have the name `added` there. */
export function insertion<Table extends BulkTable, Result = unknown>(
  dialect: Dialect,
  table: Table,
  rows: readonly Insertable<Tables[Table]>[],
  which?: (added: RowSet<string>) => RawBuilder<unknown>,
): RawBuilder<Result> {
  const types: Readonly<Record<string, Pick<Column<unknown>, 'type'>>> = columnsOf[table];
  const columns: Record<string, RowColumn<NewRow>> = {};
  for (const name of Object.keys(rows[0] ?? {})) {
    const { type = 'text' } = types[name] ?? {};
    columns[name] = { type, of: (row) => row[name] };
  }
  const names = Object.keys(columns);
  const added = dialect.rows('added', columns, rows);
  const values = names.map((name) => added.column(name));
  const insert = sql`INSERT INTO ${sql.table(table)} (${sql.join(names.map((name) => sql.ref(name)))})
    SELECT ${sql.join(values)} FROM ${added.from}`;
  return which === undefined ? sql<Result>`${insert}` : sql<Result>`${insert} ${which(added)}`;
}
