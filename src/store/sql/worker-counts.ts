import { sql } from 'kysely';
import { endedUnseen } from '../../worker/ended-unseen.ts';
import type { FinalStatus } from '../../worker/status.ts';
import type { EndedWorker, MissedScope, QueueCount } from '../workers.ts';
import { alive, ended, endedAt, started } from './conditions.ts';
import type { FactoryRows } from './open-database.ts';

/** All workers of all queues by status. Each half is read from an index alone: the table itself is far wider. */
export async function countAll({ db, instance }: FactoryRows): Promise<QueueCount[]> {
  const half = (which: typeof alive) => sql`
    SELECT queue, status, count(*) AS workers FROM workers
    WHERE instance = ${instance} AND ${which} GROUP BY queue, status`;
  return (await sql<QueueCount>`${half(alive)} UNION ALL ${half(ended)}`.execute(db)).rows;
}

/** The workers of a queue that ended last in one of these statuses, newest end first: the last of each, merged. */
export async function lastEnded(
  { db, instance }: FactoryRows,
  queue: string,
  limit: number,
  statuses: readonly FinalStatus[],
): Promise<EndedWorker[]> {
  const last = (status: FinalStatus) => sql`
    SELECT * FROM (
      SELECT worker_id AS "workerId", status, submit_time AS "submitTime", ${started} AS "startTime",
        ${endedAt} AS "endTime"
      FROM workers WHERE instance = ${instance} AND queue = ${queue} AND status = ${status} AND ${ended}
      ORDER BY ${endedAt} DESC, worker_id DESC LIMIT ${limit}
    ) AS last`;
  const all = sql.join(statuses.map(last), sql` UNION ALL `);
  const result =
    await sql<EndedWorker>`${all} ORDER BY "endTime" DESC, "workerId" DESC LIMIT ${limit}`.execute(db);
  return result.rows;
}

/** How many of these were missed at or after `since`; without those of which nothing says when they ended. */
export async function missedSince(
  { db, instance }: FactoryRows,
  scope: MissedScope,
  since: number,
): Promise<number> {
  const result = await sql<{ workers: number }>`
    SELECT count(*) AS workers FROM workers
    WHERE instance = ${instance} AND ${whose(scope)} AND status = 'missed' AND ${endedAt} >= ${since}
      AND error_code IS DISTINCT FROM ${endedUnseen.code}`.execute(db);
  return result.rows[0]?.workers ?? 0;
}

/** By a queue through workers_ended, whose condition has to be said; the other two have indexes of their own. */
function whose(scope: MissedScope) {
  if ('queue' in scope) return sql`queue = ${scope.queue} AND ${ended}`;
  if ('computingSite' in scope) return sql`computing_site = ${scope.computingSite}`;
  return sql`computing_element = ${scope.computingElement}`;
}
