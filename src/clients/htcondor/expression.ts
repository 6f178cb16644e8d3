import { shown } from './submit-names.ts';

/**
 * Bounds of an expression that a third party gives to a job. HTCondor parses and evaluates by recursion, in the negotiator and the schedd, and for each
 * of thousands of machines: with ten thousands of operators, or texts that grow tenfold at each step, one job ends these daemons for all users, again
 * at each of their starts.
 */
export const expressionBounds = {
  characters: 4096,
  /** Of operators, commas and calls; a match of a pattern counts as 20. */
  operators: 500,
  brackets: 50,
  /** All operators that one evaluation takes, also those of the job's other expressions that it names. */
  steps: 2000,
} as const;

/** Functions of ClassAds that make no text or list longer than what they are given. Source: HTCondor's manual, "ClassAd syntax"; 25.14. */
const functions: ReadonlySet<string> = new Set([
  ...['ifthenelse', 'isundefined', 'iserror', 'isstring', 'isinteger', 'isreal', 'isboolean', 'islist'],
  ...[
    'isclassad',
    'isabstime',
    'isreltime',
    'int',
    'real',
    'bool',
    'string',
    'floor',
    'ceiling',
    'round',
    'pow',
  ],
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
  ...['stringlistmin', 'stringlistmax', 'stringlistsintersect', 'stringlistsubsetmatch'],
  ...[
    'stringlistisubsetmatch',
    'strcmp',
    'stricmp',
    'toupper',
    'tolower',
    'substr',
    'split',
    'splitusername',
  ],
  ...['splitslotname', 'time', 'interval', 'random', 'versioncmp', 'versionlt', 'versionle', 'versiongt'],
  ...['versionge', 'versioneq', 'version_in_range'],
]);

/** Those that match a pattern, which has to be a text: it may take as long as HTCondor lets it, for each machine. */
const matching: ReadonlySet<string> = new Set(['regexp', 'regexpmember', 'stringlistregexpmember']);
/** Operators that a match counts as. */
const costOfMatch = 20;
/** A repetition of what may be a repetition, more than three repetitions, and a part that has to come again. */
const costly = /\)[*+{]|(?:[*+{].*){4}|\\[1-9]/s;

const token =
  /\s+|("(?:[^"\\]|\\.)*")|'(?:[^'\\]|\\.)*'|(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|([()[\]{}])|(\/[/*]|=\?=|=!=|\|\||&&|==|!=|<=|>=|<<|>>>?|[?:<>!~+\-*/%&|^.,])/gy;

interface Token {
  readonly text: string;
  readonly kind: 'text' | 'number' | 'word' | 'bracket' | 'operator' | 'quoted';
}

/** @returns as many as an expression is of, or where something else begins */
function tokensOf(expression: string): readonly Token[] | string {
  const tokens: Token[] = [];
  let at = 0;
  for (const { 0: text, 1: quoted, 2: number, 3: word, 4: bracket, 5: operator } of expression.matchAll(
    token,
  )) {
    at += text.length;
    if (text.trim() === '') continue;
    const kinds = { text: quoted, number, word, bracket, operator } as const;
    const kind = (Object.keys(kinds) as (keyof typeof kinds)[]).find((one) => kinds[one] !== undefined);
    tokens.push({ text, kind: kind ?? 'quoted' });
  }
  return at < expression.length ? expression.slice(at) : tokens;
}

const closing: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };

