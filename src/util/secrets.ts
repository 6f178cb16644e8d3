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

export function isSecretName(name: string): boolean {
  return !harmlessNames.has(name) && nameRules.some(({ atEnd }) => atEnd.test(name));
}

interface Form {
  readonly why: string;
  hide(text: string): string;
}

/*
 * A text may come from anyone, and may be long: no form begins in the middle of a word that another beginning has read to its end, so that
 * the time grows with the length and not with its square.
 */
const text = String.raw`'(?:[^'\n]|'')*'|"(?:\\.|""|[^"\\\n])*"`;
const word = String.raw`${text}|[^\s"';,&]+`;
const pem = /-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(-----END [A-Z0-9 ]+-----|$)/g;
/** The same in base64, wherever it begins among three bytes: an API server may repeat a Secret that it refused. */
const pemInBase64 =
  /(LS0tLS1CRUdJTi|0tLS0tQkVHSU4|tLS0tLUJFR0lO)(?:[\w+/=-]|(?:\s|\\[nr])+(?=[\w+/=-]{16}))*/g;
/** Id of a claim of HTCondor, as `<address>#time#number#[session]key`: whoever has it commands the slot. */
const claim = /(#\d{6,12}#\d{1,12}#)(?:\[[^\]\n]{0,1000}\])?[\w+/=-]{8,}/g;
const passwordInUrl = /(\b[a-z][a-z0-9+.-]{0,40}:\/\/[^\s/:@]*):[^\s/@]+@/gi;
const authorization = /\b(bearer|basic)(\s+)(?!\(hidden\))[\w.~+/=-]+/gi;
const header = new RegExp(
  String.raw`\b((?:proxy-)?authorization|x-[\w-]{1,100})(\s*:\s*)((?:token\s+)?\S[^\s"']*)`,
  'gi',
);
const member = new RegExp(String.raw`(["'])([\w.-]+)\1(\s*:\s*)(${text}|\d+)`, 'g');
const option = new RegExp(String.raw`(?<![\w-])(--?)([A-Za-z][\w-]*)(\s+|=)(?!-)(${word})`, 'g');
/** `NAME=value` as shells have it, and `NAME = value` as submit descriptions and settings have it. */
const assignment = /(?<![\w.-])([\w.-]+)([ \t]*)(?<![=!<>?])=(?![=?!])([ \t]*)/g;

/** Forms of secrets in a text; the order matters: what a form hides no later one takes apart. */
const forms: readonly Form[] = [
  { why: 'holds a key or a certificate', hide: (text) => text.replace(pem, hidden) },
  { why: 'holds a key or a certificate', hide: (text) => text.replace(pemInBase64, hidden) },
  { why: 'holds the key of a claim', hide: (text) => text.replace(claim, `$1${hidden}`) },
  { why: 'holds a token', hide: hideTokens },
  { why: 'holds a URL with a password', hide: (text) => text.replace(passwordInUrl, `$1:${hidden}@`) },
  { why: 'holds an authorization', hide: (text) => text.replace(authorization, `$1$2${hidden}`) },
  {
    why: 'holds an authorization',
    hide: (text) =>
      text.replace(header, (whole, name: string, colon: string, value: string) =>
        isSecret(name, value) && !/^(bearer|basic)$/i.test(value) ? `${name}${colon}${hidden}` : whole,
      ),
  },
  {
    why: 'holds a secret beside its name',
    hide: (text) =>
      text.replace(member, (whole, quote: string, name: string, colon: string, value: string) =>
        isSecret(name, value) ? `${quote}${name}${quote}${colon}${quote}${hidden}${quote}` : whole,
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
  return value === undefined ? undefined : forms.find((form) => form.hide(value) !== value)?.why;
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
  return isSecretName(name) && !harmlessValue.test(value);
}

/** `["--password", "x"]`: the option that an item of a command line is the value of. */
function optionBefore(items: readonly unknown[], at: number): string {
  const [before, item] = [items[at - 1], items[at]];
  if (typeof before !== 'string' || typeof item !== 'string' || item.startsWith('-')) return '';
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

/** Whether a value would be hidden wherever it is said: paths, addresses, templates and words that name a way to log in are said in many messages. */
function isSecretArgument(name: string, value: string): boolean {
  const isWord = /^[a-z]+([-_./][a-z]+)*$/.test(value);
  return isSecret(name, value) && !isWord && !/^(\.{0,2}\/|[a-z][\w+.-]*:\/\/|\{)/i.test(value);
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

/** With blanks around `=` the value is the rest of the line, or all in its quotes; else one word. */
function hideAssigned(text: string): string {
  let shown = '';
  let from = 0;
  for (const match of text.matchAll(assignment)) {
    const [whole, word = '', before = '', after = ''] = match;
    const start = match.index + whole.length;
    const name = word.replace(/^[^A-Za-z_]+/, '');
    // Azure signs its URLs so. Elsewhere it is a signal.
    const signs = name === 'sig' && /[?&]/.test(text[match.index - 1] ?? '');
    if (match.index < from || !(signs || isSecretName(name))) continue;
    const pattern = before + after === '' ? wordHere : lineHere;
    pattern.lastIndex = start;
    const value = pattern.exec(text)?.[0] ?? '';
    if (harmlessValue.test(value)) continue;
    shown += text.slice(from, start) + hidden;
    from = start + value.length;
  }
  return shown + text.slice(from);
}

const wordHere = new RegExp(word, 'y');
const lineHere = new RegExp(String.raw`${text}|[^\n"']+`, 'y');
