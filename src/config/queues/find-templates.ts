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
    if (typeof wanted === 'string' && entries.has(wanted))
      namers.set(wanted, [...(namers.get(wanted) ?? []), name]);
  }
  const templates = new Set<string>();
  const users = new Map<string, string>();
  const waiting = new Map(entries);
  const judge = (): boolean => {
    const before = waiting.size;
    for (const [name, value] of waiting) {
      const own = namers.get(name) ?? [];
      const user = own.find((other) => !waiting.has(other) && !templates.has(other));
      if (user !== undefined && !isTemplate(name, value)) users.set(name, user);
      if (user !== undefined || isTemplate(name, value)) templates.add(name);
      else if (own.some((other) => waiting.has(other))) continue;
      waiting.delete(name);
    }
    return waiting.size < before;
  };
  while (judge());
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
