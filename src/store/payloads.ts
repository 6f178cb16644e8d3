import type { Payload } from '../worker/payload.ts';

/**
 * Payloads of workers that may still be started. A payload is written in the transaction that records its worker, and wiped in
 * the one that confirms or ends the last worker that needs it. A backup has no secret files of it.
 */
export interface PayloadStore {
  /** By payload id. A worker whose payload is missing here, as after a restored backup, can never be started again. */
  byIds(payloadIds: readonly string[]): Promise<ReadonlyMap<string, Payload>>;
  /**
   * Wipes those that no worker needs any more, and what all wiped ones left in the log of the database. To be called from time
   * to time. @returns how many were still there, although no worker needed them.
   */
  wipeUnneeded(): Promise<number>;
}
