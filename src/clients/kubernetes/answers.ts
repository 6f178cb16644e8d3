import { fromOutside, holdsOwn } from '../../util/own-secrets.ts';
import { tooLarge } from './connection-failures.ts';
import { type Asked, KubernetesError, mayTellSecrets } from './errors.ts';
import type { ObjectMeta } from './objects.ts';
import type { Answer } from './transport.ts';

/**
 * The most that one answer may have: an object takes a hundred times the memory of its text, and nothing else runs while it is read, so each of
 * these was measured to take less than 100 ms. A key that no object had before costs as much as ten other values. A page has 250 objects, each of some
 * hundred values; a list asks for a page that has more again, in smaller parts. The largest of the objects that are meant to be read are HTCJobs: of
 * 10,000 jobs, with two texts and a return code of three keys for each. A text that has quotes in it counts for two values.
 */
const bounds = {
  /** Lists and objects. */
  nested: 300_000,
  values: 400_000,
  keys: 40_000,
  /** Characters outside of texts: a server may send blanks and digits without end. */
  besides: 2_000_000,
  /** The same, with what is left out: half of an answer are fields that nobody reads. */
  lookedAt: 4_000_000,
  /** Texts, with those in what is left out: each is looked for by itself. */
  texts: 1_000_000,
} as const;

/** The beginning of the next page, if the text has it before its first object; the page itself has it for certain. */
export function continueIn(text: string): string | undefined {
  const head = text.slice(0, longestHead);
  return /"continue":"([^"\\]+)"/.exec(head.slice(0, Math.max(0, head.indexOf('"items":['))))?.[1];
}

/** A list begins with its metadata, which have a token of some hundred characters. */
const longestHead = 10_000;

interface Reading {
  /** Leaves out the templates of Jobs, too: that of its Pods is most of a Job. */
  readonly noTemplate?: boolean | undefined;
}

/**
 * The fields that a successful answer must have.
 * @throws KubernetesError `kubernetes-too-large` for more values than the daemon reads at once, and `kubernetes-no-api`
 */
export function parse(text: string, asked: Asked, { noTemplate }: Reading = {}): object {
  const rest = withoutUnread(text, noTemplate ? withTemplate : unread);
  if (rest === undefined) throw tooLarge(asked, boundsInWords, true);
  const value = parsed(rest);
  if (typeof value === 'object' && value !== null) return value;
  const said = mayTellSecrets(asked)
    ? ''
    : `, but "${fromOutside(text).slice(0, 80).replaceAll(/\s+/g, ' ')}"`;
  throw noApi(asked, `no JSON object${said}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The caller reports it.
    return undefined;
  }
}

const boundsInWords = `${bounds.nested} lists and objects, ${bounds.values} values, ${bounds.keys} keys, or ${bounds.besides} characters outside of texts`;

const [quote, comma, list, object] = [0x22, 0x2c, 0x5b, 0x7b] as const;
const [colon, slash, endOfList, endOfObject] = [0x3a, 0x5c, 0x5d, 0x7d] as const;

/** Where a text ends that has quotes in it. One may be full of them, and a search from each to the next takes four times as long. */
function endOfQuoting(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === slash) at++;
    else if (code === quote) return at;
  }
  return text.length;
}

/**
 * Lists and objects of which thresher reads nothing once they have more than so many values, with each key for ten, by their keys as JSON writes
 * them. An author fills most of these as he likes: what one puts there must not keep the objects of all others in a list from being read. A HTCJob
 * whose command is an empty object is one that cannot be run, as is one with more arguments. `managedFields` are half of an API server's answer, and
 * no part of thresher reads them: they cost a third of the time to parse, and make most of the garbage.
 */
const unread: ReadonlyMap<string, number> = new Map([
  ['"managedFields"', 0],
  ['"labels"', 10_000],
  ['"annotations"', 10_000],
  ['"ownerReferences"', 10_000],
  ['"command"', 100_000],
]);
const withTemplate: ReadonlyMap<string, number> = new Map([...unread, ['"template"', 0]]);
const longestKey = Math.max(...[...withTemplate.keys()].map((key) => key.length));
/** How many other values a key counts for. */
const perKey = 10;

/** Characters after which the bounds are looked at where there are no texts. */
const everySoMany = 1024;

/** A list or object that may be left out, with all that was counted before it. */
interface Part {
  readonly key: number;
  readonly start: number;
  readonly most: number;
  readonly depth: number;
  readonly nested: number;
  readonly values: number;
  readonly keys: number;
  readonly inTexts: number;
}

/**
 * The text without what no part of thresher reads; undefined: more than is read at once. It counts outside of texts: what a user writes into one is
 * not the server's. It looks at each character once: a server may send any, and nothing else runs meanwhile.
 */
function withoutUnread(text: string, parts: ReadonlyMap<string, number>): string | undefined {
  let rest = '';
  let from = 0;
  let [nested, values, keys, depth, texts] = [0, 0, 0, 0, 0];
  /** Characters in texts, and those outside of them in what is left out. */
  let [inTexts, leftOut] = [0, 0];
  let part: Part | undefined;
  // What stands in a part counts as nothing until it is known whether it is left out.
  const isTooMuch = () =>
    texts > bounds.texts ||
    (part === undefined && (nested > bounds.nested || values > bounds.values || keys > bounds.keys));
  for (let at = 0; at < text.length; at++) {
    if (at - inTexts > bounds.lookedAt) return undefined;
    if (at % everySoMany === 0 && isTooMuch()) return undefined;
    const code = text.charCodeAt(at);
    if (code === quote) {
      texts++;
      if (isTooMuch()) return undefined;
      const key = at;
      at = text.indexOf('"', key + 1);
      if (at === -1) at = text.length;
      else if (text.charCodeAt(at - 1) === slash) {
        at = endOfQuoting(text, key);
        // To read it takes as long as two others.
        values++;
      }
      inTexts += at - key;
      const first = text.charCodeAt(at + 2);
      if (part !== undefined || (first !== list && first !== object)) continue;
      if (at - key >= longestKey || text.charCodeAt(at + 1) !== colon) continue;
      const most = parts.get(text.slice(key, at + 1));
      if (most === undefined) continue;
      part = { key, start: at + 2, most, depth, nested, values, keys: keys + 1, inTexts };
    } else if (code === comma) values++;
    else if (code === colon) keys++;
    else if (code === list || code === object) {
      nested++;
      depth++;
    } else if (code === endOfList || code === endOfObject) {
      depth--;
      if (part?.depth !== depth) continue;
      const weight = nested - part.nested + (values - part.values) + perKey * (keys - part.keys);
      if (weight > part.most) {
        // With its key, so that who sends the object back says nothing of it.
        const isWhole = part.most === 0 && text.charCodeAt(part.key - 1) === comma;
        rest += isWhole ? text.slice(from, part.key - 1) : `${text.slice(from, part.start)}{}`;
        from = at + 1;
        leftOut += from - part.start - (inTexts - part.inTexts);
        ({ nested, values, keys } = part);
      }
      part = undefined;
    }
  }
  const besides = text.length - inTexts - leftOut;
  if (besides > bounds.besides || isTooMuch()) return undefined;
  return from === 0 ? text : rest + text.slice(from);
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
