import { ThresherError } from './errors.ts';
import { type Payload, payloadParts } from './payload.ts';

/**
 * The bounds of a payload, the same on all backends, so that a request that fits one queue fits every other.
 *
 * - `bytes`: an API server of Kubernetes takes 1 MiB in a ConfigMap or Secret.
 * - `wordBytes`: Linux takes 128 KiB in one argument or variable. An access point takes them into the ad of a job.
 * - `nameBytes`, `pathBytes`: the file systems of Linux, and the kubelet, take 255 and 4095.
 */
export const payloadBounds = {
  /** Contents of all files, with everything else in the payload. */
  bytes: 1024 * 1024,
  files: 100,
  /** All of `argv` and `env`. */
  wordBytes: 100_000,
  /** All of `values`, and all of `submit`. */
  valueBytes: 100_000,
  /** One part of a file's name. */
  nameBytes: 255,
  pathBytes: 1000,
} as const;

/** A mistake in a payload. `at` is a JSON pointer; `message` is a whole sentence, without the content of any part. */
export interface PayloadProblem {
  readonly at: string;
  readonly code: 'payload-wrong' | 'payload-too-large';
  readonly message: string;
}

/** @throws ThresherError `payload-wrong` or `payload-too-large`, with each mistake */
export function requirePayload(payload: unknown): asserts payload is Payload {
  const problems = payloadProblems(payload);
  const [first] = problems;
  if (first === undefined) return;
  const shown = problems.slice(0, 5).map(({ message }) => message);
  const more = problems.length > shown.length ? [`${problems.length - shown.length} further mistakes`] : [];
  throw new ThresherError(first.code, [...shown, ...more].join('; '));
}

/** Everything wrong in a payload that a third party, a file or a request gave. Empty: each backend can take it. */
export function payloadProblems(payload: unknown): readonly PayloadProblem[] {
  if (!isRecord(payload)) return [wrong('', `it is ${kindOf(payload)}; it must be an object`)];
  const unknown = Object.keys(payload).filter((key) => !payloadParts.some((part) => part === key));
  const problems = [
    ...unknown.map((key) =>
      wrong(`/${escaped(key)}`, `there is no such part; a payload has ${payloadParts.join(', ')}`),
    ),
    ...valueProblems(payload['values']),
    ...fileProblems(payload['files']),
    ...argvProblems(payload['argv']),
    ...envProblems(payload['env']),
    ...submitProblems(payload['submit']),
    ...outputProblems(payload['output']),
    ...imageProblems(payload['image']),
  ];
  return problems.length > 0 ? problems : sizeProblems(payload);
}

/** The permission bits that a file of a payload gets: those of a secret one are for its owner alone. */
export function modeOf({ mode, secret }: { readonly mode: number; readonly secret?: boolean }): number {
  return secret === true ? mode & 0o600 : mode;
}

const valueName = /^[A-Za-z_][\w.-]{0,99}$/;
const variableName = /^[A-Za-z_]\w*$/;

/** A shell sets them itself, and some backends start a worker by one. */
export const ofShells: ReadonlySet<string> = new Set([
  '_',
  'IFS',
  'OLDPWD',
  'OPTIND',
  'PPID',
  'PWD',
  'SHLVL',
]);

function valueProblems(values: unknown): PayloadProblem[] {
  if (values === undefined) return [];
  if (!isRecord(values)) return [wrong('/values', `it is ${kindOf(values)}; it must be an object of texts`)];
  if (areTexts(Object.values(values)) && Object.keys(values).every((key) => valueName.test(key))) return [];
  return Object.entries(values).flatMap(([key, value]) => [
    ...(valueName.test(key)
      ? []
      : [
          wrong(
            `/values/${escaped(key)}`,
            'the key must be at most 100 letters, digits, "_", "." and "-", and begin with a letter or "_"',
          ),
        ]),
    ...textProblems(`/values/${escaped(key)}`, value),
  ]);
}

function argvProblems(argv: unknown): PayloadProblem[] {
  if (argv === undefined) return [];
  if (!Array.isArray(argv)) return [wrong('/argv', `it is ${kindOf(argv)}; it must be a list of texts`)];
  if (argv[0] !== '' && areTexts(argv)) return [];
  return [
    ...(argv[0] === '' ? [wrong('/argv/0', 'the program is empty; name one, or a path')] : []),
    ...argv.flatMap((word, index) => textProblems(`/argv/${index}`, word)),
  ];
}

function envProblems(env: unknown): PayloadProblem[] {
  if (env === undefined) return [];
  if (!isRecord(env)) return [wrong('/env', `it is ${kindOf(env)}; it must be an object of texts`)];
  if (areTexts(Object.values(env)) && Object.keys(env).every((name) => whyNoVariable(name) === undefined))
    return [];
  return Object.entries(env).flatMap(([name, value]) => {
    const at = `/env/${escaped(name)}`;
    const why = whyNoVariable(name);
    return why === undefined ? textProblems(at, value) : [wrong(at, why)];
  });
}

