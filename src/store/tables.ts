import type { Generated, Selectable } from 'kysely';
import type { KnownWorker, WorkerNews } from '../worker/news.ts';
import type { WorkerStatus } from '../worker/status.ts';

/** The tables as Kysely sees them. Times are integers (ms UTC), structured fields JSON text, booleans 0 or 1. */
export interface Tables {
  workers: WorkersTable;
  transitions: TransitionsTable;
  configs: ConfigsTable;
  queues: QueuesTable;
  commands: CommandsTable;
  orphans: OrphansTable;
  counters: CountersTable;
  news: NewsTable;
  payloads: PayloadsTable;
  payload_shares: PayloadSharesTable;
  spent_origins: SpentOriginsTable;
  requests: RequestsTable;
  source_memories: SourceMemoriesTable;
}

/** How a database keeps a value. A `number` may have a fraction. */
export type ColumnType = 'integer' | 'number' | 'text';

/** A column of a table that is written in bulk: the statement has to name its type. `value` is there for the compiler alone. */
export interface Column<Value> {
  readonly type: ColumnType;
  readonly value?: Value;
}

type TableOf<Columns> = {
  -readonly [Name in keyof Columns]: Columns[Name] extends Column<infer Value> ? Value : never;
};

const integer: Column<number> = { type: 'integer' };
const number: Column<number> = { type: 'number' };
const text: Column<string> = { type: 'text' };
const integerOrNull: Column<number | null> = { type: 'integer' };
const numberOrNull: Column<number | null> = { type: 'number' };
const textOrNull: Column<string | null> = { type: 'text' };
const status: Column<WorkerStatus> = { type: 'text' };
const statusOrNull: Column<WorkerStatus | null> = { type: 'text' };
const generatedId: Column<Generated<number>> = { type: 'integer' };
const newsWhat: Column<WorkerNews['what']> = { type: 'text' };
const knownStatus: Column<KnownWorker['status']> = { type: 'text' };
const spentStatus: Column<KnownWorker['status'] | 'dropped'> = { type: 'text' };

export const workerColumns = {
  worker_id: integer,
  instance: text,
  name: text,
  queue: text,
  computing_site: text,
  origin_kind: text,
  origin_uid: text,
  origin_index: integer,
  placement: text,
  config_id: integer,
  status,
  attempt: integer,
  batch_id: textOrNull,
  handle: textOrNull,
  n_core: number,
  min_ram_count: number,
  max_disk_count: number,
  max_walltime: number,
  resource_type: text,
  job_type: text,
  pilot_type: text,
  prod_source_label: text,
  access_point: textOrNull,
  native_status: textOrNull,
  native_exit_code: integerOrNull,
  error_code: textOrNull,
  diag_message: textOrNull,
  node_id: textOrNull,
  detail: textOrNull,
  creation_time: integer,
  submit_time: integerOrNull,
  start_time: integerOrNull,
  end_time: integerOrNull,
  modification_time: integer,
  /** When an end was asked for, and why. */
  kill_time: integerOrNull,
  kill_reason: textOrNull,
  /** When nothing of it was left on the backend any more. */
  swept_time: integerOrNull,
  computing_element: textOrNull,
  group_id: textOrNull,
  payload_id: textOrNull,
} as const;
export type WorkersTable = TableOf<typeof workerColumns>;

export const transitionColumns = {
  id: generatedId,
  worker_id: integer,
  at: integer,
  from_status: statusOrNull,
  to_status: status,
  /** Which part of the daemon saw or caused it: submitter, monitor, sweeper, adoption. */
  source: text,
  native_status: textOrNull,
  message: textOrNull,
} as const;
export type TransitionsTable = TableOf<typeof transitionColumns>;
export type TransitionRow = Selectable<TransitionsTable>;

export interface ConfigsTable {
  config_id: Generated<number>;
  instance: string;
  queue: string;
  /** Digest of `snapshot`: the same configuration gets the same row. */
  digest: string;
  snapshot: string;
  creation_time: number;
  /** When a daemon last took it up. */
  used_time: number;
}

