import type { ErrorObject, ValidateFunction } from 'ajv';
import { beginningFromOutside, brief } from './beginning.ts';
import { isDeeper } from './json.ts';
import type { Problem } from './located.ts';
import { toPointer } from './located.ts';
import { whatIsMeant } from './nearest.ts';
import { hidden, isSecretName, withoutSecrets } from './secrets.ts';

/** A value checked against its schema: either usable, or the list of what is wrong with it. */
export type Checked<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: SchemaProblem[] };

/** A mistake found by a schema; the caller knows file and line. */
export interface SchemaProblem {
  readonly pointer: string;
  readonly code: Extract<Problem['code'], 'wrong-type' | 'unknown-setting'>;
  readonly message: string;
}

/** Levels of lists and objects that a value may have: no schema has so many, and to copy or show what is deeper may need more stack than there is. */
const deepest = 100;

/** Mistakes that are told: a file has fewer, and a value of a hundred thousand wrong items is wrong for one reason. */
const mostErrors = 1000;

/** Has a copy of `value` judged by a function that Ajv made of a schema, which fills in the schema's defaults. */
export function verdict<T>(validate: ValidateFunction, value: unknown): Checked<T> {
  if (isDeeper(value, deepest)) {
    const message = `it has more than ${deepest} levels of lists and objects, one in another`;
    return { ok: false, problems: [{ pointer: '', code: 'wrong-type', message }] };
  }
  const copy: unknown = structuredClone(value);
  if (validate(copy)) return { ok: true, value: copy as T };
  return { ok: false, problems: describe(validate.errors ?? []) };
}

function describe(all: readonly ErrorObject[]): SchemaProblem[] {
  const errors = all.slice(0, mostErrors);
  // An `anyOf` reports every branch and then itself; the last says it best when its schema has a description.
  const unions = errors.filter((error) => error.keyword === 'anyOf').map((error) => error.schemaPath);
  return errors
    .filter((error) => !unions.some((path) => error.schemaPath.startsWith(`${path}/`)))
    .map((error) => {
      if (error.keyword === 'additionalProperties') {
        const key = (error.params as { additionalProperty: string }).additionalProperty;
        const pointer = `${error.instancePath}${toPointer([key])}`;
        const { properties = {}, patternProperties } = (error.parentSchema ?? {}) as Record<string, object>;
        const message =
          patternProperties === undefined
            ? `${show(key)} is not a known setting here; ${whatIsMeant(key, Object.keys(properties))}`
            : `${show(key)} is no name that may stand here: it must fit ${Object.keys(patternProperties).join(' or ')}`;
        return { pointer, code: 'unknown-setting', message };
      }
      return { pointer: error.instancePath, code: 'wrong-type', message: sentence(error) };
    });
}

function sentence(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>;
  // Nothing of the value is shown, which is the whole object.
  if (error.keyword === 'required') return `"${String(params.missingProperty)}" is missing here`;
  const parts = error.instancePath.split('/');
  const last = parts.at(-1) ?? '';
  // An item of a list is named with its list.
  const key = /^\d+$/.test(last) ? `${parts.at(-2) ?? ''}[${last}]` : last;
  const subject = key === '' ? 'it' : brief(key);
  const shown = shownAt(parts, error.data);
  const is = `${subject} is ${show(shown)}`;
  switch (error.keyword) {
    case 'type':
      return `${is}; it must be ${article(String(params.type))}${hint(String(params.type), shown)}`;
    case 'enum':
      return `${is}; it must be one of ${(params.allowedValues as unknown[]).map(show).join(', ')}`;
    case 'const':
      return `${is}; it must be ${show(params.allowedValue)}`;
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
      return `${is}; it must be ${String(params.comparison)} ${String(params.limit)}`;
    case 'minLength':
      return `${is}; it must have ${atLeast(Number(params.limit), 'character')}`;
    case 'minItems':
      return `${is}; it must have ${atLeast(Number(params.limit), 'item')}`;
    case 'pattern':
      return `${is}; it must match ${String(params.pattern)}`;
    case 'anyOf': {
      const branches = (error.parentSchema?.anyOf ?? []) as Form[];
      return `${is}; it must be one of ${branches.map((branch) => formOf(branch)).join(', ')}`;
    }
    default:
      return `${is}: ${error.message ?? 'it is not allowed'}`;
  }
}

const atLeast = (count: number, what: string) => `at least ${count} ${what}${count === 1 ? '' : 's'}`;

/** An item of a list, or a part of an object, is as secret as all of it. */
function shownAt(path: readonly string[], data: unknown): unknown {
  const shown = excerptOf(data);
  const isHidden = path.some((key) => isSecretName(key) && withoutSecrets(key, shown) === hidden);
  return isHidden ? hidden : withoutSecrets('', shown);
}

/** Characters of a value that a message shows. */
const shownLength = 80;

/** Characters of a value of which an excerpt is made, which has secrets looked for in all of it. */
const mostRead = 2000;

/** Characters of a text that is cut before that. */
const longText = 500;

/** As much of a value as can be shown of it. What comes behind that stands as `...`. */
function excerptOf(value: unknown): unknown {
  let left = mostRead;
  const excerpt = (one: unknown, levels: number): unknown => {
    if (left <= 0 || levels < 0) return '...';
    left -= typeof one === 'string' ? one.length + 1 : 1;
    if (typeof one === 'string') return one.length > longText ? beginningOf(one) : one;
    if (typeof one !== 'object' || one === null) return one;
    const inner = Object.keys(one)
      .slice(0, 20)
      .map((key) => {
        left -= key.length;
        return [key, excerpt((one as Readonly<Record<string, unknown>>)[key], levels - 1)] as const;
      });
    return Array.isArray(one) ? inner.map(([, item]) => item) : Object.fromEntries(inner);
  };
  return excerpt(value, 4);
}

/** What follows a secret would count as harmless behind it, under any name. */
function beginningOf(text: string): string {
  const shown = beginningFromOutside(text, shownLength);
  return /^['"]?\(hidden\)/.test(shown) ? hidden : shown;
}

function show(value: unknown): string {
  // JSON has no word for these, and would say null.
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return 'nothing';
  return brief(text, shownLength);
}

/** The parts of a schema that say what a value looks like. */
interface Form {
  readonly const?: unknown;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Form>>;
  readonly patternProperties?: Readonly<Record<string, Form>>;
}

/** The form that a value should have. An object is named by its keys: nothing else tells several objects apart. */
function formOf(form: Form): string {
  if ('const' in form) return show(form.const);
  const keys = Object.entries(form.properties ?? {});
  const [any] = Object.values(form.patternProperties ?? {});
  if (keys.length === 0 && any === undefined) return article(form.type ?? 'value');
  const named = keys.map(([key, inner]) =>
    'const' in inner ? `"${key}": ${show(inner.const)}` : `"${key}"`,
  );
  return `{ ${[...named, ...(any === undefined ? [] : [`NAME: ${formOf(any)}`])].join(', ')} }`;
}

function article(type: string): string {
  if (type === 'object') return 'an object { ... }';
  if (type === 'array') return 'a list [ ... ]';
  if (type === 'boolean') return 'true or false';
  return type === 'integer' ? 'an integer' : `a ${type}`;
}

/** The commonest slip, a number in quotes; and a number too large to be one. */
function hint(type: string, data: unknown): string {
  const wantsNumber = type === 'integer' || type === 'number';
  if (!wantsNumber) return '';
  if (typeof data === 'number' && !Number.isFinite(data)) return ' that a computer can count to';
  return typeof data === 'string' && /^\d{1,20}$/.test(data) ? `: write ${data} without quotes` : '';
}
