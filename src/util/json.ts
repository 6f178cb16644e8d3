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
  let found = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if ((code === comma || code === list || code === object) && ++found > most) return true;
  }
  return false;
}

const [comma, list, object] = [0x2c, 0x5b, 0x7b] as const;