function whyNoVariable(name: string): string | undefined {
  if (!variableName.test(name))
    return 'this is no name of a variable; it must be letters, digits and "_", and begin with no digit';
  if (/^thresher_/i.test(name))
    return 'variables that begin with THRESHER_ are for thresher to set; choose another name';
  if (ofShells.has(name)) return 'a shell sets this variable itself; set it in a script of the payload';
  return undefined;
}

/** Which commands HTCondor may get is its backend's to judge. */
function submitProblems(submit: unknown): PayloadProblem[] {
  if (submit === undefined) return [];
  if (!isRecord(submit)) return [wrong('/submit', `it is ${kindOf(submit)}; it must be an object of texts`)];
  if (areTexts(Object.values(submit))) return [];
  return Object.entries(submit).flatMap(([key, value]) => textProblems(`/submit/${escaped(key)}`, value));
}

function imageProblems(image: unknown): PayloadProblem[] {
  if (image === undefined || typeof image === 'boolean') return [];
  return [wrong('/image', `it is ${kindOf(image)}; it must be true or false`)];
}

function outputProblems(output: unknown): PayloadProblem[] {
  if (output === undefined || typeof output === 'boolean' || output === 'template') return [];
  return [wrong('/output', `it is ${kindOf(output)}; it must be true, false or "template"`)];
}

function fileProblems(files: unknown): PayloadProblem[] {
  if (files === undefined) return [];
  if (!Array.isArray(files)) return [wrong('/files', `it is ${kindOf(files)}; it must be a list of files`)];
  if (files.length > payloadBounds.files)
    return [
      tooLarge(
        '/files',
        `there are ${files.length} files; at most ${payloadBounds.files} are allowed: pack them into an archive`,
      ),
    ];
  const problems = files.flatMap((file: unknown, index) => formProblems(file, `/files/${index}`));
  const twice = problems.length > 0 ? [] : clashes(files.map(({ name }: { name: string }) => name));
  // A small list may name one large content very many times.
  if (twice.length > 0 || sum(files.map(bytesOfFile)) > payloadBounds.bytes) return [...problems, ...twice];
  return [...problems, ...files.flatMap((file: unknown, index) => contentProblems(file, `/files/${index}`))];
}

/** Files without a mistake: the payloads of a thousand jobs have one script of 900 kB in common. */
const goodFiles = new WeakSet();

function formProblems(file: unknown, at: string): PayloadProblem[] {
  if (!isRecord(file)) return [wrong(at, `it is ${kindOf(file)}; it must be { name, mode, content }`)];
  if (goodFiles.has(file)) return [];
  const { name, mode, secret } = file;
  const problems = nameProblems(name, `${at}/name`);
  if (typeof mode !== 'number' || !Number.isInteger(mode) || mode < 0 || mode > 0o777)
    problems.push(
      wrong(`${at}/mode`, `the mode of ${named(file, at)} must be permission bits from 0 to 0777 (511)`),
    );
  if (secret !== undefined && typeof secret !== 'boolean')
    problems.push(wrong(`${at}/secret`, `secret of ${named(file, at)} must be true or false`));
  return problems;
}

function contentProblems(file: unknown, at: string): PayloadProblem[] {
  if (!isRecord(file) || goodFiles.has(file)) return [];
  if (!isBase64(file['content']))
    return [wrong(`${at}/content`, `the content of ${named(file, at)} must be base64, with its padding`)];
  if (formProblems(file, at).length === 0) goodFiles.add(file);
  return [];
}

function named({ name }: Readonly<Record<string, unknown>>, at: string): string {
  return typeof name === 'string' ? `${at} (${quoted(name)})` : at;
}

/** One pattern of all of it would use up the stack on some megabytes. */
function isBase64(content: unknown): boolean {
  if (typeof content !== 'string' || content.length % 4 !== 0) return false;
  const end = content.search(/[^A-Za-z0-9+/]/);
  return end < 0 || ['=', '=='].includes(content.slice(end));
}

function bytesOfFile(file: unknown): number {
  const { name, content } = isRecord(file) ? file : {};
  return (
    (typeof name === 'string' ? bytesOf(name) : 0) + (typeof content === 'string' ? contentBytes(content) : 0)
  );
}

function nameProblems(name: unknown, at: string): PayloadProblem[] {
  const problems = textProblems(at, name);
  if (typeof name !== 'string' || problems.length > 0) return problems;
  const parts = name.split('/');
  const is = `the name is ${quoted(name)}`;
  if (name === '') return [wrong(at, 'the name is empty; write a relative path, such as run.sh')];
  if (name.startsWith('/')) return [wrong(at, `${is}, an absolute path; write a relative one`)];
  if (parts.includes('')) return [wrong(at, `${is}; a part between its slashes is empty`)];
  if (parts.some((part) => part === '.' || part.startsWith('..')))
    // Kubernetes keeps names with two leading dots for itself.
    return [wrong(at, `${is}; no part may be "." or begin with ".."`)];
  const longest = parts.reduce((most, part) => Math.max(most, bytesOf(part)), 0);
  if (longest > payloadBounds.nameBytes)
    return [
      wrong(at, `${is}; a part of it has ${longest} bytes, and ${payloadBounds.nameBytes} are allowed`),
    ];
  if (bytesOf(name) > payloadBounds.pathBytes)
    return [wrong(at, `${is}; it has ${bytesOf(name)} bytes, and ${payloadBounds.pathBytes} are allowed`)];
  return [];
}

