import type { Census, OriginFilter, OriginKey, WorkerNews } from '../worker/news.ts';

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
  /** The living workers of this kind, as news of the kind `known`; oldest first. */
  living(kind: string): Promise<WorkerNews[]>;
  /** Counts the workers of this kind in one look. @param at ms UTC, now */
  census(kind: string, at: number): Promise<Census>;
  /** How many workers of this kind a site got since, by resource type; also those that have ended and are kept. */
  madeSince(
    kind: string,
    computingSite: string,
    since: Pick<Census, 'at' | 'upTo'>,
  ): Promise<ReadonlyMap<string, number>>;
  /**
   * Withdraws those without a worker, and leaves the others alone, also one whose worker comes to light later: after the loss of the
   * database the listing of its backend adopts it.
   */
  withdraw(kind: string, origins: readonly OriginKey[], at: number): Promise<void>;
  /**
   * Ends these: asks for the end of living workers, and withdraws the origins without one, whose workers are ended if they come to light later. One transaction.
   * @returns the workers whose end was asked for
   */
  end(
    kind: string,
    origins: readonly OriginKey[],
    reason: string,
    at: number,
  ): Promise<readonly { readonly workerId: number; readonly queue: string }[]>;
}
