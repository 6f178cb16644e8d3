import { brief } from '../../util/beginning.ts';
import { resolve } from 'node:path';
import type { CheckContext } from '../contracts/definition.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { checkSizes } from '../contracts/sizes.ts';
import type { LocalSubmitterConfig } from './schema.ts';
import { loadTemplate } from './template.ts';

/** Mistakes in the template that a queue names. */
export async function checkTemplateFile(
  { templateFile }: LocalSubmitterConfig,
  context: CheckContext,
): Promise<readonly DefinitionProblem[]> {
  if (templateFile === undefined) return [];
  const file = resolve(context.configDir, templateFile);
  const loaded = await loadTemplate(context.files, file);
  if (loaded.ok) return checkSizes(JSON.stringify(loaded.template), file, context);
  return loaded.problems.map((problem) =>
    problem.code === 'file-unreadable'
      ? {
          pointer: '/templateFile',
          code: problem.code,
          message: `${brief(problem.file ?? '')}: ${problem.message}`,
        }
      : problem,
  );
}
