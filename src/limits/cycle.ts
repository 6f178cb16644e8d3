/** New workers since a cycle began: a pass that an event woke is no new cycle. */
export interface Cycle {
  /** Monotonic ms. */
  readonly startedAt: number;
  readonly made: number;
}

export const noCycle: Cycle = { startedAt: -Infinity, made: 0 };

/** The cycle that counts at `now` (monotonic ms): the last one, or an empty one where that is over after `length` ms. */
export function cycleAt(last: Cycle, now: number, length: number): Cycle {
  return now - last.startedAt >= length ? { startedAt: now, made: 0 } : last;
}
