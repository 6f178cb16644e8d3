import { blackHole, type BlackHoleOptions, type BlackHoleState } from './black-hole.ts';
import { caps, gates, type Limit, type LimitState, resourceTypeLimits } from './limiters.ts';

/** A rate of submissions, as its bucket stands now. */
export interface Rate {
  /** The option. */
  readonly name: string;
  /** Per second. */
  readonly rate: number;
  readonly burst: number;
  readonly available: number;
}

/** All facts that bound the new workers of one queue, as they are at one moment. */
export interface LimitFacts {
  readonly state: LimitState;
  /** The throttler's answer. */
  readonly throttled: Limit | undefined;
  readonly blackHole: { readonly state: BlackHoleState; readonly options: BlackHoleOptions };
  /** The limit after submissions that failed. */
  readonly window: Limit | undefined;
  readonly rates: readonly Rate[];
}

/** Every limit of a queue, in the order in which the limits are applied. */
export function limitsOf({ state, throttled, blackHole: hole, window, rates }: LimitFacts): readonly Limit[] {
  const limits = [
    ...gates.map((gate) => gate(state)),
    throttled,
    // Before the limits that all types share, or the first type would take it all and leave the part of the others unused.
    ...resourceTypeLimits(state),
    ...caps.map((cap) => cap(state)),
    blackHole(hole.state, hole.options),
    window,
    ...rates.map(rateLimit),
  ];
  return limits.filter((limit) => limit !== undefined);
}

function rateLimit({ name, rate, burst, available }: Rate): Limit {
  const message = `${name} of ${rate} per second (${burst} at once) is used up for the moment`;
  return { atMost: available, reason: { code: 'submission-rate', message } };
}
