import { mostJobs } from './resource.ts';

/** One attempt at one job of a resource. An origin is unique for good, so each attempt is an origin of its own. */
export interface Attempt {
  /** How often the resource had been suspended. */
  readonly round: number;
  /** 0 for the first of its round. */
  readonly attempt: number;
  /** Number of the job, from 0 on: its script's argument. */
  readonly number: number;
}

/** `backoffLimit` is smaller. */
const mostAttempts = 1000;

/** The index of the origin. The first attempt of the first round has the job's number. */
export function indexOf({ round, attempt, number }: Attempt): number {
  return (round * mostAttempts + attempt) * mostJobs + number;
}

export function attemptOf(index: number): Attempt {
  const before = Math.floor(index / mostJobs);
  return {
    round: Math.floor(before / mostAttempts),
    attempt: before % mostAttempts,
    number: index % mostJobs,
  };
}

/** "0-4,7", as Indexed Jobs of Kubernetes write it; undefined where there is none. */
export function toRanges(numbers: readonly number[]): string | undefined {
  const ranges: [first: number, last: number][] = [];
  for (const number of numbers.toSorted((one, other) => one - other)) {
    const last = ranges.at(-1);
    if (last !== undefined && number <= last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  if (ranges.length === 0) return undefined;
  return ranges.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(',');
}

/** Another writer may have left anything there: parts that are no range within `count` numbers are left out. */
export function fromRanges(text: string | undefined, count: number): Set<number> {
  const numbers = new Set<number>();
  for (const part of text?.split(',') ?? []) {
    const [, first, last = first] = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part) ?? [];
    if (first === undefined) continue;
    for (let number = Number(first); number <= Math.min(Number(last), count - 1); number++)
      numbers.add(number);
  }
  return numbers;
}
