import { whySecret } from '../../../util/secrets.ts';
import type { Finding } from './sdf.ts';
import type { Statement } from './statements.ts';

/** A variable of the environment that a template names. */
export interface NamedVariable {
  readonly name: string;
  readonly line: number;
  /** Whether the template says what counts where it is not set: `$ENV(NAME:default)`. */
  readonly hasDefault: boolean;
}

/** `$ENV(NAME)` and `$ENV(NAME:default)`; HTCondor takes no blank and no small letters. `$$ENV` is no variable. */
const reference = /(?<!\$)\$ENV\(([A-Za-z_]\w*)(:)?/g;

/** Each variable once that `$ENV` or `getenv` of a template names. */
export function variablesOf(statements: readonly Statement[]): readonly NamedVariable[] {
  const found = statements.flatMap((statement): NamedVariable[] => {
    if (statement.kind === 'custom-attributes') return [];
    const { text, line } = statement;
    const named = [...text.matchAll(reference)].map(([, name = '', colon]) => ({
      name,
      line,
      hasDefault: colon !== undefined,
    }));
    const copied = copiedBy(statement).filter((word) => /^[A-Za-z_]\w*$/.test(word));
    return [...named, ...copied.map((name) => ({ name, line, hasDefault: true }))];
  });
  const first = new Map<string, NamedVariable>();
  for (const one of found) {
    const before = first.get(one.name);
    if (before === undefined || (before.hasDefault && !one.hasDefault)) first.set(one.name, one);
  }
  return [...first.values()];
}

/** The words of `getenv`, which copies variables into the job's environment. */
function copiedBy(statement: Statement): string[] {
  if (statement.kind !== 'command' || !/^get_?env$/i.test(statement.key)) return [];
  const words = statement.text.split(/[\s,]+/).filter((word) => word !== '');
  return words.filter((word) => !/^(true|false)$/i.test(word));
}

/** The variables of the daemon that a template names, and that its `condor_submit` gets. */
export function passedVariables(
  variables: readonly NamedVariable[],
  own: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    variables.flatMap(({ name }) => {
      const value = own[name];
      return value === undefined || whySecret(name, value) !== undefined ? [] : [[name, value] as const];
    }),
  );
}

/** Findings that `check-config` reports about them. */
export function checkVariables(
  statements: readonly Statement[],
  own: Readonly<Record<string, string | undefined>>,
): Finding[] {
  const named = variablesOf(statements).map((variable) => findingOf(variable, own[variable.name]));
  return [...named, ...statements.flatMap(unknownNames)];
}

function findingOf({ name, line, hasDefault }: NamedVariable, value: string | undefined): Finding {
  const secret = whySecret(name, value);
  if (secret !== undefined) {
    const message = `the variable ${name} ${secret}, and thresher passes no secret to a job, whose description others can read: write what is no secret, or name the file of the secret under another name`;
    return { line, code: 'template-wrong', message };
  }
  if (value === undefined && !hasDefault) {
    const message = `the variable ${name} is not set here, and HTCondor writes UNDEFINED for it: set it in the environment of the daemon, or write $ENV(${name}:DEFAULT)`;
    return { line, code: 'template-risky', message };
  }
  const state = value === undefined ? 'is not set here' : 'is passed to condor_submit';
  return {
    line,
    code: 'variable-passed',
    message: `the variable ${name} of the daemon's environment ${state}`,
  };
}

/** References whose variable cannot be known from the template. */
function unknownNames(statement: Statement): Finding[] {
  if (statement.kind === 'custom-attributes') return [];
  const { text, line } = statement;
  const copied = copiedBy(statement).some((word) => word.includes('*'));
  const all = statement.kind === 'command' && /^get_?env$/i.test(statement.key) && /^\s*true\s*$/i.test(text);
  if (copied || all) {
    const message =
      'getenv copies what condor_submit gets, and that is little of the environment of the daemon: name each variable that the job needs';
    return [{ line, code: 'template-risky', message }];
  }
  if (!/(?<!\$)\$ENV\((?![A-Za-z_]\w*[:)])/.test(text)) return [];
  const message = 'this $ENV names no variable, so nothing is passed for it: write $ENV(NAME)';
  return [{ line, code: 'template-risky', message }];
}
