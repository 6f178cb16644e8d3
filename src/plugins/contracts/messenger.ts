import type { WorkerError } from '../../worker/worker.ts';
import { requirementPlaceholders } from './placeholders.ts';

/** An `accessPoint` may name these, beside digits of the worker id: facts known before a worker is submitted. */
export const accessPointPlaceholders = [
  ...(['workerID', 'harvesterID', 'computingSite', 'queueName', 'siteName'] as const),
  ...requirementPlaceholders,
] as const;
export type AccessPointValues = Readonly<Record<(typeof accessPointPlaceholders)[number], string | number>>;

/** Harvester's messenger, as far as pull mode needs it: each worker's directory (`accessPoint`). Idempotent. */
export interface Messenger {
  /** The worker's access point, or undefined when the queue has none. Pure: decided before the intent is written. */
  accessPointOf(values: AccessPointValues): string | undefined;
  /** Makes these directories; returns what failed, by path. */
  setUp(accessPoints: readonly string[]): Promise<ReadonlyMap<string, WorkerError>>;
  /** Removes one directory with its content, as long as it belongs to this worker alone. */
  remove(accessPoint: string, workerId: number): Promise<void>;
}
