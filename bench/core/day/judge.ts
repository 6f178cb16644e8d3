import type { PostgresqlServer } from '../../../test/support/postgresql.ts';
import { finalStatuses } from '../../../src/worker/status.ts';
import { hasEnded, type Record } from './simulated.ts';

/** The rows against what the simulator saw, once the replay is over and all workers have ended. */
export interface Judgement {
  /** Rows of workers, and worker ids that the simulator started. */
  readonly rows: number;
  readonly started: number;
  /** Worker ids for which the simulator started more than one worker. */
  readonly doubled: number;
  /** Workers of the simulator without a row. */
  readonly withoutRow: number;
  /** Rows that are alive, though their worker has ended or never was. */
  readonly unnoticed: number;
  /** Workers of the simulator that live on. */
  readonly alive: number;
  /** Rows with another end than their worker. */
  readonly wrongEnd: number;
  /** Rows that have ended without any worker. */
  readonly neverStarted: number;
  /** Ids of some of these, for whoever looks into it. */
  readonly examples: Readonly<{ [Kind in string]: readonly number[] }>;
}

/** Rows that are read at once. */
const atOnce = 50_000;
const shown = 10;

export async function judge(
  server: PostgresqlServer,
  database: string,
  records: readonly Record[],
): Promise<Judgement> {
  const statuses = await statusesOf(server, database);
  const byId = new Map(records.map((record) => [record.workerId, record]));
  const isOver = (status: string | undefined) =>
    (finalStatuses as readonly (string | undefined)[]).includes(status);
  const ids = (of: readonly Record[]) => of.map(({ workerId }) => workerId);
  const doubled = ids(records.filter(({ starts }) => starts > 1));
  const withoutRow = ids(records.filter(({ workerId }) => !statuses.has(workerId)));
  const alive = ids(records.filter(({ state }) => !hasEnded(state)));
  const wrongEnd = ids(
    records.filter(({ workerId, state }) => {
      const status = statuses.get(workerId);
      return isOver(status) && status !== state;
    }),
  );
  const unnoticed = [...statuses].flatMap(([id, status]) => (isOver(status) ? [] : [id]));
  const neverStarted = [...statuses].flatMap(([id, status]) => (isOver(status) && !byId.has(id) ? [id] : []));
  const all = { doubled, withoutRow, unnoticed, alive, wrongEnd, neverStarted };
  return {
    rows: statuses.size,
    started: byId.size,
    doubled: doubled.length,
    withoutRow: withoutRow.length,
    unnoticed: unnoticed.length,
    alive: alive.length,
    wrongEnd: wrongEnd.length,
    neverStarted: neverStarted.length,
    examples: Object.fromEntries(
      Object.entries(all).flatMap(([kind, some]) =>
        some.length === 0 ? [] : [[kind, some.slice(0, shown)]],
      ),
    ),
  };
}

/** The status of every row, by worker id. */
async function statusesOf(server: PostgresqlServer, database: string): Promise<ReadonlyMap<number, string>> {
  const statuses = new Map<number, string>();
  const client = await server.client(database);
  try {
    for (let last = 0; ;) {
      const { rows } = await client.query<{ id: number; status: string }>(
        `SELECT worker_id AS id, status FROM workers WHERE worker_id > $1 ORDER BY worker_id LIMIT ${atOnce}`,
        [last],
      );
      for (const { id, status } of rows) statuses.set(id, status);
      const end = rows.at(-1);
      if (end === undefined) return statuses;
      last = end.id;
    }
  } finally {
    await client.end();
  }
}
