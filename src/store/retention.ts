import type { FinalStatus } from '../worker/status.ts';

/** The rows that may be deleted: those older than these times, ms UTC. */
export interface Retention {
  /** When workers must have ended, by their final status. */
  readonly endedBefore: Readonly<Record<FinalStatus, number>>;
  /** When they must have been swept: a listing under way then may still show them, and would have them adopted. */
  readonly sweptBefore: number;
  /** For configurations that no worker uses, and commands that were answered. */
  readonly unusedBefore: number;
  /** The configurations of the daemon that runs; undefined where they are not known, and all of them stay. */
  readonly currentConfigs: ReadonlySet<number> | undefined;
}

/** How many rows were deleted, or would be. */
export interface Pruned {
  readonly workers: Readonly<Record<FinalStatus, number>>;
  readonly configs: number;
  readonly commands: number;
}

/** Called after each transaction, so that others have their turn; false ends the work early. */
export type Between = () => Promise<boolean>;

/**
 * Deletes what is over. A worker goes with its history only when it ended and nothing of it is left on its backend, so
 * that a living or unswept one is never touched, whatever the times say.
 */
export interface RetentionStore {
  /** Counts the rows that `prune` would delete now. */
  due(retention: Retention): Promise<Pruned>;
  prune(retention: Retention, between: Between): Promise<Pruned>;
  /** Gives the space of deleted rows back to the disk. Needs the database for itself, and as much space again. */
  vacuum(): Promise<void>;
}
