import { fromOutside, holdsOwn } from '../../util/own-secrets.ts';
import { tooLarge } from './connection-failures.ts';
import { type Asked, KubernetesError, mayTellSecrets } from './errors.ts';
import type { ObjectMeta } from './objects.ts';
import type { Answer } from './transport.ts';

/**
 * The most that one answer may have: an object takes a hundred times the memory of its text, and nothing else runs while it is read, so each of
 * these was measured to take less than 100 ms. A key that no object had before costs as much as ten other values. A page has 250 objects, each of some
 * hundred values; a list asks for a page that has more again, in smaller parts. The largest of the objects that are meant to be read are HTCJobs: of
 * 10,000 jobs, with two texts and a return code of three keys for each.
 */
const bounds = {
  /** Lists and objects. */
  nested: 300_000,
  values: 400_000,
  keys: 40_000,
  /** Characters outside of texts: a server may send blanks and digits without end. */
  besides: 2_000_000,
} as const;

/** The beginning of the next page, if the text has it before its first object; the page itself has it for certain. */
export function continueIn(text: string): string | undefined {
  const head = text.slice(0, longestHead);
  return /"continue":"([^"\\]+)"/.exec(head.slice(0, Math.max(0, head.indexOf('"items":['))))?.[1];
}

/** A list begins with its metadata, which have a token of some hundred characters. */
const longestHead = 10_000;

interface Reading {
  /** Leaves out what the caller does not read; where the rest is no JSON, the whole is parsed instead. */
  readonly shorten?: ((text: string) => string) | undefined;
}

/**
 * The fields that a successful answer must have.
 * @throws KubernetesError `kubernetes-too-large` for more values than the daemon reads at once, and `kubernetes-no-api`
 */
export function parse(text: string, asked: Asked, { shorten = withoutUnread }: Reading = {}): object {
  let value = parsed(shorten(text));
  if (value === undefined || value === tooMuch) value = parsed(withoutUnreadByCount(text));
  if (value === tooMuch) throw tooLarge(asked, boundsInWords, true);
  if (typeof value === 'object' && value !== null) return value;
  const said = mayTellSecrets(asked)
    ? ''
    : `, but "${fromOutside(text).slice(0, 80).replaceAll(/\s+/g, ' ')}"`;
  throw noApi(asked, `no JSON object${said}`);
}

/** Counts outside of texts: what a user writes into one is not the server's. */
function isTooMuch(text: string): boolean {
  let [nested, values, keys, besides] = [0, 0, 0, 0];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (++besides > bounds.besides) return true;
    if (code === quote) at = endOfText(text, at);
    else if (code === comma && ++values > bounds.values) return true;
    else if (code === colon && ++keys > bounds.keys) return true;
    else if ((code === list || code === object) && ++nested > bounds.nested) return true;
  }
  return false;
}

const boundsInWords = `${bounds.nested} lists and objects, ${bounds.values} values, ${bounds.keys} keys, or ${bounds.besides} characters outside of texts`;

const [quote, comma, list, object] = [0x22, 0x2c, 0x5b, 0x7b] as const;
const [colon, slash, endOfList, endOfObject] = [0x3a, 0x5c, 0x5d, 0x7d] as const;

function endOfText(text: string, start: number): number {
  const end = text.indexOf('"', start + 1);
  if (end === -1) return text.length;
  if (text.charCodeAt(end - 1) !== slash) return end;
  // A text may be full of quotes, and a search from each to the next takes four times as long.
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === slash) at++;
    else if (code === quote) return at;
  }
  return text.length;
}

const tooMuch = Symbol('more than is read at once');

function parsed(text: string): unknown {
  if (isTooMuch(text)) return tooMuch;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The caller reports it.
    return undefined;
  }
}

const managedFields = ',"managedFields":[';

/**
 * `managedFields` are half of an API server's answer, and no part of thresher reads them: they cost a third of the time
 * to parse, and make most of the garbage. This text appears nowhere else: inside a string its quotes would be escaped.
 * If the cut ends too early, at a `}]` in a string of the field itself, the rest is no JSON, and the caller parses the
 * whole instead.
 */
function withoutManagedFields(text: string): string {
  let rest = '';
  let from = 0;
  for (let at = text.indexOf(managedFields); at !== -1; at = text.indexOf(managedFields, from)) {
    const end = text.indexOf('}]', at);
    if (end === -1) return text;
    rest += text.slice(from, at);
    from = end + 2;
  }
  return from === 0 ? text : rest + text.slice(from);
}

/**
 * Parts of an object that its author fills as he likes, and of which thresher reads nothing once they have more than so many values, with each key
 * for ten: what one puts there must not keep the objects of all others in a list from being read. A HTCJob whose command is an empty object is one
 * that cannot be run, as is one with more arguments.
 */
