import type { HtcJobStatus } from '../../clients/htcjob/resource.ts';

/** Whether a status says the same: times of conditions follow from the rest. */
export function isSame(before: HtcJobStatus | undefined, after: HtcJobStatus): boolean {
  if (before === undefined) return false;
  const keys = new Set([...Object.keys(before), ...Object.keys(after)] as (keyof HtcJobStatus)[]);
  return [...keys].every((key) => sameValue(before[key], after[key]));
}

function sameValue(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) || Array.isArray(other))
    return sorted((one as unknown[] | undefined) ?? []) === sorted((other as unknown[] | undefined) ?? []);
  return one === other;
}

/** The server may give objects back with their keys in another order. */
function sorted(list: readonly unknown[]): string {
  return JSON.stringify(
    list.map((one) => (typeof one === 'object' && one !== null ? Object.entries(one).sort() : one)),
  );
}
