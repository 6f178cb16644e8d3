import type { Selectable } from 'kysely';
import type { WorkerStatus } from '../worker/status.ts';
import type { Handle, Worker } from '../worker/worker.ts';
import type { WorkersTable } from './tables.ts';

/** A worker with all that is known of it. */
export interface WorkerRecord extends Worker {
  readonly status: WorkerStatus;
  readonly nativeStatus: string | null;
  readonly exitCode: number | null;
  readonly errorCode: string | null;
  readonly diagMessage: string | null;
  readonly node: string | null;
  readonly detail: unknown;
  readonly creationTime: number;
  readonly submitTime: number | null;
  readonly startTime: number | null;
  readonly endTime: number | null;
  readonly modificationTime: number;
  readonly killTime: number | null;
  readonly killReason: string | null;
  readonly sweptTime: number | null;
  readonly computingElement: string | null;
}

export function toRecord(row: Selectable<WorkersTable>): WorkerRecord {
  return {
    workerId: row.worker_id,
    name: row.name,
    queue: row.queue,
    computingSite: row.computing_site,
    origin: { kind: row.origin_kind, uid: row.origin_uid, index: row.origin_index },
    requirements: {
      nCore: row.n_core,
      minRamCount: row.min_ram_count,
      maxDiskCount: row.max_disk_count,
      maxWalltime: row.max_walltime,
      resourceType: row.resource_type,
      jobType: row.job_type,
      pilotType: row.pilot_type,
      prodSourceLabel: row.prod_source_label,
    },
    placement: row.placement,
    configId: row.config_id,
    attempt: row.attempt,
    ...(row.access_point === null ? {} : { accessPoint: row.access_point }),
    ...(row.handle === null ? {} : { handle: JSON.parse(row.handle) as Handle }),
    status: row.status,
    nativeStatus: row.native_status,
    exitCode: row.native_exit_code,
    errorCode: row.error_code,
    diagMessage: row.diag_message,
    node: row.node_id,
    detail: row.detail === null ? null : (JSON.parse(row.detail) as unknown),
    creationTime: row.creation_time,
    submitTime: row.submit_time,
    startTime: row.start_time,
    endTime: row.end_time,
    modificationTime: row.modification_time,
    killTime: row.kill_time,
    killReason: row.kill_reason,
    sweptTime: row.swept_time,
    computingElement: row.computing_element,
  };
}

/** The row of a new worker, before anything is known of it but its intent. */
export function toNewRow(worker: Worker, instance: string, status: WorkerStatus, at: number): WorkersTable {
  return {
    worker_id: worker.workerId,
    instance,
    name: worker.name,
    queue: worker.queue,
    computing_site: worker.computingSite,
    origin_kind: worker.origin.kind,
    origin_uid: worker.origin.uid,
    origin_index: worker.origin.index,
    placement: worker.placement,
    config_id: worker.configId,
    status,
    attempt: worker.attempt,
    batch_id: worker.handle?.batchID ?? null,
    handle: worker.handle === undefined ? null : JSON.stringify(worker.handle),
    n_core: worker.requirements.nCore,
    min_ram_count: worker.requirements.minRamCount,
    max_disk_count: worker.requirements.maxDiskCount,
    max_walltime: worker.requirements.maxWalltime,
    resource_type: worker.requirements.resourceType,
    job_type: worker.requirements.jobType,
    pilot_type: worker.requirements.pilotType,
    prod_source_label: worker.requirements.prodSourceLabel,
    access_point: worker.accessPoint ?? null,
    native_status: null,
    native_exit_code: null,
    error_code: null,
    diag_message: null,
    node_id: null,
    detail: null,
    creation_time: at,
    submit_time: null,
    start_time: null,
    end_time: null,
    modification_time: at,
    kill_time: null,
    kill_reason: null,
    swept_time: null,
    computing_element: null,
  };
}
