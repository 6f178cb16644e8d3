import { brief } from '../../util/beginning.ts';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { addedNameProblems } from '../../clients/htcondor/submit-names.ts';
import { toPointer } from '../../util/pointer.ts';
import type { CheckContext } from '../contracts/definition.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { checkLines } from './one-line.ts';
import { absolutePaths, checkNeeded, checkPaths, type NeededBy } from './paths.ts';
import { asksForCric, cesOf } from './place/ce-list.ts';
import { checkCricCes } from './place/cric-ces.ts';
import { isOfMachine, readHostConfig } from './place/schedds.ts';
import type { HTCondorSubmitterConfig } from './schema.ts';
import { lackedValues } from './template/checks.ts';
import { neededFiles, perhapsNeeded } from './template/executable.ts';
import { checkSizes } from './template/sizes.ts';
import { type CondorTemplate, loadTemplate, problemOf } from './template/template.ts';
import { checkVariables } from './template/variables.ts';
import { firstThere, templateFiles } from './template/which-file.ts';
import { schedds } from './where.ts';

export async function checkSubmitter(
  config: HTCondorSubmitterConfig,
  context: CheckContext,
): Promise<DefinitionProblem[]> {
  return [
    ...(await checkWhere(config, context)),
    ...cesOf(config).problems,
    ...checkCricCes(config),
    ...checkLines(config, context.queue),
    ...addedNameProblems(config.submitCommands),
    ...(await checkPaths(config, context)),
    ...(await checkTemplates(config, context)),
  ];
}

async function checkWhere(
  config: HTCondorSubmitterConfig,
  context: CheckContext,
): Promise<readonly DefinitionProblem[]> {
  const { condorHostConfig: named } = config;
  const read =
    typeof named === 'string'
      ? await readHostConfig(context.files, resolve(context.configDir, named))
      : schedds(config, context);
  if (!read.ok) return read.problems;
  const { condorHostConfig, condorSchedd, condorPool, eventLog } = config;
  const problems: DefinitionProblem[] = [];
  if (condorHostConfig !== undefined && (condorSchedd ?? condorPool) !== undefined) {
    const message =
      'condorSchedd and condorPool have no effect beside condorHostConfig: leave out one or the other';
    problems.push({ pointer: '/condorHostConfig', severity: 'warning', code: 'unread-option', message });
  }
  const elsewhere = read.schedds.filter((schedd) => !isOfMachine(schedd, hostname()));
  if (eventLog !== undefined && eventLog !== '' && (read.schedds.length > 1 || elsewhere.length > 0)) {
    const message =
      'eventLog is for the one schedd of this machine: events do not say of which schedd a job is, so those of several, or of another machine, would be taken for one another; leave it out';
    problems.push({ pointer: '/eventLog', code: 'wrong-type', message });
  }
  return problems;
}

/** Mistakes in the template, or in those of all kinds of CEs that may be chosen. */
async function checkTemplates(
  written: HTCondorSubmitterConfig,
  context: CheckContext,
): Promise<DefinitionProblem[]> {
  const { configDir, files } = context;
  const config = absolutePaths(written, configDir);
  if (config.templateFile === undefined && config.CEtemplateDir === undefined) {
    const message =
      'neither templateFile nor CEtemplateDir is set, so nothing can be submitted: set one of them';
    return [{ pointer: '/templateFile', code: 'template-wrong', message }];
  }
  const { ces } = cesOf(config);
  const choices = (ces.length === 0 ? [undefined] : ces).map((ce) => templateFiles(config, ce));
  // The kind of a CE is not known: `checkCricCes` says so.
  if (choices.some((files) => files.length === 0)) return [];
  const pointer = config.templateFile === undefined ? '/CEtemplateDir' : '/templateFile';
  const chosen = new Set<string>();
  for (const some of choices) {
    const paths = some.map((file) => resolve(configDir, file));
    chosen.add((await firstThere(paths, files)) ?? '');
  }
  const needs: NeededBy[] = [];
  const templates: CondorTemplate[] = [];
  const problems: DefinitionProblem[] = [];
  for (const file of chosen) {
    const loaded = await loadTemplate(files, file, config);
    const found = loaded.ok ? [...loaded.warnings, ...checkSizes(loaded.template, context)] : loaded.problems;
    const said = found.map((problem) =>
      problem.code === 'file-unreadable'
        ? { pointer, code: problem.code, message: `${brief(file)}: ${problem.message}` }
        : problem,
    );
    problems.push(...said);
    if (!loaded.ok) {
      needs.push({ file, needed: perhapsNeeded });
      continue;
    }
    templates.push(loaded.template);
    const variables = checkVariables(loaded.template.statements, process.env);
    problems.push(...variables.map((finding) => problemOf(finding, file)));
    for (const { option, line, code, message, certain } of lackedValues(loaded.template.statements, config))
      problems.push({
        pointer: toPointer([option]),
        code,
        severity: certain ? 'error' : 'warning',
        message: `${brief(file)}:${line}: ${message}`,
      });
    needs.push({ file, needed: neededFiles(loaded.template.statements) });
  }
  return [...(await checkNeeded(needs, config, files)), ...problems, ...checkUse(config, templates, context)];
}

/** Options that no template names, or that pilots of a pull queue cannot follow. */
function checkUse(
  config: HTCondorSubmitterConfig,
  templates: readonly CondorTemplate[],
  { pull = false }: Pick<CheckContext, 'pull'>,
): DefinitionProblem[] {
  const problems: DefinitionProblem[] = [];
  const { customSubmitAttributes, submitMode, useCRIC, useAtlasCRIC, useAtlasAGIS } = config;
  const asksCric = asksForCric(config) || Boolean(useCRIC ?? useAtlasCRIC ?? useAtlasAGIS);
  const attributes = Object.keys(customSubmitAttributes);
  const without = templates.find(
    ({ kind, statements }) => kind === 'sdf' && statements.every((one) => one.kind !== 'custom-attributes'),
  );
  if (asksCric && attributes.length > 0 && without !== undefined) {
    const message = `each job gets ${attributes.join(', ')}, of jdl.plusattr in CRIC or of customSubmitAttributes, though ${brief(without.file)} has no line {customSubmitAttributes}, without which Harvester gives it none: set customSubmitAttributes to {} in the queue to leave them out`;
    const pointer = '/customSubmitAttributes';
    problems.push({ pointer, severity: 'notice', code: 'cric-value-differs', message });
  }
  if (submitMode !== 'PUSH' || templates.length === 0) return problems;
  const isNamed = templates.some(({ statements }) =>
    statements.some((one) => one.kind === 'command' && one.names.includes('submitMode')),
  );
  const pointer = '/submitMode';
  if (!isNamed) {
    const message = 'submitMode has no effect: no template of the queue names the placeholder submitMode';
    problems.push({ pointer, severity: 'notice', code: 'option-without-effect', message });
  } else if (pull) {
    const message =
      'submitMode is PUSH, and mapType NoJob: pilots would wait for a job that nothing brings; set submitMode to "PULL", or remove it';
    problems.push({ pointer, severity: 'warning', code: 'doubtful-value', message });
  }
  return problems;
}
