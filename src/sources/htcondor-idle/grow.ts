import { type Cap, capOfLate, capOfMost, capRules, tighter, tightest } from './caps.ts';
import { noTerms, type QueueTerms, type ShapeWorkers } from './demand.ts';
import type { Group, Machine } from './packing/groups.ts';
import { endless, pack, type Packed, type Rooms, type Stock } from './packing/open.ts';
import type { NewPile } from './packing/spare.ts';

/** New workers, as one set of caps lets them be. */
export interface Stage {
  /** By shape. */
  readonly workers: ReadonlyMap<Machine, number>;
  readonly piles: readonly NewPile[];
  /** Empty machines, there or on their way, that take jobs beside them. */
  readonly stocked: readonly NewPile[];
}

/** The new workers before and after each kind of cap. */
export interface Growth {
  /** All that the jobs need. */
  readonly wanted: Stage;
  /** After the bounds on living workers; the jobs of cut ones went to the next shape that matches. */
  readonly firm: Stage;
  /** After those on workers that do not run yet, too. */
  readonly pressed: Stage;
  /** After all. */
  readonly paced: Stage;
  /** The cap of each stage, by queue; of `firm` by shape as well. */
  readonly caps: {
    readonly shape: ReadonlyMap<Machine, Cap>;
    readonly firm: ReadonlyMap<string, Cap>;
    readonly pressed: ReadonlyMap<string, Cap>;
    readonly paced: ReadonlyMap<string, Cap>;
  };
}

/** The living workers and the terms. */
export interface Bounds {
  readonly workers: ReadonlyMap<string, ShapeWorkers>;
  readonly terms: ReadonlyMap<string, QueueTerms>;
}

const byWanted = new Set(['pressure']);
const firmRules = capRules.filter(({ option, passesOn }) => passesOn && !byWanted.has(option));
const pressedRules = capRules.filter(({ option, passesOn }) => passesOn && byWanted.has(option));
const pacedRules = capRules.filter(({ passesOn }) => !passesOn);

/** Packs the jobs into new workers: without caps, then again within each kind of cap that cuts something. */
export function grow(
  demand: ReadonlyMap<Group, number>,
  machines: readonly Machine[],
  stock: Stock,
  bounds: Bounds,
): Growth {
  const queues = Map.groupBy(machines, ({ shape }) => shape.queue);
  const capsOf = (rules: typeof capRules, before: Stage) =>
    new Map(
      [...queues].flatMap(([queue, own]) => {
        const cap = tightest(rules, stateOf(queue, own, before, bounds));
        return cap === undefined ? [] : [[queue, cap] as const];
      }),
    );
  const again = (before: Stage, shapes: ReadonlyMap<Machine, Cap>, ...caps: ReadonlyMap<string, Cap>[]) => {
    const isOver =
      [...shapes].some(([machine, { atMost }]) => countOf(before, [machine]) > atMost) ||
      caps.some((one) =>
        [...one].some(([queue, { atMost }]) => countOf(before, queues.get(queue) ?? []) > atMost),
      );
    return isOver ? stageOf(pack(demand, machines, stock, () => new CappedRooms(shapes, caps))) : before;
  };

  const shape = new Map(
    machines.flatMap((machine) => {
      const { key, most } = machine.shape;
      const { living = 0, lateness } = bounds.workers.get(key) ?? {};
      const cap = tighter(capOfMost(most, living, `workers of ${key}`), capOfLate(lateness, key));
      return cap === undefined ? [] : [[machine, cap] as const];
    }),
  );
  const wanted = stageOf(pack(demand, machines, stock, () => endless));
  const firmCaps = capsOf(firmRules, wanted);
  const firm = again(wanted, shape, firmCaps);
  const pressedCaps = capsOf(pressedRules, firm);
  const pressed = again(firm, shape, firmCaps, pressedCaps);
  const pacedCaps = capsOf(pacedRules, pressed);
  const paced = stageOf({ added: pace(pressed, queues, pacedCaps), stocked: pressed.stocked });
  return {
    wanted,
    firm,
    pressed,
    paced,
    caps: { shape, firm: firmCaps, pressed: pressedCaps, paced: pacedCaps },
  };
}

