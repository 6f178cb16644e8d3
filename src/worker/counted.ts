import type { Worker } from './worker.ts';

/**
 * Whether a worker was asked for by its number alone. Its own id makes its origin, and ids are never used twice, so that no
 * second worker can have the same origin. A source that names its workers takes other names than queue and worker id.
 */
export function isCounted({
  workerId,
  queue,
  origin,
}: Pick<Worker, 'workerId' | 'queue' | 'origin'>): boolean {
  return origin.index === workerId && origin.uid === queue;
}
