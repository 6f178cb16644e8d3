import { isObject, type JsonObject } from '../../util/json.ts';
import { sections } from './queue-schema.ts';

/** Whether an entry says itself that it is a template. */
function isTemplate(name: string, value: JsonObject): boolean {
  return value.isTemplateQueue === true || name.endsWith('_TEMPLATE');
}

interface FoundTemplates {
  readonly templates: ReadonlySet<string>;
  /** For each template without a mark of its own, the first queue that uses it. */
  readonly users: ReadonlyMap<string, string>;
  /** Entries that name each other, so that none can be told to be the template. */
  readonly circles: readonly (readonly string[])[];
}

/**
 * The entries that are templates. Only an entry that a queue names is one: a template's own `templateQueueName` is not
 * followed, so it makes no other entry a template. Therefore each entry is judged after all entries that name it.
 */
export function findTemplates(entries: ReadonlyMap<string, JsonObject>): FoundTemplates {
  const namers = new Map<string, string[]>();
  for (const [name, { templateQueueName: wanted }] of entries) {
    if (typeof wanted !== 'string' || !entries.has(wanted)) continue;
    const own = namers.get(wanted);
    if (own === undefined) namers.set(wanted, [name]);
    else own.push(name);
  }
  const templates = new Set<string>();
  const waiting = new Map(entries);
  // Namers that are not judged yet.
  const open = new Map([...namers].map(([name, own]) => [name, own.length]));
  for (const [start, entry] of entries) {
    const isOne = isTemplate(start, entry);
    if (!waiting.has(start) || (!isOne && namers.has(start))) continue;
    // Each entry names one other at most: it may be the last that this one waited for.
    let [name, isItOne] = [start, isOne];
    for (;;) {
      waiting.delete(name);
      if (isItOne) templates.add(name);
      const named = entries.get(name)?.templateQueueName;
      if (typeof named !== 'string' || !waiting.has(named)) break;
      const left = (open.get(named) ?? 0) - 1;
      open.set(named, left);
      if (isItOne && left > 0) break;
      // What a queue names is a template, and what only templates name is one by its own mark alone.
      isItOne = !isItOne || isTemplate(named, entries.get(named) ?? {});
      name = named;
    }
  }
  const users = new Map<string, string>();
  for (const name of templates) {
    const user = namers.get(name)?.find((other) => !waiting.has(other) && !templates.has(other));
    if (user !== undefined && !isTemplate(name, entries.get(name) ?? {})) users.set(name, user);
  }
  return { templates, users, circles: circlesOf(waiting) };
}

/** An entry that still waits is named by another that does: all of them are parts of circles. */
function circlesOf(waiting: ReadonlyMap<string, JsonObject>): string[][] {
  const seen = new Set<string>();
  const circles: string[][] = [];
  for (const start of waiting.keys()) {
    const circle: string[] = [];
    for (let at = start; !seen.has(at); at = String(waiting.get(at)?.templateQueueName)) {
      seen.add(at);
      circle.push(at);
    }
    if (circle.length > 0) circles.push(circle);
  }
  return circles;
}

/** Whether an entry would run by itself and has no mark of a template: its owner may not expect that it is one. */
export function looksLikeQueue(name: string, value: JsonObject): boolean {
  if (/template/i.test(name)) return false;
  const whole = Object.entries(sections).every(
    ([section, { needed }]) => !needed || isObject(value[section]),
  );
  return value.isTemplateQueue === false || (value.queueStatus ?? undefined) !== undefined || whole;
}
