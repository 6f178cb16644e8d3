import pg from 'pg';
import { ThresherError } from '../../worker/errors.ts';

/** The name of a file of the server's log begins with the number of the history (timeline). */
const query = `SELECT (SELECT system_identifier FROM pg_control_system())::text || ' ' ||
  left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS history`;

/**
 * The history of commits that a server writes. It begins a new one when it is promoted, or a backup is restored: then the last
 * commits of the former one may be missing. Empty where the server does not say: one whose storage is not its own has no such log.
 */
export async function historyOf(client: pg.Client): Promise<string> {
  try {
    const { rows } = await client.query<{ history: string }>(query);
    return rows[0]?.history ?? '';
  } catch (error) {
    if (error instanceof pg.DatabaseError) return '';
    throw error;
  }
}

export function promoted(name: string): ThresherError {
  const message = `${name} leads to a server that was promoted since: the last commits may be missing there, so the daemon has to start anew`;
  return new ThresherError('store-promoted', message, { database: name });
}
