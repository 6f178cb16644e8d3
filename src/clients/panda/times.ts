const two = (value: number) => String(value).padStart(2, '0');

/** A time as the server reads it: naive UTC with microseconds. @param at ms UTC */
export function pandaTime(at: number): string {
  const date = new Date(at);
  const day = `${date.getUTCFullYear()}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
  return `${day} ${time}.${String(date.getUTCMilliseconds()).padStart(3, '0')}000`;
}

/** The same as a value of a worker or of a heartbeat, where the server tells times from texts by a prefix. */
export function pandaDatetime(at: number): string {
  return `datetime/${pandaTime(at)}`;
}

/**
 * Reads a time of the server: ISO text with or without a zone, or `{"__datetime__": text}`. Without a zone it is UTC.
 * @returns ms UTC; undefined for anything else
 */
export function readPandaTime(value: unknown): number | undefined {
  const text =
    typeof value === 'object' && value !== null ? (value as Record<string, unknown>)['__datetime__'] : value;
  if (typeof text !== 'string') return undefined;
  const [, day, time, zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(Z|[+-]\d\d:?\d\d)?$/.exec(text.trim()) ?? [];
  if (day === undefined || time === undefined) return undefined;
  // JavaScript has milliseconds.
  const at = Date.parse(`${day}T${time.replace(/(\.\d{3})\d+$/, '$1')}${zone}`);
  return Number.isNaN(at) ? undefined : at;
}
