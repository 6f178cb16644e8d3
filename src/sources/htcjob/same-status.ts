import { isDeepStrictEqual } from 'node:util';
import { type HtcJobStatus, writtenStatus } from '../../clients/htcjob/resource.ts';

/**
 * Whether a status says the same as it is written: times of conditions follow from the rest. Both are compared without our own secrets: what the
 * server keeps has none, and one that puts them back in all that it gives must not be written to for ever.
 */
export function isSame(known: HtcJobStatus | undefined, wanted: HtcJobStatus): boolean {
  if (known === undefined) return false;
  const [before, after] = [writtenStatus(known), writtenStatus(wanted)];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)] as (keyof HtcJobStatus)[]);
  return [...keys].every((key) => sameValue(before[key], after[key]));
}

/** The server leaves out empty lists, and may give objects back with their keys in another order. */
function sameValue(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) || Array.isArray(other)) return isDeepStrictEqual(one ?? [], other ?? []);
  return one === other;
}
