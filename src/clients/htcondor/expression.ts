import { jobAttributes, steadyAttributes } from './job-attributes.ts';
import { isListed, shown } from './submit-names.ts';

/**
 * Bounds of an expression that a third party gives to a job. HTCondor parses and evaluates by recursion, in the negotiator and the schedd, and for each
 * of thousands of machines: with ten thousands of operators, or texts that grow tenfold at each step, one job ends these daemons for all users, again
 * at each of their starts.
 */
export const expressionBounds = {
  characters: 4096,
  /** Of operators, commas and calls; a match of a pattern or of a list counts as 50. */
  operators: 500,
  brackets: 50,
  /**
   * All operators that one evaluation takes, also those of the job's other expressions that it names, and those that all commands of one job take together.
   * A text counts one for each 32 characters, wherever it is named.
   */
  steps: 2000,
} as const;

/**
 * What expressions of third parties may call, in lower case: what the requirements, bounds and memory of a job need. Each function of HTCondor has ways of its own
 * to be slow, to tell an ad or to end its daemon (`quantize` by -1, `versioncmp` of a whole ad, `replaceAll` in itself), and each version has more:
 * the others are for templates, which are the administrator's.
 */
const called = [
  ...['ifThenElse', 'isUndefined', 'isError', 'int', 'real', 'floor', 'ceiling', 'round', 'min', 'max'],
  ...['time', 'regexp', 'stringListMember', 'stringListIMember'],
] as const;
export const callable: ReadonlySet<string> = new Set(called.map((name) => name.toLowerCase()));

/** Those which take a text apart: only a written one, or a machine's. */
const isMatch = (name: string) => /^(regexp|stringlisti?member)$/.test(name);
/** What a job has in texts of its payload, of a hundred thousand characters. */
const ofPayload = /^(env|environment|args|arguments|transfer\w*)$/i;
/** Operators that such a name, or a call that takes a text apart, counts as. */
const costOfMatch = 50;
/** Characters of a text that take the time of an operator, where it is compared or taken apart. */
export const charactersOfStep = 32;
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
/**
 * Expressions of machines and jobs that read each other (`WithinResourceLimits` of a partitionable slot reads RequestCpus), or what the template
 * of the queue has beside those of the job.
 */
const ofMatches =
  /^(start|withinresourcelimits|isowner|preempt\w*|suspend|continue|kill|wantvacate|wantsuspend|requirements|rank|periodic\w+|onexit\w+|system\w+|require_?gpus|countmatches)$/i;
