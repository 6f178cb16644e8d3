import { type Insertable, type Kysely, sql } from 'kysely';
import type { Dialect, RowColumn } from '../dialect.ts';
import { type Column, type Tables, transitionColumns, workerColumns } from '../tables.ts';

const columnsOf = { workers: workerColumns, transitions: transitionColumns } as const;
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
  const [first] = rows;
  if (first === undefined) return;
  const types: Readonly<Record<string, Pick<Column<unknown>, 'type'>>> = columnsOf[table];
  const columns: Record<string, RowColumn<NewRow>> = {};
  for (const name of Object.keys(first)) {
    const { type = 'text' } = types[name] ?? {};
    columns[name] = { type, of: (row) => row[name] };
  }
  const names = Object.keys(columns);
  const added = dialect.rows('added', columns, rows);
  const values = names.map((name) => added.column(name));
  await sql`INSERT INTO ${sql.table(table)} (${sql.join(names.map((name) => sql.ref(name)))})
    SELECT ${sql.join(values)} FROM ${added.from}`.execute(db);
}
