import type { Group, Machine } from './groups.ts';
import { fill, type Pile } from './pile.ts';

/** Machines of one shape with the same jobs in them. */
export type NewPile = Pile<Group, Machine>;

/** At most so many looks at a pile: the work stays small beside that of the packing, and a machine too many costs a worker that ends idle. */
const mostLooks = 100_000;

/**
 * Leaves out machines whose jobs find room in others: a large job that came later may have opened a machine with much room. It tries
 * those with the fewest jobs first.
 * @param full takes no further job
 */
export function withoutSpare(full: readonly NewPile[], open: readonly NewPile[]): NewPile[] {
  if (open.length === 0) return [...full];
  const kept: NewPile[] = [];
  const state: State = { roomy: open, looks: mostLooks };
  const all = [
    ...full.map((pile) => ({ pile, isFull: true })),
    ...open.map((pile) => ({ pile, isFull: false })),
  ];
  for (const { pile, isFull } of all.toSorted((a, b) => jobsOf(a.pile) - jobsOf(b.pile))) {
    if (isFull) {
      const count = emptyFull(pile, state);
      if (count > 0) kept.push({ ...pile, count });
    } else emptyOpen(pile, state);
  }
  return [...kept, ...state.roomy];
}

interface State {
  roomy: readonly NewPile[];
  looks: number;
}

function jobsOf({ jobs }: NewPile): number {
  return [...jobs.values()].reduce((sum, count) => sum + count, 0);
}

/** @returns how many machines of the pile stay */
function emptyFull(pile: NewPile, state: State): number {
  let { count } = pile;
  while (count > 0) {
    const moved = moveInto(state.roomy, pile.jobs, state);
    if (moved === undefined) break;
    state.roomy = moved;
    count -= 1;
  }
  return count;
}

/** Empties machines of a pile that may itself take jobs: not those that it lost. A pile that got some is another pile, and stays. */
function emptyOpen(pile: NewPile, state: State): void {
  let current = pile;
  for (;;) {
    const at = state.roomy.indexOf(current);
    if (at === -1) return;
    const fewer = { ...current, count: current.count - 1 };
    const others = state.roomy.toSpliced(at, 1, ...(fewer.count > 0 ? [fewer] : []));
    const moved = moveInto(others, current.jobs, state);
    if (moved === undefined) return;
    state.roomy = moved;
    current = fewer;
  }
}

/** The piles with these jobs in them; undefined where they have not enough room, or the work would be too much. */
function moveInto(
  piles: readonly NewPile[],
  jobs: ReadonlyMap<Group, number>,
  state: State,
): readonly NewPile[] | undefined {
  let into = piles;
  for (const [group, count] of jobs) {
    if (state.looks <= 0) return undefined;
    state.looks -= into.length;
    const filled = fill(into, group, group.size, count, ({ index }) => group.shapes.includes(index));
    if (filled.left > 0) return undefined;
    into = filled.piles;
  }
  return into;
}
