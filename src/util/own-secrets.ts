import { showOthersBy } from '../worker/errors.ts';
import { hidden, maskText } from './secrets.ts';

/** Shorter ones, and plain words, may stand in any text: to hide them would say what they are. */
const shortest = 10;
const plainWord = /^[a-z]{1,19}$/i;
/** As much of a secret in a text counts as all of it: who echoes one may cut it. */
const telling = 16;
/** Values of one place that are remembered: a token is renewed, and its last ones may come back late. */
const mostOfPlace = 20;
/** Longest text from outside that is looked at and shown: the forms of secrets are looked for in time that grows with its square. */
const longest = 2000;

/** By place: the secrets that were read there, each in the forms that it is sent in. */
const places = new Map<string, string[][]>();
/** The forms of all of them, by their beginnings. */
let byBeginning = new Map<string, string[]>();

/**
 * From now on no text from outside shows this secret of ours: a token, a password.
 * @param place where it came from, if it is renewed there: of each place the last 20 count. Default: it counts for ever
 */
export function rememberSecret(value: string, place?: string): void {
  const secret = value.trim();
  if (secret.length < shortest || plainWord.test(secret)) return;
  const inForm = new URLSearchParams({ s: secret }).toString().slice(2);
  const inJson = JSON.stringify(secret).slice(1, -1);
  const asBytes = Buffer.from(secret).toString('base64').replace(/=+$/, '');
  const inUrl = [encodeURIComponent(secret), inForm];
  const inSmall = inUrl.map((text) => text.replaceAll(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase()));
  // As PHP and Go write JSON, as Python does, and as HTML has it.
  const inOtherJson = [
    inJson.replaceAll('/', '\\/'),
    inJson.replaceAll(/[&<>]/g, escaped),
    inJson.replaceAll(/[\u0080-\uffff]/g, escaped),
  ];
  const inHtml = secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const quoted = [inHtml.replaceAll('"', '&quot;'), inHtml.replaceAll('"', '&#34;').replaceAll("'", '&#39;')];
  const forms = [
    ...new Set([secret, inJson, ...inOtherJson, inHtml, ...quoted, asBytes, ...inUrl, ...inSmall]),
  ];
  const kept = places.get(place ?? secret) ?? [];
  if (kept.at(-1)?.[0] === secret) return;
  // One that is used again is the last one again.
  const others = kept.filter(([one]) => one !== secret);
  places.set(place ?? secret, [...others, forms].slice(-mostOfPlace));
  byBeginning = Map.groupBy([...places.values()].flat(2), (form) => form.slice(0, telling));
}

function escaped(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/**
 * Words of another program or server as they may be logged, stored and shown: cut, without what is a secret by its form, and without our own
 * secrets, whole or cut.
 */
export function fromOutside(text: string): string {
  const shown = text.length > longest ? `${text.slice(0, longest)}...` : text;
  return masked(shown);
}

showOthersBy(fromOutside);

/** The same for a reason: a plugin may have its message from anywhere. */
export function reasonFromOutside<Told extends { readonly message: string }>(reason: Told): Told {
  return { ...reason, message: fromOutside(reason.message) };
}

/** Our own come first: a form may end in the middle of one, and leave the rest where nothing tells what it is. */
function masked(text: string): string {
  return maskText(withoutOwn(text));
}

/** The same for the end of a text, without the beginning of the line or word in which it is cut. */
export function endFromOutside(text: string, most: number): string {
  // A secret of ours may have blanks.
  const shown = withoutOwn(text);
  const isCut = shown.length > longest;
  const end = isCut ? shown.slice(-longest).replace(/^\S*/, '') : shown;
  return maskText(end).trim().slice(-most);
}

/** No form of a secret is without one of these: they are looked for in each fact, and the forms seldom. */
const mayHide = /eyJ|-----BEGIN|:\/\/|bearer|basic|auth|pass|pwd|secret|credential|token|key/i;

/** The same for the facts of a worker, which change often: by the forms of tokens and keys, and by our own values. */
export function factsFromOutside(value: unknown): unknown {
  if (typeof value === 'string') {
    return mayHide.test(value) ? fromOutside(value) : withoutOwn(value);
  }
  if (Array.isArray(value)) return value.map(factsFromOutside);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [withoutOwn(key), factsFromOutside(inner)]),
  );
}

/** What a secret that was cut or joined to another text may go on with. */
const restOfWord = /[\w.~+/=%-]*/y;

/** A text without the secrets of this process. */
export function withoutOwn(text: string): string {
  const hits: (readonly [from: number, to: number])[] = [];
  for (const [beginning, forms] of byBeginning)
    for (let at = text.indexOf(beginning); at >= 0;) {
      const longestMatch = forms.reduce((most, form) => Math.max(most, lengthOfMatch(text, at, form)), 0);
      restOfWord.lastIndex = at + longestMatch;
      const end = restOfWord.lastIndex + (restOfWord.exec(text)?.[0].length ?? 0);
      hits.push([at, end]);
      at = text.indexOf(beginning, end);
    }
  if (hits.length === 0) return text;
  const pieces: string[] = [];
  let from = 0;
  for (const [start, end] of hits.sort(([one], [other]) => one - other)) {
    if (start >= from) pieces.push(text.slice(from, start), hidden);
    from = Math.max(from, end);
  }
  return [...pieces, text.slice(from)].join('');
}

/** What may stand between two parts of a secret in a text that was wrapped: ends of lines, as they are, as JSON and as HTML have them. */
const gap = /(?:\s|\\[nrt]|<\/?w?br *\/?>|[\u200b-\u200d\ufeff])+/y;
/** As much of a secret behind a gap is a part of it. */
const behindGap = 8;

function lengthOfMatch(text: string, at: number, form: string): number {
  let to = at;
  for (let done = 0; done < form.length; done++, to++) {
    if (text[to] === form[done]) continue;
    gap.lastIndex = to;
    const next = to + (gap.exec(text)?.[0].length ?? 0);
    if (next === to || !text.startsWith(form.slice(done, done + behindGap), next)) break;
    to = next;
  }
  return to - at;
}
