import { join } from 'node:path';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import type { ChosenCe } from './placeholders.ts';

/**
 * The files of which the first that exists is the template: `templateFile`, else the one for the CE's kind in
 * `CEtemplateDir`, such as `arc-ce_nordugrid.sdf`. Empty where the queue names none. Source: Harvester's htcondor_submitter.
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
