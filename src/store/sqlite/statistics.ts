import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';

/**
 * What SQLite's planner is to know of each index: its rows, then how many of them have the same first column, the same first two,
 * and so on (https://www.sqlite.org/fileformat2.html#stat1tab). It is a factory that has had a million workers, of which 20,000
 * live. Without statistics the planner takes an index by instance and queue for one of ten rows, and reads all workers that there ever
 * were; with those of `ANALYZE` the plans would change with the day. Plans are compared in test/store/worker-counts.test.ts.
 */
const statistics: Readonly<Record<'workers' | 'transitions', Readonly<Record<string, string>>>> = {
  workers: {
    workers_by_origin: '1000000 1000000 200000 10 1',
    workers_alive: '20000 20000 200 70 50 50 50 50',
    workers_alive_by_element: '20000 20000 200 50 20',
    workers_ended: '980000 980000 9800 3000 1',
    workers_unswept: '5000 5000 50 20 1',
    workers_swept: '950000 950000 240000 1 1',
    workers_to_kill: '100 100 10',
    workers_by_queue: '1000000 1000000 10000 1',
    workers_by_config: '1000000 10000',
    workers_missed_by_site: '1000 1000 10 10 1',
    workers_missed_by_element: '1000 1000 10 10 1',
    workers_by_payload: '100 100 2',
  },
  transitions: { transitions_by_worker: '4000000 4 1' },
};

/** Writes them where the file has others, as after an `ANALYZE` by hand: in an up-to-date database nothing is written. */
export async function keepStatistics(tx: Kysely<Tables>): Promise<void> {
  const wanted = Object.entries(statistics).flatMap(([table, indexes]) =>
    Object.entries(indexes).map(([index, stat]) => `${table} ${index} ${stat}`),
  );
  if (!(await hasTable(tx, 'sqlite_stat1')))
    // SQLite makes this table by itself alone.
    await sql`ANALYZE kysely_migration`.execute(tx);
  const { rows } = await sql<{
    line: string;
  }>`SELECT tbl || ' ' || idx || ' ' || stat AS line FROM sqlite_stat1`.execute(tx);
  const kept = new Set(rows.map(({ line }) => line));
  const hasSamples = await hasTable(tx, 'sqlite_stat4');
  const { rows: samples } = hasSamples
    ? await sql`SELECT 1 FROM sqlite_stat4 LIMIT 1`.execute(tx)
    : { rows: [] };
  const isSame = kept.size === wanted.length && wanted.every((line) => kept.has(line));
  if (isSame && samples.length === 0) return;
  await sql`DELETE FROM sqlite_stat1`.execute(tx);
  if (hasSamples) await sql`DELETE FROM sqlite_stat4`.execute(tx);
  for (const [table, indexes] of Object.entries(statistics))
    for (const [index, stat] of Object.entries(indexes))
      await sql`INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (${table}, ${index}, ${stat})`.execute(tx);
  // Connections read them as they open; this one is told.
  await sql`ANALYZE sqlite_schema`.execute(tx);
}

async function hasTable(tx: Kysely<Tables>, name: string): Promise<boolean> {
  const { rows } = await sql`SELECT 1 FROM sqlite_schema WHERE name = ${name}`.execute(tx);
  return rows.length > 0;
}
