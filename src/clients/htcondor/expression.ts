import { isListed, shown } from './submit-names.ts';

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
  /**
   * All operators that one evaluation takes, also those of the job's other expressions that it names, and those that all commands of one job take together.
   * A text counts one for each 32 characters, wherever it is named.
   */
  steps: 2000,
} as const;

/**
 * How the time of a call grows; a step is about a microsecond. One or more of each kind was measured with HTCondor 23.9.
 * - `text`: with its texts, by 1.5 nanoseconds for each character, and with the elements of its lists, which count as operators;
 * - `comparison`: with what it writes as a text first, also an ad or a list: the whole ad of a job takes milliseconds, and tells its secrets by its order;
 * - `list`: with a text that it takes apart, by a tenth of a microsecond for two characters, times its delimiters;
 * - `product`: with the product of two such texts at most; 23.9 takes 0.6 milliseconds for two of 3,200 characters;
 * - `pattern`: with the square of a text.
 */
export type Growth = 'text' | 'comparison' | 'list' | 'product' | 'pattern';

const growing = (growth: Growth, names: readonly string[]) => names.map((name) => [name, growth] as const);

/**
 * What expressions of third parties may call, in lower case. All give no text, or one of a few characters: each function that makes a text of a list doubles
 * its quotation marks, so that thirty of them in each other take the memory of the daemon. Source: HTCondor's manual, "ClassAd syntax"; 25.14.
 * `quantize` is none of them: the smallest integer by -1 ends the daemon that evaluates it, HTCondor 23.9.
 */
export const growths: ReadonlyMap<string, Growth> = new Map([
  ...growing('text', [
    ...['ifthenelse', 'isundefined', 'iserror', 'isstring', 'isinteger', 'isreal', 'isboolean', 'islist'],
    ...['isclassad', 'isabstime', 'isreltime', 'int', 'real', 'bool', 'floor', 'ceiling', 'round', 'pow'],
    ...['min', 'max', 'sum', 'avg', 'member', 'identicalmember', 'anycompare', 'allcompare', 'size'],
    ...['time', 'interval', 'random'],
  ]),
  ...growing('comparison', [
    ...['strcmp', 'stricmp', 'versioncmp', 'versionlt', 'versionle', 'versiongt', 'versionge', 'versioneq'],
    'version_in_range',
  ]),
  ...growing('list', [
    ...['stringlistmember', 'stringlistimember', 'stringlistsize', 'stringlistsum', 'stringlistavg'],
    ...['stringlistmin', 'stringlistmax'],
  ]),
  ...growing('product', ['stringlistsintersect', 'stringlistsubsetmatch', 'stringlistisubsetmatch']),
  ...growing('pattern', ['regexp', 'regexpmember', 'stringlistregexpmember']),
]);

/** Functions whose first argument is what they look for. */
const looking = /^stringlisti?member$/;
/**
 * What machines have for expressions that read the job: each is evaluated wherever it is named. Source: the templates of
 * `condor_config`, and `WithinResourceLimits` of a partitionable slot.
 */
const ofTheirOwn =
  /^(start|withinresourcelimits|isowner|preempt|suspend|continue|kill|wantvacate|wantsuspend)$/i;
/** What a job has in texts of its payload, of a hundred thousand characters. */
const ofPayload = /^(env|environment|args|arguments|transfer\w*)$/i;
/** Operators that such a call or name counts as, and steps of an attribute that a function writes as a text: a machine's may be a list of all its slots. */
export const costOfMatch = 50;
/** Characters of a text that take the time of an operator, where a function takes it apart. */
export const charactersOfStep = 32;
/** Characters of delimiters, and of the options of a match: at each place of a list each of them may be looked for. */
const longestOption = 10;
/** Attributes that machines have and jobs do not, so that they need no `TARGET.`. */
const ofMachines = /^(machine|name|arch|devicename|opsys\w*|cuda\w*|gpus_\w+)$/i;
/**
 * Attributes that HTCondor shows nobody, and by which whoever knows them commands a machine or takes the files of a job: an expression of the job
 * could bring them into a reason that its user reads. Source: `ClassAdPrivateAttrs` and `_condor_priv` of HTCondor's `compat_classad.cpp`;
 * `TransferSocket` is where such a key counts.
 */
