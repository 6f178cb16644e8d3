import type { EventAd } from './event-types.ts';

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function plain(text: string): string {
  return text.replaceAll(/&(#x[0-9a-f]+|#\d+|\w+);/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return entities[name] ?? whole;
    const code = /^#x/i.test(name) ? parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/**
 * An event of the XML format: `<c>`, an `<a n="name">` for each attribute with its value by type, `</c>`. Ads in ads and
 * lists are left out: no event's meaning is in them.
 */
export function parseXml(record: string): EventAd | undefined {
  const [, inside] = /^\s*<c>([\s\S]*)<\/c>\s*$/.exec(record) ?? [];
  if (inside === undefined) return undefined;
  // Strings are escaped, so that a tag is a tag wherever it stands.
  const found = withoutNested(inside).matchAll(
    /<a n="([^"]*)">\s*(?:<b v="([tf])"\s*\/>|<([a-z]+)>([^<]*)<\/\3>|<[a-z]+\s*\/>)\s*<\/a>/g,
  );
  return Object.fromEntries<unknown>(
    Array.from(found, ([, name = '', truth, type, value = '']) => {
      if (truth !== undefined) return [name, truth === 't'] as const;
      return [name, type === 'i' || type === 'r' ? Number(value) : plain(value)] as const;
    }),
  );
}

/** An event's text without its ads in ads and lists. When one has no end, no later one has: none is looked for again. */
function withoutNested(text: string): string {
  const endings = { c: /<\/c>\s*<\/a>/g, l: /<\/l>\s*<\/a>/g };
  const unclosed = new Set<string>();
  const opening = /<a n="[^"]*">\s*<([cl])>/g;
  const pieces: string[] = [];
  let from = 0;
  for (let match = opening.exec(text); match !== null; match = opening.exec(text)) {
    const tag = match[1] === 'c' ? 'c' : 'l';
    if (unclosed.has(tag)) continue;
    const ending = endings[tag];
    ending.lastIndex = opening.lastIndex;
    if (!ending.test(text)) {
      unclosed.add(tag);
      continue;
    }
    pieces.push(text.slice(from, match.index));
    from = ending.lastIndex;
    opening.lastIndex = from;
  }
  return [...pieces, text.slice(from)].join('');
}
