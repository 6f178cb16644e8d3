import type { EventAd } from './event-types.ts';

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function plain(text: string): string {
  return text.replaceAll(/&(#x[0-9a-f]+|#\d+|\w+);/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return entities[name] ?? whole;
    const code = /^#x/i.test(name) ? parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

const tag = /<(\/?)([a-z]+)(?: [nv]="([^"]*)")?\s*\/?>/g;

/**
 * An event of the XML format: `<c>`, an `<a n="name">` for each attribute with its value by type, `</c>`. Ads in ads and
 * lists are left out: no event's meaning is in them.
 */
export function parseXml(record: string): EventAd | undefined {
  const whole = record.trim();
  if (!whole.startsWith('<c>') || !whole.endsWith('</c>')) return undefined;
  const found: Record<string, unknown> = {};
  let name: string | undefined;
  let value: unknown;
  /** Ads and lists within the attribute, and where its value begins. */
  let [depth, from] = [0, 0];
  // Strings are escaped, so that a tag is a tag wherever it stands.
  for (const { 0: text, 1: slash, 2: kind = '', 3: said = '', index } of whole.slice(3, -4).matchAll(tag)) {
    const isEnd = slash === '/';
    if (name === undefined) {
      if (kind !== 'a' || isEnd) continue;
      [name, value, depth] = [said, undefined, 0];
    } else if (kind === 'c' || kind === 'l') {
      depth += isEnd ? -1 : 1;
      value = undefined;
    } else if (depth > 0) continue;
    else if (kind === 'a') {
      if (value !== undefined) found[name] = value;
      name = isEnd ? undefined : said;
      value = undefined;
    } else if (text.endsWith('/>')) value = kind === 'b' ? said === 't' : '';
    else if (!isEnd) from = index + text.length;
    else {
      const inside = whole.slice(3 + from, 3 + index);
      value = kind === 'i' || kind === 'r' ? Number(inside) : plain(inside);
    }
  }
  return found;
}