const freeParts = {
  '"labels":': 10_000,
  '"annotations":': 10_000,
  '"ownerReferences":': 10_000,
  '"command":': 100_000,
};
/** How many other values a key counts for. */
const perKey = 10;

/** Puts an empty object in the place of each value behind `begin`, which is a key as JSON writes it, that has more than `most`. */
function withoutLarge(text: string, [begin, most]: readonly [begin: string, most: number]): string {
  let rest = '';
  let from = 0;
  for (let at = text.indexOf(begin); at !== -1; at = text.indexOf(begin, at)) {
    const start = at + begin.length;
    const { end, weight } = valueAt(text, start);
    at = end;
    if (weight <= most) continue;
    rest += `${text.slice(from, start)}{}`;
    from = end;
  }
  return from === 0 ? text : rest + text.slice(from);
}

/** Where the list or object ends that begins here, and how much is in it: nothing in a value of another type. */
function valueAt(text: string, start: number): { readonly end: number; readonly weight: number } {
  let [weight, depth] = [0, 0];
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === list || code === object) {
      depth++;
      weight++;
    } else if (depth === 0) return { end: at, weight };
    else if (code === quote) at = endOfText(text, at);
    else if (code === comma) weight++;
    else if (code === colon) weight += perKey;
    else if ((code === endOfList || code === endOfObject) && --depth === 0) return { end: at + 1, weight };
  }
  return { end: text.length, weight };
}

/** What no part of thresher reads. */
function withoutUnread(text: string): string {
  return Object.entries(freeParts).reduce(withoutLarge, withoutManagedFields(text));
}

/** The same, where a text in `managedFields` looks like their end. */
function withoutUnreadByCount(text: string): string {
  return Object.entries({ ...freeParts, '"managedFields":': 0 }).reduce(withoutLarge, text);
}

const podTemplate = ',"template":{"metadata":';
/** The first key after a Job's template that every server sends. Source: `batchv1.JobSpec`, whose order the JSON has. */
const afterPodTemplate = ',"completionMode":"';

/**
 * One Job, also without the template of its Pods: that is most of the rest. A cut from one depth of the text to another gives
 * no JSON, so what was cut are whole fields of the Job's `spec`.
 */
export function withoutPodTemplate(text: string): string {
  const rest = withoutUnread(text);
  const from = rest.indexOf(podTemplate);
  const to = rest.lastIndexOf(afterPodTemplate);
  return from === -1 || to < from ? rest : rest.slice(0, from) + rest.slice(to);
}

export function noApi(asked: Asked, said: string): KubernetesError {
  const message = `${asked.server} does not answer like a Kubernetes API server: ${said} to ${asked.method} ${asked.path}`;
  return new KubernetesError({ code: 'kubernetes-no-api', message, maybeDone: true }, { ...asked });
}

/** By these an object is known. They are kept, shown and sent as they are. */
const names = ['name', 'namespace', 'uid', 'resourceVersion'] as const;
/** Longest name, characters. Source: Kubernetes' `DNS1123SubdomainMaxLength`. Uids and versions are much shorter. */
const longestName = 253;

/**
 * Why an object is not to be read: what it is known by is no name, or a secret of ours, as where a server or a proxy echoes the login that it was
 * sent. Masked names would make one object of several. What stands in the path is ours already.
 */
export function whyUnnamed(
  metadata: ObjectMeta | null | undefined,
  asked: Asked,
): KubernetesError | undefined {
  if (!metadata) return undefined;
  const given = (key: (typeof names)[number]): unknown => metadata[key] ?? '';
  // All of them first: the sentence on one names others, too.
  const odd = names.find((key) => !isName(given(key)));
  if (odd !== undefined)
    return noApi(asked, `an object whose metadata.${odd} is no text of at most ${longestName} characters`);
  for (const key of names) {
    const text = given(key) as string;
    if (!holdsOwn(text) || asked.path.includes(text)) continue;
    const { namespace = '', name = '' } = metadata;
    const message = `${asked.server} gave an object of ${asked.path} that counts as no answer, as its ${key} has a secret of this process in it: ${namespace}/${name}, ${key} ${text}`;
    return new KubernetesError(
      { code: 'kubernetes-secret-name', message, status: 200, maybeDone: true },
      { ...asked },
    );
  }
  return undefined;
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value.length <= longestName;
}

/** The texts of `Warning: 299 - "text"` headers. Source: RFC 7234, 5.5, which Kubernetes goes on using. */
export function warningsOf({ headers }: Answer): string[] {
  const all = [headers['warning'] ?? []].flat().join(', ');
  return [...all.matchAll(/\b299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) =>
    text.replaceAll(/\\(.)/g, '$1'),
  );
}
