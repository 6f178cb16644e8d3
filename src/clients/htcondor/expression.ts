import { shown } from './submit-names.ts';

/**
 * Bounds of an expression that a third party gives to a job. HTCondor parses and evaluates by recursion, in the negotiator and the schedd, and for each
 * of thousands of machines: with ten thousands of operators, or texts that grow tenfold at each step, one job ends these daemons for all users, again
 * at each of their starts.
 */
export const expressionBounds = {
  characters: 4096,
  /** Of operators, commas and calls; a match of a pattern or of two lists counts as 50. */
  operators: 500,
  brackets: 50,
  /** All operators that one evaluation takes, also those of the job's other expressions that it names. */
  steps: 2000,
} as const;

/**
 * Functions of ClassAds that give no text, or one of a few characters: each of those that make a text of a list doubles its quotation marks, so that thirty of
 * them in each other take the memory of the daemon. Source: HTCondor's manual, "ClassAd syntax"; 25.14.
 * `quantize` is none of them: the smallest integer by -1 ends the daemon that evaluates it, HTCondor 23.9.
 */
const functions: ReadonlySet<string> = new Set([
  ...['ifthenelse', 'isundefined', 'iserror', 'isstring', 'isinteger', 'isreal', 'isboolean', 'islist'],
  ...['isclassad', 'isabstime', 'isreltime', 'int', 'real', 'bool', 'floor', 'ceiling', 'round', 'pow'],
  ...['min', 'max', 'sum', 'avg', 'member', 'identicalmember', 'anycompare', 'allcompare', 'size'],
  ...['stringlistmember', 'stringlistimember', 'stringlistsize', 'stringlistsum', 'stringlistavg'],
  ...['stringlistmin', 'stringlistmax', 'strcmp', 'stricmp', 'time', 'interval', 'random'],
  ...['versioncmp', 'versionlt', 'versionle', 'versiongt', 'versionge', 'versioneq', 'version_in_range'],
]);

/** Those that match a pattern, each with attributes of a machine. */
const matching: ReadonlySet<string> = new Set(['regexp', 'regexpmember', 'stringlistregexpmember']);
/** Those that take the product of the lengths of two lists. */
const comparing: ReadonlySet<string> = new Set([
  ...['stringlistsintersect', 'stringlistsubsetmatch', 'stringlistisubsetmatch'],
]);
/**
 * What machines have for expressions that read the job: each is evaluated wherever it is named. Source: the templates of
 * `condor_config`, and `WithinResourceLimits` of a partitionable slot.
 */
const ofTheirOwn =
  /^(start|withinresourcelimits|isowner|preempt|suspend|continue|kill|wantvacate|wantsuspend)$/i;
/** Operators that such a call or name counts as: a tenth of a second at most, for each machine. */
const costOfMatch = 50;
/** Attributes that machines have and jobs do not, so that they need no `TARGET.`. */
const ofMachines = /^(machine|name|arch|devicename|opsys\w*|cuda\w*|gpus_\w+)$/i;
/**
 * Attributes that HTCondor shows nobody, and by which whoever knows them commands a machine or takes the files of a job: an expression of the job
 * could bring them into a reason that its user reads. Source: `ClassAdPrivateAttrs` and `_condor_priv` of HTCondor's `compat_classad.cpp`;
 * `TransferSocket` is where such a key counts.
 */
const keepsPrivate = /^((child|paired)?claimid\w*|transferkey|transfersocket|capability)$|^_condor/i;
/** A job may set these while it runs (`condor_chirp`), to expressions that no bound was asked for. Jobs of third parties get no leave for it. */
const setByJobs = /^chirp/i;
/** Characters of a pattern. */
const longestPattern = 100;
/** Alternatives of a pattern. */
const mostAlternatives = 10;

/**
 * Why a pattern is refused; undefined: matching it takes a time that grows with the square of a text at most. What stands behind a backslash or in a set counts
 * as if it stood alone: which of the two ways to read backslashes a daemon has is then the same.
 * @param given with its quotation marks
 */
