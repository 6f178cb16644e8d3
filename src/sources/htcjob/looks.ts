import type { Tracked } from './tracked.ts';

/** Pauses before the next look at a resource, ms. */
export const looks = {
  waiting: 2000,
  firstReason: 1500,
  finalizing: 500,
  failed: 5000,
  secret: 5000,
  queue: 30_000,
} as const;
/** Longest timer: a look too many does no harm. */
export const longestLook = 3_600_000;

/** Infinity: it waits for an event. None tells of a Secret or a queue that has come. */
export function nextLook({ asked, waiting }: Pick<Tracked, 'asked' | 'waiting'>): number {
  if (asked.size > 0) return looks.waiting;
  if (waiting === undefined) return Infinity;
  return waiting.code === 'htcjob-secret' ? looks.secret : looks.queue;
}
