import type { Kysely, Transaction } from 'kysely';
import type { Tables } from './tables.ts';

/**
 * Runs `work` in one transaction. @throws what `work` threw: SQLite rolls back by itself when a disk is full, and the
 * rollback that follows then fails with an error that says nothing.
 */
export async function inTransaction<T>(
  db: Kysely<Tables>,
  work: (tx: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  let cause: { readonly error: unknown } | undefined;
  try {
    return await db.transaction().execute(async (tx) => {
      try {
        return await work(tx);
      } catch (error) {
        cause = { error };
        throw error;
      }
    });
  } catch (error) {
    throw cause === undefined ? error : cause.error;
  }
}
