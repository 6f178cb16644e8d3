import type { Generated } from 'kysely';
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
}

export interface WorkersTable {
  worker_id: number;
  instance: string;
  name: string;
  queue: string;
  computing_site: string;
  origin_kind: string;
  origin_uid: string;
  origin_index: number;
  placement: string;
  config_id: number;
  status: WorkerStatus;
  attempt: number;
  batch_id: string | null;
  handle: string | null;
  n_core: number;
  min_ram_count: number;
  max_disk_count: number;
  max_walltime: number;
  resource_type: string;
  job_type: string;
  pilot_type: string;
  prod_source_label: string;
  access_point: string | null;
  native_status: string | null;
  native_exit_code: number | null;
  error_code: string | null;
  diag_message: string | null;
  node_id: string | null;
  detail: string | null;
  creation_time: number;
  submit_time: number | null;
  start_time: number | null;
  end_time: number | null;
  modification_time: number;
  /** When an end was asked for, and why. */
  kill_time: number | null;
  kill_reason: string | null;
  /** When nothing of it was left on the backend any more. */
  swept_time: number | null;
  computing_element: string | null;
}

export interface TransitionsTable {
  id: Generated<number>;
  worker_id: number;
  at: number;
  from_status: WorkerStatus | null;
  to_status: WorkerStatus;
  /** Which part of the daemon saw or caused it: submitter, monitor, sweeper, adoption. */
  source: string;
  native_status: string | null;
  message: string | null;
}

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
  /** What the daemon last knew of it, for reading while it is down. */
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
  /** What its mark says, as far as it can be read. */
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
