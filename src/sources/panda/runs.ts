import type { OriginKey } from '../../plugins/contracts/index.ts';
import type { Run } from './memory.ts';
import type { ByType } from './orders.ts';

/**
 * The `uid` of an order's workers. The time is in it because a server whose database was made anew counts its commands from 1
 * again, and a `uid` never gives workers twice.
 */
export function uidOf(site: string, commandId: number, createdAt: number | undefined): string {
  return `${site}#${commandId}${createdAt === undefined ? '' : `@${createdAt}`}`;
}

/** The parts of a run whose indexes are not among these. */
export function openIn(run: Run, served: ReadonlySet<number>): Run[] {
  const { from, count } = run;
  if (served.size === 0) return [run];
  const open: Run[] = [];
  let first = from;
  for (let index = from; index <= from + count; index++) {
    if (index < from + count && !served.has(index)) continue;
    if (index > first) open.push({ ...run, from: first, count: index - first });
    first = index + 1;
  }
  return open;
}

/** The smallest of these runs, of equal ones the first, as far as there are more than `most`: so the fewest requests go. */
export function smallestBeyond(runs: readonly Run[], most: number): ReadonlySet<Run> {
  const bySize = runs.toSorted((one, other) => one.count - other.count);
  return new Set(bySize.slice(0, Math.max(0, runs.length - most)));
}

export function originsIn({ uid, from, count }: Run): OriginKey[] {
  return Array.from({ length: count }, (_, at) => ({ uid, index: from + at }));
}

/**
 * The workers of a new order by name. For each type the requests that the last order left over come first, then new ones.
 * `surplus`: what was left over and is wanted no more.
 */
export function carriedOver(
  left: readonly Run[],
  wanted: ByType,
  uid: string,
): { readonly runs: readonly Run[]; readonly surplus: readonly Run[] } {
  const runs: Run[] = [];
  const surplus: Run[] = [];
  const byType = Map.groupBy(left, ({ type }) => type);
  let next = 0;
  for (const [type, count] of wanted) {
    let room = count;
    for (const run of byType.get(type) ?? []) {
      const kept = Math.min(run.count, room);
      if (kept > 0) runs.push({ ...run, count: kept });
      if (kept < run.count) surplus.push({ ...run, from: run.from + kept, count: run.count - kept });
      room -= kept;
    }
    if (room > 0) runs.push({ type, uid, from: next, count: room });
    next += room;
  }
  surplus.push(...left.filter(({ type }) => !wanted.has(type)));
  return { runs, surplus };
}
