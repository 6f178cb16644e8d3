import { showOthersBy } from '../worker/errors.ts';
import { isObject } from './json.ts';
import { hidden, isSecret, isSecretArgument, maskText, secretArguments, withoutKeys } from './secrets.ts';

/** Shorter ones, and plain words, may stand in any text: to hide them would say what they are. */
const shortest = 10;
const plainWord = /^[a-z]{1,19}$/i;
/** As much of a secret in a text counts as all of it: who echoes one may cut it. */
const telling = 16;
/** Distance of the parts by which a secret is known in a text: what is left of a cut one has such a part if it is this and `telling` long. */
const distance = { short: 4, long: 32 };
/** Characters of such a part: wherever `telling` characters of a short secret begin, a whole part is among them. */
const partLength = telling - distance.short + 1;
/** Values of one place that are remembered: a token is renewed, and its last ones may come back late. */
const mostOfPlace = 20;
/** Longest text from outside that is looked at and shown: the forms of secrets are looked for in time that grows with its square. */
const longest = 2000;
/** As much behind it is looked at: it tells whether a secret begins before the cut. */
export const behindCut = 500;
/** Characters at the cut in which a secret of ours may begin without being known by them. */
const unknownAtCut = 4 * telling;

/** By place: the secrets that were read there, each in the forms that it is sent in. */
const places = new Map<string, string[][]>();

/** Where a part of a secret stands in it. */
interface Part {
  readonly form: string;
  readonly at: number;
}

type Order = (one: Part, other: Part) => number;

/** By what follows from the part on. */
const byRest: Order = (one, other) =>
  inOrder(one.form.slice(one.at), other.form.slice(other.at)) || inOrder(one.form, other.form);

/** By what stands before the part, from there back, as far as no part that stands before it would be found first. */
const byBeginning: Order = (one, other) => {
  const most = Math.min(2 * distance.long, one.at + 1, other.at + 1);
  for (let back = 1; back <= most; back++) {
    const order = inOrder(one.form[one.at - back] ?? '', other.form[other.at - back] ?? '');
    if (order !== 0) return order;
  }
  return inOrder(one.form, other.form) || one.at - other.at;
};

