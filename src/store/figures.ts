import type { WorkerStatus } from '../worker/status.ts';

/** Living workers of one queue in one status. */
export interface AliveCount {
  readonly queue: string;
  readonly status: WorkerStatus;
  readonly workers: number;
}

/** Living workers of one queue at one computing element in one status. */
export interface ElementCount extends AliveCount {
  readonly computingElement: string;
}

/** Counts for monitoring. Each answer comes from an index alone, because they are asked for again and again. */
export interface FigureStore {
  /** The living of all queues; ended workers, the great majority, are not looked at. */
  alive(): Promise<AliveCount[]>;
  /** The living at each computing element; workers without one are not among them. */
  aliveAtElements(): Promise<ElementCount[]>;
  /** How many orphans the last listings found. */
  orphans(): Promise<number>;
}
