import { isObject } from './json.ts';
/**
 * The one rule for what is a secret: by the name of a value, or by the form of the value itself. `explain`, `render`, messages
 * on wrong values, and the variables that a submit description may name all ask here.
 */

/** Stands where a secret would be shown. */
export const hidden = '(hidden)';

interface NameRule {
  /** Somewhere in the name of a variable: no job gets it. */
  readonly anywhere: RegExp;
  /** At the end of the name: the value is the secret itself, and no path or name of one (`tokenDir`, `secret_name`). */
  readonly atEnd: RegExp;
  readonly why: string;
}

/** Short words count alone only: `COMPASS` and `bypass` are no passwords. */
const nameRules: readonly NameRule[] = [
  { anywhere: /TOKEN|BEARER/i, atEnd: /(token|bearer)$/i, why: 'is called as a token is' },
  {
    anywhere: /SECRET|CREDENTIAL/i,
    atEnd: /(secret|credentials?)$/i,
    why: 'is called as a secret is',
  },
  {
    anywhere: /PASSW|PASSPHRASE|(^|_)PASS(_|$)|_PWD(_|$)/i,
    atEnd: /(passwd|password|passphrase|(^|[^a-z])(pass|pwd))$/i,
    why: 'is called as a password is',
  },
  { anywhere: /[a-z](Pass|Pwd)$/, atEnd: /[a-z](Pass|Pwd)$/, why: 'is called as a password is' },
  {
    anywhere: /KEY/i,
    atEnd: /(secret|access|private|api|shared|signing|encryption|token|auth)[._-]?key$/i,
    why: 'is called as a key is',
  },
  {
    anywhere: /(^|_)AUTH(_|$)|AUTHORI[SZ]ATION/i,
    atEnd: /(auth|authori[sz]ation)$/i,
    why: 'is called as an authorization is',
  },
  {
    anywhere: /(?!)/,
    atEnd: /(^|[^a-z])(authz|signature)$|[a-z]Signature$/i,
    why: 'is called as what signs a URL is',
  },
  { anywhere: /^NOTIFY_SOCKET$/, atEnd: /(?!)/, why: "belongs to the daemon's own service" },
];

/** Variables that sound so: of a pilot, with the name of a file; and of a shell, with a directory. */
const harmlessNames: ReadonlySet<string> = new Set([
  ...['PANDA_AUTH_TOKEN', 'PANDA_AUTH_TOKEN_KEY', 'PWD', 'OLDPWD'],
]);

/** Keys by which Kubernetes refers to a Secret or a token, below a key that is called so. */
const references: ReadonlySet<string> = new Set([
  ...['secretName', 'name', 'key', 'path', 'items', 'optional', 'defaultMode', 'mode'],
  ...['audience', 'expirationSeconds'],
]);

