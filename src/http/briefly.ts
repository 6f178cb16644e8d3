import type { Clock } from '../util/clock.ts';

/** Keeps an answer for `ms`: however many ask, the work is done once in that time. A failure is not kept. */
export function briefly<T>(clock: Clock, ms: number, ask: () => Promise<T>): () => Promise<T> {
  let kept: { readonly answer: Promise<T>; readonly at: number } | undefined;
  return () => {
    const now = clock.monotonic();
    if (kept !== undefined && now - kept.at < ms) return kept.answer;
    const mine = { answer: ask(), at: now };
    kept = mine;
    mine.answer.catch(() => {
      if (kept === mine) kept = undefined;
    });
    return mine.answer;
  };
}
