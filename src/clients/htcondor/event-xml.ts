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
  const flat = inside.replaceAll(/<a n="[^"]*">\s*(<c>[\s\S]*?<\/c>|<l>[\s\S]*?<\/l>)\s*<\/a>/g, '');
  const found = flat.matchAll(
    /<a n="([^"]*)">\s*(?:<b v="([tf])"\s*\/>|<([a-z]+)>([\s\S]*?)<\/\3>|<[a-z]+\s*\/>)\s*<\/a>/g,
  );
  return Object.fromEntries<unknown>(
    Array.from(found, ([, name = '', truth, type, value = '']) => {
      if (truth !== undefined) return [name, truth === 't'] as const;
      return [name, type === 'i' || type === 'r' ? Number(value) : plain(value)] as const;
    }),
  );
}