const keepsPrivate = /^((child|paired)?claimid\w*|transferkey|transfersocket|capability)$|^_condor/i;
/**
 * Names that HTCondor takes for whole ads, or for expressions of the two ads that it matches: what such a name gives holds `ClaimId`, too. Source:
 * `ClassAd::LookupInScope` (classad.cpp) and `MatchClassAd` (matchClassad.cpp) with the aliases of the schedd, HTCondor 25.14; `super` and `adcl` are older.
 */
const wholeAds =
  /^(my|target|self|parent|toplevel|root|other|super|left|right|ad|[lr]ctx|adc[lr]|job|schedd|symmetricmatch|(left|right)(matches(left|right)|rankvalue))$/i;
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

export interface Token {
  readonly text: string;
  readonly kind: 'text' | 'number' | 'word' | 'bracket' | 'operator';
}

/** @returns as many as an expression is of, or where something else begins */
export function tokensOf(expression: string): readonly Token[] | string {
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
export function isTarget(tokens: readonly Token[], index: number): boolean {
  return tokens[index - 1]?.text === '.' && /^target$/i.test(tokens[index - 2]?.text ?? '');
}

/** The tokens of each argument of a call. @param start of what stands behind its bracket */
export function argumentsAt(tokens: readonly Token[], start: number): readonly (readonly Token[])[] {
  let depth = 0;
  let argument: Token[] = [];
  const all = [argument];
  for (let at = start; at < tokens.length; at++) {
    const one = tokens[at] as Token;
    if (one.kind === 'bracket') depth += one.text in closing ? -1 : 1;
    if (depth < 0) break;
    if (depth === 0 && one.text === ',') all.push((argument = []));
    else argument.push(one);
  }
  return all;
}

/** Why what stands behind the lists or texts of a call is refused: delimiters and options. */
function optionRefusal(options: readonly (readonly Token[])[]): string | undefined {
  const isShort = ([first, ...more]: readonly Token[]) =>
    first?.kind === 'text' && first.text.length - 2 <= longestOption && more.length === 0;
  return options.every(isShort)
    ? undefined
    : `takes delimiters and options that are written as texts of at most ${longestOption} characters`;
}

/** Why a call that matches a pattern is refused. */
function matchRefusal([pattern = [], text = [], ...options]: readonly (readonly Token[])[]):
  string | undefined {
  const [written, ...more] = pattern;
  if (written?.kind !== 'text' || more.length > 0) return 'takes a pattern; write it as a text';
  const refusal = patternRefusal(written.text);
  if (refusal !== undefined)
    return `takes a pattern that is quickly matched with any text: ${shown(written.text)} ${refusal}`;
  const name = text.at(-1);
  const isScoped = text.length === 3 && name?.kind === 'word' && isTarget(text, 2);
  if (!isScoped && !(text.length === 1 && ofMachines.test(name?.text ?? '')))
    return 'compares a pattern with an attribute of a machine; write TARGET. and its name';
  return optionRefusal(options);
}

/** Whether what a function takes apart or writes as a text is written so that its length is known: what the job brings in other ways has any. */
export function isList(tokens: readonly Token[]): boolean {
  return tokens.every(({ text, kind }, index) => {
    if (kind === 'text' || kind === 'number' || /^[.?:]$/.test(text)) return true;
    if (kind !== 'word') return false;
    const isScope = /^(my|target)$/i.test(text) && tokens[index + 1]?.text === '.';
    return isScope || isTarget(tokens, index) || ofMachines.test(text) || isListed(`+${text}`);
  });
}

/** Those arguments of a call that it takes apart or writes as texts, and what stands behind them. */
export function listsOf(name: string, given: readonly (readonly Token[])[]) {
  if (growths.get(name) === 'comparison') return { lists: given, options: [] };
  const first = looking.test(name) ? 1 : 0;
  const end = growths.get(name) === 'product' ? 2 : first + 1;
  return { lists: given.slice(first, end), options: given.slice(end) };
}

/** Why a call is refused. @param start of what stands behind its bracket */
function callRefusal(name: string, tokens: readonly Token[], start: number): string | undefined {
  const growth = growths.get(name);
  if (growth === undefined || growth === 'text') return undefined;
  const given = argumentsAt(tokens, start);
  if (growth === 'pattern') return matchRefusal(given);
  const { lists, options } = listsOf(name, given);
  const wrong = lists.find((one) => !isList(one));
  if (wrong === undefined) return optionRefusal(options);
  const written = shown(wrong.map(({ text }) => text).join(' '));
  const right =
    'write it as a text, as TARGET. and the name of an attribute of a machine, or as one of the attributes of docs/htcjob.md';
  return growth === 'comparison'
    ? `takes texts of known length, and ${written} is none; ${right}, or compare it by == or =?=`
    : `takes a list, and ${written} is none of known length; ${right}`;
}

/** `require_gpus` is evaluated with the properties of each GPU, of which one is called so. */
function isGpuProperty(text: string, tokens: readonly Token[], index: number, ofGpus: boolean): boolean {
  return ofGpus && /^capability$/i.test(text) && tokens[index - 1]?.text !== '.';
}

function isWholeAd({ text, kind }: Token, index: number, tokens: readonly Token[]): boolean {
  const isBeforeName = /^(my|target)$/i.test(text) && tokens[index + 1]?.text === '.';
  return kind === 'word' && wholeAds.test(text) && !isBeforeName;
}

/** Operators, commas and calls of an expression, or the reason why it is refused. */
export function measured(expression: string, ofGpus = false): number | string {
  if (expression.length > expressionBounds.characters)
    return `it has ${expression.length} characters; it may have ${expressionBounds.characters}`;
  // Of the two ways to write ads one reads it as the end of the text, and the other as a part of it.
  if (expression.includes('\\"')) return 'it has a backslash before a quotation mark; write no such text';
  const tokens = tokensOf(expression);
  if (typeof tokens === 'string')
    return tokens.startsWith("'")
      ? `it has a name in single quotes, ${shown(tokens)}; write names without, and texts in "..."`
      : `${shown(tokens)} is no part of an expression`;
  const whole = tokens.find(isWholeAd);
  if (whole !== undefined)
    return `it names ${shown(whole.text)}, a whole ad; name one attribute, or MY. or TARGET. and its name`;
  const open: string[] = [];
  let operators = 0;
  for (const [index, { text, kind }] of tokens.entries()) {
    const [before, next, second] = [tokens[index - 1], tokens[index + 1], tokens[index + 2]];
    // What a comment hides, HTCondor may read.
    if (text === '/*' || text === '//') return 'it has a comment; write none';
    const isScope = text === '.' && /^(my|target)$/i.test(before?.text ?? '');
    // TARGET.TARGET is the job again.
    if (text === '.' && (!isScope || tokens[index - 2]?.text === '.' || next?.kind !== 'word'))
      return 'it has a "." behind something else than MY or TARGET; write one of the two, and one name';
    if ((kind === 'operator' && !isScope) || /^(is|isnt)$/i.test(text)) operators++;
    if (kind === 'word' && keepsPrivate.test(text) && !isGpuProperty(text, tokens, index, ofGpus))
      return `it names ${shown(text)}, which HTCondor keeps from users; name another attribute`;
    if (kind === 'word' && setByJobs.test(text))
      return `it names ${shown(text)}, which a job may set itself while it runs; name another attribute`;
    const isTheirs = isTarget(tokens, index) && /^(rank|requirements)$/i.test(text);
    if (kind === 'word' && (isTheirs || ofTheirOwn.test(text) || ofPayload.test(text)))
      operators += costOfMatch;
    if (kind === 'word' && next?.text === '(') {
      const name = text.toLowerCase();
      const growth = growths.get(name);
      operators += growth === 'pattern' || growth === 'product' ? costOfMatch : 1;
      if (growth === undefined && !/^(is|isnt)$/.test(name))
        return `it calls ${shown(text)}; it may call what makes no texts alone: ${callable.slice(0, 8).join(', ')} and others of docs/htcjob.md`;
      const refusal = callRefusal(name, tokens, index + 2);
      if (refusal !== undefined) return `${shown(text)} ${refusal}`;
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
export const callable: readonly string[] = [...growths.keys()].filter(
  (name) => growths.get(name) !== 'pattern',
);

/** Why HTCondor is not to evaluate an expression of a third party; undefined: it may. @param ofGpus whether it is about each GPU of a machine */
export function expressionRefusal(expression: string, ofGpus = false): string | undefined {
  const found = measured(expression, ofGpus);
  return typeof found === 'string' ? found : undefined;
}
