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

/** So many rounds that each index is a whole number still. */
const mostRounds = Math.floor(Number.MAX_SAFE_INTEGER / (mostAttempts * mostJobs)) - 1;

/** A count in a status: one of an older schema, or of another writer, may be anything. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? Math.min(value, mostRounds) : 0;
}

/** Longest text of ranges, characters: each number by itself, of four digits, with its comma. Those of `toRanges` are shorter. */
export const longestRanges = 5 * mostJobs;

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

/**
 * The numbers below `count` that ranges name, in ascending order. Another writer may have left anything in the text: parts that are no range
 * are left out, and so is all behind `longestRanges`, with the part that lies across that end. Ranges that overlap cost no more than
 * the numbers in them.
 */
export function fromRanges(text: unknown, count: number): Set<number> {
  const ranges: [first: number, last: number][] = [];
  for (const part of beginningOf(typeof text === 'string' ? text : '').split(',')) {
    const [, first, last = first] = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part) ?? [];
    if (first !== undefined) ranges.push([Number(first), Math.min(Number(last), count - 1)]);
  }
  ranges.sort(([one], [other]) => one - other);
  const numbers = new Set<number>();
  let next = 0;
  for (const [first, last] of ranges) {
    for (let number = Math.max(first, next); number <= last; number++) numbers.add(number);
    next = Math.max(next, last + 1);
  }
  return numbers;
}

/** The whole parts of a text within `longestRanges`. */
function beginningOf(text: string): string {
  if (text.length <= longestRanges) return text;
  const end = text.lastIndexOf(',', longestRanges);
  return text.slice(0, Math.max(0, end));
}
