import type { Subscribe, WorkerChanged } from '../agents/events.ts';
import { isFinal, isQueued } from '../worker/status.ts';
import type { LoopSet } from './loop-set.ts';

/** Wakes the loops that an event concerns: without it their work would wait for the next full pass. */
export function wakeLoops(events: Subscribe, loops: Pick<LoopSet, 'wake' | 'wakeAll' | 'wakeNamed'>): void {
  events.on('workersChanged', ({ workers }) => {
    for (const queue of queuesOf(workers.filter(makesRoom))) loops.wake('submit', queue);
  });
  events.on('killRequested', ({ workers }) => {
    for (const queue of queuesOf(workers)) loops.wake('sweep', queue);
  });
  events.on('connectionOpened', () => {
    loops.wakeAll('submit');
  });
  events.on('credentialsImproved', () => {
    loops.wakeAll('submit');
  });
  events.on('strangerSeen', ({ connection }) => {
    loops.wakeNamed(`list ${connection}`);
  });
}

/** Whether others may be submitted in the place of this worker: it ended, or it is queued no more. */
function makesRoom({ from, to }: WorkerChanged): boolean {
  return isFinal(to) || (from !== undefined && isQueued(from) && !isQueued(to));
}

function queuesOf(workers: readonly { readonly queue: string }[]): ReadonlySet<string> {
  return new Set(workers.map(({ queue }) => queue));
}
