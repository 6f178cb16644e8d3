import type { Finding } from './sdf.ts';
import type { Statement } from './statements.ts';

/** A variable of the environment that a template names. */
export interface NamedVariable {
  readonly name: string;
  readonly line: number;
  /** Whether the template says what counts where it is not set: `$ENV(NAME:default)`. */
  readonly hasDefault: boolean;
}

interface SecretRule {
  readonly pattern: RegExp;
  readonly why: string;
}

/**
 * Variables that no template gets, whatever it names: the description of a job can be read by every user of its schedd.
 * The words are those by which the settings' own secrets are known, too.
 */
export const secretNames: readonly SecretRule[] = [
  { pattern: /TOKEN|BEARER/i, why: 'is called as a token is' },
  { pattern: /SECRET|CREDENTIAL/i, why: 'is called as a secret is' },
  { pattern: /PASSW|PASSPHRASE|(^|_)PASS(_|$)|_PWD(_|$)/i, why: 'is called as a password is' },
  { pattern: /KEY/i, why: 'is called as a key is' },
  { pattern: /(^|_)AUTH(_|$)|AUTHORI[SZ]ATION/i, why: 'is called as an authorization is' },
  { pattern: /^NOTIFY_SOCKET$/, why: "belongs to the daemon's own service" },
];

/** What is a secret by what it holds, whatever it is called. */
export const secretValues: readonly SecretRule[] = [
  { pattern: /\w:\/\/[^\s/:@]*:[^\s/@]+@/, why: 'holds a URL with a password' },
  { pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----/, why: 'holds a private key' },
  { pattern: /^\s*(bearer|basic)\s+\S/i, why: 'holds an authorization' },
  { pattern: /^eyJ[\w-]+\.[\w-]+\.[\w-]*$/, why: 'holds a token' },
];

/** Why a variable is never passed; undefined for one that may be. */
export function whySecret(name: string, value: string | undefined): string | undefined {
  const byName = secretNames.find(({ pattern }) => pattern.test(name));
  if (byName !== undefined) return byName.why;
  return value === undefined ? undefined : secretValues.find(({ pattern }) => pattern.test(value))?.why;
}

/** `$ENV(NAME)` and `$ENV(NAME:default)`; HTCondor takes no blank and no small letters. `$$ENV` is no variable. */
const reference = /(?<!\$)\$ENV\(([A-Za-z_]\w*)(:)?/g;

/** Each variable once that `$ENV` or `getenv` of a template names. */
export function variablesOf(statements: readonly Statement[]): readonly NamedVariable[] {
  const found = statements.flatMap((statement): NamedVariable[] => {
    if (statement.kind === 'custom-attributes') return [];
    const { text, line } = statement;
    const named = [...text.matchAll(reference)].map(([, name = '', colon]) => ({
      ...{ name, line, hasDefault: colon !== undefined },
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

/** What `check-config` says of them. */
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
