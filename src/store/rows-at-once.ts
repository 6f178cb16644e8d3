import { type Insertable, type Kysely, sql } from 'kysely';
import type { Tables } from './tables.ts';

/**
 * Inserts any number of rows that have the same columns, by one statement whose text does not depend on how many. With
 * values written out, a statement for 500 workers takes three megabytes, and longer to read than to carry out.
 */
export async function insertRows<Table extends 'workers' | 'transitions'>(
  db: Kysely<Tables>,
  table: Table,
  rows: readonly Insertable<Tables[Table]>[],
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const columns = Object.keys(first) as (keyof Insertable<Tables[Table]>)[];
  const names = sql.join(columns.map((column) => sql.ref(String(column))));
  const values = sql.raw(columns.map((_, index) => `value ->> ${index}`).join(', '));
  const all = JSON.stringify(rows.map((row) => columns.map((column) => row[column] ?? null)));
  await sql`INSERT INTO ${sql.table(table)} (${names}) SELECT ${values} FROM json_each(${all})`.execute(db);
}
