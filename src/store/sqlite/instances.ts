import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { aliveWords } from '../sql/conditions.ts';
import { storeError } from './errors.ts';

/** How long a transaction of another process is waited for, ms. */
const busyTimeout = 10_000;

/** A factory that has used a database. */
export interface Instance {
  readonly id: string;
  readonly living: number;
}

/** Counts the living alone: a factory may have millions of ended workers. */
export const instancesQuery = `
  SELECT instance AS id, count(worker_id) AS living
  FROM (SELECT DISTINCT instance FROM counters) AS known
  LEFT JOIN (
    SELECT instance, worker_id FROM workers WHERE ${aliveWords}
  ) AS alive USING (instance)
  GROUP BY instance ORDER BY instance`;

/**
 * The factories that have used this database; empty when there is none, or nothing in it.
 * @throws ThresherError as `openBeside`: a database that cannot be read is no empty one
 */
export function instancesIn(file: string): Instance[] {
  if (!existsSync(file)) return [];
  let db: Database.Database | undefined;
  try {
    db = new Database(file, { readonly: true, timeout: busyTimeout });
    const tables = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'counters'").all();
    // Nothing was put into it yet.
    if (tables.length === 0) return [];
    return db.prepare(instancesQuery).all() as Instance[];
  } catch (error) {
    throw storeError(error, file);
  } finally {
    db?.close();
  }
}
