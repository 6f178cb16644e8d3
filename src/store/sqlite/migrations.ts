import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const core = [
  `CREATE TABLE workers (
    worker_id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL,
    name TEXT NOT NULL,
    queue TEXT NOT NULL,
    computing_site TEXT NOT NULL,
    origin_kind TEXT NOT NULL,
    origin_uid TEXT NOT NULL,
    origin_index INTEGER NOT NULL,
    placement TEXT NOT NULL,
    config_id INTEGER NOT NULL,
    status TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    batch_id TEXT,
    handle TEXT,
    n_core INTEGER NOT NULL,
    min_ram_count INTEGER NOT NULL,
    max_disk_count INTEGER NOT NULL,
    max_walltime INTEGER NOT NULL,
    resource_type TEXT NOT NULL,
    job_type TEXT NOT NULL,
    pilot_type TEXT NOT NULL,
    prod_source_label TEXT NOT NULL,
    access_point TEXT,
    native_status TEXT,
    native_exit_code INTEGER,
    error_code TEXT,
    diag_message TEXT,
    node_id TEXT,
    detail TEXT,
    creation_time INTEGER NOT NULL,
    submit_time INTEGER,
    start_time INTEGER,
    end_time INTEGER,
    modification_time INTEGER NOT NULL,
    kill_time INTEGER,
    kill_reason TEXT,
    swept_time INTEGER
  )`,
  // A request for a worker never gets two.
  `CREATE UNIQUE INDEX workers_by_origin ON workers (instance, origin_kind, origin_uid, origin_index)`,
  // Counting the living of a queue reads this index alone; ended workers, the great majority, are not in it.
  `CREATE INDEX workers_alive ON workers (instance, queue, status, n_core, min_ram_count)
    WHERE status IN ('pending', 'submitted', 'idle', 'ready', 'running')`,
  // The work of a sweeper: ended, and still there.
  `CREATE INDEX workers_unswept ON workers (instance, queue, status, end_time)
    WHERE swept_time IS NULL AND status NOT IN ('pending', 'submitted', 'idle', 'ready', 'running')`,
  `CREATE INDEX workers_to_kill ON workers (instance, queue)
    WHERE kill_time IS NOT NULL AND status IN ('pending', 'submitted', 'idle', 'ready', 'running')`,
  `CREATE TABLE transitions (
    id INTEGER PRIMARY KEY,
    worker_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    from_status TEXT,
    to_status TEXT NOT NULL,
    source TEXT NOT NULL,
    native_status TEXT,
    message TEXT
  )`,
  `CREATE INDEX transitions_by_worker ON transitions (worker_id, id)`,
  `CREATE TABLE configs (
    config_id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL,
    queue TEXT NOT NULL,
    digest TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    creation_time INTEGER NOT NULL,
    UNIQUE (instance, queue, digest)
  )`,
  `CREATE TABLE queues (
    instance TEXT NOT NULL,
    queue TEXT NOT NULL,
    control TEXT,
    control_reason TEXT,
    control_time INTEGER,
    queue_status TEXT NOT NULL,
    limits TEXT NOT NULL,
    reasons TEXT NOT NULL,
    report_time INTEGER,
    PRIMARY KEY (instance, queue)
  )`,
  `CREATE TABLE commands (
    id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL,
    kind TEXT NOT NULL,
    params TEXT NOT NULL,
    creation_time INTEGER NOT NULL,
    taken_time INTEGER,
    result TEXT
  )`,
  `CREATE INDEX commands_open ON commands (instance, id) WHERE result IS NULL`,
  `CREATE TABLE orphans (
    instance TEXT NOT NULL,
    connection TEXT NOT NULL,
    place TEXT NOT NULL,
    worker_id INTEGER,
    queue TEXT,
    why TEXT NOT NULL,
    seen_time INTEGER NOT NULL,
    PRIMARY KEY (instance, connection, place)
  )`,
  `CREATE TABLE counters (
    instance TEXT NOT NULL,
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (instance, name)
  )`,
];

