import { parseYaml } from '../../../util/located.ts';
import { readLocated } from '../../../util/located-file.ts';
import type { OperatorFiles } from '../../../util/operator-files.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import { checkStatements } from './checks.ts';
import { type Finding, parseSdf, type Parsed } from './sdf.ts';
import type { Command, Statement } from './statements.ts';
import { parseYamlTemplate } from './yaml.ts';

/** A submit description as its operator wrote it. `describeBatch` makes one for a batch of workers of it. */
export interface CondorTemplate {
  readonly file: string;
  readonly kind: 'sdf' | 'yaml';
  readonly statements: readonly Statement[];
  /** `vanilla` where it does not say. */
  readonly universe: string;
}

export type LoadedTemplate =
  | {
      readonly ok: true;
      readonly template: CondorTemplate;
      readonly warnings: readonly DefinitionProblem[];
    }
  | { readonly ok: false; readonly problems: readonly DefinitionProblem[] };

/** Reads and checks a template; every mistake that can be seen without HTCondor is found here. */
export async function loadTemplate(
  files: OperatorFiles,
  file: string,
  config: Partial<HTCondorSubmitterConfig>,
): Promise<LoadedTemplate> {
  let text = '';
  const located = await readLocated(files, file, 'template', (content) => {
    text = content;
    return { file, value: {}, problems: [], lineOf: () => 1 };
  });
  const [unreadable] = located.problems;
  if (unreadable === undefined) return parseTemplate(text, file, config);
  const { line, code, message } = unreadable;
  const known = code === 'file-unreadable' ? code : ('syntax' as const);
  return { ok: false, problems: [{ pointer: '', file, line, code: known, message }] };
}

/** `.yaml` and `.yml` are YAML, all else is submit text. */
export function parseTemplate(
  text: string,
  file: string,
  config: Partial<HTCondorSubmitterConfig>,
): LoadedTemplate {
  const kind = /\.ya?ml$/i.test(file) ? 'yaml' : 'sdf';
  const parsed = kind === 'yaml' ? parseAsYaml(text, file) : parseSdf(text);
  const found = [
    ...parsed.findings,
    // A line that could not be parsed is missing here: thresher would report it twice.
    ...(parsed.findings.length > 0 ? [] : checkStatements(parsed.statements, config, kind)),
  ].map((finding) => problemOf(finding, file));
  const errors = found.filter(({ severity }) => severity === 'error');
  const warnings = found.filter(({ severity }) => severity === 'warning');
  if (errors.length > 0) return { ok: false, problems: [...errors, ...warnings] };
  const { statements } = parsed;
  return { ok: true, template: { file, kind, statements, universe: universeOf(statements) }, warnings };
}

function parseAsYaml(text: string, file: string): Parsed {
  const located = parseYaml(text, file);
  if (located.problems.length === 0) return parseYamlTemplate(located);
  const findings = located.problems.map(({ line, message }): Finding => ({ line, code: 'syntax', message }));
  return { statements: [], findings };
}

/** Severities of findings that are no errors. */
const severities: Partial<Record<Finding['code'], 'warning' | 'notice'>> = {
  'template-risky': 'warning',
  'variable-passed': 'notice',
};

export function problemOf({ line, code, message }: Finding, file: string): DefinitionProblem {
  const severity = severities[code] ?? 'error';
  return { pointer: '', file, line, code, message, severity };
}

function universeOf(statements: readonly Statement[]): string {
  const said = statements.findLast(
    (one): one is Command => one.kind === 'command' && one.key.toLowerCase() === 'universe',
  );
  return said?.text.trim().toLowerCase() || 'vanilla';
}
