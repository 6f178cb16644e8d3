/** A daemon among those that share a factory. */
export interface Member {
  readonly name: string;
  /** Host and process. */
  readonly holder: string;
  /** Since when, ISO 8601 UTC. */
  readonly since: string;
  /** Whether its lease holds. */
  readonly alive: boolean;
  /** Digest of the queues that it knows from its files; undefined until it has said so. */
  readonly knows: string | undefined;
}

/** Who has one of the things that are shared out: a queue, a source, the housekeeping. */
export interface Share {
  readonly item: string;
  readonly member: string;
  /** Since when, ms UTC by the server's clock. */
  readonly since: number;
}

/** Who shares a factory, and who has what. */
export interface SharedOut {
  readonly members: readonly Member[];
  readonly shares: readonly Share[];
}

/** What daemons that share a factory agree on. Every change is fenced by the lease of the daemon that makes it. */
export interface ShareStore {
  /** The name of this daemon. */
  readonly member: string;
  members(): Promise<Member[]>;
  all(): Promise<Share[]>;
  /** Says which queues this daemon knows. */
  know(digest: string): Promise<void>;
  /**
   * Takes these for this daemon: those that no daemon has, and those of daemons whose lease is over. Such a daemon commits nothing
   * any more from that moment on. @returns those that are this daemon's now
   */
  take(items: readonly string[]): Promise<ReadonlySet<string>>;
  /** Gives these of this daemon to another one, which works on them from its next look on. */
  give(items: readonly string[], to: string): Promise<void>;
  /** These of this daemon are shared out no more. */
  forget(items: readonly string[]): Promise<void>;
}
