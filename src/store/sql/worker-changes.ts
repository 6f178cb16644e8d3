import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Dialect, RowColumn } from '../dialect.ts';
import { type Tables, workerColumns, type WorkersTable } from '../tables.ts';
import type { WorkerChange } from '../worker-changes.ts';
import { factColumns, type WorkerFacts } from '../worker-facts.ts';
import type { FactoryRows } from './open-database.ts';
import { insertRows } from './insert-rows.ts';
import type { BesideWorkers, Written } from './news-writer.ts';
import { inTransaction } from './transaction.ts';

type Value = string | number | null | undefined;

/** Columns of workers that a change may bring, beside status and error: each keeps its value where the change has none. */
const brought: Readonly<Partial<Record<keyof WorkersTable, (change: WorkerChange) => Value>>> = {
  ...Object.fromEntries(
    Object.entries(factColumns).map(([fact, column]) => [
      column,
      (change: WorkerChange) => change[fact as keyof WorkerFacts],
    ]),
  ),
  handle: (change) => change.handle,
  batch_id: (change) => change.batchId,
  detail: (change) => change.detail,
};

/** The values that the statement below reads from each change. Both sides are built from this table. */
const columns = {
  worker_id: integer(({ workerId }) => workerId),
  from_status: text(({ from }) => from),
  to_status: text(({ to }) => to),
  at: integer(({ at }) => at),
  /** 1: the error is replaced; null is a value of it, too. */
  has_error: integer(({ error }) => (error === undefined ? 0 : 1)),
  error_code: text(({ error }) => error?.code),
  diag_message: text(({ error }) => error?.message),
  ...Object.fromEntries(
    Object.entries(brought).map(([column, of]) => [
      column,
      { type: workerColumns[column as keyof WorkersTable].type, of },
    ]),
  ),
};

/**
 * Writes all changes in one transaction and one statement, with their history, their news, and the end of payloads that no
 * worker needs any more.
 * @returns the ids whose status was not `from` any more; these are unchanged.
 */
export async function applyChanges(
  { db, dialect }: FactoryRows,
  { news, payloads }: BesideWorkers,
  changes: readonly WorkerChange[],
): Promise<number[]> {
  if (changes.length === 0) return [];
  const { refused, kinds } = await inTransaction(db, async (tx) => {
    const change = dialect.rows<WorkerChange, string>('change', columns, changes);
    const own = (column: string) => sql.raw(`workers.${column}`);
    const setError = (column: string) =>
      sql`CASE ${change.column('has_error')} WHEN 1 THEN ${change.column(column)} ELSE ${own(column)} END`;
    const set: Readonly<Record<string, RawBuilder<unknown>>> = {
      status: change.column('to_status'),
      modification_time: change.column('at'),
      error_code: setError('error_code'),
      diag_message: setError('diag_message'),
      ...Object.fromEntries(
        Object.keys(brought).map((column) => [
          column,
          sql`coalesce(${change.column(column)}, ${own(column)})`,
        ]),
      ),
    };
    const assignments = Object.entries(set).map(([column, value]) => sql`${sql.raw(column)} = ${value}`);
    const returned = news.isWanted ? sql`workers.worker_id, workers.origin_kind` : sql`workers.worker_id`;
    const updated = await sql<Written>`
        UPDATE workers SET ${sql.join(assignments)}
        FROM ${change.from}
        WHERE workers.worker_id = ${change.column('worker_id')} AND workers.status = ${change.column('from_status')}
        RETURNING ${returned}`.execute(tx);
    const done = new Set(updated.rows.map((row) => row.worker_id));
    await writeHistory(
      tx,
      dialect,
      changes.filter((one) => done.has(one.workerId) && one.from !== one.to),
    );
    await payloads.wipe(tx, payloadsLeft(changes.filter((one) => done.has(one.workerId))));
    return {
      refused: changes.map(({ workerId }) => workerId).filter((id) => !done.has(id)),
      kinds: await news.write(tx, 'changed', news.isWanted ? updated.rows : []),
    };
  });
  news.committed(kinds);
  return refused;
}

/** Payloads that a worker may have needed up to now. */
function payloadsLeft(changes: readonly WorkerChange[]): ReadonlySet<string> {
  return new Set(changes.flatMap(({ payloadId }) => payloadId ?? []));
}

function integer(of: RowColumn<WorkerChange>['of']): RowColumn<WorkerChange> {
  return { type: 'integer', of };
}

function text(of: RowColumn<WorkerChange>['of']): RowColumn<WorkerChange> {
  return { type: 'text', of };
}

function writeHistory(tx: Kysely<Tables>, dialect: Dialect, changes: readonly WorkerChange[]): Promise<void> {
  const rows = changes.map((change) => ({
    worker_id: change.workerId,
    at: change.at,
    from_status: change.from,
    to_status: change.to,
    source: change.source,
    native_status: change.nativeStatus ?? null,
    message: change.error?.message ?? null,
  }));
  return insertRows(tx, dialect, 'transitions', rows);
}
