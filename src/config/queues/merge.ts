import { isObject, type JsonObject } from '../../util/json.ts';
import type { Located, Problem } from '../../util/located.ts';
import { fromPointer, toPointer } from '../../util/located.ts';
import { mergedSections, sections } from './queue-schema.ts';

/** A queue after its template was merged in, and where each of its values came from. */
export interface MergedQueue {
  readonly name: string;
  /** The template, from which the queue takes the values that it does not set itself. */
  readonly template: string | undefined;
  readonly values: JsonObject;
  /** From where a pointer inside `values` was taken: a pointer into the file. */
  sourceOf(pointer: string): string;
}

export interface MergeResult {
  readonly queues: readonly MergedQueue[];
  /** Names of the entries that are templates, in the order of the file. */
  readonly templates: readonly string[];
  /** Each template as a queue that used it and said nothing itself. */
  readonly templatesAsQueues: readonly MergedQueue[];
  readonly problems: readonly Problem[];
}

/**
 * Merges queues with their templates. A template is an entry with `isTemplateQueue: true`, with a name that ends in
 * `_TEMPLATE`, or one that a queue names (with a notice or a warning; Harvester drops that queue instead). Plugin sections
 * merge key by key, everything else is overwritten, and `common` is then copied into every plugin section that does not
 * set the key itself. Source: Harvester's queue_config_mapper.
 */
export function mergeQueues(located: Located): MergeResult {
  const problems: Problem[] = [];
  const problem = (
    pointer: string,
    severity: Problem['severity'],
    code: Problem['code'],
    message: string,
  ) => {
    const [queue] = fromPointer(pointer);
    const { file } = located;
    problems.push({
      file,
      pointer,
      line: located.lineOf(pointer),
      severity,
      code,
      message,
      ...(queue !== undefined && { queue }),
    });
  };

  if (!isObject(located.value)) {
    problem('', 'error', 'wrong-type', 'the queue file must be an object { "QUEUE": { ... }, ... }');
    return { queues: [], templates: [], templatesAsQueues: [], problems };
  }
  const entries = new Map<string, JsonObject>();
  for (const [name, value] of Object.entries(located.value)) {
    if (isObject(value)) entries.set(name, value);
    else problem(toPointer([name]), 'error', 'wrong-type', `the queue ${name} must be an object { ... }`);
  }

  for (const [name, { isTemplateQueue }] of entries) {
    if (isTemplateQueue === undefined || isTemplateQueue === null || typeof isTemplateQueue === 'boolean')
      continue;
    // Nothing tells whether it is a queue or a template, so it must not submit.
    const message = `isTemplateQueue is ${JSON.stringify(isTemplateQueue)}; it must be true or false`;
    problem(toPointer([name, 'isTemplateQueue']), 'error', 'wrong-type', message);
  }

  const { templates, users, circles } = findTemplates(entries);
  for (const [name, user] of users) {
    const message = `${name} is used as a template by ${user} and so counts as one: it submits nothing itself`;
    const severity = looksLikeQueue(name, entries.get(name) ?? {}) ? 'warning' : 'notice';
    problem(toPointer([name]), severity, 'implicit-template', message);
  }
  for (const circle of circles) {
    const way = [...circle, circle[0] ?? ''].join(' names ');
    const message = `${way} as its template, which is a circle; what they share belongs into an entry with "isTemplateQueue": true`;
    for (const name of circle)
      problem(toPointer([name, 'templateQueueName']), 'error', 'template-circle', message);
  }

  for (const name of templates) {
    if ((entries.get(name)?.templateQueueName ?? undefined) === undefined) continue;
    const message = `the template ${name} names a template itself; that one is not followed`;
    problem(toPointer([name, 'templateQueueName']), 'warning', 'nested-template', message);
  }

  const queues: MergedQueue[] = [];
  for (const [name, own] of entries) {
    if (templates.has(name)) continue;
    const pointer = toPointer([name, 'templateQueueName']);
    const wanted = own.templateQueueName;
    let template: { name: string; values: JsonObject } | undefined;
    if (typeof wanted === 'string') {
      const values = entries.get(wanted);
      if (values === undefined) {
        const message = `templateQueueName is "${wanted}", which is not in this file`;
        problem(pointer, 'error', 'unknown-template-queue', message);
      } else {
        template = { name: wanted, values };
      }
    } else if (wanted !== undefined && wanted !== null) {
      problem(pointer, 'error', 'wrong-type', 'templateQueueName must be the name of another entry');
    }
    queues.push(mergeOne(name, own, template));
  }
  const own = [...entries].filter(([name]) => templates.has(name));
  const templatesAsQueues = own.map(([name, values]) => mergeOne(name, values));
  return { queues, templates: own.map(([name]) => name), templatesAsQueues, problems };
}

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
function findTemplates(entries: ReadonlyMap<string, JsonObject>): FoundTemplates {
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
function looksLikeQueue(name: string, value: JsonObject): boolean {
  if (/template/i.test(name)) return false;
  const whole = Object.entries(sections).every(
    ([section, { needed }]) => !needed || isObject(value[section]),
  );
  return value.isTemplateQueue === false || (value.queueStatus ?? undefined) !== undefined || whole;
}

function mergeOne(
  name: string,
  own: JsonObject,
  template?: { name: string; values: JsonObject },
): MergedQueue {
  const sources = new Map<string, string>();
  // Without a prototype: a key "__proto__" is a key like any other.
  const values = Object.create(null) as Record<string, unknown>;
  const layers = [...(template === undefined ? [] : [template]), { name, values: own }];
  for (const layer of layers) {
    for (const [key, value] of Object.entries(layer.values)) {
      if (key === 'isTemplateQueue' || key === 'templateQueueName') continue;
      const before = values[key];
      if (mergedSections.includes(key) && isObject(value)) {
        values[key] = { ...(isObject(before) ? before : {}), ...value };
        if (!isObject(before)) sources.set(toPointer([key]), toPointer([layer.name, key]));
        for (const option of Object.keys(value)) {
          sources.set(toPointer([key, option]), toPointer([layer.name, key, option]));
        }
      } else {
        values[key] = value;
        sources.set(toPointer([key]), toPointer([layer.name, key]));
      }
    }
  }
  const common = values.common;
  if (isObject(common)) {
    for (const section of mergedSections) {
      const into = values[section];
      if (section === 'common' || !isObject(into)) continue;
      values[section] = { ...common, ...into };
      for (const option of Object.keys(common)) {
        const pointer = toPointer([section, option]);
        const from = sources.get(toPointer(['common', option]));
        if (!(option in into) && from !== undefined) sources.set(pointer, from);
      }
    }
  }
  return {
    name,
    template: template?.name,
    values,
    sourceOf(pointer) {
      for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
        const found = sources.get(at);
        if (found !== undefined) return found + pointer.slice(at.length);
      }
      return toPointer([name]) + pointer;
    },
  };
}
