import type { Desk, OwnQueue } from '../../../plugins/contracts/index.ts';
import type { LivingWorker } from '../joining.ts';
import type { QueueState } from './surplus.ts';

/**
 * What each queue of living workers is to the source. One that does not run for another reason than its removal has no entry: an
 * operator who makes a mistake in its options must not lose its workers.
 */
export function queueStates(
  own: readonly Pick<OwnQueue, 'name'>[],
  living: readonly Pick<LivingWorker, 'queue'>[],
  desk: Pick<Desk, 'reasons' | 'queues'>,
): ReadonlyMap<string, QueueState> {
  const ours = new Set(own.map(({ name }) => name));
  const running = new Set(desk.queues());
  const states = new Map<string, QueueState>();
  for (const queue of new Set([...ours, ...living.map((worker) => worker.queue)])) {
    const codes = desk.reasons(queue).map(({ code }) => code);
    // A queue that is gone is followed by its earlier configuration as long as its workers live.
    if (codes.includes('queue-removed')) states.set(queue, 'gone');
    else if (codes.includes('draining')) states.set(queue, 'drained');
    else if (ours.has(queue)) states.set(queue, 'asks');
    else if (running.has(queue)) states.set(queue, 'gone');
  }
  return states;
}
