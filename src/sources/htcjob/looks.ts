import type { Tracked } from './tracked.ts';

/** Pauses before the next look at a resource, ms. */
export const looks = {
  waiting: 2000,
  firstReason: 1500,
  finalizing: 500,
  failed: 5000,
  conflict: 100,
  secret: 5000,
  longestSecret: 60_000,
  queue: 30_000,
  /** One whose jobs wait, and of which nothing is heard, is judged anew all the same; a refused one asks with a new request. */
  unheard: 60_000,
} as const;
/** Longest timer: a look too many does no harm. */
export const longestLook = 3_600_000;

/** Conflicts in a row that other writers of one resource may cause: more of them are news. */
const fewConflicts = 4;

/** After so many conflicts in a row: one is over as soon as the resource was read again, and of those that stay so no server is asked without end. */
export function afterConflicts(count: number): { readonly pause: number; readonly isNews: boolean } {
  return { pause: Math.min(looks.conflict * 2 ** (count - 1), looks.failed), isNews: count > fewConflicts };
}

/** Infinity: it waits for an event. None tells of a Secret or a queue that has come. */
export function nextLook({
  asked,
  waiting,
  secretLooks,
}: Pick<Tracked, 'asked' | 'waiting' | 'secretLooks'>): number {
  if (asked.size > 0) return looks.waiting;
  if (waiting === undefined) return Infinity;
  if (waiting.code !== 'htcjob-secret') return looks.queue;
  // Thousands that wait for Secrets which never come must not take all that the server allows us.
  return Math.min(looks.secret * 2 ** (secretLooks - 1), looks.longestSecret);
}
