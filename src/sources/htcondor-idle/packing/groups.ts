import type { Need, Shape } from '../model.ts';
import { type Amounts, type JobSize, largestOf, type Resourceful, weightOf } from './sizes.ts';

/** Needs that are one to the packing: the same sizes, and the same shapes match. */
export interface Group {
  readonly needs: readonly Need[];
  readonly size: JobSize;
  /** Indexes of the shapes that match. */
  readonly shapes: readonly number[];
  /** Indexes of the shapes of which HTCondor did not say whether they match. */
  readonly unsure: readonly number[];
}

/** A shape as the packing sees it. */
export interface Machine {
  readonly shape: Shape;
  /** Among the machines, which come by the keys of their shapes. */
  readonly index: number;
  readonly free: Amounts;
}

/** Groups the needs, those that are hardest to place first: large ones, then those with fewer shapes. */
export function groupsOf(
  needs: readonly Need[],
  machines: readonly Machine[],
  matches: (need: Need, shape: Shape) => boolean | undefined,
  resources: Resourceful,
): Group[] {
  const bySignature = new Map<string, Group & { readonly needs: Need[] }>();
  for (const need of needs) {
    const size = { rounded: resources.asked(need.request), exact: resources.asked(need.exact) };
    // By loops: these are as many answers as there are pairs of a need and a shape.
    const shapes: number[] = [];
    const unsure: number[] = [];
    for (const { shape, index } of machines) {
      const answer = matches(need, shape);
      if (answer === true) shapes.push(index);
      else if (answer === undefined) unsure.push(index);
    }
    const signature = [shapes, unsure, size.rounded, size.exact].join(' ');
    const known = bySignature.get(signature);
    if (known === undefined) bySignature.set(signature, { needs: [need], size, shapes, unsure });
    else known.needs.push(need);
  }
  const largest = largestOf(machines.map(({ free }) => free));
  return [...bySignature]
    .map(([signature, group]) => ({ signature, group, weight: weightOf(group.size.rounded, largest) }))
    .toSorted(
      (a, b) =>
        b.weight - a.weight ||
        a.group.shapes.length - b.group.shapes.length ||
        (a.signature < b.signature ? -1 : 1),
    )
    .map(({ group }) => ({ ...group, needs: group.needs.toSorted((a, b) => (a.key < b.key ? -1 : 1)) }));
}

/** Of each resource, the least that any job asks for. */
export function leastOf(groups: readonly Group[]): Amounts {
  const [first, ...rest] = groups;
  if (first === undefined) return [];
  return rest.reduce(
    (least, { size }) => least.map((amount, index) => Math.min(amount, size.exact[index] ?? 0)),
    first.size.exact,
  );
}