const retention = [
  // Limits count the living by what they are, too.
  `DROP INDEX workers_alive`,
  `CREATE INDEX workers_alive
    ON workers (instance, queue, status, resource_type, job_type, n_core, min_ram_count)
    WHERE status IN ('pending', 'submitted', 'idle', 'ready', 'running')`,
  // Which of a site's computing elements took it, where the backend knows.
  `ALTER TABLE workers ADD COLUMN computing_element TEXT`,
  // The other half of workers_alive: counts by status, the last ends of a queue, and its missed ones in a window.
  `CREATE INDEX workers_ended ON workers (instance, queue, status, coalesce(end_time, modification_time))
    WHERE status NOT IN ('pending', 'submitted', 'idle', 'ready', 'running')`,
  // The newest of a queue, for lists and for who asks when the last was made.
  `CREATE INDEX workers_by_queue ON workers (instance, queue, worker_id)`,
  // Rows that may be deleted: ended, and nothing of them left.
  `CREATE INDEX workers_swept ON workers (instance, status, coalesce(end_time, modification_time), swept_time)
    WHERE swept_time IS NOT NULL`,
  `CREATE INDEX workers_missed_by_site
    ON workers (instance, computing_site, status, coalesce(end_time, modification_time)) WHERE status = 'missed'`,
  `CREATE INDEX workers_missed_by_element
    ON workers (instance, computing_element, status, coalesce(end_time, modification_time))
    WHERE status = 'missed' AND computing_element IS NOT NULL`,
  `CREATE INDEX workers_by_config ON workers (config_id)`,
  // When a daemon last took it up: one that came back after a day must not be deleted as old.
  `ALTER TABLE configs ADD COLUMN used_time INTEGER NOT NULL DEFAULT 0`,
  `UPDATE configs SET used_time = creation_time`,
  // A reader that follows the transitions remembers the last id: with the last rows deleted it must not come again.
  `ALTER TABLE transitions RENAME TO transitions_before`,
  `CREATE TABLE transitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    worker_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    from_status TEXT,
    to_status TEXT NOT NULL,
    source TEXT NOT NULL,
    native_status TEXT,
    message TEXT
  )`,
  `INSERT INTO transitions (id, worker_id, at, from_status, to_status, source, native_status, message)
    SELECT id, worker_id, at, from_status, to_status, source, native_status, message FROM transitions_before`,
  `DROP TABLE transitions_before`,
  `CREATE INDEX transitions_by_worker ON transitions (worker_id, id)`,
];

const computingElement = [
  // Metrics count the living at each computing element from this index alone. Workers without one are not in it.
  `CREATE INDEX workers_alive_by_element ON workers (instance, queue, computing_element, status)
    WHERE computing_element IS NOT NULL AND status IN ('pending', 'submitted', 'idle', 'ready', 'running')`,
];