/** Two files of one name, and a file in the place of another's directory. */
function clashes(names: readonly string[]): PayloadProblem[] {
  const first = new Map<string, number>();
  const directories = new Map<string, string>();
  for (const name of names) {
    const parts = name.split('/');
    for (let end = 1; end < parts.length; end++) directories.set(parts.slice(0, end).join('/'), name);
  }
  return names.flatMap((name, index) => {
    const at = `/files/${index}/name`;
    const before = first.get(name);
    if (before !== undefined)
      return [wrong(at, `files ${before} and ${index} have one name, ${quoted(name)}`)];
    first.set(name, index);
    const below = directories.get(name);
    if (below === undefined) return [];
    return [wrong(at, `${quoted(name)} is a file, and ${quoted(below)} needs a directory of this name`)];
  });
}

function sizeProblems({
  values = {},
  files = [],
  argv = [],
  env = {},
  submit = {},
}: Payload): PayloadProblem[] {
  // Texts are counted together: a list may have 50,000 words.
  const texts = (of: readonly string[]) =>
    (isBeyond(of) ? sum(of.map(({ length }) => length)) : bytesOf(of.join(''))) + of.length;
  const pairs = (of: Readonly<Record<string, string>>) => texts(Object.keys(of)) + texts(Object.values(of));
  const words = texts(argv) + pairs(env);
  const { bytes, wordBytes, valueBytes } = payloadBounds;
  if (words > wordBytes)
    return [
      tooLarge(
        argv.length > 0 ? '/argv' : '/env',
        `argv and env have ${words} bytes together, and ${wordBytes} are allowed: put what is long into a file`,
      ),
    ];
  if (pairs(values) > valueBytes)
    return [
      tooLarge('/values', `the values have ${pairs(values)} bytes together, and ${valueBytes} are allowed`),
    ];
  if (pairs(submit) > valueBytes)
    return [
      tooLarge('/submit', `the commands have ${pairs(submit)} bytes together, and ${valueBytes} are allowed`),
    ];
  const contents = files.map(bytesOfFile);
  const all = words + pairs(values) + pairs(submit) + sum(contents);
  if (all <= bytes) return [];
  const largest = contents.reduce((at, size, index) => (size > (contents[at] ?? 0) ? index : at), 0);
  const message = `the payload has ${all} bytes, and ${bytes} (1 MiB) are allowed; its largest file, ${quoted(files[largest]?.name ?? '')}, has ${contentBytes(files[largest]?.content ?? '')}: let the worker fetch it`;
  return [tooLarge('/files', message)];
}

/** Whether nothing is wrong with any of these, which takes far less than to look at each: a thousand jobs may have 50,000 words each. */
function areTexts(values: readonly unknown[]): boolean {
  if (!values.every((value) => typeof value === 'string')) return false;
  // It is refused for its size, and no text can be as long as all of them together may be.
  if (isBeyond(values)) return true;
  // With a character between them two halves do not become a whole one.
  const all = values.join('\n');
  return !all.includes('\0') && all.isWellFormed();
}

/** Whether texts are longer together than any payload may be: a list may name one text very many times. */
function isBeyond(texts: readonly string[]): boolean {
  return sum(texts.map(({ length }) => length)) > payloadBounds.bytes;
}

function textProblems(at: string, value: unknown): PayloadProblem[] {
  if (typeof value !== 'string') return [wrong(at, `it is ${kindOf(value)}; it must be a text`)];
  if (value.includes('\0')) return [wrong(at, 'it has a NUL character, which no system can hand on')];
  if (!value.isWellFormed()) return [wrong(at, 'it has half of a character (a lone surrogate)')];
  return [];
}

function contentBytes(content: string): number {
  return Buffer.byteLength(content, 'base64');
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function wrong(at: string, message: string): PayloadProblem {
  return { at, code: 'payload-wrong', message: `payload${at}: ${message}` };
}

function tooLarge(at: string, message: string): PayloadProblem {
  return { at, code: 'payload-too-large', message: `payload${at}: ${message}` };
}

/** A name in a message: on one line, and short. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}...` : name);
}

/** A key in a JSON pointer that stands in a message. */
function escaped(key: string): string {
  const pointed = key.replaceAll('~', '~0').replaceAll('/', '~1');
  return JSON.stringify(pointed.slice(0, 80)).slice(1, -1);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'missing';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
