import { isDeepStrictEqual } from 'node:util';
import type { HtcJobStatus } from '../../clients/htcjob/resource.ts';

/** Whether a status says the same: times of conditions follow from the rest. */
export function isSame(before: HtcJobStatus | undefined, after: HtcJobStatus): boolean {
  if (before === undefined) return false;
  const keys = new Set([...Object.keys(before), ...Object.keys(after)] as (keyof HtcJobStatus)[]);
  return [...keys].every((key) => sameValue(before[key], after[key]));
}

/** The server leaves out empty lists, and may give objects back with their keys in another order. */
function sameValue(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) || Array.isArray(other)) return isDeepStrictEqual(one ?? [], other ?? []);
  return one === other;
}
