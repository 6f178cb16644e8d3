import type { Insertable, Selectable } from 'kysely';
import type { WorkerStatus } from '../worker/status.ts';
import type { Handle, Worker } from '../worker/worker.ts';
import type { WorkersTable } from './tables.ts';
import { setFacts, type WorkerFacts } from './worker-facts.ts';

/** A worker with all that is known of it. */
export interface WorkerRecord extends Worker, WorkerFacts {
  readonly status: WorkerStatus;
  readonly errorCode: string | null;
  readonly diagMessage: string | null;
  readonly detail: unknown;
  readonly creationTime: number;
  readonly modificationTime: number;
  readonly killTime: number | null;
  readonly killReason: string | null;
  readonly sweptTime: number | null;
}

export function toRecord(row: Selectable<WorkersTable>): WorkerRecord {
  const record: Omit<WorkerRecord, keyof WorkerFacts> = {
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
    ...(row.group_id === null ? {} : { groupId: row.group_id }),
    ...(row.payload_id === null ? {} : { payloadId: row.payload_id }),
    ...(row.access_point === null ? {} : { accessPoint: row.access_point }),
    ...(row.handle === null ? {} : { handle: JSON.parse(row.handle) as Handle }),
    status: row.status,
    errorCode: row.error_code,
    diagMessage: row.diag_message,
    detail: row.detail === null ? null : (JSON.parse(row.detail) as unknown),
    creationTime: row.creation_time,
    modificationTime: row.modification_time,
    killTime: row.kill_time,
    killReason: row.kill_reason,
    sweptTime: row.swept_time,
  };
  setFacts(record, row);
  return record;
}

/** The row of a new worker: nothing is known of it but its intent, and the other columns are null. */
export function toNewRow(
  worker: Worker,
  instance: string,
  status: WorkerStatus,
  at: number,
): Insertable<WorkersTable> {
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
    group_id: worker.groupId ?? null,
    payload_id: worker.payloadId ?? null,
    creation_time: at,
    modification_time: at,
  };
}
