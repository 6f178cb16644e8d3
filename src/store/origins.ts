import type { OriginFilter, OriginKey, WorkerNews } from '../worker/news.ts';

/** A worker of which the backend may still have something. */
export interface Unswept {
  readonly workerId: number;
  readonly queue: string;
  readonly hasEnded: boolean;
}

/**
 * Origins, and what became of them. An origin whose worker was deleted from the database, and one that was withdrawn before it had a
 * worker, stay here: none of them ever gets a worker again.
 */
export interface OriginStore {
  /** Those among these that have had their worker or were withdrawn, as news of the kind `known`. */
  known(kind: string, origins: readonly OriginKey[]): Promise<WorkerNews[]>;
  /** The workers of these origins that are kept, and what is withdrawn; oldest first. */
  find(kind: string, filters: readonly OriginFilter[]): Promise<WorkerNews[]>;
  /** The workers of a `uid` that live or were not swept yet. */
  unswept(kind: string, uid: string): Promise<readonly Unswept[]>;
  /**
   * Ends these: asks for the end of living workers, and marks as withdrawn the origins without one. One transaction.
   * @returns the workers whose end was asked for
   */
  end(
    kind: string,
    origins: readonly OriginKey[],
    reason: string,
    at: number,
  ): Promise<readonly { readonly workerId: number; readonly queue: string }[]>;
}
