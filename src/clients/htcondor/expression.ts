import { shown } from './submit-names.ts';

/**
 * Bounds of an expression that a third party gives to a job. HTCondor parses and evaluates by recursion, in the negotiator and the schedd, and for each
 * of thousands of machines: with ten thousands of operators, or texts that grow tenfold at each step, one job ends these daemons for all users, again
 * at each of their starts.
 */
export const expressionBounds = {
  characters: 4096,
  /** Of operators, commas and calls. */
  operators: 200,
  brackets: 50,
  /** All operators that one evaluation takes, also those of the job's other expressions that it names. */
  steps: 2000,
} as const;

/** Functions of ClassAds that make no text or list longer than what they are given. Source: HTCondor's manual, "ClassAd syntax"; 25.14. */
const functions: ReadonlySet<string> = new Set([
  ...['ifthenelse', 'isundefined', 'iserror', 'isstring', 'isinteger', 'isreal', 'isboolean', 'islist'],
  ...['isclassad', 'isabstime', 'isreltime', 'int', 'real', 'bool', 'floor', 'ceiling', 'round', 'abs'],
  ...[
    'quantize',
    'min',
    'max',
    'sum',
    'avg',
    'member',
    'identicalmember',
    'anycompare',
    'allcompare',
    'size',
  ],
  ...['stringlistmember', 'stringlistimember', 'stringlistsize', 'stringlistsum', 'stringlistavg'],
  ...['stringlistmin', 'stringlistmax', 'stringlistregexpmember', 'stringlistsintersect'],
  ...['stringlistsubsetmatch', 'stringlistisubsetmatch', 'regexp', 'regexpmember', 'strcmp', 'stricmp'],
  ...['toupper', 'tolower', 'substr', 'time', 'random', 'versioncmp', 'versionlt', 'versionle', 'versiongt'],
  ...['versionge', 'version_in_range', 'versioneq', 'string'],
]);

const token =
  /\s+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|([()[\]{}])|(=\?=|=!=|\|\||&&|==|!=|<=|>=|<<|>>>?|[?:<>!~+\-*/%&|^.,])/gy;

const closing: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };

/** Words that are operators. */
const wordOperators: ReadonlySet<string> = new Set(['is', 'isnt']);

/** Operators, commas and calls of an expression, or the reason why it is refused. */
function measured(expression: string): number | string {
  if (expression.length > expressionBounds.characters)
    return `it has ${expression.length} characters; it may have ${expressionBounds.characters}`;
  const open: string[] = [];
  let [operators, at, name] = [0, 0, ''];
  for (const { 0: text, 2: word, 3: bracket, 4: operator } of expression.matchAll(token)) {
    at += text.length;
    if (text.trim() === '') continue;
    if (operator !== undefined || wordOperators.has(word?.toLowerCase() ?? '')) operators++;
    if (bracket === '(' && name !== '') {
      operators++;
      if (!functions.has(name) && !wordOperators.has(name))
        return `it calls ${shown(name)}; it may call what makes no longer texts alone: ${[...functions].slice(0, 8).join(', ')} and others of docs/htcjob.md`;
    }
    const opening = bracket && closing[bracket];
    if (bracket !== undefined && opening === undefined) open.push(bracket);
    else if (opening !== undefined && open.pop() !== opening)
      return `"${bracket ?? ''}" closes no "${opening}"`;
    if (open.length > expressionBounds.brackets)
      return `it has more than ${expressionBounds.brackets} brackets in each other`;
    if (operators > expressionBounds.operators)
      return `it has more than ${expressionBounds.operators} operators`;
    name = word?.toLowerCase() ?? '';
  }
  if (at < expression.length) return `${shown(expression.slice(at))} is no part of an expression`;
  const [first] = open;
  return first === undefined ? operators : `"${first}" is not closed`;
}

/** At least one. A text that is no expression takes no steps. */
function operatorsIn(expression: string): number {
  const found = measured(expression);
  return typeof found === 'number' ? found + 1 : 1;
}

/** Why HTCondor is not to evaluate an expression of a third party; undefined: it may. */
export function expressionRefusal(expression: string): string | undefined {
  const found = measured(expression);
  return typeof found === 'string' ? found : undefined;
}

/** The attribute that a command becomes, as it can be found in an expression: `periodic_hold` is PeriodicHold. */
function attributeOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/^(\+|my\.)/, '')
    .replace(/_expr$/, '')
    .replaceAll('_', '');
}

export const endlessReason = `with the other commands that it names it takes more than ${expressionBounds.steps} steps`;

/**
 * The commands of one job that take too many steps, with what they name of each other: by that, a few short ones can take any number.
 * @param commands by their names
 */
export function endlessIn(commands: Readonly<Record<string, string>>): readonly string[] {
  const expressions = new Map(Object.entries(commands).map(([key, value]) => [attributeOf(key), value]));
  const steps = new Map<string, number>();
  const stepsOf = (name: string): number => {
    const known = steps.get(name);
    if (known !== undefined) return known;
    // Until it is known, one that names itself has no end.
    steps.set(name, Infinity);
    const words = (expressions.get(name) ?? '')
      .replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/g, '')
      .matchAll(/[A-Za-z_]\w*/g);
    const named = Array.from(words, ([word]) => attributeOf(word)).filter((word) => expressions.has(word));
    const sum = named.reduce(
      (steps, word) => steps + stepsOf(word),
      operatorsIn(expressions.get(name) ?? ''),
    );
    steps.set(name, sum);
    return sum;
  };
  return Object.keys(commands).filter((key) => stepsOf(attributeOf(key)) > expressionBounds.steps);
}
