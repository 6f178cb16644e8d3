import type { Requirements } from '../../worker/worker.ts';
import { howFromCric } from './cric.ts';
import type { DefinitionProblem } from './definition-problem.ts';

/** Options of the submitter's section that say how large a worker is; 0 stands for one that is not said. */
export type Sizes = Pick<Requirements, 'minRamCount' | 'maxDiskCount' | 'maxWalltime'>;

/** Meaning of each size, and the field from which Harvester takes it. */
const meanings: Readonly<Record<keyof Sizes, { what: string; unit: string; cric: string }>> = {
  minRamCount: { what: 'the memory of a worker', unit: 'MB', cric: 'maxrss' },
  maxDiskCount: { what: 'the disk of a worker', unit: 'MB', cric: 'maxwdir' },
  maxWalltime: { what: 'the wall time of a worker', unit: 's', cric: 'maxtime' },
};
export const sizeNames = Object.keys(meanings) as readonly (keyof Sizes)[];

/**
 * Sizes that a template asks for and the queue does not say: the backend would get 0, or the least that it takes.
 * `asked` has the placeholders of each size.
 */
export function unsaidSizes(
  asked: Readonly<Partial<Record<keyof Sizes, readonly string[]>>>,
  sizes: Sizes,
  template: string,
  severity: 'error' | 'warning',
): DefinitionProblem[] {
  return sizeNames.flatMap((option): DefinitionProblem[] => {
    const names = asked[option] ?? [];
    if (names.length === 0 || sizes[option] > 0) return [];
    const { what, unit, cric } = meanings[option];
    const aside = option === 'maxWalltime' ? '; its walltimeLimit does not count, as there' : '';
    const message = `${template} asks for ${names.join(', ')}, and the queue does not say ${what}: set ${option} in ${unit} (Harvester takes CRIC's ${cric}${aside}; ${howFromCric})`;
    return [{ pointer: `/${option}`, severity, code: 'size-not-said', message }];
  });
}

/** The same for `${minRamCount}` and the like, placeholders or variables. A worker without these sizes can run. */
export function checkSizes(
  text: string,
  template: string,
  { requirements }: { readonly requirements?: Sizes },
): DefinitionProblem[] {
  if (requirements === undefined) return [];
  const named = sizeNames.filter((name) => new RegExp(`(?<!\\$)\\$\\{?${name}\\b`).test(text));
  return unsaidSizes(
    Object.fromEntries(named.map((name) => [name, [name]])),
    requirements,
    template,
    'warning',
  );
}
