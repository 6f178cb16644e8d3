import { GatheredText } from '../../util/gathered.ts';

/**
 * An ad in the text that HTCondor itself writes (`-long`, old ClassAds): values and expressions by lower-case name. thresher hands them
 * on to HTCondor as they are, and evaluates none.
 */
export type AdText = ReadonlyMap<string, string>;

/**
 * Characters of a line or an ad: HTCondor's own bound for a message is 1 MB, and JSON has two characters for one of it. What has no end must not
 * fill the memory, and a longer one would take too long to parse.
 */
export const longestAd = 2 * 1024 * 1024;

/** Attributes of an ad: a real one has some hundreds, and who writes very many keeps everything else waiting while they are read. */
export const mostAttributes = 5000;

/** A text that stands for itself: a piece of a longer one keeps all of that in memory. */
export const ownCopy = (text: string): string => Buffer.from(text).toString();

/** Cuts a text that arrives in pieces into lines. */
export class Lines {
  readonly #rest = new GatheredText();

  /** @returns the lines that are whole now, without their ends. @throws SyntaxError for one that does not end */
  push(text: string): string[] {
    // What has come before has no end of a line: it is not looked at again.
    const lines = text.split('\n');
    const rest = lines.pop() ?? '';
    const [first] = lines;
    if (first !== undefined && this.#rest.length > 0) {
      this.#rest.add(first);
      lines[0] = this.#rest.take();
    }
    this.#rest.add(rest);
    if (this.#rest.length > longestAd) throw new SyntaxError(`a line has more than ${longestAd} characters`);
    return lines;
  }

  /** Whether the last line has ended. */
  get complete(): boolean {
    return this.#rest.length === 0;
  }
}

/** Reads ads as they arrive: each ends with an empty line. */
export class AdTexts {
  readonly #lines = new Lines();
  #ad = new Map<string, string>();
  #length = 0;