/** How many new workers of these shapes there are. */
export function countOf(stage: Stage, machines: readonly Machine[]): number {
  return machines.reduce((sum, machine) => sum + (stage.workers.get(machine) ?? 0), 0);
}

function stateOf(queue: string, own: readonly Machine[], before: Stage, { workers, terms }: Bounds) {
  const sum = (kind: 'living' | 'starting') =>
    own.reduce((total, { shape }) => total + (workers.get(shape.key)?.[kind] ?? 0), 0);
  return {
    terms: terms.get(queue) ?? noTerms,
    living: sum('living'),
    starting: sum('starting'),
    wanted: countOf(before, own),
  };
}

function stageOf({ added, stocked }: Packed): Stage {
  const workers = new Map<Machine, number>();
  for (const { machine, count } of added) workers.set(machine, (workers.get(machine) ?? 0) + count);
  return { workers, piles: added, stocked };
}

/** The room that caps of shapes and of whole queues leave. */
class CappedRooms implements Rooms {
  readonly #shapes: Map<Machine, number>;
  readonly #queues: Map<string, number>[];

  constructor(shapes: ReadonlyMap<Machine, Cap>, queues: readonly ReadonlyMap<string, Cap>[]) {
    const roomsOf = <Key>(caps: ReadonlyMap<Key, Cap>) =>
      new Map([...caps].map(([key, { atMost }]) => [key, atMost]));
    this.#shapes = roomsOf(shapes);
    this.#queues = queues.map(roomsOf);
  }

  /** Asked for each shape and each size of jobs: it makes no list. */
  left(machine: Machine): number {
    let room = this.#shapes.get(machine) ?? Infinity;
    for (const queues of this.#queues) room = Math.min(room, queues.get(machine.shape.queue) ?? Infinity);
    return room;
  }

  take(machine: Machine, count: number): void {
    const lower = <Key>(rooms: Map<Key, number>, key: Key) => {
      const room = rooms.get(key);
      if (room !== undefined) rooms.set(key, room - count);
    };
    lower(this.#shapes, machine);
    for (const rooms of this.#queues) lower(rooms, machine.shape.queue);
  }
}

/** Each shape of a queue keeps its part of what the pace allows, so that one kind of job never waits for all of another. */
function pace(
  { workers, piles }: Stage,
  queues: ReadonlyMap<string, readonly Machine[]>,
  caps: ReadonlyMap<string, Cap>,
): NewPile[] {
  const keeps = new Map(workers);
  for (const [queue, { atMost }] of caps) {
    const own = queues.get(queue) ?? [];
    const parts = share(
      own.map((machine) => workers.get(machine) ?? 0),
      atMost,
    );
    own.forEach((machine, index) => keeps.set(machine, parts[index] ?? 0));
  }
  return piles.flatMap((pile) => {
    const left = keeps.get(pile.machine) ?? 0;
    const count = Math.min(pile.count, left);
    keeps.set(pile.machine, left - count);
    return count === 0 ? [] : [{ ...pile, count }];
  });
}

/**
 * Parts of `atMost` in whole numbers: one for each that wants any, as far as it goes, and the rest in the proportion of what is
 * wanted further, with the largest remainders rounded up.
 */
export function share(counts: readonly number[], atMost: number): number[] {
  if (sumOf(counts) <= atMost) return [...counts];
  const parts = counts.map(() => 0);
  let left = atMost;
  const give = (index: number, number: number) => {
    parts[index] = (parts[index] ?? 0) + number;
    left -= number;
  };
  counts.forEach((count, index) => {
    if (count > 0 && left > 0) give(index, 1);
  });
  const further = counts.map((count) => Math.max(0, count - 1));
  const total = sumOf(further);
  const rest = left;
  const exact = further.map((count, index) => ({ index, part: total === 0 ? 0 : (count * rest) / total }));
  for (const { index, part } of exact) give(index, Math.floor(part));
  for (const { index } of exact.toSorted((a, b) => (b.part % 1) - (a.part % 1) || a.index - b.index))
    if (left > 0) give(index, 1);
  return parts;
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