/** Operators, commas and calls of an expression, or the reason why it is refused. */
function measured(expression: string): number | string {
  if (expression.length > expressionBounds.characters)
    return `it has ${expression.length} characters; it may have ${expressionBounds.characters}`;
  const tokens = tokensOf(expression);
  if (typeof tokens === 'string') return `${shown(tokens)} is no part of an expression`;
  const open: string[] = [];
  let operators = 0;
  for (const [index, { text, kind }] of tokens.entries()) {
    const [before, next, second] = [tokens[index - 1], tokens[index + 1], tokens[index + 2]];
    // What a comment hides, HTCondor may read.
    if (text === '/*' || text === '//') return 'it has a comment; write none';
    const isScope = text === '.' && /^(my|target)$/i.test(before?.text ?? '');
    if ((kind === 'operator' && !isScope) || /^(is|isnt)$/i.test(text)) operators++;
    if (kind === 'word' && next?.text === '(') {
      const name = text.toLowerCase();
      operators += matching.has(name) ? costOfMatch : 1;
      if (matching.has(name)) {
        const third = tokens[index + 3];
        if (second?.kind !== 'text' || third?.text !== ',')
          return `${shown(text)} takes a pattern; write it as a text`;
        if (costly.test(second.text))
          return `the pattern ${shown(second.text)} repeats what it repeats, or much: it could take minutes for each machine`;
      } else if (!functions.has(name) && !/^(is|isnt)$/.test(name))
        return `it calls ${shown(text)}; it may call what makes no longer texts alone: ${[...functions].slice(0, 8).join(', ')} and others of docs/htcjob.md`;
    }
    if (text === '[' && (next?.kind !== 'number' || second?.text !== ']'))
      return 'it has "[" without a number behind it: it may have places of lists, and no ads';
    const opening = kind === 'bracket' ? closing[text] : undefined;
    if (kind === 'bracket' && opening === undefined) open.push(text);
    else if (opening !== undefined && open.pop() !== opening) return `"${text}" closes no "${opening}"`;
    if (open.length > expressionBounds.brackets)
      return `it has more than ${expressionBounds.brackets} brackets in each other`;
    if (operators > expressionBounds.operators)
      return `it has more than ${expressionBounds.operators} operators`;
  }
  const [first] = open;
  return first === undefined ? operators : `"${first}" is not closed`;
}

/** Why HTCondor is not to evaluate an expression of a third party; undefined: it may. */
export function expressionRefusal(expression: string): string | undefined {
  const found = measured(expression);
  return typeof found === 'string' ? found : undefined;
}

/** At least one. A text that is no expression takes no steps. */
function operatorsIn(expression: string): number {
  const found = measured(expression);
  return typeof found === 'number' ? found + 1 : 1;
}

/** The attribute that a command becomes, as it can be found in an expression: `periodic_hold` is PeriodicHold. */
function attributeOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/^(\+|my\.)/, '')
    .replace(/_expr$/, '')
    .replaceAll('_', '');
}

export const endlessReason = `it names itself, or takes more than ${expressionBounds.steps} steps with the other commands that it names`;

/** Attributes of the job that an expression names. Those behind `TARGET.` are the machine's. */
function namesIn(expression: string): readonly string[] {
  const tokens = tokensOf(expression);
  if (typeof tokens === 'string') return [];
  return tokens.flatMap(({ text, kind }, index) => {
    const isOther = tokens[index - 1]?.text === '.' && /^target$/i.test(tokens[index - 2]?.text ?? '');
    if (isOther || (kind !== 'word' && kind !== 'quoted')) return [];
    return [attributeOf(kind === 'quoted' ? text.slice(1, -1) : text)];
  });
}

/**
 * The commands of one job that take too many steps, with what they name of each other: by that, a few short ones can take any number.
 * @param commands by their names
 * @param isText whether the value of a command is a text, and no expression
 */
export function endlessIn(
  commands: Readonly<Record<string, string>>,
  isText: (key: string) => boolean,
): readonly string[] {
  const expressions = new Map(
    Object.entries(commands)
      .filter(([key]) => !isText(key))
      .map(([key, value]) => [attributeOf(key), value]),
  );
  const steps = new Map<string, number>();
  const stepsOf = (name: string): number => {
    const known = steps.get(name);
    if (known !== undefined) return known;
    // Until it is known, one that names itself has no end.
    steps.set(name, Infinity);
    const named = namesIn(expressions.get(name) ?? '').filter((word) => expressions.has(word));
    const sum = named.reduce(
      (steps, word) => steps + stepsOf(word),
      operatorsIn(expressions.get(name) ?? ''),
    );
    steps.set(name, sum);
    return sum;
  };
  return Object.keys(commands).filter(
    (key) => !isText(key) && stepsOf(attributeOf(key)) > expressionBounds.steps,
  );
}
