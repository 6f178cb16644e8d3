import { GatheredText } from '../../util/gathered.ts';
import { longestAd, mostAttributes } from './ad-text.ts';

/** An ad as JSON has it: expressions are texts such as "\/Expr(a + 1)\/". */
export type Ad = Readonly<Record<string, unknown>>;

const quote = 0x22;
const backslash = 0x5c;
const opening = 0x7b;
const closing = 0x7d;
const bracket = 0x5b;
const closingBracket = 0x5d;
const comma = 0x2c;

/** Values of an ad, in lists and ads within it, too. A user's job may have more, which take a second to read. */
const mostValues = mostAttributes;

/**
 * Reads a JSON array of objects as it arrives, each object on its own: one text of ten thousand ads, 20 MB, would keep
 * everything else waiting for as long as it takes to parse.
 */
export class JsonObjects {
  /** The object that is begun. */
  readonly #begun = new GatheredText();
  #depth = 0;
  /** Values of the object that is begun. */
  #values = 0;
  #inString = false;
  #isEscaped = false;
  #opened = false;
  #closed = false;

  /** @returns the objects that are whole now. @throws SyntaxError for what is no array of objects. */
  push(text: string): Ad[] {
    const found: Ad[] = [];
    let start = 0;
    // Of this piece alone: what has come before is not looked at again.
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === backslash) this.#isEscaped = true;
        else if (code === quote) this.#inString = false;
      } else if (this.#depth === 0 && code !== opening) {
        this.#between(text.charAt(at));
        start = at + 1;
      } else if (code === quote) this.#inString = true;
      else if (code === comma || code === bracket) this.#values++;
      else if (code === opening) {
        this.#depth++;
        this.#values++;
      } else if (code === closing && --this.#depth === 0) {
        const whole = this.#whole(text.slice(start, at + 1));
        found.push(JSON.parse(this.#values > mostValues ? withoutNested(whole) : whole) as Ad);
        start = at + 1;
        this.#values = 0;
      }
    }
    this.#add(text.slice(start));
    return found;
  }

  /** @param end of the object that is begun */
  #whole(end: string): string {
    const isBegun = this.#begun.length > 0;
    if (isBegun || end.length > longestAd) this.#add(end);
    return isBegun ? this.#begun.take() : end;
  }

  #add(piece: string): void {
    this.#begun.add(piece);
    if (this.#begun.length > longestAd) throw new SyntaxError(`an ad has more than ${longestAd} characters`);
  }

  /** Whether every begun value has ended. An empty text is no array, but condor_q's way to say "none". */
  get complete(): boolean {
    return this.#depth === 0 && this.#opened === this.#closed;
  }

  #between(character: string): void {
    if (character === '[' && !this.#opened) this.#opened = true;
    else if (character === ']' && this.#opened && !this.#closed) this.#closed = true;
    else if (!/[\s,]/.test(character)) throw new SyntaxError(`"${character}" stands between the objects`);
  }
}

/**
 * An ad with null in place of its lists and of the ads in it. Who has made one too large must not hide the job, which would count as gone.
 * @throws SyntaxError for one with too many attributes
 */
function withoutNested(text: string): string {
  let kept = '';
  let [from, depth, values, inString] = [0, 0, 0, false];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === backslash) at++;
      else if (code === quote) inString = false;
    } else if (code === quote) inString = true;
    else if (code === opening || code === bracket) {
      if (depth++ === 1) kept += `${text.slice(from, at)}null`;
    } else if (code === closing || code === closingBracket) {
      if (--depth === 1) from = at + 1;
    } else if (code === comma && depth === 1) values++;
  }
  if (values > mostValues) throw new SyntaxError(`an ad has more than ${mostValues} attributes`);
  return kept + text.slice(from);
}
