import { type Kysely, sql } from 'kysely';
import type { LastIds } from '../sql/open-database.ts';
import type { Tables } from '../tables.ts';

/** Of tables with AUTOINCREMENT. */
export async function lastIds(db: Kysely<Tables>): Promise<LastIds> {
  const { rows } = await sql<{ name: string; seq: number }>`SELECT name, seq FROM sqlite_sequence`.execute(
    db,
  );
  return new Map(rows.map(({ name, seq }) => [name, seq]));
}

export async function setLastIds(db: Kysely<Tables>, ids: LastIds): Promise<void> {
  for (const [table, id] of ids) {
    // Other tables have none.
    if (!['transitions', 'news', 'payloads'].includes(table)) continue;
    await sql`DELETE FROM sqlite_sequence WHERE name = ${table}`.execute(db);
    await sql`INSERT INTO sqlite_sequence (name, seq) VALUES (${table}, ${id})`.execute(db);
  }
}
