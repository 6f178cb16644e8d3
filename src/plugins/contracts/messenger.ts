import type { WorkerError } from '../../worker/worker.ts';

/** Harvester's messenger, as far as pull mode needs it: each worker's directory (`accessPoint`). Idempotent. */
export interface Messenger {
  /** The worker's access point, or undefined when the queue has none. Pure: decided before the intent is written. */
  accessPointOf(values: Readonly<Record<string, string | number>>): string | undefined;
  /** Makes these directories; returns what failed, by path. */
  setUp(accessPoints: readonly string[]): Promise<ReadonlyMap<string, WorkerError>>;
  /** Removes one directory with its content, as long as it belongs to this worker alone. */
  remove(accessPoint: string, workerId: number): Promise<void>;
}
