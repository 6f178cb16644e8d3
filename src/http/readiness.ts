import type { LoopHealth } from '../agents/loop.ts';

export interface Readiness {
  readonly ready: boolean;
  /** The connections whose first listing has not ended yet, well or badly. */
  readonly waiting: readonly string[];
}

const listing = 'list ';

/**
 * Ready is who works on all queues that can be worked on: every connection was listed once, or the attempt failed. A
 * backend that is down stops its own queues, which say so, and not the daemon; so it does not count here.
 */
export function judgeReadiness(loops: readonly LoopHealth[]): Readiness {
  const started = loops.some(({ startedAt }) => startedAt !== undefined);
  const waiting = loops.flatMap(({ name, endedAt }) =>
    name.startsWith(listing) && endedAt === undefined ? [name.slice(listing.length)] : [],
  );
  return { ready: started && waiting.length === 0, waiting };
}
