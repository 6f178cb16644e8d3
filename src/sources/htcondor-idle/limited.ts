import type { Need } from './model.ts';

/**
 * How many jobs of each need may start by their concurrency limits: those before take from what is free for those behind.
 * @param free by name of the limit; a missing one is without limit
 * @param mayStart what no machine takes does not start, so that it takes nothing from anybody, and no limit holds it back
 */
export function withinLimits(
  needs: Iterable<Need>,
  free: ReadonlyMap<string, number>,
  mayStart: (need: Need) => boolean,
): Map<Need, number> {
  const left = new Map(free);
  const within = new Map<Need, number>();
  for (const need of needs) {
    let count = need.count;
    if (need.concurrency.size > 0 && !mayStart(need)) {
      within.set(need, count);
      continue;
    }
    for (const [name, each] of need.concurrency) {
      const has = left.get(name);
      // Weights may have digits behind the point: 0.3 / 0.1 is a little less than 3.
      if (has !== undefined && each > 0) count = Math.min(count, Math.floor(Math.max(0, has) / each + 1e-9));
    }
    for (const [name, each] of need.concurrency) {
      const has = left.get(name);
      // Of a weight without bound none starts, and 0 times it is no number.
      if (has !== undefined && count > 0) left.set(name, has - count * each);
    }
    within.set(need, count);
  }
  return within;
}
