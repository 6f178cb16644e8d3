/** Hands out worker ids. An id is never used twice, also after the database was lost: see worker/identity.ts. */
export interface WorkerIds {
  /** Takes `count` worker ids that no worker had before; @returns the first. */
  take(count: number): Promise<number>;
  /** Makes sure that ids below `floor` are not given out any more. */
  raise(floor: number): Promise<void>;
}
