import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';

type CeOptions = Pick<
  HTCondorSubmitterConfig,
  | 'useCRICGridCE'
  | 'useAtlasGridCE'
  | 'ceList'
  | 'ceEndpoint'
  | 'ceHostname'
  | 'templateFile'
  | 'CEtemplateDir'
>;

/**
 * Finds a queue without the CEs that Harvester takes from CRIC. `useCRICGridCE: false` wins over `useAtlasGridCE`.
 * Source: Harvester's htcondor_submitter.
 */
export function checkCricCes(config: CeOptions): DefinitionProblem[] {
  const { useCRICGridCE, useAtlasGridCE, ceList, ceEndpoint, ceHostname, templateFile, CEtemplateDir } =
    config;
  const [option, value] =
    useCRICGridCE === undefined
      ? (['useAtlasGridCE', useAtlasGridCE] as const)
      : (['useCRICGridCE', useCRICGridCE] as const);
  const fromCric = Boolean(value);
  if (ceList.length > 0) return [];
  const missing = (why: string): DefinitionProblem[] => {
    const message = `${why}: list them in ceList, each with ce_endpoint and ce_flavour`;
    return [{ pointer: '/ceList', code: 'ce-list-missing', message }];
  };
  const named = ceEndpoint === undefined ? ceHostname && 'ceHostname' : 'ceEndpoint';
  if (templateFile === undefined && CEtemplateDir !== undefined) {
    const unkind = named === undefined ? '' : `, and ${named} does not say of which kind its CEs are`;
    return missing(`CEtemplateDir has a template for each kind of CE, and the queue lists no CEs${unkind}`);
  }
  if (!fromCric) return [];
  if (named === undefined)
    return missing(`Harvester takes the CEs from CRIC (${option}), and the queue lists none`);
  const message = `${named} counts here; Harvester ignores it beside ${option} and takes the CEs of CRIC: write those into ceList, or set ${option} to false`;
  // At the option: where a template has it, its queues share one line.
  return [{ pointer: `/${option}`, severity: 'warning', code: 'ce-not-from-cric', message }];
}
