import type { SharedOut } from '../../store/shares.ts';
import { queueOf } from './item-names.ts';

/** A daemon that shares the factory, and what it has. */
export interface MemberView {
  readonly name: string;
  /** Host and process. */
  readonly holder: string;
  readonly since: string;
  readonly state: 'up' | 'gone';
  readonly queues: readonly string[];
  /** Sources that live there; `factory`: commands, and the deletion of old rows. */
  readonly others: readonly string[];
}

/** Who has what. A daemon that is gone is shown while it has something. */
export function membersView({ members, shares }: SharedOut): MemberView[] {
  const items = Map.groupBy(shares, ({ member }) => member);
  return members.flatMap(({ name, holder, since, alive }): MemberView[] => {
    const own = (items.get(name) ?? []).map(({ item }) => item);
    if (!alive && own.length === 0) return [];
    const queues = own.flatMap((item) => queueOf(item) ?? []);
    const others = own.filter((item) => queueOf(item) === undefined);
    return [{ name, holder, since, state: alive ? 'up' : 'gone', queues, others }];
  });
}