/** A path, a variable that a shell or a backend fills in, a switch; and what is hidden already. */
const harmlessValue =
  /^['"]?(\.{0,2}\/[\w.@~+-]+\/|\$\$?[({]|\$[A-Z_]+\b|\(hidden\)|(true|false|none|null|undefined)['"]?$|$)/i;

/** What begins as a path, and with a word of all kinds of characters: a password in base64, that begins with "/" once in 64 times. */
const randomPath = /^\.{0,2}\/(?=[^/]*[a-z])(?=[^/]*[A-Z])(?=[^/]*\d)[\w+]{10,}\//;

/** A path of words as names of files are. */
const plainPath = /^\.{0,2}\/(?:(?:[A-Z]?[a-z\d]+|[A-Z])?[._/-])*(?:[A-Z]?[a-z\d]+|[A-Z])?$/;

export function isSecretName(name: string): boolean {
  return !harmlessNames.has(name) && nameRules.some(({ atEnd }) => atEnd.test(name));
}

interface Form {
  readonly why: string;
  /** It may be a word of a sentence or of a list: better hidden where it is shown, and no reason to keep a variable from a job. */
  readonly isGuess?: true;
  hide(text: string): string;
}

/*
 * A text may come from anyone, and may be long: no form begins in the middle of a word that another beginning has read to its end, so that
 * the time grows with the length and not with its square.
 */
const text = String.raw`'(?:[^'\n]|'')*'|"(?:\\.|""|[^"\\\n])*"`;
/** A quote as a text has it that stands in JSON, also in one within another one, in HTML or in an address. */
const quote = String.raw`(?<!\\)(?<quote>\\{1,15}"|&quot;|&#34;|%22)`;
/** What stands before the next quote of the kind, or in the line. */
const quoted = String.raw`(?:[^\\&%"'\n]+|(?!(?<!\\)\k<quote>)[\\&%"'])*`;
const word = String.raw`${quote}${quoted}(?:\k<quote>)?|${text}|[^\s"';,&]+`;
const pem = /-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(-----END [A-Z0-9 ]+-----|$)/g;
/** The same in base64, wherever it begins among three bytes: an API server may repeat a Secret that it refused. */
const pemInBase64 =
  /(LS0tLS1CRUdJTi|0tLS0tQkVHSU4|tLS0tLUJFR0lO)(?:[\w+/=-]|(?:\s|\\[nr])+(?=[\w+/=-]{16}))*/g;
/** Id of a claim of HTCondor, as `<address>#time#number#[session]key`: whoever has it commands the slot. */
const claim = /(#\d{6,12}#\d{1,12}#)(?:\[[^\]\n]{0,1000}\])?[\w+/=-]{8,}/g;
const passwordInUrl = /(\b[a-z][a-z0-9+.-]{0,40}:\/\/[^\s/:@]*):[^\s/@]+@/gi;
const authorization = /\b(bearer|basic)(\s+|(?:%20)+)(?!\(hidden\))[\w.~+/=%-]+/gi;
/** Its tokens are long: "Negotiate authentication" is none. */
const negotiation = /\b(negotiate|ntlm)(\s+)(?=[A-Za-z+/]{0,100}\d)[\w+/=]{16,}/gi;
const pair = String.raw`[\w-]+=(?:\\*"[^"\\\n]*\\*"|[^\s,"'\\]+)`;
/** `Digest username="u", response="..."`, `AWS4-HMAC-SHA256 Credential=...` */
const pairs = new RegExp(
  String.raw`(\bauthorization\\*["']?\s*:\s*(?:\[\s*)?\\*["']?[a-z][\w-]*\s+)${pair}(?:\s*,\s*${pair})*`,
  'gi',
);
const inAddress = /(\bauthorization%3A(?:%20|\+)*(?:[a-z]+(?:%20|\+)+)?)(?!\(hidden\))[\w.~%+/=-]+/gi;
const crumb = String.raw`[\w!#$%&*+.^|~-]{1,100}=(?:\\*"[^"\\\n]*\\*"|[^\s;"'\\]*)`;
const cookie = new RegExp(
  String.raw`(\b(?:set-)?cookie2?\\*["']?\s*:\s*(?:\[\s*)?\\*["']?)${crumb}(?:;\s*${crumb})*`,
  'gi',
);
/** What the value of a header of an authorization begins with. */
const scheme = /^(basic|bearer|digest|negotiate|ntlm|aws4-[\w-]+)$/i;
const header = new RegExp(
  String.raw`\b((?:proxy-)?authorization|x-[\w-]{1,100})(\s*:\s*)((?:token\s+)?\S[^\s"']*)`,
  'gi',
);
const member = new RegExp(String.raw`(["'])([\w.-]+)\1(\s*:\s*)(${text}|\d+)`, 'g');
/** The same where the quotes are no plain ones, up to the value. */
const innerMember = new RegExp(String.raw`${quote}([\w.-]+)\k<quote>(?:\s*:|%3A)\s*`, 'gi');
/** An entry of an environment: `{"name": "PASSWORD", "value": "..."}`. */
const entry = new RegExp(
  String.raw`(?<!\\)(?<quote>\\{0,15}["']|&quot;|&#34;)(?:name|key)\k<quote>\s*:\s*\k<quote>([\w.-]+)\k<quote>\s*,\s*\k<quote>value\k<quote>\s*:\s*`,
  'gi',
);
/** The same as YAML and Go have it. */
const plainEntry = /\b(?:name|key):[ \t]*(["']?)([\w.-]+)\1,?\s+value:[ \t]*/gi;
const element = /(<([\w.:-]+)(?:\s[^<>]*)?>)([^<>]+)(?=<\/|$)/g;
/**
 * What begins with "-" behind an option is the next one, and no value: a token in base64 may begin so, too, which is long and not of words alone.
 */
const nextOption = String.raw`-(?:[^\s"';,&]{0,14}(?![^\s"';,&])|-?[A-Za-z]{1,15}\d?(?:[-_][A-Za-z]{1,15}\d?)*(?![\w.~+/%-]))`;
const beginsOption = new RegExp(`^${nextOption}`);
const option = new RegExp(String.raw`(?<![\w-])(--?)([A-Za-z][\w-]*)(\s+|=)(?!${nextOption})(${word})`, 'g');
/** `NAME=value` as shells have it, and `NAME = value` as submit descriptions and settings have it. */
const assignment = /(?<![\w.-])([\w.-]+)([ \t]*)(?<![=!<>?])=(?![=?!])([ \t]*)/g;
/** The same in an address that is part of another one. */
const assignmentInAddress = /(?<![\w.-])([\w.-]+%3D)((?:(?!%26)[\w.~%*+/-])+)/gi;
/** `name: value` as YAML and logs have it, `name:value` as Go has its maps; and an API server before a value that it refuses. */
const statement = /(?<![\w.-])([\w.-]+):([ \t]*)(?:(?:Invalid|Unsupported|Duplicate) value:[ \t]*)?/g;

/** Forms of secrets in a text; the order matters: what a form hides no later one takes apart. */
const forms: readonly Form[] = [
  { why: 'holds a key or a certificate', hide: (text) => text.replace(pem, hidden) },
  { why: 'holds a key or a certificate', hide: (text) => text.replace(pemInBase64, hidden) },
  { why: 'holds the key of a claim', hide: (text) => text.replace(claim, `$1${hidden}`) },
  { why: 'holds a token', hide: hideTokens },
  { why: 'holds a URL with a password', hide: (text) => text.replace(passwordInUrl, `$1:${hidden}@`) },
  { why: 'holds an authorization', hide: (text) => text.replace(authorization, `$1$2${hidden}`) },
  { why: 'holds an authorization', hide: (text) => text.replace(negotiation, `$1$2${hidden}`) },
  { why: 'holds an authorization', hide: (text) => text.replace(pairs, `$1${hidden}`) },
  { why: 'holds an authorization', hide: (text) => text.replace(inAddress, `$1${hidden}`) },
  { why: 'holds a cookie', hide: (text) => text.replace(cookie, `$1${hidden}`) },
  {
    why: 'holds an authorization',
    hide: (text) =>
      text.replace(header, (whole, name: string, colon: string, value: string) =>
        isSecret(name, value) && !scheme.test(value) ? `${name}${colon}${hidden}` : whole,
      ),
  },
  {
    why: 'holds a secret beside its name',
    hide: (text) =>
      text.replace(member, (whole, quote: string, name: string, colon: string, value: string) =>
        isSecret(name, value) ? `${quote}${name}${quote}${colon}${quote}${hidden}${quote}` : whole,
      ),
  },
  { why: 'holds a secret beside its name', hide: (text) => hideMembers(text, innerMember) },
  { why: 'holds a secret beside its name', hide: (text) => hideMembers(text, entry) },
  {
    why: 'holds a secret beside its name',
    isGuess: true,
    hide: (text) =>
      hideBehind(text, plainEntry, ([, , name = ''], start) => {
        const head = here(reaches.statement.head, text, start);
        return isSecret(name, head) ? wholeOf(head, reaches.statement, text, start).length : 0;
      }),
  },
  {
    why: 'holds a secret beside its name',
    isGuess: true,
    hide: (text) =>
      text.replace(element, (whole, before: string, name: string, value: string) =>
        isSecret(name, value.trim()) ? `${before}${hidden}` : whole,
      ),
  },
  {
    why: 'holds a secret as an option',
    hide: (text) =>
      text.replace(option, (whole, dashes: string, name: string, between: string, value: string) =>
        isSecret(name, value) ? `${dashes}${name}${between}${hidden}` : whole,
      ),
  },
  { why: 'holds a secret beside its name', hide: hideAssigned },
  {
    why: 'holds a secret beside its name',
    hide: (text) =>
      text.replace(assignmentInAddress, (whole, before: string, value: string) =>
        isSecret(before.slice(0, -3), value) ? `${before}${hidden}` : whole,
      ),
  },
  { why: 'holds a secret beside its name', isGuess: true, hide: hideStated },
];

/** A text without what is a secret by its form or by the name that it is assigned to. */
export function maskText(text: string): string {
  return forms.reduce((shown, form) => form.hide(shown), text);
}

/** A text without keys and certificates, also one that began before the text. */
export function withoutKeys(text: string): string {
  return text
    .replace(pem, hidden)
    .replace(/^[\s\S]*-----END [A-Z0-9 ]+-----/, hidden)
    .replace(pemInBase64, hidden);
}

/** Why a variable is never passed to a job; undefined for one that may be. The path of a secret is none. */
export function whySecret(name: string, value: string | undefined): string | undefined {
  if (/_(FILE|PATH|DIR|DIRECTORY)$/i.test(name) && /^(\/[^\s:=]*)?$/.test(value ?? '')) return undefined;
  const byName = nameRules.find(({ anywhere }) => anywhere.test(name));
  if (byName !== undefined) return byName.why;
  return value === undefined
    ? undefined
    : forms.find((form) => !form.isGuess && form.hide(value) !== value)?.why;
}

/** A copy of a value of a key with all secrets hidden. Entries `{ name, value }` of an environment count as keys with values. */
export function withoutSecrets(key: string, value: unknown): unknown {
  // A switch (`useAuth`) is no secret.
  if (typeof value === 'boolean' || value === null || value === undefined) return value;
  if (typeof value === 'string') return isSecret(key, value) ? hidden : maskText(value);
  if (isSecretName(key) && !refers(value)) return hidden;
  if (Array.isArray(value)) return value.map((item, at) => withoutSecrets(optionBefore(value, at), item));
  if (typeof value !== 'object') return value;
  const entry = value as Readonly<Record<string, unknown>>;
  const named = typeof entry.name === 'string' && 'value' in entry ? entry.name : 'value';
  return Object.fromEntries(
    Object.entries(entry).map(([name, inner]) => [
      name,
      withoutSecrets(name === 'value' ? named : name, inner),
    ]),
  );
}

/** Whether a value is secret by its name: `PASSWORD` of `hunter2`, and not of the path of a file. */
export function isSecret(name: string, value: string): boolean {
  const isRandom = randomPath.test(value) && !plainPath.test(value);
  return isSecretName(name) && (isRandom || !harmlessValue.test(value));
}

/** `["--password", "x"]`: the option that an item of a command line is the value of. */
function optionBefore(items: readonly unknown[], at: number): string {
  const [before, item] = [items[at - 1], items[at]];
  if (typeof before !== 'string' || typeof item !== 'string' || beginsOption.test(item)) return '';
  return /^--?([A-Za-z][\w-]*)$/.exec(before)?.[1] ?? '';
}

/** A word of a command line or script, with what it has in quotes. */
const shellWord = new RegExp(String.raw`(?:${text}|[^\s"';|&()])+`, 'g');
const namedWord = /^(-{0,2})([A-Za-z_][\w.-]*)([=:])(.*)$/s;

/** The values in a command line that are secret by their names: `--password X`, `--password=X`, `PASSWORD=X`, also within a script. */
export function secretArguments(items: readonly string[]): readonly string[] {
  return items.flatMap((written, at) => {
    const item = unquoted(written);
    if (isSecretArgument(optionBefore(items, at), item)) return [item];
    const named = valueIn(item);
    if (named !== undefined) return [named];
    const words = item.match(shellWord) ?? [];
    return words.length > 1 || (words.length === 1 && words[0] !== item) ? secretArguments(words) : [];
  });
}

/** The secret of `--password=X`, `PASSWORD=X` and `Authorization: Bearer X`. A script that begins with an assignment is more than its value. */
function valueIn(item: string): string | undefined {
  const [, dashes, name = '', sign, written = ''] = namedWord.exec(item) ?? [];
  const value = unquoted(written.trim());
  if (!isSecretArgument(name, value)) return undefined;
  if (dashes === '' && sign === '=' && value === written && /\s/.test(value)) return undefined;
  return value.replace(/^(bearer|basic|token)\s+(?=\S)/i, '');
}

/** What names a way to log in, or a Secret: `oidc-browser`. */
const plainWords = /^[a-z]+([-_./][a-z]+)*$/;
const otherNames = /^(\.{1,2}\/|file:|[a-z][\w+.-]*:\/\/|\{\{|\{[\w .-]+\}(?=[/._-]|$))/i;
const passwordName = /(passwd|password|passphrase|pass|pwd)$/i;

/**
 * Whether a value would be hidden wherever it is said: paths, addresses, templates and words that name a way to log in are said in many messages.
 * A password may be words with signs between them (`correct-horse-battery`) or begin as a path does: there the name tells.
 */
export function isSecretArgument(name: string, value: string): boolean {
  const bare = unquoted(value);
  const isPassword = passwordName.test(name);
  const isPhrase = isPassword && !bare.includes('/');
  if (plainPath.test(bare) || otherNames.test(bare) || (plainWords.test(bare) && !isPhrase)) return false;
  return isSecret(name, bare) || (isPassword && isSecretName(name) && bare.startsWith('/'));
}

function unquoted(word: string): string {
  return word.replace(/^(['"])(.*)\1$/s, '$2');
}

function refers(value: unknown): boolean {
  return isObject(value) && Object.keys(value).every((key) => references.has(key));
}

const segment = /[\w-]*/y;

/** JSON Web Tokens: three words with dots between them, of which the first begins with `{"` in base64. */
function hideTokens(text: string): string {
  const endFrom = (at: number) => {
    segment.lastIndex = at;
    segment.exec(text);
    return segment.lastIndex;
  };
  let shown = '';
  let from = 0;
  for (let at = text.indexOf('eyJ'), next; at >= 0; at = text.indexOf('eyJ', next)) {
    next = endFrom(at);
    // The letters may stand in the middle of a name, too; the first word of a real token is longer.
    const isInWord = /\w/.test(text[at - 1] ?? '');
    if (text[next] !== '.' || next - at < (isInWord ? 15 : 7)) continue;
    const second = endFrom(next + 1);
    if (text[second] !== '.' || second - next < 5) continue;
    next = endFrom(second + 1);
    shown += text.slice(from, at) + hidden;
    from = next;
  }
  return shown + text.slice(from);
}

/** Hides the value behind each match. No match has its value, so that others are found within a value that is shown. @param lengthOf 0: it is shown */
function hideBehind(
  text: string,
  pattern: RegExp,
  lengthOf: (match: RegExpExecArray, start: number) => number,
): string {
  let shown = '';
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    const start = match.index + match[0].length;
    const length = match.index < from ? 0 : lengthOf(match, start);
    if (length === 0) continue;
    shown += text.slice(from, start) + hidden;
    from = start + length;
  }
  return shown + text.slice(from);
}

/** What a sticky pattern finds at a place. */
function here(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** A value is in quotes, or as long as its characters go on. By its head it is judged: one without an end may have thousands of names in it. */
interface Reach {
  readonly head: RegExp;
  readonly rest: RegExp;
}

function reachOf(character: string): Reach {
  const head = String.raw`${quote}${quoted}(?:\k<quote>)?|${text}|${character}{1,100}`;
  return { head: new RegExp(head, 'y'), rest: new RegExp(`${character}*`, 'y') };
}

const reaches = {
  word: reachOf(String.raw`[^\s"';,&]`),
  line: reachOf(String.raw`[^\n"']`),
  statement: reachOf(String.raw`[^\s"'<>]`),
};

/** The whole of a value whose head is secret. */
function wholeOf(head: string, { rest }: Reach, text: string, start: number): string {
  return openingQuote.test(head) ? head : head + here(rest, text, start + head.length);
}

const memberHere = new RegExp(String.raw`${quote}${quoted}(?:\k<quote>)?|${text}|\d+`, 'y');

/** With blanks around `=` the value is the rest of the line, or all in its quotes; else one word. */
function hideAssigned(text: string): string {
  return hideBehind(text, assignment, (match, start) => {
    const [, word = '', before = '', after = ''] = match;
    const name = word.replace(/^[^A-Za-z_]+/, '');
    // Azure signs its URLs so. Elsewhere it is a signal.
    const signs = name === 'sig' && /[?&]/.test(text[match.index - 1] ?? '');
    if (!(signs || isSecretName(name))) return 0;
    const reach = before + after === '' ? reaches.word : reaches.line;
    const head = here(reach.head, text, start);
    return harmlessValue.test(head) ? 0 : wholeOf(head, reach, text, start).length;
  });
}

/** What a sentence says behind a colon: an address, a place with its port, a date, a fact such as `status=401`. */
const ordinary = /^([a-z][a-z0-9+.-]*:\/\/|[a-z0-9.-]+:\d{1,5}(?:[/:]|$)|\d{4}-\d\d-\d\d(?:T|$)|[a-z]+=\w)/i;

/** Behind a colon a sentence may go on: only a value that is like a secret is hidden. */
function hideStated(text: string): string {
  return hideBehind(text, statement, (match, start) => {
    const [, name = '', blank = ''] = match;
    // "images/oauth:v1.2" is an address.
    if (!isSecretName(name) || (blank === '' && text[match.index - 1] === '/')) return 0;
    const head = here(reaches.statement.head, text, start);
    const value = withoutQuotes(head);
    const said = value === head ? value.slice(0, endOf(value)) : value;
    if (harmlessValue.test(said) || scheme.test(said) || ordinary.test(said) || !isLikeSecret(said)) return 0;
    // The name of an object of Kubernetes.
    if (/^secrets?$/i.test(name) && /^[a-z][a-z0-9.-]{0,252}$/.test(said)) return 0;
    const whole = wholeOf(head, reaches.statement, text, start);
    return value === head ? endOf(whole) : whole.length;
  });
}

/** Where the punctuation of the sentence around a word begins. */
function endOf(word: string): number {
  let end = word.length;
  while (end > 0 && ')]},;.:!?…'.includes(word[end - 1] ?? ' ')) end--;
  return end;
}

/** Eight characters or more, not all of them letters and what stands between words: no "expired", and no "not-found". */
function isLikeSecret(value: string): boolean {
  return value.length >= 8 && /[^\p{L}\s.,:;/_()[\]{}-]/u.test(value);
}

/** @param pattern with the name as its second group, and its quote as the first */
function hideMembers(text: string, pattern: RegExp): string {
  return hideBehind(text, pattern, ([, , name = ''], start) => {
    const value = here(memberHere, text, start);
    return isSecret(name, withoutQuotes(value)) ? value.length : 0;
  });
}

function withoutQuotes(value: string): string {
  const [, mark] = openingQuote.exec(value) ?? [];
  if (mark === undefined) return value;
  return value.endsWith(mark) ? value.slice(mark.length, -mark.length) : value.slice(mark.length);
}

const openingQuote = /^(\\{0,15}["']|&quot;|&#34;|%22)/;
