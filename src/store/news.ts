import type { WorkerNews } from '../worker/news.ts';

/** The news of one source that wait for it. */
export interface NewsBacklog {
  readonly kind: string;
  readonly count: number;
  /** When the oldest came, ms UTC. */
  readonly oldest: number;
}

/** The news that one daemon takes, where several share a factory. */
export interface NewsPart {
  readonly queues: ReadonlySet<string>;
  /** Also those of origins that had no worker, and so no queue. */
  readonly ofNoQueue: boolean;
}

/**
 * News of workers, for the sources that asked for them. The transactions that write workers write them, so a change without its
 * news cannot be. They wait here until their source took them.
 */
export interface NewsStore {
  /** Changes of workers of these kinds are written down from now on. Others cost nothing. */
  listen(kinds: ReadonlySet<string>): void;
  /** Kinds of which news were committed since the last call: nearly free. */
  written(): ReadonlySet<string>;
  /** The oldest of this kind, in order. */
  next(kind: string, limit: number, part?: NewsPart): Promise<WorkerNews[]>;
  /** The source took all up to this sequence: they go. */
  taken(kind: string, upTo: number, part?: NewsPart): Promise<void>;
  backlog(): Promise<NewsBacklog[]>;
  /** Drops what came before this time, ms UTC, and all but the newest `most` of a kind. @returns how many, by kind. */
  drop(before: number, most: number): Promise<ReadonlyMap<string, number>>;
}