function patternRefusal(given: string): string | undefined {
  if (given.length > longestPattern) return `has more than ${longestPattern} characters`;
  // Where all is one alternative, ".*" at its ends looks for the rest at each place, as without it.
  const hasOuter = given.replace(/\([^()]*\)/, '').includes('|');
  const written = hasOuter ? given : given.replace(/^"\^?\.\*(?![?+*{])/, '"').replace(/(?<!\\)\.\*"$/, '"');
  const count = (characters: RegExp) => written.match(characters)?.length ?? 0;
  if (/\\[^\WdDwWsSbB]|\\_/.test(written)) return 'may have no letter or digit behind "\\" but d, w, s and b';
  if (/\([?*+]/.test(written)) return 'may have no "(?" and "(*"; options are the next argument';
  if (count(/[*+?{]/g) > 1 || /\)\s*[*+?{]/.test(written))
    return 'may have one of * + ? {, and none behind ")"';
  if (count(/\(/g) > 1 || count(/\|/g) >= mostAlternatives)
    return `may have one group, and ${mostAlternatives} alternatives`;
  // The time is the product of the places to begin at, of the repetitions and of the alternatives: two of the three may be many.
  const isAnchored = written.startsWith('"^') && !hasOuter;
  if (count(/[*+?{]/g) > 0 && count(/\|/g) > 0 && !isAnchored)
    return 'may have both a repetition and "|" only where it begins with "^" and the "|" stand in a group';
  return undefined;
}

const token =
  /\s+|("(?:[^"\\]|\\.)*")|(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|([()[\]{}])|(\/[/*]|=\?=|=!=|\|\||&&|==|!=|<=|>=|<<|>>>?|[?:<>!~+\-*/%&|^.,])/gy;

interface Token {
  readonly text: string;
  readonly kind: 'text' | 'number' | 'word' | 'bracket' | 'operator';
}

/** @returns as many as an expression is of, or where something else begins */
function tokensOf(expression: string): readonly Token[] | string {
  const tokens: Token[] = [];
  let at = 0;
  for (const { 0: text, 1: quoted, 2: number, 3: word, 4: bracket, 5: operator } of expression.matchAll(
    token,
  )) {
    at += text.length;
    const kinds = { text: quoted, number, word, bracket, operator } as const;
    const kind = (Object.keys(kinds) as (keyof typeof kinds)[]).find((one) => kinds[one] !== undefined);
    if (kind !== undefined) tokens.push({ text, kind });
  }
  return at < expression.length ? expression.slice(at) : tokens;
}

const closing: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };

/** Whether a token stands behind `TARGET.`. */
function isTarget(tokens: readonly Token[], index: number): boolean {
  return tokens[index - 1]?.text === '.' && /^target$/i.test(tokens[index - 2]?.text ?? '');
}

/** Why a call that matches a pattern is refused. @param given what stands behind its bracket */
function matchRefusal([pattern, comma, first, second, third, fourth]: readonly Token[]): string | undefined {
  if (pattern?.kind !== 'text' || comma?.text !== ',') return 'takes a pattern; write it as a text';
  const refusal = patternRefusal(pattern.text);
  if (refusal !== undefined)
    return `takes a pattern that is quickly matched with any text: ${shown(pattern.text)} ${refusal}`;
  const isScoped = /^target$/i.test(first?.text ?? '') && second?.text === '.' && third?.kind === 'word';
  const end = isScoped ? fourth : second;
  const isWhole = end?.text === ',' || end?.text === ')';
  return isWhole && (isScoped || ofMachines.test(first?.text ?? ''))
    ? undefined
    : 'compares a pattern with an attribute of a machine; write TARGET. and its name';
}

/** `require_gpus` is evaluated with the properties of each GPU, of which one is called so. */
function isGpuProperty(text: string, tokens: readonly Token[], index: number, ofGpus: boolean): boolean {
  return ofGpus && /^capability$/i.test(text) && tokens[index - 1]?.text !== '.';
}

/** Operators, commas and calls of an expression, or the reason why it is refused. */
function measured(expression: string, ofGpus = false): number | string {
  if (expression.length > expressionBounds.characters)
    return `it has ${expression.length} characters; it may have ${expressionBounds.characters}`;
  // Of the two ways to write ads one reads it as the end of the text, and the other as a part of it.
  if (expression.includes('\\"')) return 'it has a backslash before a quotation mark; write no such text';
  const tokens = tokensOf(expression);
  if (typeof tokens === 'string')
    return tokens.startsWith("'")
      ? `it has a name in single quotes, ${shown(tokens)}; write names without, and texts in "..."`
      : `${shown(tokens)} is no part of an expression`;
  const open: string[] = [];
  let operators = 0;
  for (const [index, { text, kind }] of tokens.entries()) {
    const [before, next, second] = [tokens[index - 1], tokens[index + 1], tokens[index + 2]];
    // What a comment hides, HTCondor may read.
    if (text === '/*' || text === '//') return 'it has a comment; write none';
    const isScope = text === '.' && /^(my|target)$/i.test(before?.text ?? '');
    // TARGET.TARGET is the job again.
    if (text === '.' && (!isScope || tokens[index - 2]?.text === '.'))
      return 'it has a "." behind something else than MY or TARGET; write one of the two, and one name';
    if ((kind === 'operator' && !isScope) || /^(is|isnt)$/i.test(text)) operators++;
    if (kind === 'word' && keepsPrivate.test(text) && !isGpuProperty(text, tokens, index, ofGpus))
      return `it names ${shown(text)}, which HTCondor keeps from users; name another attribute`;
    if (kind === 'word' && setByJobs.test(text))
      return `it names ${shown(text)}, which a job may set itself while it runs; name another attribute`;
    const isTheirs = isTarget(tokens, index) && /^(rank|requirements)$/i.test(text);
    if (kind === 'word' && (isTheirs || ofTheirOwn.test(text))) operators += costOfMatch;
    if (kind === 'word' && next?.text === '(') {
      const name = text.toLowerCase();
      operators += matching.has(name) || comparing.has(name) ? costOfMatch : 1;
      if (matching.has(name)) {
        const refusal = matchRefusal(tokens.slice(index + 2, index + 8));
        if (refusal !== undefined) return `${shown(text)} ${refusal}`;
      } else if (!functions.has(name) && !comparing.has(name) && !/^(is|isnt)$/.test(name))
        return `it calls ${shown(text)}; it may call what makes no texts alone: ${[...functions].slice(0, 8).join(', ')} and others of docs/htcjob.md`;
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

/** What expressions of third parties may call but for what matches patterns, in lower case. */
export const callable: readonly string[] = [...functions, ...comparing];

/** Why HTCondor is not to evaluate an expression of a third party; undefined: it may. @param ofGpus whether it is about each GPU of a machine */
export function expressionRefusal(expression: string, ofGpus = false): string | undefined {
  const found = measured(expression, ofGpus);
  return typeof found === 'string' ? found : undefined;
}

/** At least one. A text that is no expression takes no steps. */
function operatorsIn(expression: string): number {
  const found = measured(expression, true);
  return typeof found === 'number' ? found + 1 : 1;
}

/** The attribute that a command becomes, in lower case: `periodic_hold` is PeriodicHold, `gpus_minimum_memory` is GPUsMinMemory, `+My_Tag` is My_Tag. */
export function attributeOf(name: string): string {
  const compared = name.toLowerCase();
  const own = compared.replace(/^(\+|my\.)/, '');
  if (own !== compared) return own;
  return compared
    .replace(/_expr$/, '')
    .replace(/^gpus_(min|max)imum/, 'gpus$1')
    .replaceAll('_', '');
}

/**
 * Commands that HTCondor itself names in others, also where a job does not have these. Source: an ad of
 * `condor_submit -dry-run`, HTCondor 23.9; the manual of 25.14 for what is tried again.
 */
export const namedBeside: Readonly<Record<string, readonly string[]>> = {
  Requirements: ['request_cpus', 'request_memory', 'request_disk', 'request_gpus', 'require_gpus'],
  RequireGPUs: [
    'gpus_minimum_capability',
    'gpus_maximum_capability',
    'gpus_minimum_memory',
    'gpus_minimum_runtime',
  ],
  RequestMemory: ['retry_request_memory', 'retry_request_memory_increase', 'retry_request_memory_max'],
  RequestDisk: ['retry_request_disk'],
};

export const endlessReason = `it names itself, or takes more than ${expressionBounds.steps} steps with the other commands that it names`;

/** Attributes of the job that an expression names. Those behind `TARGET.` are the machine's. */
function namesIn(expression: string): readonly string[] {
  const tokens = tokensOf(expression);
  if (typeof tokens === 'string') return [];
  return tokens.flatMap(({ text, kind }, index) =>
    kind === 'word' && !isTarget(tokens, index) ? [text.toLowerCase()] : [],
  );
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
  const beside = new Map(
    Object.entries(namedBeside).map(([name, others]) => [attributeOf(name), others.map(attributeOf)]),
  );
  const expressions = new Map([
    ...[...beside.keys()].map((name) => [name, ''] as const),
    ...Object.entries(commands)
      .filter(([key]) => !isText(key))
      .map(([key, value]) => [attributeOf(key), value] as const),
  ]);
  const steps = new Map<string, number>();
  const stepsOf = (name: string): number => {
    const known = steps.get(name);
    if (known !== undefined) return known;
    // Until it is known, one that names itself has no end.
    steps.set(name, Infinity);
    const named = [...namesIn(expressions.get(name) ?? ''), ...(beside.get(name) ?? [])].filter((word) =>
      expressions.has(word),
    );
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