  /** @returns the ads that are whole now. @throws SyntaxError for one that does not end, or has too many attributes */
  push(text: string): AdText[] {
    const found: AdText[] = [];
    for (const line of this.#lines.push(text)) {
      this.#length += line.length;
      if (this.#length > longestAd) throw new SyntaxError(`an ad has more than ${longestAd} characters`);
      const at = line.indexOf('=');
      const name = line.slice(0, Math.max(at, 0)).trim();
      if (/^[A-Za-z_]\w*$/.test(name) && line[at + 1] !== '=') {
        this.#ad.set(name.toLowerCase(), line.slice(at + 1).trim());
        if (this.#ad.size > mostAttributes)
          throw new SyntaxError(`an ad has more than ${mostAttributes} attributes`);
      } else if (line.trim() === '' && this.#ad.size > 0) {
        found.push(this.#ad);
        this.#ad = new Map();
        this.#length = 0;
      }
    }
    return found;
  }

  /** Whether nothing of a further ad has come. */
  get complete(): boolean {
    return this.#ad.size === 0 && this.#lines.complete;
  }
}

/** All ads of a text; the last one may lack the empty line after it. */
export function parseAds(text: string): AdText[] {
  return new AdTexts().push(`${text}\n\n`);
}

/** The text of an ad, as `-jobads` and `-slotads` read it. */
export function adText(ad: AdText): string {
  // A value that has a line of its own would be an attribute of its own.
  const lines = [...ad].flatMap(([name, value]) => (/[\n\r]/.test(value) ? [] : [`${name} = ${value}`]));
  return `${lines.join('\n')}\n\n`;
}

/** @returns the string that an attribute is; undefined for an expression and for what there is none of */
export function stringIn(ad: AdText, name: string): string | undefined {
  return literalString(ad.get(name));
}

/** @returns the string that a value is; undefined for other values */
export function literalString(value: string | undefined): string | undefined {
  const [, inside] = /^"((?:[^"\\]|\\.)*)"$/.exec(value ?? '') ?? [];
  // In old ClassAds a backslash stands for itself unless a quote follows; tools write it twice.
  return inside?.replaceAll(/\\(["\\])/g, '$1');
}

/** @returns the number that an attribute is; undefined for an expression and for what there is none of */
export function numberIn(ad: AdText, name: string): number | undefined {
  return literalNumber(ad.get(name));
}

/** @returns the number that a value is; undefined for other values */
export function literalNumber(value: string | undefined): number | undefined {
  return value === undefined || !/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(value)
    ? undefined
    : Number(value);
}

/** Whether an attribute is the literal `true`. */
export function isTrue(ad: AdText, name: string): boolean {
  return isLiteralTrue(ad.get(name));
}

export function isLiteralTrue(value: string | undefined): boolean {
  return value?.toLowerCase() === 'true';
}

const words = new Set(['true', 'false', 'undefined', 'error', 'is', 'isnt', 'my', 'target', 'parent']);

/** Names that an expression mentions, in lower case. */
export interface References {
  /** Behind `TARGET.`: attributes of the other side alone. */
  readonly target: ReadonlySet<string>;
  /** Behind `MY.`, or without a scope: of its own ad, and of the other side where that has none. */
  readonly own: ReadonlySet<string>;
  /** It computes names (`eval`), so that it may mention any. */
  readonly any: boolean;
}

const known = new Map<string, References>();
/** Characters of an expression whose answer is kept: jobs may have thousands of longer ones. */
const longestKnown = 10_000;

/** The names in an expression. Texts repeat, so that the last thousands of answers are kept. */
export function referencesIn(expression: string): References {
  let found = known.get(expression);
  if (found === undefined) {
    // What is kept is a text of its own, and so are the names in it: the ad that it was read from may be megabytes.
    const own = expression.length <= longestKnown ? ownCopy(expression) : expression;
    found = readReferences(own);
    if (known.size >= 5000) known.clear();
    if (own.length <= longestKnown) known.set(own, found);
  }
  return found;
}

function readReferences(expression: string): References {
  const target = new Set<string>();
  const own = new Set<string>();
  let any = false;
  // A string without an end reaches to the end, whatever is in it: a search that fails would begin anew at each quote.
  const withoutStrings = expression.replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/gs, '""');
  for (const [, scope = '', quoted, plain, call] of withoutStrings.matchAll(
    /(?:\b(my|target)\s*\.\s*)?(?:'([^']+)'|([A-Za-z_]\w*)\s*(\()?)/gi,
  )) {
    const name = (quoted ?? plain ?? '').toLowerCase();
    if (call !== undefined) {
      if (name === 'eval' || name === 'unresolved') any = true;
      // A name in front of a bracket is a function, but `is (`, `isnt (` are operators.
      continue;
    }
    if (words.has(name) || /^e\d+$/.test(name)) continue;
    if (scope.toLowerCase() === 'target') target.add(name);
    else own.add(name);
  }
  return { target, own, any };
}

/** What the condition of an ad rests on, followed through its own attributes. */
export interface Closure {
  /** Names of its own ad. */
  readonly own: ReadonlySet<string>;
  /** Names that it looks for at the other side. */
  readonly other: ReadonlySet<string>;
  /** It may rest on anything. */
  readonly any: boolean;
}

/** Characters of expressions that are followed. A user's job may have more, which take a second. */
const mostFollowed = 200_000;

/** @param start attributes from which to follow @param without attributes that are not followed */
export function closureOf(
  ad: AdText,
  start: readonly string[],
  without: ReadonlySet<string> = new Set(),
): Closure {
  const own = new Set<string>();
  const other = new Set<string>();
  let any = false;
  let left = mostFollowed;
  const open = [...start];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (own.has(name) || without.has(name)) continue;
    const value = ad.get(name);
    if (value === undefined) {
      other.add(name);
      continue;
    }
    own.add(name);
    left -= value.length;
    if (left < 0) return { own, other, any: true };
    const references = referencesIn(value);
    any ||= references.any;
    for (const one of references.target) other.add(one);
    for (const one of references.own) open.push(one);
  }
  return { own, other, any };
}
