import { highestOwnId } from '../../worker/identity.ts';
import { workerStatuses } from '../../worker/status.ts';

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
export const rules: readonly Rule[] = [
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
        WHERE worker_id >= counters.value AND worker_id <= ${highestOwnId}`,
    message: (count, example) => `workers whose ids would be given out again: ${count}, such as ${example}`,
  },
];

export const countQueries: Readonly<Record<string, string>> = {
  workers: 'SELECT count(*) AS count FROM workers',
  living: `SELECT count(*) AS count FROM workers WHERE status IN ('pending', 'submitted', 'idle', 'ready', 'running')`,
  transitions: 'SELECT count(*) AS count FROM transitions',
  configs: 'SELECT count(*) AS count FROM configs',
  queues: 'SELECT count(*) AS count FROM queues',
  orphans: 'SELECT count(*) AS count FROM orphans',
};
