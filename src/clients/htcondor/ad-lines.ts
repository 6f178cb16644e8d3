import { beginningFromOutside } from '../../util/beginning.ts';
import { isLiteralTrue, literalNumber, literalString } from './ad-text.ts';

/** An ad in long form that a person reads and keeps: its expressions by the names of their attributes, as HTCondor wrote both. */
export type AdLines = ReadonlyMap<string, string>;

/**
 * Reads what `condor_status -long` prints: a line `NAME = EXPRESSION` each, an empty line after each ad.
 * @throws SyntaxError for a line of another form: an answer that was cut off must not become a shorter ad
 */
export function readAds(text: string): AdLines[] {
  const ads: Map<string, string>[] = [];
  let ad: Map<string, string> | undefined;
  for (const [at, line] of text.split('\n').entries()) {
    if (line.trim() === '') {
      ad = undefined;
      continue;
    }
    const [, name, expression] = /^([A-Za-z_]\w*) = (.*\S)\s*$/.exec(line) ?? [];
    if (name === undefined || expression === undefined)
      throw new SyntaxError(`line ${at + 1} is no attribute of an ad: ${beginningFromOutside(line, 80)}`);
    if (ad === undefined) {
      ad = new Map<string, string>();
      ads.push(ad);
    }
    ad.set(name, expression);
  }
  return ads;
}

/** In an order that depends on the names alone. */
export function writeAd(ad: AdLines): string {
  return [...ad]
    .sort(([one], [other]) => compare(one.toLowerCase(), other.toLowerCase()))
    .map(([name, expression]) => `${name} = ${expression}\n`)
    .join('');
}

const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

/** The expression of an attribute, whose name HTCondor compares without case. */
export function attribute(ad: AdLines, name: string): string | undefined {
  const exact = ad.get(name);
  if (exact !== undefined) return exact;
  const lower = name.toLowerCase();
  for (const [other, expression] of ad) if (other.toLowerCase() === lower) return expression;
  return undefined;
}

/** @returns undefined for what is no string */
export function textIn(ad: AdLines, name: string): string | undefined {
  return literalString(attribute(ad, name));
}

/** @returns undefined for what is no number */
export function numberIn(ad: AdLines, name: string): number | undefined {
  return literalNumber(attribute(ad, name));
}

/** Whether the attribute is the literal `true`. */
export function isTrue(ad: AdLines, name: string): boolean {
  return isLiteralTrue(attribute(ad, name));
}