function inOrder(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Where a part stands among sorted ones, or would stand. */
function placeAmong(sorted: readonly Part[], part: Part, order: Order): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const one = sorted[middle];
    if (one !== undefined && order(one, part) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The two beside its place: no other one has more in common with it. */
function nearest(sorted: readonly Part[], part: Part, order: Order): readonly Part[] {
  const place = placeAmong(sorted, part, order);
  return sorted.slice(Math.max(0, place - 1), place + 1);
}

/** So many of one text are looked at one by one. All forms of one secret are not more. */
const few = 16;

/**
 * The parts that are one text. Tokens of one issuer have one head: a text that has it is compared with those alone that go on most like it, so
 * that its cost does not grow with their number.
 */
class Alike {
  /** Where they are more than a few: sorted by their rests. */
  readonly #parts: Part[] = [];
  /** Where they are more than a few: the same ones. */
  #byBeginning: Part[] | undefined;

  get size(): number {
    return this.#parts.length;
  }

  add(part: Part): void {
    if (this.#byBeginning === undefined) {
      this.#parts.push(part);
      if (this.size > few) this.#byBeginning = this.#parts.sort(byRest).toSorted(byBeginning);
      return;
    }
    this.#parts.splice(placeAmong(this.#parts, part, byRest), 0, part);
    this.#byBeginning.splice(placeAmong(this.#byBeginning, part, byBeginning), 0, part);
  }

  /** @param part one of them */
  delete(part: Part): void {
    if (this.#byBeginning === undefined) {
      const index = this.#parts.findIndex(({ form }) => form === part.form);
      this.#parts.splice(index, 1);
      return;
    }
    this.#parts.splice(placeAmong(this.#parts, part, byRest), 1);
    this.#byBeginning.splice(placeAmong(this.#byBeginning, part, byBeginning), 1);
    if (this.size <= few) this.#byBeginning = undefined;
  }

  /** As much of them as stands around this place of a text, not before `last`. */
  matches(text: string, found: number, last: number): readonly Match[] {
    if (this.#byBeginning === undefined) return this.#parts.map((part) => matchOf(text, found, part, last));
    const begins = nearest(this.#byBeginning, { form: text, at: found }, byBeginning);
    const all = [...begins.map((part) => matchOf(text, found, part, last)), this.#most(text, found, last)];
    return [
      {
        from: Math.min(...all.map(({ from }) => from)),
        to: Math.max(...all.map(({ to }) => to)),
        isEnd: all.some(({ isEnd }) => isEnd),
        begins: all.some(({ begins }) => begins),
        isMost: all.some(({ isMost }) => isMost),
      },
    ];
  }

  /** The one of which most follows. Those that part only behind the end of a line are told apart there. */
  #most(text: string, found: number, last: number): Match {
    let most: Match = { from: found, to: found, isEnd: false, begins: false, isMost: false };
    for (let there: Part = { form: text, at: found }; ;) {
      const [part, match] = nearest(this.#parts, there, byRest)
        .map((part) => [part, matchOf(text, found, part, last)] as const)
        .reduce((one, other) => (other[1].to > one[1].to ? other : one));
      if (match.to <= most.to) return most;
      most = match;
      const rest = afterGap(text, match.to);
      const form = part.form.slice(0, match.known) + text.slice(rest, rest + longestForm);
      there = { form, at: part.at };
    }
  }
}

/** Parts of `partLength` characters of all forms, by their text: of tokens, and of other secrets. */
const parts = { issued: new Map<string, Alike>(), own: new Map<string, Alike>() };
/** Characters of the longest form that there was. */
let longestForm = 0;
/** By `mark`: whether such a part may begin like this. Most of what is looked at does not. */
const begins = new Uint8Array(1 << 16);
/** Forms of at most `telling` characters: they are looked for whole. */
const shortForms = new Set<string>();

/** Characters that a part must have, unless a secret begins with it: a row of "x" or "0" may stand in any text. */
const fewest = 6;

function partsOf(form: string, extent: Extent): readonly number[] {
  const step = form.length > 8 * distance.long ? distance.long : distance.short;
  const last = form.length - telling;
  const count = Math.ceil(last / step);
  const between = extent === 'all' ? Array.from({ length: count }, (_, index) => index * step) : [0];
  return [...between, last].filter((at) => at === 0 || new Set(form.slice(at, at + telling)).size >= fewest);
}

/** Grows with each form of a secret that is looked for from now on, or no more: what was masked before may show one. */
let changes = 0;

/** Of the four characters at this place. */
function mark(text: string, at: number): number {
  let sum = 0;
  for (let index = at; index < at + 4; index++) sum = (sum * 31 + text.charCodeAt(index)) & 0xffff;
  return sum;
}

/** How much of a form is looked for: nothing, its beginning and its end, or all of its parts. */
type Extent = 'none' | 'ends' | 'all';
/** By form: by how many secrets of how many places it is held, and how far. One token may be that of two logins. */
const holders = new Map<string, Readonly<Record<Extent, number>> & { readonly among: Map<string, Alike> }>();

function extentOf(form: string): Extent {
  const { ends = 0, all = 0 } = holders.get(form) ?? {};
  return all > 0 ? 'all' : ends > 0 ? 'ends' : 'none';
}

/**
 * A token. Its issuer chose what stands in it, perhaps names of queues: a text that has a smaller piece of it without the beginning, which no name has,
 * is no sign of a server that sends back how it was asked.
 */
const issued = /^eyJ|^[\w-]+\.[\w-]+\.[\w-]*$/;

/** One that holds a form holds it further or less far from now on. With the last that does, it is forgotten. */
function hold(form: string, was: Extent, is: Extent, isIssued: boolean): void {
  const before = extentOf(form);
  const among = isIssued ? parts.issued : parts.own;
  const held = { none: 0, ends: 0, all: 0, among, ...holders.get(form) };
  held[was]--;
  held[is]++;
  if (held.ends + held.all > 0) holders.set(form, held);
  else holders.delete(form);
  const after = extentOf(form);
  if (after === before) return;
  changes++;
  for (const [part, at] of partsTo(form, before)) {
    const alike = held.among.get(part);
    alike?.delete({ form, at });
    if (alike?.size === 0) held.among.delete(part);
  }
  for (const [part, at] of partsTo(form, after)) {
    const alike = held.among.get(part) ?? new Alike();
    alike.add({ form, at });
    held.among.set(part, alike);
    begins[mark(form, at)] = 1;
  }
  longestForm = Math.max(longestForm, form.length);
  if (form.length > telling) return;
  if (after === 'none') shortForms.delete(form);
  else shortForms.add(form);
}

/** Its parts, each once, and where they stand in it. */
function partsTo(form: string, extent: Extent): ReadonlyMap<string, number> {
  if (form.length <= telling || extent === 'none') return new Map();
  return new Map(partsOf(form, extent).map((at) => [form.slice(at, at + partLength), at]));
}

/** Those before the last two of a place seldom come back, and are many. */
function extentIn(all: readonly (readonly string[])[], secret: readonly string[]): Extent {
  const at = all.indexOf(secret);
  if (at < 0) return 'none';
  return at < all.length - 2 ? 'ends' : 'all';
}

/**
 * From now on no text from outside shows this secret of ours: a token, a password.
 * @param place where it came from, if it is renewed there: of each place the last 20 count. Default: it counts for ever
 */
export function rememberSecret(value: string, place?: string): void {
  const secret = value.trim();
  if (secret.length < shortest || plainWord.test(secret)) return;
  const before = places.get(place ?? secret) ?? [];
  if (before.at(-1)?.[0] === secret) return;
  const forms = before.find(([one]) => one === secret) ?? formsOf(secret);
  // One that is used again is the last one again.
  const now = [...before.filter((one) => one !== forms), forms].slice(-mostOfPlace);
  places.set(place ?? secret, now);
  for (const one of new Set([...before, forms])) {
    const [was, is] = [extentIn(before, one), extentIn(now, one)];
    if (was !== is) for (const form of one) hold(form, was, is, issued.test(one[0] ?? ''));
  }
}

/** As it is sent, and as others write it. */
function formsOf(secret: string): string[] {
  const inForm = new URLSearchParams({ s: secret }).toString().slice(2);
  const inJson = JSON.stringify(secret).slice(1, -1);
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
  return [
    ...new Set([secret, inJson, ...inOtherJson, inHtml, ...quoted, ...asBytes(secret), ...inUrl, ...inSmall]),
  ];
}

/** The same for the password of a login. @returns name and password as `Basic` sends them, which is remembered too */
export function rememberLogin(name: string, password: string): string {
  rememberSecret(password);
  const sent = Buffer.from(`${name}:${password}`).toString('base64');
  rememberSecret(sent);
  return sent;
}

/** The same for the login in a URL, and for the parts of its query that are secret by their names. A text that is no URL has none. */
export function rememberUrl(text: string): void {
  const url = URL.parse(text);
  if (url === null) return;
  if (url.password !== '') {
    rememberSecret(url.password);
    rememberLogin(decoded(url.username), decoded(url.password));
  }
  for (const [name, value] of url.searchParams) if (isSecret(name, value)) rememberSecret(value);
}

/** The same for the logins in all URLs among the texts of a value. An item of the cacher has its URL between others, with "|". */
export function rememberUrlsIn(value: unknown): void {
  if (typeof value === 'string') for (const part of value.split('|')) rememberUrl(part.trim());
  else if (typeof value === 'object' && value !== null)
    for (const one of Object.values(value)) rememberUrlsIn(one);
}

/** The same for the arguments of a program that are secret by their options, and for the logins of the URLs among them. */
export function rememberArguments(args: readonly string[]): void {
  for (const value of secretArguments(args)) rememberSecret(value);
  for (const arg of args) rememberUrl(arg.replace(/^-{1,2}[\w-]+=/, ''));
}

/**
 * The same for the variables of a program that are secret by their names, and for the logins of URLs: of its proxy, for example. What reads as a
 * path, an address or words is the name of something, and would be hidden wherever it is said: `IMAGE_PULL_SECRET=atlas-registry`. Words that are
 * called a password are one.
 */
export function rememberEnvironment(environment: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value = ''] of Object.entries(environment))
    if (isSecretArgument(name, value)) rememberSecret(value);
    else rememberUrl(value);
}

/** A part of a URL. One with a "%" that begins no escape is as it stands. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** In both forms of base64, alone and behind other bytes ("Bearer", a name and ":"), as far as its characters are its own. */
function asBytes(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  return [0, 1, 2].flatMap((before) => {
    const first = Math.ceil((before * 8) / 6);
    const last = Math.floor(((before + bytes.length) * 8) / 6);
    const all = Buffer.concat([Buffer.alloc(before), bytes]);
    return (['base64', 'base64url'] as const).map((form) => all.toString(form).slice(first, last));
  });
}

function escaped(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/**
 * Words of another program or server as they may be logged, stored and shown: cut, without what is a secret by its form, and without our own
 * secrets, whole or cut.
 */
export function fromOutside(text: string): string {
  if (text.length <= longest) return masked(text);
  const end = longest + behindCut;
  if (text.length <= end) return `${masked(text).slice(0, longest)}...`;
  return `${maskedOpen(beginningWithoutOwn(text, end)).slice(0, longest)}...`;
}

/** The first characters of a longer text, without the secrets of this process and without what may be the beginning of one. */
export function beginningWithoutOwn(text: string, length: number): string {
  const head = withoutOwn(text.slice(0, length));
  // What stands before a hidden secret is known. A long one may leave nothing else.
  const known = head.includes(hidden) ? head.lastIndexOf(hidden) + hidden.length : 0;
  return head.slice(0, Math.max(known, head.length - unknownAtCut));
}

/** What ends a secret of some forms: a text in quotes, a password in a URL, the first or second part of a token. */
const ends = ['"', '\\"', "'", '@', '.AAAAA.'];

/** A text that may end in the middle of a secret, masked. */
function maskedOpen(text: string): string {
  return ends.reduce((shown, end) => {
    const closed = maskText(shown + end);
    return closed.endsWith(end) ? closed.slice(0, -end.length) : closed;
  }, maskText(text));
}

showOthersBy(fromOutside);

/** The same for a reason: a plugin may have its message from anywhere. */
export function reasonFromOutside<Told extends { readonly message: string }>(reason: Told): Told {
  return { ...reason, message: fromOutside(reason.message) };
}

/** The same, uncut. Our own come first: a form may end in the middle of one, and leave the rest where nothing tells what it is. */
export function masked(text: string): string {
  return maskText(withoutOwn(text));
}

/** The same for the end of a text, without the beginning of the line or word in which it is cut. */
export function endFromOutside(text: string, most: number): string {
  // A secret of ours may have blanks.
  const shown = withoutOwn(text);
  if (shown.length <= longest) return maskText(shown).trim().slice(-most);
  const end = withoutKeys(shown.slice(-longestKey)).slice(-longest).replace(/^\S*/, '');
  return maskText(end.replace(restOfKey, `${hidden}\n`))
    .trim()
    .slice(-most);
}

/** Characters at the end of a long text in which keys are looked for, so that the rest of one that begins before the cut is not shown. */
const longestKey = 20_000;
/** A text that was cut may begin with the rest of a key or token: lines that are nothing else, and no paths. */
const restOfKey = /^(?:\s*(?:[A-Za-z\d+/=]{20,}|[\w.-]{20,})[ \t]*(?:\r?\n|$))+/;

/** No form of a secret is without one of these: they are looked for in each fact, and the forms seldom. */
const telltales =
  /eyJ|-----BEGIN|LS0tLS1CRUdJTi|0tLS0tQkVHSU4|tLS0tLUJFR0lO|:\/\/|bearer|basic|auth|negotiate|ntlm|cookie|pass|pwd|secret|credential|token|key|sig|#\d{6}/i;

/** Whether a text may have a secret by its form: that is soon told, and to mask it takes long. */
export function mayHide(text: string): boolean {
  return telltales.test(text);
}

/** Deeper ones are none of a worker or resource, and would be too many calls. */
const deepest = 50;
/** Characters of facts that are looked at in one piece, unless one text has more. */
const mostInPiece = 10_000;
/** What a text or any other value costs however short it is, in characters: the call. */
export const perText = 100;

/** The same for the facts of a worker, which change often: by the forms of tokens and keys, and by our own values. */
export function factsFromOutside(value: unknown): unknown {
  const pieces = factsInPieces(value, (text) => (mayHide(text) ? fromOutside(text) : withoutOwn(text)));
  let piece = pieces.next();
  while (piece.done !== true) piece = pieces.next();
  return piece.value;
}

/**
 * The same for a resource, which a user may fill with a hundred thousand texts.
 * @param show how a text of it is shown; the names of its values are without our own
 * @param giveWay of `givingWay`: between two pieces others have their turn
 * @throws what `signal` says once it aborts: nobody waits for the rest
 */
export async function factsInTurns(
  value: unknown,
  show: (text: string) => string,
  giveWay: () => Promise<void>,
  signal: AbortSignal,
): Promise<unknown> {
  const pieces = factsInPieces(value, show);
  for (;;) {
    signal.throwIfAborted();
    const piece = pieces.next();
    if (piece.done === true) return piece.value;
    await giveWay();
  }
}

/** Comes back between two pieces. */
function* factsInPieces(
  value: unknown,
  show: (text: string) => string,
  piece = { characters: 0 },
  depth = 0,
): Generator<undefined, unknown, undefined> {
  const isFull = (text: string) => {
    const cost = Math.max(text.length, perText);
    const full = piece.characters > 0 && piece.characters + cost > mostInPiece;
    piece.characters = full ? cost : piece.characters + cost;
    return full;
  };
  if (isFull(typeof value === 'string' ? value : '')) yield;
  if (typeof value === 'string') return show(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= deepest) return hidden;
  if (saysItself(value)) return yield* factsInPieces(value.toJSON(), show, piece, depth + 1);
  if (Array.isArray(value)) {
    const all: unknown[] = [];
    for (const one of value) all.push(yield* factsInPieces(one, show, piece, depth + 1));
    return all;
  }
  const all: [string, unknown][] = [];
  for (const [key, inner] of Object.entries(value)) {
    if (isFull(key)) yield;
    all.push([withoutOwn(key), yield* factsInPieces(inner, show, piece, depth + 1)]);
  }
  return Object.fromEntries(all);
}

/** Characters that `WithoutOwn` keeps: above what the words of one Pod have. */
const mostKept = 64 * 1024;

/** The same as `withoutOwn` for the words of one that is shown again and again: each is looked at once, until our secrets change. */
export class WithoutOwn {
  readonly #shown = new Map<string, string>();
  #changes = changes;
  #characters = 0;

  of(text: string): string {
    if (this.#changes !== changes || this.#characters > mostKept) {
      this.#shown.clear();
      this.#characters = 0;
      this.#changes = changes;
    }
    let shown = this.#shown.get(text);
    if (shown === undefined) {
      shown = withoutOwn(text);
      this.#shown.set(text, shown);
      this.#characters += text.length;
    }
    return shown;
  }
}

function saysItself(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}

/**
 * Whether a text has a secret of this process in it, whole or cut, and so is none that a name or value is taken from. Of a token a piece without
 * its beginning counts only if it is most of it (see `issued`); `withoutOwn` hides every one.
 */
export function holdsOwn(text: string): boolean {
  return (
    hitsIn(text, [parts.own]).length > 0 ||
    hitsIn(text, [parts.issued]).some(({ begins, isMost }) => begins || isMost)
  );
}

/**
 * A value as JSON without the secrets of this process, in its keys, too. Value by value: what hides a secret in the whole text knows nothing of
 * escapes, and a secret may be a number, in whose place "(hidden)" needs quotes.
 */
export function jsonWithoutOwn(value: unknown, indent?: number): string {
  const shown = (_key: string, inner: unknown) => {
    if (typeof inner === 'string') return withoutOwn(inner);
    if (typeof inner === 'number') {
      const digits = String(inner);
      const shown = withoutOwn(digits);
      return shown === digits ? inner : shown;
    }
    if (!isObject(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).map(([key, one]) => [withoutOwn(key), one]));
  };
  return JSON.stringify(value, shown, indent);
}

/** The secrets of this process, for a thread of its own: that remembers none by itself. */
export function ownSecrets(): readonly string[] {
  return [...places.values()].flat().flatMap(([secret = '']) => secret);
}

/** What a secret that was cut or joined to another text may go on with. */
const restOfWord = /[\w.~+/=%-]*/y;
/** What a word is that has a secret in it: "api_key=" before one is its name. */
const ofWord = /[\w.~+/%-]/;

/** A text without the secrets of this process. */
export function withoutOwn(text: string): string {
  const hits = hitsIn(text, Object.values(parts));
  if (hits.length === 0) return text;
  const pieces: string[] = [];
  let from = 0;
  for (const { from: start, to } of hits.sort((one, other) => one.from - other.from)) {
    if (start >= from) pieces.push(text.slice(from, start), hidden);
    from = Math.max(from, to);
  }
  return [...pieces, text.slice(from)].join('');
}

type Hit = Omit<Match, 'isEnd'>;

/** Where secrets of this process stand in a text, each with the rest of its word. @param among of `parts` */
function hitsIn(text: string, among: readonly ReadonlyMap<string, Alike>[]): Hit[] {
  const hits: Hit[] = [];
  // Another secret may begin where one ends, in the same word.
  let wordEnd = 0;
  const endOfWord = (at: number) => {
    if (at < wordEnd) return wordEnd;
    restOfWord.lastIndex = at;
    wordEnd = at + (restOfWord.exec(text)?.[0].length ?? 0);
    return wordEnd;
  };
  for (const form of shortForms) {
    wordEnd = 0;
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length))
      hits.push({ from: at, to: endOfWord(at + form.length), begins: true, isMost: true });
  }
  wordEnd = 0;
  if (among.some(({ size }) => size > 0))
    for (let at = 0, last = 0; at + partLength <= text.length;) {
      const part = begins[mark(text, at)] === 1 ? text.slice(at, at + partLength) : '';
      const matches = part === '' ? [] : among.flatMap((one) => one.get(part)?.matches(text, at, last) ?? []);
      const telltale = matches.filter(({ from, to }) => to - from >= telling);
      if (telltale.length === 0) at++;
      else {
        at = Math.max(...telltale.map(({ to }) => to));
        const begins = telltale.some((match) => match.begins);
        const isMost = telltale.some((match) => match.isMost);
        hits.push({ from: beginOf(text, telltale, last), to: endOfWord(at), begins, isMost });
        last = at;
      }
    }
  return hits;
}

interface Match {
  readonly from: number;
  readonly to: number;
  /** It lacks the beginning of the secret, or of one of those that it may be. */
  readonly isEnd: boolean;
  /** It has the beginning of one. */
  readonly begins: boolean;
  /** It is most of one, and longer than any name. */
  readonly isMost: boolean;
}

interface FormMatch extends Match {
  /** Characters from the beginning of the form, as far as it stands there. */
  readonly known: number;
}

/** Characters of the name of a queue, about: a small token may be little else than one. */
const longestName = 64;

/** As much of a secret as stands there, not before `last`. */
function matchOf(text: string, found: number, { form, at }: Part, last: number): FormMatch {
  let [from, left] = [found, at];
  while (left > 0 && from > last && text[from - 1] === form[left - 1]) [from, left] = [from - 1, left - 1];
  let [to, known] = [found, at];
  for (; known < form.length; known++, to++) {
    if (text[to] === form[known]) continue;
    const next = afterGap(text, to);
    if (next === to || !text.startsWith(form.slice(known, known + behindGap), next)) break;
    to = next;
  }
  const length = known - left;
  const isMost = 2 * length > form.length && length > longestName;
  return { from, to, isEnd: left > 0, begins: left === 0, isMost, known };
}

/**
 * Where the first of some matches begins: at the word that has it, if the beginning of the secret is not there; not before `last`. The word is
 * walked through once, and for matches that tell something alone: the next ones look no further back than where these end.
 */
function beginOf(text: string, matches: readonly Match[], last: number): number {
  const first = Math.min(...matches.map(({ from }) => from));
  let begin = Math.min(...matches.flatMap(({ from, isEnd }) => (isEnd ? from : [])));
  if (Number.isFinite(begin)) while (begin > last && ofWord.test(text[begin - 1] ?? ' ')) begin--;
  return Math.min(first, begin);
}

/** What may stand between two parts of a secret in a text that was wrapped: ends of lines, as they are, as JSON and as HTML have them. */
const gap = /(?:\s|\\[nrt]|<\/?w?br *\/?>|[\u200b-\u200d\ufeff])+/y;
/** As much of a secret behind a gap is a part of it. */
const behindGap = 8;

function afterGap(text: string, at: number): number {
  gap.lastIndex = at;
  return at + (gap.exec(text)?.[0].length ?? 0);
}
