import type { CheckContext } from '../../contracts/definition.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { type Sizes, sizeNames, unsaidSizes } from '../../contracts/sizes.ts';
import type { CondorTemplate } from './template.ts';

/** Which placeholders a size is behind. Source: Harvester's make_a_jdl. */
export const placeholdersOfSizes: Readonly<Record<keyof Sizes, readonly string[]>> = {
  minRamCount: [
    ...['minRamCount', 'requestRam', 'requestRamBytes', 'requestRamPerCore', 'requestRamBytesPerCore'],
  ],
  maxDiskCount: ['maxDiskCount', 'requestDisk'],
  maxWalltime: [
    ...['maxWalltime', 'requestWalltime', 'requestWalltimeMinute', 'requestCputime', 'requestCputimeMinute'],
  ],
};

/**
 * Sizes that a template asks for and its queue does not say. Each job would be sent with 1 MB, 1 KB or 0 s, and held or
 * removed for it far away; a push queue takes them from its jobs.
 */
export function checkSizes(
  { file, statements }: CondorTemplate,
  { requirements, pull = false }: CheckContext,
): DefinitionProblem[] {
  if (requirements === undefined) return [];
  const named = new Set(statements.flatMap((one) => (one.kind === 'command' ? one.names : [])));
  const asked = Object.fromEntries(
    sizeNames.map((size) => [size, placeholdersOfSizes[size].filter((name) => named.has(name))]),
  );
  return unsaidSizes(asked, requirements, file, pull ? 'error' : 'warning');
}
