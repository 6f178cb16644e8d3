import { type Kysely, sql } from 'kysely';
import { endedUnseen } from '../worker/ended-unseen.ts';
import type { FinalStatus, WorkerStatus } from '../worker/status.ts';
import { alive, ended, endedAt, started } from './conditions.ts';
import type { Tables } from './tables.ts';

export interface QueueCount {
  readonly queue: string;
  readonly status: WorkerStatus;
  readonly workers: number;
}

/** An ended worker, as far as its times tell what kind of end it was. Times are ms UTC. */
export interface EndedWorker {
  readonly workerId: number;
  readonly status: FinalStatus;
  readonly submitTime: number | null;
  readonly startTime: number | null;
  /** Without an end of its own, the time of its last change. */
  readonly endTime: number;
}

/** Whose missed workers are counted. */
export type MissedScope =
  { readonly queue: string } | { readonly computingSite: string } | { readonly computingElement: string };

/** All workers of all queues by status. Each half is read from an index alone: the table itself is far wider. */
export async function countAll(db: Kysely<Tables>, instance: string): Promise<QueueCount[]> {
  const half = (which: typeof alive) => sql`
    SELECT queue, status, count(*) AS workers FROM workers
    WHERE instance = ${instance} AND ${which} GROUP BY queue, status`;
  return (await sql<QueueCount>`${half(alive)} UNION ALL ${half(ended)}`.execute(db)).rows;
}

/** The workers of a queue that ended last in one of these statuses, newest end first: the last of each, merged. */
export async function lastEnded(
  db: Kysely<Tables>,
  instance: string,
  queue: string,
  limit: number,
  statuses: readonly FinalStatus[],
): Promise<EndedWorker[]> {
  const last = (status: FinalStatus) => sql`
    SELECT * FROM (
      SELECT worker_id AS workerId, status, submit_time AS submitTime, ${started} AS startTime, ${endedAt} AS endTime
      FROM workers WHERE instance = ${instance} AND queue = ${queue} AND status = ${status} AND ${ended}
      ORDER BY ${endedAt} DESC, worker_id DESC LIMIT ${limit}
    )`;
  const all = sql.join(statuses.map(last), sql` UNION ALL `);
  const result = await sql<EndedWorker>`${all} ORDER BY endTime DESC, workerId DESC LIMIT ${limit}`.execute(
    db,
  );
  return result.rows;
}

/** How many of these were missed at or after `since`; without those of which nothing says when they ended. */
export async function missedSince(
  db: Kysely<Tables>,
  instance: string,
  scope: MissedScope,
  since: number,
): Promise<number> {
  const result = await sql<{ workers: number }>`
    SELECT count(*) AS workers FROM workers
    WHERE instance = ${instance} AND ${whose(scope)} AND status = 'missed' AND ${endedAt} >= ${since}
      AND error_code IS NOT ${endedUnseen.code}`.execute(db);
  return result.rows[0]?.workers ?? 0;
}

/** By a queue through workers_ended, whose condition has to be said; the other two have indexes of their own. */
function whose(scope: MissedScope) {
  if ('queue' in scope) return sql`queue = ${scope.queue} AND ${ended}`;
  if ('computingSite' in scope) return sql`computing_site = ${scope.computingSite}`;
  return sql`computing_element = ${scope.computingElement}`;
}
