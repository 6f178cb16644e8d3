import { sql } from 'kysely';
import type { ConfigPlace } from '../config-places.ts';
import { alive, ended } from './conditions.ts';
import type { FactoryRows } from './open-database.ts';

const unswept = sql`swept_time IS NULL AND ${ended}`;

/** Every (queue, configuration) that still has living or unswept workers, and where these are. */
export async function configsInUse({ db, instance }: FactoryRows): Promise<ConfigPlace[]> {
  const rows = await sql<ConfigPlace>`
    SELECT queue, config_id AS "configId", placement FROM workers WHERE instance = ${instance} AND ${alive}
    UNION
    SELECT queue, config_id, placement FROM workers WHERE instance = ${instance} AND ${unswept}`.execute(db);
  return rows.rows;
}

/** Gives another configuration to the living and unswept workers of one at one place; @returns their ids. */
export async function moveConfig(
  { db, instance }: FactoryRows,
  { queue, configId, placement }: ConfigPlace,
  to: number,
): Promise<number[]> {
  const moved: number[] = [];
  for (const which of [sql`${alive}`, unswept]) {
    const { rows } = await sql<{ worker_id: number }>`
      UPDATE workers SET config_id = ${to} WHERE instance = ${instance} AND queue = ${queue}
        AND config_id = ${configId} AND placement = ${placement} AND ${which} RETURNING worker_id`.execute(
      db,
    );
    for (const { worker_id: id } of rows) moved.push(id);
  }
  return moved;
}
