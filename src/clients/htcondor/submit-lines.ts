/**
 * The attribute that a line of a submit file sets, in lower case: `request_memory = 1` sets `requestmemory`, `+Site = "x"` and
 * `MY.Site = "x"` set `site`. Undefined for other lines.
 */
export function classAdNameIn(line: string): string | undefined {
  const [, name] = /^\s*(?:\+|MY\.)?(\w+)\s*=/i.exec(line) ?? [];
  return name?.replaceAll('_', '').toLowerCase();
}