const sources = [
  `ALTER TABLE workers ADD COLUMN group_id TEXT`,
  `ALTER TABLE workers ADD COLUMN payload_id TEXT`,
  // Tells whether a payload is still needed. Workers without a payload, the great majority, are not in it.
  `CREATE INDEX workers_by_payload ON workers (instance, payload_id)
    WHERE payload_id IS NOT NULL AND status = 'pending'`,
  // AUTOINCREMENT, so that a backup knows whether this file has ever had a payload.
  `CREATE TABLE payloads (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    instance TEXT NOT NULL,
    payload_id TEXT NOT NULL,
    content TEXT NOT NULL,
    secret TEXT,
    UNIQUE (instance, payload_id)
  )`,
  // AUTOINCREMENT: sources remember sequences, and with the last rows deleted none of them may come again.
  `CREATE TABLE news (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    instance TEXT NOT NULL,
    origin_kind TEXT NOT NULL,
    origin_uid TEXT NOT NULL,
    origin_index INTEGER NOT NULL,
    what TEXT NOT NULL,
    at INTEGER NOT NULL,
    queue TEXT NOT NULL,
    worker_id INTEGER,
    status TEXT NOT NULL,
    computing_site TEXT,
    resource_type TEXT,
    job_type TEXT,
    n_core INTEGER,
    min_ram_count INTEGER,
    batch_id TEXT,
    native_status TEXT,
    native_exit_code INTEGER,
    error_code TEXT,
    diag_message TEXT,
    node_id TEXT,
    computing_element TEXT,
    creation_time INTEGER,
    submit_time INTEGER,
    start_time INTEGER,
    end_time INTEGER
  )`,
  `CREATE INDEX news_by_kind ON news (instance, origin_kind, id)`,
  // A worker's row waits for its news.
  `CREATE INDEX news_by_worker ON news (worker_id) WHERE worker_id IS NOT NULL`,
  // Kept for good, so it is narrow and has no second copy of its key.
  `CREATE TABLE spent_origins (
    instance TEXT NOT NULL,
    origin_kind TEXT NOT NULL,
    origin_uid TEXT NOT NULL,
    origin_index INTEGER NOT NULL,
    queue TEXT NOT NULL,
    worker_id INTEGER,
    status TEXT NOT NULL,
    end_time INTEGER,
    time INTEGER NOT NULL,
    PRIMARY KEY (instance, origin_kind, origin_uid, origin_index)
  ) WITHOUT ROWID`,
];

const requests = [
  `CREATE TABLE requests (
    id TEXT NOT NULL,
    instance TEXT NOT NULL,
    key TEXT,
    digest TEXT,
    queue TEXT NOT NULL,
    count INTEGER NOT NULL,
    requirements TEXT NOT NULL,
    content TEXT,
    parts TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    creation_time INTEGER NOT NULL,
    withdrawn_time INTEGER,
    withdraw_reason TEXT,
    ended_time INTEGER,
    served_time INTEGER,
    PRIMARY KEY (instance, id),
    UNIQUE (instance, key)
  )`,
  `CREATE INDEX requests_by_time ON requests (instance, creation_time)`,
  // The daemon looks for work among these few alone.
  `CREATE INDEX requests_open ON requests (instance, creation_time)
    WHERE served_time IS NULL AND withdrawn_time IS NULL`,
  `CREATE INDEX requests_to_end ON requests (instance, withdrawn_time)
    WHERE withdrawn_time IS NOT NULL AND ended_time IS NULL`,
];

const sharedPayloads = [
  `ALTER TABLE payloads ADD COLUMN share_id TEXT`,
  // Tells whether shared contents are still needed.
  `CREATE INDEX payloads_by_share ON payloads (instance, share_id) WHERE share_id IS NOT NULL`,
  `CREATE TABLE payload_shares (instance TEXT NOT NULL, share_id TEXT NOT NULL, content TEXT NOT NULL, secret TEXT, UNIQUE (instance, share_id))`,
];

const sourceMemories = [
  `CREATE TABLE source_memories (
    instance TEXT NOT NULL,
    source TEXT NOT NULL,
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (instance, source, name)
  ) WITHOUT ROWID`,
];

/**
 * The statements of each migration, which is one step that was once released and is never edited again; the key orders them.
 * Another database runs the same steps in its own words.
 */
export const steps: Readonly<Record<string, readonly string[]>> = {
  '0001-core': core,
  '0002-retention': retention,
  '0003-computing-element': computingElement,
  '0004-sources': sources,
  '0005-requests': requests,
  '0006-placement-in-news': ['ALTER TABLE news ADD COLUMN placement TEXT'],
  '0007-shared-payloads': sharedPayloads,
  '0008-source-memories': sourceMemories,
};

/** All that are due run in one transaction. A database with a key that is not in this list was written by a newer version. */
export const migrations: Readonly<Record<string, Migration>> = Object.fromEntries(
  Object.entries(steps).map(([name, statements]) => [name, { up: (db) => runAll(db, statements) }]),
);

async function runAll(db: Kysely<unknown>, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}
