import type { Reason } from '../../worker/reason.ts';
import type { DecideCode } from './decide-codes.ts';
import type { Lateness, QueueTerms } from './demand.ts';
import { asPercent, count } from './words.ts';

/** What the caps of a queue look at. */
export interface CapState {
  readonly terms: QueueTerms;
  /** Its workers that have not ended. */
  readonly living: number;
  /** Those among them that do not run yet. */
  readonly starting: number;
  /** New workers that its jobs need. */
  readonly wanted: number;
}

/** So many new workers of the queue at most, and why. */
export interface Cap {
  readonly atMost: number;
  readonly reason: Reason;
}

/** One rule that keeps workers of a queue back. */
export interface CapRule {
  /** The option of the queue; empty: none. */
  readonly option: string;
  /** Whether the jobs of workers that it keeps back go to the next shape that matches, or wait for the next look. */
  readonly passesOn: boolean;
  /** Undefined where the rule has nothing to say. */
  readonly cap: (state: CapState) => Cap | undefined;
  /** For the table in docs/. */
  readonly about: string;
}

const because = (code: DecideCode, message: string): Reason => ({ code, message });

/** What keeps workers of a queue back; each rule is applied to what those before it left. */
export const capRules: readonly CapRule[] = [
  {
    option: '',
    passesOn: true,
    cap: ({ terms: { closed } }) => closed && { atMost: 0, reason: closed },
    about: 'The queue is paused, or a limit of its own is reached: it counts as without room.',
  },
  {
    option: 'most',
    passesOn: true,
    cap: ({ terms: { most }, living }) => capOfMost(most, living, 'workers'),
    about: 'Living workers count, whatever they do.',
  },
  {
    option: 'nonePending',
    passesOn: true,
    cap: ({ terms: { nonePending }, starting }) => {
      if (!nonePending || starting === 0) return undefined;
      const message = `${count(starting, 'worker')} of the queue ${starting === 1 ? 'does' : 'do'} not run yet, and nonePending lets none be added`;
      return { atMost: 0, reason: because('htcondor-idle-none-pending', message) };
    },
    about: 'None while a worker of the queue waits for its start.',
  },
  {
    option: 'pressure',
    passesOn: true,
    cap: ({ terms: { pressure }, starting, wanted }) => {
      if (pressure === undefined) return undefined;
      const needed = wanted + starting;
      const most = Math.max(pressure.least, Math.ceil(pressure.share * needed));
      const share = `${asPercent(pressure.share)} of the ${needed} needed`;
      const message = `${count(starting, 'worker')} wait for their start; pressure lets ${most} wait (least ${pressure.least}, ${share})`;
      return { atMost: Math.max(0, most - starting), reason: because('htcondor-idle-pressure', message) };
    },
    about: 'At most `least` workers, or `share` of the demand if that is more, wait for their start.',
  },
  {
    option: 'perCycle',
    passesOn: false,
    cap: ({ terms: { perCycle } }) =>
      perCycle === Infinity
        ? undefined
        : {
            atMost: perCycle,
            reason: because('htcondor-idle-per-cycle', `perCycle lets ${perCycle} be added at each look`),
          },
    about: 'A pace alone: the jobs wait for the next look.',
  },
];

/** The cap of a shape, or of a whole queue, by its living workers; undefined where it has none. */
export function capOfMost(most: number, living: number, what: string): Cap | undefined {
  if (most === Infinity) return undefined;
  const message = `${living} of most ${most} ${what} are alive`;
  return { atMost: Math.max(0, most - living), reason: because('htcondor-idle-most', message) };
}

/**
 * The cap of a shape with workers that run and have not joined the pool. They are no capacity, so without it a template whose workers
 * hang would get as many again each time those before are late, up to the limits of the queue. One may always try: the next one joins
 * once the cause is gone.
 */
export function capOfLate(lateness: Lateness | undefined, shape: string): Cap | undefined {
  if (lateness === undefined) return undefined;
  const { late, joined, onItsWay } = lateness;
  const most = Math.max(1, joined);
  const message = `${count(late, 'worker')} of ${shape} ${late === 1 ? 'has' : 'have'} not joined the pool in time: ${most} may be on their way, as many as have joined, at least 1, and ${onItsWay} ${onItsWay === 1 ? 'is' : 'are'}`;
  return { atMost: Math.max(0, most - onItsWay), reason: because('htcondor-idle-late', message) };
}

/** The tighter one, the first of two equal ones. */
export function tighter(one: Cap | undefined, other: Cap | undefined): Cap | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one.atMost <= other.atMost ? one : other;
}

/** The tightest cap that these rules make, the first of several; undefined: no rule has anything to say. */
export function tightest(rules: readonly CapRule[], state: CapState): Cap | undefined {
  return rules.flatMap(({ cap }) => cap(state) ?? []).reduce<Cap | undefined>(tighter, undefined);
}
