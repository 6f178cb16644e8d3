import { createHash } from 'node:crypto';

/** One of the things that daemons share out: a queue, a source with a life of its own, the housekeeping. */
export interface Item {
  readonly name: string;
  /** Items with a key in common stay on one daemon: they share a connection, a limit, a credential or a source. */
  readonly keys: readonly string[];
  /** How much of a daemon it takes: 1 for a queue. */
  readonly weight: number;
  /** The daemon that an operator wants to have it. */
  readonly owner?: string;
  /** Whether its workers belong to the machine of the daemon that has it: no other daemon ever takes it. */
  readonly bound?: boolean;
}

export interface Sharing {
  readonly items: readonly Item[];
  /** Names of the daemons that may have something now. */
  readonly members: readonly string[];
  /** Who has what, daemons that are gone included. */
  readonly holders: ReadonlyMap<string, string>;
  /** Daemons that are there and plan by other files: what they have, and what belongs to it, stays with them. */
  readonly apart?: ReadonlySet<string>;
}

/** Items that have to stay together. */
interface Group {
  readonly name: string;
  readonly items: readonly Item[];
  readonly weight: number;
  readonly owner: string | undefined;
  /** By item. */
  readonly holders: ReadonlyMap<string, string>;
}

/**
 * Says which daemon is to have which item. Every daemon comes to the same answer by itself:
 *
 * 1. items with a key in common are one group, and a group has one daemon;
 * 2. a group goes to the daemon that its queues name as their owner, while that one is there;
 * 3. a daemon keeps what it has, up to its part of the whole: so one that joins or leaves moves nothing but what it must. What it gives
 *    up first is what rendezvous hashing would rather have elsewhere;
 * 4. the rest goes to the daemon that rendezvous hashing prefers, among those that have room.
 *
 * What is bound to a machine is no part of a group: it stays with the daemon that has it, also while that one is gone.
 */
export function planShares({
  items,
  members,
  holders,
  apart = new Set(),
}: Sharing): ReadonlyMap<string, string> {
  const planned = new Map<string, string>();
  if (members.length === 0) return planned;
  const loads = new Map(members.map((member) => [member, 0]));
  const groups = groupsOf(items, holders);
  const total = groups.reduce((sum, { weight }) => sum + weight, 0);
  const heaviest = groups.reduce((most, { weight }) => Math.max(most, weight), 1);
  // With so much room there is a daemon for each group, in whatever order they come.
  const capacity = Math.ceil(total / members.length) + heaviest - 1;
  const put = (group: Group, member: string) => {
    for (const { name } of group.items) planned.set(name, member);
    const load = loads.get(member);
    if (load !== undefined) loads.set(member, load + group.weight);
  };
  const isFull = (group: Group, member: string) => (loads.get(member) ?? 0) + group.weight > capacity;
  const open: Group[] = [];
  for (const group of groups) {
    const bound = group.items.flatMap(({ name, bound }) =>
      bound === true ? (holders.get(name) ?? []) : [],
    )[0];
    const other = [...group.holders.values()].find((holder) => apart.has(holder));
    if (bound !== undefined) put(group, bound);
    else if (other !== undefined) put(group, other);
    else if (group.owner !== undefined && loads.has(group.owner)) put(group, group.owner);
    else open.push(group);
  }
  const free: Group[] = [];
  const kept = open
    .map((group) => ({ group, holder: heldBy(group, loads) }))
    .toSorted((one, other) => score(other.group, other.holder ?? '') - score(one.group, one.holder ?? ''));
  for (const { group, holder } of kept)
    if (holder !== undefined && !isFull(group, holder)) put(group, holder);
    else free.push(group);
  for (const group of free.toSorted(
    (one, other) => other.weight - one.weight || compare(one.name, other.name),
  )) {
    const preferred = members.toSorted((one, other) => score(group, other) - score(group, one));
    const [member] = preferred.filter((one) => !isFull(group, one));
    if (member !== undefined) put(group, member);
  }
  even(planned, loads, open);
  return planned;
}

/** Gives to those that have least what others have too much of: so a daemon that joins gets its part also where there are few queues. */
function even(planned: Map<string, string>, loads: Map<string, number>, movable: readonly Group[]): void {
  for (;;) {
    const ordered = [...loads].toSorted((one, other) => one[1] - other[1] || compare(one[0], other[0]));
    const [least, most] = [ordered.at(0), ordered.at(-1)];
    if (least === undefined || most === undefined) return;
    // Each move makes the two more alike.
    const [group] = movable
      .filter(
        ({ name, weight }) => planned.get(name) === most[0] && weight > 0 && most[1] - least[1] > weight,
      )
      .toSorted((one, other) => score(one, most[0]) - score(other, most[0]));
    if (group === undefined) return;
    for (const { name } of group.items) planned.set(name, least[0]);
    loads.set(most[0], most[1] - group.weight);
    loads.set(least[0], least[1] + group.weight);
  }
}

/** The living daemon that has most of a group: queues of several daemons may come to share something. */
function heldBy({ items, holders }: Group, living: ReadonlyMap<string, number>): string | undefined {
  const weight = (member: string) =>
    items.reduce((sum, { name, weight }) => sum + (holders.get(name) === member ? weight + 1 : 0), 0);
  return [...new Set(holders.values())]
    .filter((member) => living.has(member))
    .toSorted((one, other) => weight(other) - weight(one) || compare(one, other))[0];
}

/** The items that have to stay together, each group by name. */
export function groupedItems(items: readonly Item[]): (readonly Item[])[] {
  const ofKey = new Map<string, Set<Item>>();
  let groups: Set<Item>[] = [];
  for (const item of items) {
    const joined = new Set([item]);
    const keys = (one: Item) => (one.bound === true ? [] : one.keys);
    const touched = new Set(keys(item).flatMap((key) => ofKey.get(key) ?? []));
    for (const group of touched) for (const one of group) joined.add(one);
    groups = [...groups.filter((group) => !touched.has(group)), joined];
    for (const one of joined) for (const key of keys(one)) ofKey.set(key, joined);
  }
  return groups.map((group) => [...group].toSorted((one, other) => compare(one.name, other.name)));
}

function groupsOf(items: readonly Item[], holders: ReadonlyMap<string, string>): Group[] {
  return groupedItems(items).map((ordered) => {
    return {
      name: ordered[0]?.name ?? '',
      items: ordered,
      weight: ordered.reduce((sum, { weight }) => sum + weight, 0),
      owner: ordered.find(({ owner }) => owner !== undefined)?.owner,
      holders: new Map(
        ordered.flatMap(({ name }) => {
          const holder = holders.get(name);
          return holder === undefined ? [] : [[name, holder] as const];
        }),
      ),
    };
  });
}

/** How much a group belongs to a daemon, by rendezvous hashing: the same on every machine. */
function score({ name }: Pick<Group, 'name'>, member: string): number {
  return createHash('sha256').update(`${member}\0${name}`).digest().readUInt32BE();
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
