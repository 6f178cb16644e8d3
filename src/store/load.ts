import type { WorkerStatus } from '../worker/status.ts';

/** Living workers of one queue and one kind. */
export interface LoadRow {
  readonly queue: string;
  readonly status: WorkerStatus;
  readonly resourceType: string;
  readonly jobType: string;
  readonly workers: number;
  readonly cores: number;
  /** MB. */
  readonly memory: number;
}

/** The living workers as the limits count them. */
export interface LoadStore {
  /** The living of these queues by kind: intents in flight are among them. */
  alive(queues: readonly string[]): Promise<LoadRow[]>;
  /** Running workers that started before `startedBefore` (ms UTC). */
  runningSince(queue: string, startedBefore: number): Promise<number>;
  /** When the newest worker of a queue was recorded, ms UTC. */
  lastMade(queue: string): Promise<number | undefined>;
}
