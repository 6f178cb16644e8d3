import type { OriginKey } from '../../plugins/contracts/index.ts';
import type { Run } from './memory.ts';
import type { ByType } from './orders.ts';

/** A request without a worker, and the resource type of the worker that it asks for. */
export interface OpenRequest extends OriginKey {
  readonly type: string;
}

/**
 * The `uid` of an order's workers. The time is in it because a server whose database was made anew counts its commands from 1
 * again, and a `uid` never gives workers twice.
 */
export function uidOf(site: string, commandId: number, createdAt: number | undefined): string {
  return `${site}#${commandId}${createdAt === undefined ? '' : `@${createdAt}`}`;
}

export function originsIn({ uid, from, count }: Run): OriginKey[] {
  return Array.from({ length: count }, (_, at) => ({ uid, index: from + at }));
}

/**
 * The workers of a new order by name. For each type the requests that the last order left over come first, then new ones.
 * `surplus`: what was left over and is wanted no more.
 */
export function carriedOver(
  left: readonly OpenRequest[],
  wanted: ByType,
  uid: string,
): { readonly runs: readonly Run[]; readonly surplus: readonly OriginKey[] } {
  const runs: Run[] = [];
  let next = 0;
  for (const [type, count] of wanted) {
    const kept = left.filter((one) => one.type === type).slice(0, count);
    runs.push(...runsOf(kept));
    const fresh = count - kept.length;
    if (fresh > 0) runs.push({ type, uid, from: next, count: fresh });
    next += Math.max(0, fresh);
  }
  const room = new Map(wanted);
  const surplus = left.filter(({ type }) => {
    const free = room.get(type) ?? 0;
    room.set(type, free - 1);
    return free <= 0;
  });
  return { runs, surplus: surplus.map(({ uid: of, index }) => ({ uid: of, index })) };
}

/** Consecutive indexes of one name become one run. */
function runsOf(requests: readonly OpenRequest[]): Run[] {
  const runs: { type: string; uid: string; from: number; count: number }[] = [];
  for (const { type, uid, index } of requests) {
    const last = runs.at(-1);
    if (last?.uid === uid && last.type === type && last.from + last.count === index) last.count++;
    else runs.push({ type, uid, from: index, count: 1 });
  }
  return runs;
}
