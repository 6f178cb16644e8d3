import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until `condition` gives something other than undefined or false, and returns it.
 * @throws at the deadline (ms), with what was waited for and the error of the last look. An earlier one is called so: where later looks
 *   got their answers, it is seldom the cause.
 */
export async function until<T>(
  what: string | (() => string),
  condition: () => Promise<T | undefined | false> | T | undefined | false,
  deadline = 90_000,
): Promise<T> {
  const begun = performance.now();
  const end = begun + deadline;
  let last: unknown;
  let isOver = false;
  for (;;) {
    const asked = performance.now();
    try {
      const value = await condition();
      if (value !== undefined && value !== false) return value;
      isOver = true;
    } catch (error) {
      last = error;
      isOver = false;
    }
    if (performance.now() > end) {
      const waited = typeof what === 'string' ? what : what();
      const why = last instanceof Error ? `${isOver ? '; an earlier look failed' : ''}: ${last.message}` : '';
      throw new Error(`waited ${deadline / 1000} s in vain until ${waited}${why}`, { cause: last });
    }
    // A look at a database or a server takes the time of those that are waited for: most of it is left to them.
    const took = performance.now() - asked;
    await sleep(Math.min(Math.max(2 * took, performance.now() - begun < 2000 ? 25 : 50), 300));
  }
}
