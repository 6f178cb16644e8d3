import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';

/**
 * Runs `work` in one transaction. @throws what went wrong first: on a full disk SQLite fails in the commit and rolls back
 * by itself, and Kysely's own transactions would then show the failure of a second rollback, which says nothing.
 */
export function inTransaction<T>(db: Kysely<Tables>, work: (tx: Kysely<Tables>) => Promise<T>): Promise<T> {
  return db.connection().execute(async (tx) => {
    await sql`BEGIN`.execute(tx);
    try {
      const result = await work(tx);
      const committed = await sql<{ command?: string }>`COMMIT`.execute(tx);
      // PostgreSQL answers so where a statement failed and `work` went on all the same.
      if (committed.rows[0]?.command === 'ROLLBACK')
        throw new Error('the database took the transaction back');
      return result;
    } catch (error) {
      await sql`ROLLBACK`.execute(tx).catch(() => undefined);
      throw error;
    }
  });
}
