/** Hands out worker ids. An id is never used twice, also after the database was lost: see worker/identity.ts. */
export interface WorkerIds {
  /** Takes `count` worker ids that no worker had before; @returns the first. */
  take(count: number): Promise<number>;
  /** At the start of a daemon: as `raise`; and ids that once left all room behind them, by an absurd id of a server, come back to `floor`. */
  begin(floor: number): Promise<void>;
  /** Makes sure that ids below `floor` are not given out any more. */
  raise(floor: number): Promise<void>;
}
