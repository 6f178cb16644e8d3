import type { Matching, Need, Shape, Space } from '../model.ts';
import { type Group, leastOf } from './groups.ts';
import { fill, type Pile } from './pile.ts';
import { type Amounts, holdsOne, largestOf, type Resourceful } from './sizes.ts';

/** What free slots, and workers on their way, take of one need. */
export interface Fitting {
  readonly fitting: number;
  /** They would go where HTCondor did not say whether they match: they may start there. */
  readonly unsure: number;
  readonly left: number;
}

/** A space by the index of its kind. */
interface Place {
  readonly space: Space;
  readonly kind: number;
}

type SpacePile = Pile<Need, Place>;

/**
 * Puts the jobs into what is there already, the tightest spaces first, so that large ones are left for large jobs.
 * @param counts how many jobs of a need count; groups come with the hardest to place first
 */
export function fillSpaces(
  groups: readonly Group[],
  counts: ReadonlyMap<Need, number>,
  spaces: readonly Space[],
  { matching, resources }: { readonly matching: Matching; readonly resources: Resourceful },
): Map<Need, Fitting> {
  let piles: readonly SpacePile[] = pilesOf(spaces, resources);
  const fitting = new Map<Need, Fitting>();
  const least = leastOf(groups);
  for (const { needs, size } of groups)
    for (const need of needs) {
      const count = counts.get(need) ?? 0;
      const answers: (boolean | undefined)[] = [];
      const unsure: number[] = [];
      const matches = ({ space, kind }: Place) => {
        if (!(kind in answers)) {
          answers[kind] = matching.space(need, space);
          if (answers[kind] === undefined) unsure.push(kind);
        }
        return answers[kind];
      };
      const sure = fill(piles, need, size, count, (place) => matches(place) === true);
      const perhaps =
        unsure.length > 0
          ? fill(sure.piles, need, size, sure.left, (place) => matches(place) === undefined)
          : sure;
      if (perhaps.piles !== piles)
        piles = perhaps.piles.filter(
          ({ oneJob, jobs, free }) => jobs.size === 0 || (!oneJob && holdsOne(least, free)),
        );
      fitting.set(need, {
        fitting: count - sure.left,
        unsure: sure.left - perhaps.left,
        left: perhaps.left,
      });
    }
  return fitting;
}

/** Spaces that are whole empty machines of a shape, by its key, and the others. */
export interface SortedSpaces {
  readonly whole: ReadonlyMap<string, number>;
  readonly others: readonly Space[];
}

/** Finds the spaces that are as good as a new machine of one of these shapes. */
export function sortSpaces(
  spaces: readonly Space[],
  shapes: readonly Shape[],
  resources: Resourceful,
): SortedSpaces {
  const known = new Map(shapes.map((shape) => [shape.key, { shape, free: resources.had(shape.resources) }]));
  const whole = new Map<string, number>();
  const others = spaces.filter((space) => {
    const of = space.shape === undefined ? undefined : known.get(space.shape);
    const isWhole =
      of !== undefined && of.shape.oneJob === space.oneJob && hasAll(resources.had(space.free), of.free);
    if (isWhole) whole.set(of.shape.key, (whole.get(of.shape.key) ?? 0) + 1);
    return !isWhole;
  });
  return { whole, others };
}

function pilesOf(spaces: readonly Space[], resources: Resourceful): SpacePile[] {
  const kinds = new Map<string, number>();
  const alike = new Map<string, { readonly pile: SpacePile; count: number }>();
  for (const space of spaces) {
    const free = resources.had(space.free);
    // The matching of a worker of ours is that of its whole machine: it says nothing of one that is partly taken.
    const certain = space.shape === undefined;
    const key = [space.kind, space.oneJob, certain, ...free].join(' ');
    const known = alike.get(key);
    if (known !== undefined) known.count += 1;
    else {
      const kind = kinds.get(space.kind) ?? kinds.size;
      kinds.set(space.kind, kind);
      const pile = {
        machine: { space, kind },
        count: 1,
        free,
        jobs: new Map(),
        oneJob: space.oneJob,
        certain,
      };
      alike.set(key, { pile, count: 1 });
    }
  }
  const piles = [...alike].map(([key, { pile, count }]) => ({ key, pile: { ...pile, count } }));
  const largest = largestOf(piles.map(({ pile }) => pile.free));
  return piles
    .map(({ key, pile }) => ({ key, pile, size: sizeOf(pile.free, largest) }))
    .toSorted((a, b) => a.size - b.size || (a.key < b.key ? -1 : 1))
    .map(({ pile }) => pile);
}

function hasAll(free: Amounts, machine: Amounts): boolean {
  return machine.every((amount, index) => amount === Infinity || (free[index] ?? 0) >= amount);
}

/** The parts of the largest space, over all resources. */
function sizeOf(free: Amounts, largest: Amounts): number {
  return free.reduce((sum, amount, index) => {
    const most = largest[index] ?? 0;
    return most > 0 && amount < Infinity ? sum + amount / most : sum;
  }, 0);
}
