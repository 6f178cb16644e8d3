import { type Kysely, type RawBuilder, sql } from 'kysely';
import { isCounted } from '../../worker/counted.ts';
import type { WorkerStatus } from '../../worker/status.ts';
import type { Worker, WorkerToStart } from '../../worker/worker.ts';
import type { RowSet } from '../dialect.ts';
import { toNewRow } from '../rows.ts';
import type { Tables } from '../tables.ts';
import type { Adopted } from '../workers.ts';
import { insertion, insertRows } from './insert-rows.ts';
import { isIn } from './conditions.ts';
import type { BesideWorkers, NewsWriter } from './news-writer.ts';
import type { FactoryRows } from './open-database.ts';
import { inTransaction } from './transaction.ts';

/** How new rows come into being. */
interface Recording {
  readonly status: WorkerStatus;
  readonly at: number;
  /** As the history names it. */
  readonly source: string;
}

/** An origin that has a worker among the rows keeps it. */
const once = sql`ON CONFLICT (instance, origin_kind, origin_uid, origin_index) DO NOTHING RETURNING worker_id`;

const oneOf = (rows: FactoryRows) => (added: RowSet<string>) =>
  sql`WHERE NOT EXISTS (SELECT 1 FROM spent_origins AS spent WHERE spent.instance = ${rows.instance}
      AND spent.origin_kind = ${added.column('origin_kind')} AND spent.origin_uid = ${added.column('origin_uid')}
      AND spent.origin_index = ${added.column('origin_index')})
    ${once}`;
/** A worker that lives is recorded, whatever became of its origin. */
const alive = () => sql`WHERE true ${once}`;

/** Records intents whose origins are free. @returns their ids */
export async function insertIntents(
  rows: FactoryRows,
  { news, payloads }: BesideWorkers,
  workers: readonly WorkerToStart[],
  recording: Recording,
): Promise<ReadonlySet<number>> {
  const { recorded, kinds } = await inTransaction(rows.db, async (tx) => {
    const added = await record(tx, rows, news, workers, { ...recording, which: oneOf(rows) });
    const kept = workers.filter(({ workerId }) => added.recorded.has(workerId));
    await payloads.write(tx, kept);
    return added;
  });
  news.committed(kinds);
  return recorded;
}

/**
 * Records workers that live without a row, and asks for the end of those whose origin was ended: one that was merely dropped lets its
 * worker live. Their payloads are not taken from marks: a mark names a payload and never holds one.
 */
export async function insertAdopted(
  rows: FactoryRows,
  { news }: Pick<BesideWorkers, 'news'>,
  workers: readonly Worker[],
  recording: Recording,
): Promise<Adopted> {
  const { recorded, kinds, ended } = await inTransaction(rows.db, async (tx) => {
    const added = await record(tx, rows, news, workers, { ...recording, which: alive });
    const named = workers.filter((worker) => !isCounted(worker) && added.recorded.has(worker.workerId));
    const ids = named.map(({ workerId }) => workerId);
    return { ...added, ended: await endWithdrawn(tx, rows, ids, recording.at) };
  });
  news.committed(kinds);
  return { recorded, ended };
}

async function record(
  tx: Kysely<Tables>,
  rows: FactoryRows,
  news: NewsWriter,
  workers: readonly Worker[],
  {
    status,
    at,
    source,
    which,
  }: Recording & { readonly which: (added: RowSet<string>) => RawBuilder<unknown> },
): Promise<{ readonly recorded: ReadonlySet<number>; readonly kinds: ReadonlySet<string> }> {
  const { dialect, instance } = rows;
  const all = workers.map((worker) => toNewRow(worker, instance, status, at));
  const recorded = new Set<number>();
  // A counted worker's origin is its own id: there is nothing to ask, and two of one origin are a mistake of the program.
  if (workers.every(isCounted)) {
    await insertRows(tx, dialect, 'workers', all);
    for (const { worker_id } of all) recorded.add(worker_id);
  } else {
    const result = await insertion<'workers', { worker_id: number }>(dialect, 'workers', all, which).execute(
      tx,
    );
    for (const { worker_id } of result.rows) recorded.add(worker_id);
  }
  const kept = all.filter(({ worker_id }) => recorded.has(worker_id));
  const history = kept.map(({ worker_id }) => ({ worker_id, at, to_status: status, source }));
  await insertRows(tx, dialect, 'transitions', history);
  return { recorded, kinds: await news.write(tx, 'added', kept) };
}

/** Asks for the end of those among these workers whose origin was ended; @returns their ids. */
async function endWithdrawn(
  tx: Kysely<Tables>,
  { dialect, instance }: FactoryRows,
  workerIds: readonly number[],
  at: number,
): Promise<ReadonlySet<number>> {
  if (workerIds.length === 0) return new Set();
  const result = await sql<{ worker_id: number }>`
    UPDATE workers SET kill_time = ${at}, kill_reason = 'its request was withdrawn'
    WHERE ${isIn(dialect, workerIds)} AND EXISTS (SELECT 1 FROM spent_origins AS spent
      WHERE spent.instance = ${instance} AND spent.origin_kind = workers.origin_kind
        AND spent.origin_uid = workers.origin_uid AND spent.origin_index = workers.origin_index
        AND spent.status = 'withdrawn')
    RETURNING worker_id`.execute(tx);
  return new Set(result.rows.map(({ worker_id }) => worker_id));
}
