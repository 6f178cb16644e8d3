import type Database from 'better-sqlite3';
import { messageOf } from '../../worker/errors.ts';
import { workerStatuses } from '../../worker/status.ts';
import { isDamage } from './errors.ts';
import { damagesOf, openReadOnly, type Version, versionOf } from './raw.ts';

/** Something that is wrong with a database. */
export interface Finding {
  /** Which check found it: a stable word. */
  readonly check: string;
  readonly message: string;
}

export interface CheckResult {
  readonly findings: readonly Finding[];
  /** Rows by table, and living workers; empty where they cannot be counted. */
  readonly counts: Readonly<Record<string, number>>;
}

interface Rule {
  readonly check: string;
  /** Gives `count`, and one of them as `example`. */
  readonly query: string;
  readonly message: (count: number, example: string | number) => string;
}

const quoted = workerStatuses.map((status) => `'${status}'`).join(', ');

/** Contradictions that no order of events can bring about. The queries read only columns that every version has. */
const rules: readonly Rule[] = [
  {
    check: 'transition-without-worker',
    query: `SELECT count(*) AS count, min(worker_id) AS example FROM transitions
      WHERE worker_id NOT IN (SELECT worker_id FROM workers)`,
    message: (count, example) => `transitions of workers that are not there: ${count}, such as ${example}'s`,
  },
  {
    check: 'worker-without-config',
    query: `SELECT count(*) AS count, min(worker_id) AS example FROM workers
      WHERE config_id NOT IN (SELECT config_id FROM configs)`,
    message: (count, example) => `workers whose configuration is gone: ${count}, such as ${example}`,
  },
  {
    check: 'worker-without-history',
    query: `SELECT count(*) AS count, min(worker_id) AS example FROM workers
      WHERE NOT EXISTS (SELECT 1 FROM transitions WHERE transitions.worker_id = workers.worker_id)`,
    message: (count, example) => `workers without any transition: ${count}, such as ${example}`,
  },
  {
    check: 'unknown-status',
    query: `SELECT count(*) AS count, min(status) AS example FROM workers WHERE status NOT IN (${quoted})`,
    message: (count, example) => `workers in a status that does not exist: ${count}, such as "${example}"`,
  },
  {
    check: 'living-with-end',
    query: `SELECT count(*) AS count, min(worker_id) AS example FROM workers
      WHERE status IN ('pending', 'submitted', 'idle', 'ready', 'running')
        AND (end_time IS NOT NULL OR swept_time IS NOT NULL)`,
    message: (count, example) => `living workers that have an end: ${count}, such as ${example}`,
  },
  {
    check: 'id-used-again',
    query: `SELECT count(*) AS count, min(worker_id) AS example FROM workers
      JOIN counters ON counters.instance = workers.instance AND counters.name = 'nextWorkerId'
        WHERE worker_id >= counters.value`,
    message: (count, example) => `workers whose ids would be given out again: ${count}, such as ${example}`,
  },
];

const countQueries: Readonly<Record<string, string>> = {
  workers: 'SELECT count(*) FROM workers',
  living: `SELECT count(*) FROM workers WHERE status IN ('pending', 'submitted', 'idle', 'ready', 'running')`,
  transitions: 'SELECT count(*) FROM transitions',
  configs: 'SELECT count(*) FROM configs',
  queues: 'SELECT count(*) FROM queues',
  orphans: 'SELECT count(*) FROM orphans',
};

/**
 * Checks a database file of whatever version, also beside a daemon: all is read from one moment.
 * @throws ThresherError `store-missing`, `store-readonly`: there is nothing that could be checked
 */
export function checkDatabase(file: string): CheckResult {
  const db = openReadOnly(file);
  try {
    db.exec('BEGIN');
    return checkOpen(db);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { findings: [{ check: 'integrity', message: messageOf(error) }], counts: {} };
  } finally {
    db.close();
  }
}

function checkOpen(db: Database.Database): CheckResult {
  const damages = damagesOf(db).map((message) => ({ check: 'integrity', message }));
  const version = versionOf(db);
  if (version === undefined) {
    const message = 'this is a database, but none of thresher';
    return { findings: [...damages, { check: 'not-thresher', message }], counts: {} };
  }
  const findings = [...damages, ...versionFindings(version)];
  // This version does not know the meaning of a newer version's tables.
  if (version.unknown.length > 0) return { findings, counts: {} };
  try {
    const broken = rules.flatMap(({ check, query, message }): Finding[] => {
      const { count, example } = db.prepare(query).get() as { count: number; example: string | number };
      return count === 0 ? [] : [{ check, message: message(count, example) }];
    });
    const counts = Object.fromEntries(
      Object.entries(countQueries).map(([name, query]) => [name, db.prepare(query).pluck().get() as number]),
    );
    return { findings: [...findings, ...broken], counts };
  } catch (error) {
    // The findings in a damaged file are worth more to an operator than the place where reading ended.
    if (damages.length === 0 || !isDamage(error)) throw error;
    return { findings, counts: {} };
  }
}

function versionFindings({ unknown, pending }: Version): Finding[] {
  if (unknown.length > 0) {
    const message = `it was written by a newer version of thresher: it has ${unknown.join(', ')}`;
    return [{ check: 'newer', message }];
  }
  if (pending.length === 0) return [];
  const message = `it was not brought up to date yet: the daemon of this version does that at its start (${pending.join(', ')})`;
  return [{ check: 'migration-pending', message }];
}
