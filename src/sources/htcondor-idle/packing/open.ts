import { type Group, leastOf, type Machine } from './groups.ts';
import { fill, roomOf } from './pile.ts';
import { type NewPile, withoutSpare } from './spare.ts';
import { holdsOne } from './sizes.ts';

/** How many machines of each shape may be added. */
export interface Rooms {
  left(machine: Machine): number;
  take(machine: Machine, count: number): void;
}

/** Empty machines of a shape that are there, or on their way. */
export type Stock = ReadonlyMap<Machine, number>;

/** Machines with the jobs in them. */
export interface Packed {
  /** New ones. */
  readonly added: readonly NewPile[];
  /** Those of the stock that got jobs. */
  readonly stocked: readonly NewPile[];
}

/** Whole machines without any bound. */
export const endless: Rooms = { left: () => Infinity, take: () => undefined };

/**
 * Packs jobs into whole machines: each group first into those that got jobs before, then into further ones, of the shape that costs least
 * for each job which it takes now. `demand` comes with the hardest to place first. Greedy, so not always the cheapest of all.
 *
 * It packs in two ways, and takes the better: the stock before new machines; and as though the stock were new, whose machines then count
 * as far as it goes. By the second way the machines that it adds take the same jobs once they are in the stock: asked again, it adds nothing.
 * @param rooms gives the bounds afresh for each way
 */
export function pack(
  demand: ReadonlyMap<Group, number>,
  machines: readonly Machine[],
  stock: Stock,
  rooms: () => Rooms,
): Packed {
  const before = packOnce(demand, machines, stock, (stockRooms) => [stockRooms, rooms()]);
  const isEmpty = [...stock.values()].every((count) => count === 0);
  if (isEmpty || (before.left === 0 && before.added.length === 0)) return before;
  const beside = packOnce(demand, machines, stock, (stockRooms) => [together(stockRooms, rooms())]);
  const isBetter =
    beside.left < before.left || (beside.left === before.left && costOf(beside.added) < costOf(before.added));
  return isBetter ? beside : before;
}

/** @param turns the bounds of the machines that a group may be given, one after the other */
function packOnce(
  demand: ReadonlyMap<Group, number>,
  machines: readonly Machine[],
  stock: Stock,
  turns: (stockRooms: Rooms) => readonly Rooms[],
): Packed & { readonly left: number } {
  let open: NewPile[] = [];
  const full: NewPile[] = [];
  const least = leastOf([...demand.keys()]);
  const keepOpen = (pile: NewPile) => !pile.oneJob && holdsOne(least, pile.free);
  const allRooms = turns(roomsOf(new Map(stock)));
  let unplaced = 0;
  for (const [group, count] of demand) {
    const takes = ({ index }: Machine) => group.shapes.includes(index);
    const filled = fill(open, group, group.size, count, takes);
    const own = group.shapes.flatMap((index) => machines[index] ?? []);
    const added: NewPile[] = [];
    let { left } = filled;
    for (const rooms of allRooms) {
      const further = addMachines(group, left, own, rooms);
      added.push(...further.piles);
      left = further.left;
    }
    unplaced += left;
    // Most groups change few piles: those that stayed as they were still have their room.
    const changed = filled.piles === open ? added : [...filled.piles, ...added];
    if (filled.piles !== open) open = [];
    for (const pile of changed) (keepOpen(pile) ? open : full).push(pile);
  }
  return { ...split(withoutSpare(full, open), stock), left: unplaced };
}

function costOf(piles: readonly NewPile[]): number {
  return piles.reduce((sum, { machine, count }) => sum + count * machine.shape.cost, 0);
}

/** The room of both; the first is used up before the second. */
function together(first: Rooms, second: Rooms): Rooms {
  return {
    left: (machine) => first.left(machine) + second.left(machine),
    take: (machine, count) => {
      const taken = Math.min(count, first.left(machine));
      first.take(machine, taken);
      second.take(machine, count - taken);
    },
  };
}

function roomsOf(left: Map<Machine, number>): Rooms {
  return {
    left: (machine) => left.get(machine) ?? 0,
    take: (machine, count) => left.set(machine, (left.get(machine) ?? 0) - count),
  };
}

/** Of each shape, as many machines as are in stock are no new ones. */
function split(piles: readonly NewPile[], stock: Stock): Packed {
  const left = new Map(stock);
  const stocked: NewPile[] = [];
  const added: NewPile[] = [];
  for (const pile of piles) {
    const has = left.get(pile.machine) ?? 0;
    const count = Math.min(has, pile.count);
    left.set(pile.machine, has - count);
    if (count > 0) stocked.push({ ...pile, count });
    if (count < pile.count) added.push({ ...pile, count: pile.count - count });
  }
  return { added, stocked };
}

/** The machines of the cheapest of these shapes that take so many jobs of one group, as far as there is room for them. */
function addMachines(group: Group, count: number, machines: readonly Machine[], rooms: Rooms) {
  const piles: NewPile[] = [];
  let left = count;
  while (left > 0) {
    const best = cheapest(group, left, machines, rooms);
    if (best === undefined) break;
    const { machine, each } = best;
    const added = Math.min(Math.max(1, Math.floor(left / each)), rooms.left(machine));
    rooms.take(machine, added);
    const filled = fill([emptyPile(machine, added)], group, group.size, left, () => true);
    left = filled.left;
    piles.push(...filled.piles);
  }
  return { piles, left };
}

function emptyPile(machine: Machine, count: number): NewPile {
  // Matching is HTCondor's word on an empty machine of this shape.
  return { machine, count, free: machine.free, jobs: noJobs, oneJob: machine.shape.oneJob, certain: true };
}

/** One for all empty machines: piles do not change. */
const noJobs: NewPile['jobs'] = new Map();

/** The shape that costs least for each job that one machine of it takes now; of several, the one that costs least itself. */
function cheapest(group: Group, left: number, machines: readonly Machine[], rooms: Rooms) {
  let best: { readonly machine: Machine; readonly each: number; readonly perJob: number } | undefined;
  for (const machine of machines) {
    if (rooms.left(machine) < 1) continue;
    const each = roomOf(emptyPile(machine, 1), group.size, left);
    const perJob = machine.shape.cost / each;
    const better =
      best === undefined ||
      perJob < best.perJob ||
      (perJob === best.perJob &&
        (machine.shape.cost < best.machine.shape.cost ||
          (machine.shape.cost === best.machine.shape.cost && machine.shape.key < best.machine.shape.key)));
    if (better) best = { machine, each, perJob };
  }
  return best;
}