const read: ReadonlySet<string> = new Set(jobAttributes.map((name) => name.toLowerCase()));
const steady: ReadonlySet<string> = new Set(steadyAttributes.map((name) => name.toLowerCase()));
/** What jobs have for a command of the list, also where none of their lines gives it: HTCondor makes these of the usage. */
const requested = /^request(cpus|memory|disk|gpus)$/i;
/** What HTCondor says of each GPU of a machine. Source: `condor_gpu_discovery`, 25.14. */
const gpuProperties: ReadonlySet<string> = new Set([
  ...['amddriverversion', 'capability', 'clockmhz', 'computeunits', 'corespercu', 'devicename'],
  ...['devicepcibusid', 'deviceuuid', 'dietempc', 'driverversion', 'eccenabled', 'eccerrorsdoublebit'],
  ...['eccerrorssinglebit', 'fanspeedpct', 'globalmemorymb', 'maxsupportedversion', 'nvidiadriver'],
  ...['openclversion', 'powerusage_mw', 'rocm', 'warpsize'],
]);
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
function argumentsAt(tokens: readonly Token[], start: number): readonly (readonly Token[])[] {
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

/** Whether this is one attribute of a machine. */
function isMachines(argument: readonly Token[]): boolean {
  const name = argument.at(-1);
  const isScoped = argument.length === 3 && name?.kind === 'word' && isTarget(argument, 2);
  return isScoped || (argument.length === 1 && ofMachines.test(name?.text ?? ''));
}

const isText = ([first, ...more]: readonly Token[]) => first?.kind === 'text' && more.length === 0;

/** Why a call that takes a text apart is refused. */
function matchRefusal(name: string, given: readonly (readonly Token[])[]): string | undefined {
  if (name !== 'regexp')
    return given.length === 2 && given.every((one) => isText(one) || isMachines(one))
      ? undefined
      : 'takes two texts, the second of names with commas between them; write each in "...", or as TARGET. and the name of an attribute of a machine';
  const [[written, ...more] = [], text = [], options, ...rest] = given;
  if (written?.kind !== 'text' || more.length > 0) return 'takes a pattern; write it as a text';
  const refusal = patternRefusal(written.text);
  if (refusal !== undefined)
    return `takes a pattern that is quickly matched with any text: ${shown(written.text)} ${refusal}`;
  if (!isMachines(text))
    return 'compares a pattern with an attribute of a machine; write TARGET. and its name';
  const isOption =
    options === undefined || (isText(options) && /^"[a-z]{0,9}"$/i.test(options[0]?.text ?? ''));
  return isOption && rest.length === 0 ? undefined : 'takes options as a third text of letters; write "i"';
}

function isWholeAd({ text, kind }: Token, index: number, tokens: readonly Token[]): boolean {
  const isBeforeName = /^(my|target)$/i.test(text) && tokens[index + 1]?.text === '.';
  return kind === 'word' && wholeAds.test(text) && !isBeforeName;
}

/** Operators, commas and calls of an expression, or the reason why it is refused wherever it stands. */
export function measured(expression: string): number | string {
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
    const [before, next] = [tokens[index - 1], tokens[index + 1]];
    // What a comment hides, HTCondor may read.
    if (text === '/*' || text === '//') return 'it has a comment; write none';
    const isScope = text === '.' && /^(my|target)$/i.test(before?.text ?? '');
    // TARGET.TARGET is the job again.
    if (text === '.' && (!isScope || tokens[index - 2]?.text === '.' || next?.kind !== 'word'))
      return 'it has a "." behind something else than MY or TARGET; write one of the two, and one name';
    if ((kind === 'operator' && !isScope) || /^(is|isnt)$/i.test(text)) operators++;
    if (kind === 'word' && ofPayload.test(text)) operators += costOfMatch;
    if (kind === 'word' && next?.text === '(') {
      const name = text.toLowerCase();
      operators += isMatch(name) ? costOfMatch : 1;
      if (!callable.has(name) && !/^(is|isnt)$/.test(name))
        return `it calls ${shown(text)}; it may call ${called.join(', ')}; an administrator can call others in the template of the queue`;
      const refusal = isMatch(name) ? matchRefusal(name, argumentsAt(tokens, index + 2)) : undefined;
      if (refusal !== undefined) return `${shown(text)} ${refusal}`;
    }
    if (text === '[') return 'it has "[": it may have neither ads nor places of lists';
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

/**
 * What reads an expression: `match` is compared with machines, which both have their say; `schedd` is read by the schedd alone; `machine` by machines
 * that compare the job with themselves, when it is matched and when it starts; `gpu` is looked at there with the properties of each GPU.
 */
export type Reader = 'match' | 'schedd' | 'machine' | 'gpu';

const keywords = /^(true|false|undefined|error|is|isnt|my|target)$/i;

/** The names that an expression has for attributes, as they are written. */
export function attributesIn(
  tokens: readonly Token[],
): readonly { readonly name: string; readonly isTheirs: boolean }[] {
  return tokens.flatMap(({ text, kind }, index) => {
    const isName = kind === 'word' && !keywords.test(text) && tokens[index + 1]?.text !== '(';
    return isName ? [{ name: text, isTheirs: isTarget(tokens, index) }] : [];
  });
}

/** Whether a job has an attribute of this name by a command that third parties may give. */
const isOfLines = (name: string) => isListed(`+${name}`) || requested.test(name);

/** Why an attribute may not be named. */
function nameRefusal(name: string, isTheirs: boolean, reader: Reader): string | undefined {
  if (keepsPrivate.test(name) && !(reader === 'gpu' && !isTheirs && /^capability$/i.test(name)))
    return 'which HTCondor keeps from users; name another attribute';
  if (setByJobs.test(name)) return 'which a job may set itself while it runs; name another attribute';
  if (reader === 'match')
    return ofMatches.test(name) ? 'which may read this expression again; name what it is made of' : undefined;
  if (isTheirs) return 'of a machine; only requirements and rank may read machines';
  if (reader === 'gpu')
    return gpuProperties.has(name.toLowerCase())
      ? undefined
      : 'which is no property of a GPU; name one of condor_gpu_discovery, as Capability or GlobalMemoryMb';
  const readable = reader === 'machine' ? steady : read;
  if (readable.has(name.toLowerCase()) || isOfLines(name)) return undefined;
  return read.has(name.toLowerCase())
    ? `which may be another one by the time the job starts; ${whenItStarts} name ${ofSteady}`
    : `which only requirements and rank may read; name an attribute of docs/htcjob.md, as ${reader === 'machine' ? ofSteady : 'JobStatus or MemoryUsage'}`;
}

const whenItStarts =
  'machines compare it again then, and what differs has the job start and fail without end:';
const ofSteady = 'MemoryUsage or NumJobStarts';

/** Why HTCondor is not to evaluate an expression of a third party; undefined: it may. */
export function expressionRefusal(expression: string, reader: Reader): string | undefined {
  const found = measured(expression);
  if (typeof found === 'string') return found;
  const tokens = tokensOf(expression);
  if (typeof tokens === 'string') return undefined;
  const isTime = ({ text, kind }: Token, index: number) =>
    kind === 'word' && /^time$/i.test(text) && tokens[index + 1]?.text === '(';
  if ((reader === 'machine' || reader === 'gpu') && tokens.some(isTime))
    return `it calls "time", which gives another number by the time the job starts; ${whenItStarts} write what stays the same`;
  for (const { name, isTheirs } of attributesIn(tokens)) {
    const refusal = nameRefusal(name, isTheirs, reader);
    if (refusal !== undefined) return `it names ${shown(name)}, ${refusal}`;
  }
  return undefined;
}
