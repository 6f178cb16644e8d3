import { join } from 'node:path';
import type { OperatorFiles } from '../../../util/operator-files.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import type { ChosenCe } from './placeholders.ts';

/**
 * The files of which the first that exists is the template: `templateFile`, else the one for the CE's kind in
 * `CEtemplateDir`, such as `arc-ce_nordugrid.sdf`. Empty where the queue names none. Source: Harvester's
 * htcondor_submitter.
 */
export function templateFiles(
  { templateFile, CEtemplateDir }: Pick<HTCondorSubmitterConfig, 'templateFile' | 'CEtemplateDir'>,
  ce: ChosenCe | undefined,
): string[] {
  if (templateFile !== undefined) return [templateFile];
  if (CEtemplateDir === undefined || ce === undefined || ce.flavour === '') return [];
  const suffix = ce.gridType === '' || ce.gridType === 'arc' ? '' : `_${ce.gridType}`;
  return ['sdf', 'yaml'].map((ending) => join(CEtemplateDir, `${ce.flavour}${suffix}.${ending}`));
}

/** The first that exists, else the first: its absence is then said. Undefined where there is none. */
export async function firstThere(
  paths: readonly string[],
  files: OperatorFiles,
): Promise<string | undefined> {
  if (paths.length <= 1) return paths[0];
  for (const path of paths) {
    // The later read reports a file system that hangs.
    const found = await files.stat(path).catch(() => undefined);
    if (found !== undefined) return path;
  }
  return paths[0];
}
