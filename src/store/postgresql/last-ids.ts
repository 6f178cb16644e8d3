import { type Kysely, sql } from 'kysely';
import type { LastIds } from '../sql/open-database.ts';
import type { Tables } from '../tables.ts';

/** Tables whose ids the database gives, with the column of these. */
const columns = [
  ['transitions', 'id'],
  ['configs', 'config_id'],
  ['commands', 'id'],
  ['news', 'id'],
  ['payloads', 'id'],
] as const;

export async function lastIds(db: Kysely<Tables>): Promise<LastIds> {
  const ids = new Map<string, number>();
  for (const [table, column] of columns) {
    const { rows } = await sql<{ last: number | null }>`
      SELECT pg_sequence_last_value(pg_get_serial_sequence(${table}, ${column})::regclass) AS last`.execute(
      db,
    );
    const last = rows[0]?.last ?? null;
    if (last !== null) ids.set(table, last);
  }
  return ids;
}

export async function setLastIds(db: Kysely<Tables>, ids: LastIds): Promise<void> {
  for (const [table, column] of columns) {
    const known = ids.get(table) ?? 0;
    await sql`SELECT setval(pg_get_serial_sequence(${table}, ${column})::regclass, last, last > 0)
      FROM (SELECT greatest(${known}::bigint, max(${sql.ref(column)})) AS last FROM ${sql.table(table)}) AS ids
      WHERE last > 0`.execute(db);
  }
}