export interface QueuesTable {
  instance: string;
  queue: string;
  /** An operator's `paused` or `draining`; null = none. */
  control: 'paused' | 'draining' | null;
  control_reason: string | null;
  control_time: number | null;
  /** The last report of the daemon, for reading while it is down. */
  queue_status: string;
  limits: string;
  reasons: string;
  report_time: number | null;
}

export interface CommandsTable {
  id: Generated<number>;
  instance: string;
  kind: string;
  params: string;
  creation_time: number;
  taken_time: number | null;
  /** Set when done; null until then. */
  result: string | null;
}

export interface OrphansTable {
  instance: string;
  connection: string;
  place: string;
  /** Worker and queue by the orphan's mark, each null where the mark does not tell it. */
  worker_id: number | null;
  queue: string | null;
  why: string;
  seen_time: number;
}

export interface CountersTable {
  instance: string;
  name: string;
  value: number;
}

/** One change of a worker, until the source that asked for the worker took it. */
export const newsColumns = {
  id: generatedId,
  instance: text,
  origin_kind: text,
  origin_uid: text,
  origin_index: integer,
  what: newsWhat,
  at: integer,
  /** Empty where the origin was withdrawn before it had a worker. */
  queue: text,
  worker_id: integerOrNull,
  status: knownStatus,
  computing_site: textOrNull,
  resource_type: textOrNull,
  job_type: textOrNull,
  n_core: numberOrNull,
  min_ram_count: numberOrNull,
  batch_id: textOrNull,
  native_status: textOrNull,
  native_exit_code: integerOrNull,
  error_code: textOrNull,
  diag_message: textOrNull,
  node_id: textOrNull,
  computing_element: textOrNull,
  placement: textOrNull,
  creation_time: integerOrNull,
  submit_time: integerOrNull,
  start_time: integerOrNull,
  end_time: integerOrNull,
} as const;
export type NewsTable = TableOf<typeof newsColumns>;

/** The work of workers that may still be started. */
export const payloadColumns = {
  id: generatedId,
  instance: text,
  payload_id: text,
  /** The row with the contents that it has in common with others; null: none. */
  share_id: textOrNull,
  /** JSON of the payload, in which secret files have no content. */
  content: text,
  /** JSON of the contents of its secret files, in their order. Null: it has none, or a backup left them out. */
  secret: textOrNull,
} as const;
export type PayloadsTable = TableOf<typeof payloadColumns>;

/** Contents of large files that several payloads have in common. */
export const payloadShareColumns = {
  instance: text,
  share_id: text,
  /** JSON of the contents of files that are not secret, and of those that are. Null: there are none, or a backup left them out. */
  content: text,
  secret: textOrNull,
} as const;
export type PayloadSharesTable = TableOf<typeof payloadShareColumns>;

/** An origin that never gets a worker again, and has no row among the workers. */
export const spentOriginColumns = {
  instance: text,
  origin_kind: text,
  origin_uid: text,
  origin_index: integer,
  /** The queue of its worker; empty for a withdrawn one. */
  queue: text,
  /** Its worker, whose row was deleted; null where it was withdrawn before it had one. */
  worker_id: integerOrNull,
  /** How its worker ended. `withdrawn`: it had none, and one that comes to light is ended; `dropped`: it had none, and such a one lives on. */
  status: spentStatus,
  end_time: integerOrNull,
  /** When the worker was swept, or the origin withdrawn. */
  time: integer,
} as const;
export type SpentOriginsTable = TableOf<typeof spentOriginColumns>;

/** A request of an operator. */
export interface RequestsTable {
  id: string;
  instance: string;
  /** The asker's own name for it; null = none. */
  key: string | null;
  /** Tells a request with the same key that asks for the same. */
  digest: string | null;
  queue: string;
  count: number;
  requirements: string;
  /** JSON of its payload; null: it has none, or none that is still needed. */
  content: string | null;
  /** JSON list of the parts that its payload had. */
  parts: string;
  asked_by: 'command-line' | 'http';
  creation_time: number;
  withdrawn_time: number | null;
  withdraw_reason: string | null;
  /** When the ends of its workers were asked for, once it was taken back. */
  ended_time: number | null;
  /** When all its workers had rows. */
  served_time: number | null;
}

/** What a source must still know after a crash. */
export interface SourceMemoriesTable {
  instance: string;
  source: string;
  name: string;
  content: string;
}
