import { sql } from 'kysely';
import type { Dialect } from '../dialect.ts';

/** The living, in SQL. Written out, since SQLite uses a partial index only for the very words of its condition. */
export const aliveWords = `status IN ('pending', 'submitted', 'idle', 'ready', 'running')`;
export const alive = sql.raw(aliveWords);
export const ended = sql.raw(`status NOT IN ('pending', 'submitted', 'idle', 'ready', 'running')`);

/** When a worker ended: without an end of its own the time of its last change counts. In these words the indexes have it. */
export const endedAt = sql.raw(`coalesce(end_time, modification_time)`);

/** Ids as one bound value, however many. */
export function isIn(dialect: Dialect, workerIds: readonly number[]) {
  return sql<boolean>`worker_id IN (${dialect.values(workerIds, 'integer')})`;
}

/** When a worker began to run: as the backend says, or else when it was first seen running. */
export const started = sql.raw(`coalesce(start_time,
  (SELECT min(at) FROM transitions WHERE worker_id = workers.worker_id AND to_status = 'running'))`);
