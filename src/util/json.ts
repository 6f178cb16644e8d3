/** An object of a JSON text, as thresher read it: its values may be anything. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value has more levels of lists and objects than these: what JSON can be read from may be too deep to be written. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

/**
 * Whether a JSON text has more values than these: a value may take a hundred times the memory of its text, and nothing else runs while they are read.
 * Counts what begins a value or follows one, also inside of texts.
 */
export function hasMoreValues(text: string, most: number): boolean {
  return valuesIn(text, most) > most;
}

/** How many values a JSON text has, as `hasMoreValues` counts them. @param most counted no further than one beyond this */
export function valuesIn(text: string, most: number): number {
  let found = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if ((code === comma || code === list || code === object) && ++found > most) break;
  }
  return found;
}

const [comma, list, object] = [0x2c, 0x5b, 0x7b] as const;

/** Memory that a value takes beside its characters, in characters. */
const perValue = 8;

/**
 * Memory that a value of JSON takes, in characters, about. It may have any depth.
 * @param upTo counted no further than this
 */
export function sizeOf(parts: unknown, upTo = Infinity): number {
  let size = perValue;
  const open = [parts];
  for (let part = open.pop(); size <= upTo; part = open.pop()) {
    if (typeof part === 'string') size += part.length;
    // A list may have half a million values: it is left where the size is known, and no list of its entries is made.
    else if (Array.isArray(part)) {
      for (const value of part as unknown[]) {
        if ((size += perValue) > upTo) return size;
        open.push(value);
      }
    } else if (typeof part === 'object' && part !== null) {
      for (const [name, value] of Object.entries(part)) {
        size += perValue + name.length;
        open.push(value);
      }
    }
    if (open.length === 0) break;
  }
  return size;
}
