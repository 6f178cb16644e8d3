import { type Kysely, sql } from 'kysely';
import type { WorkerStatus } from '../worker/status.ts';
import { insertRows } from './rows-at-once.ts';
import { inTransaction } from './transaction.ts';
import type { Tables } from './tables.ts';

/** One change of one worker. What is absent stays as it is. */
export interface WorkerChange {
  readonly workerId: number;
  /** The status it must still have; otherwise the change is refused. */
  readonly from: WorkerStatus;
  readonly to: WorkerStatus;
  readonly at: number;
  readonly source: string;
  readonly nativeStatus?: string;
  readonly exitCode?: number;
  /** null forgets an error of an earlier attempt. */
  readonly error?: { readonly code: string; readonly message: string } | null;
  readonly node?: string;
  readonly submitTime?: number;
  readonly startTime?: number;
  readonly endTime?: number;
  /** JSON texts. */
  readonly handle?: string;
  readonly batchId?: string;
  readonly detail?: string;
}

/**
 * Writes all changes in one transaction and one statement, with their history.
 * @returns the ids whose status was not `from` any more; these are unchanged.
 */
export async function applyChanges(db: Kysely<Tables>, changes: readonly WorkerChange[]): Promise<number[]> {
  if (changes.length === 0) return [];
  return inTransaction(db, async (tx) => {
    const rows = JSON.stringify(changes.map(toTuple));
    const updated = await sql<{ worker_id: number }>`
        UPDATE workers SET
          status = o.value ->> 2,
          modification_time = o.value ->> 3,
          native_status = coalesce(o.value ->> 4, native_status),
          native_exit_code = coalesce(o.value ->> 5, native_exit_code),
          error_code = CASE o.value ->> 6 WHEN 1 THEN o.value ->> 7 ELSE error_code END,
          diag_message = CASE o.value ->> 6 WHEN 1 THEN o.value ->> 8 ELSE diag_message END,
          node_id = coalesce(o.value ->> 9, node_id),
          submit_time = coalesce(o.value ->> 10, submit_time),
          start_time = coalesce(o.value ->> 11, start_time),
          end_time = coalesce(o.value ->> 12, end_time),
          handle = coalesce(o.value ->> 13, handle),
          batch_id = coalesce(o.value ->> 14, batch_id),
          detail = coalesce(o.value ->> 15, detail)
        FROM json_each(${rows}) AS o
        WHERE workers.worker_id = o.value ->> 0 AND workers.status = o.value ->> 1
        RETURNING workers.worker_id`.execute(tx);
    const done = new Set(updated.rows.map((row) => row.worker_id));
    await writeHistory(
      tx,
      changes.filter((change) => done.has(change.workerId) && change.from !== change.to),
    );
    return changes.map((change) => change.workerId).filter((id) => !done.has(id));
  });
}

function toTuple(change: WorkerChange): unknown[] {
  return [
    change.workerId,
    change.from,
    change.to,
    change.at,
    change.nativeStatus ?? null,
    change.exitCode ?? null,
    change.error === undefined ? 0 : 1,
    change.error?.code ?? null,
    change.error?.message ?? null,
    change.node ?? null,
    change.submitTime ?? null,
    change.startTime ?? null,
    change.endTime ?? null,
    change.handle ?? null,
    change.batchId ?? null,
    change.detail ?? null,
  ];
}

function writeHistory(tx: Kysely<Tables>, changes: readonly WorkerChange[]): Promise<void> {
  const rows = changes.map((change) => ({
    worker_id: change.workerId,
    at: change.at,
    from_status: change.from,
    to_status: change.to,
    source: change.source,
    native_status: change.nativeStatus ?? null,
    message: change.error?.message ?? null,
  }));
  return insertRows(tx, 'transitions', rows);
}
