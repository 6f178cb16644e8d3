import type { Resources } from '../model.ts';

/** Amounts by the index of their resource. */
export type Amounts = readonly number[];

/** A job's sizes, as amounts. */
export interface JobSize {
  readonly rounded: Amounts;
  readonly exact: Amounts;
}

/**
 * The resources that any machine of one decision names, each with an index: arithmetic by names is slow. What jobs alone name is counted nowhere,
 * however much of it somebody makes up.
 */
export class Resourceful {
  readonly #names: readonly string[];

  constructor(all: Iterable<Resources>) {
    const names = new Set<string>();
    for (const resources of all) for (const name of resources.keys()) names.add(name);
    this.#names = [...names].toSorted();
  }

  /** A request: 0 of each resource that it does not name. */
  asked(request: Resources): Amounts {
    return this.#names.map((name) => request.get(name) ?? 0);
  }

  /** A machine: HTCondor does not count there what it does not name. */
  had(machine: Resources): Amounts {
    return this.#names.map((name) => machine.get(name) ?? Infinity);
  }
}

/** How many requests of one size these amounts hold, after `times` of another; Infinity for a request for nothing. */
function howMany(each: Amounts, free: Amounts, taken?: Amounts, times = 0): number {
  let most = Infinity;
  for (let index = 0; index < each.length; index++) {
    const amount = each[index] ?? 0;
    // Infinity of what the machine does not count would be no number when divided by itself.
    const has = free[index] ?? Infinity;
    if (amount <= 0 || has === Infinity) continue;
    const left = taken === undefined ? has : has - times * (taken[index] ?? 0);
    const holds = Math.floor(left / amount);
    if (holds < most) most = holds;
    if (most <= 0) return 0;
  }
  return most;
}

/** Whether a machine holds one request. Most questions end here, and comparing is cheaper than dividing. */
export function holdsOne(each: Amounts, free: Amounts): boolean {
  for (let index = 0; index < each.length; index++)
    if ((each[index] ?? 0) > (free[index] ?? Infinity)) return false;
  return true;
}

/** What is left after so many requests; never below 0. */
export function less(free: Amounts, each: Amounts, times: number): Amounts {
  return free.map((amount, index) => {
    const taken = times === 0 ? 0 : times * (each[index] ?? 0);
    return amount === Infinity ? Infinity : Math.max(0, amount - taken);
  });
}

/**
 * How many jobs of one size these amounts take, and how many of them rounded: a startd rounds while it has enough, and gives the rest
 * to jobs as they asked. No more than `most`.
 */
export function jobsIn(size: JobSize, free: Amounts, most: number): { rounded: number; all: number } {
  const rounded = Math.min(most, howMany(size.rounded, free));
  if (rounded === most) return { rounded, all: rounded };
  const further = howMany(size.exact, free, size.rounded, rounded);
  return { rounded, all: Math.min(most, rounded + further) };
}

/** How much of the largest machine a job takes, of the resource that it takes most of; larger jobs are harder to place. */
export function weightOf(asked: Amounts, largest: Amounts): number {
  return asked.reduce((most, amount, index) => {
    const whole = largest[index] ?? 0;
    return whole > 0 && whole < Infinity ? Math.max(most, amount / whole) : most;
  }, 0);
}

/** Of each resource, the most that one machine has; Infinity where no machine counts it. */
export function largestOf(machines: readonly Amounts[]): Amounts {
  const [first, ...rest] = machines;
  if (first === undefined) return [];
  return rest.reduce(
    (largest, free) =>
      largest.map((amount, index) => {
        const other = free[index] ?? Infinity;
        if (other === Infinity) return amount;
        return amount === Infinity ? other : Math.max(amount, other);
      }),
    first,
  );
}
