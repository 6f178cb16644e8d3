import { sql } from 'kysely';

/** The living, in SQL. Written out, since SQLite uses a partial index only for the very words of its condition. */
export const alive = sql.raw(`status IN ('pending', 'submitted', 'idle', 'ready', 'running')`);
export const ended = sql.raw(`status NOT IN ('pending', 'submitted', 'idle', 'ready', 'running')`);

/** Ids as one bound value, however many. */
export function isIn(workerIds: readonly number[]) {
  return sql<boolean>`worker_id IN (SELECT value FROM json_each(${JSON.stringify(workerIds)}))`;
}
