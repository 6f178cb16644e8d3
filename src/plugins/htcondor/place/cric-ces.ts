import { howFromCric } from '../../contracts/cric.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import { asksForCric } from './ce-list.ts';

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
 * Finds a queue without the CEs that it is to take from CRIC, which become its `ceList`. `useCRICGridCE: false` wins over `useAtlasGridCE`.
 * Source: Harvester's htcondor_submitter.
 */
export function checkCricCes(config: CeOptions): DefinitionProblem[] {
  const { useCRICGridCE, ceList, ceEndpoint, ceHostname, templateFile, CEtemplateDir } = config;
  const option = useCRICGridCE === undefined ? 'useAtlasGridCE' : 'useCRICGridCE';
  if (ceList.length > 0) return [];
  const missing = (why: string): DefinitionProblem[] => {
    const message = `${why}: list them in ceList, each with ce_endpoint and ce_flavour; ${howFromCric}`;
    return [{ pointer: '/ceList', code: 'ce-list-missing', message }];
  };
  const named = ceEndpoint === undefined ? ceHostname && 'ceHostname' : 'ceEndpoint';
  if (templateFile === undefined && CEtemplateDir !== undefined) {
    const unkind = named === undefined ? '' : `, and ${named} does not say of which kind its CEs are`;
    return missing(`CEtemplateDir has a template for each kind of CE, and the queue lists no CEs${unkind}`);
  }
  if (!asksForCric(config)) return [];
  if (named === undefined)
    return missing(`the queue takes its CEs from CRIC (${option}), which names none, and lists none itself`);
  const message = `${named} counts here, since CRIC names no CEs for the queue; Harvester ignores it beside ${option} and takes those of CRIC: set ${option} to false to keep it so; ${howFromCric}`;
  // At the option: where a template has it, its queues share one line.
  return [{ pointer: `/${option}`, severity: 'warning', code: 'ce-not-from-cric', message }];
}
