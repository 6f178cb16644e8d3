/** Something on a backend that carries our mark and belongs to no worker we know. */
export interface Orphan {
  readonly connection: string;
  readonly place: string;
  readonly workerId: number | null;
  readonly queue: string | null;
  readonly why: string;
  readonly seenTime: number;
}

export interface OrphanStore {
  /** Keeps what the last complete listing of a connection found. */
  replace(connection: string, orphans: readonly Orphan[]): Promise<void>;
  /** Forgets orphans of connections that no queue uses any more: nothing lists these. */
  keepOnly(connections: readonly string[]): Promise<void>;
  all(): Promise<Orphan[]>;
}
