import type { TSchema } from 'typebox';
import { toPointer } from '../../util/located.ts';
import { isObject } from '../../util/json.ts';

/** The parts of a schema that say which keys an object may have. */
interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly patternProperties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: boolean | Shape;
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
}

/** A key inside an option that its schema does not have, and those that it has. */
export interface UnreadInside {
  readonly pointer: string;
  readonly known: readonly string[];
}

/** Keys deep inside an option that nothing reads. An object that says `additionalProperties` may have any. */
export function unreadInside(schema: TSchema, value: unknown): UnreadInside[] {
  return visit(schema, value, []);
}

function visit(shape: Shape, value: unknown, path: readonly (string | number)[]): UnreadInside[] {
  const forms = shape.anyOf ?? [shape];
  if (Array.isArray(value)) {
    const items = forms.flatMap((form) => form.items ?? []);
    if (items.length === 0) return [];
    return value.flatMap((item, index) => visit({ anyOf: items }, item, [...path, index]));
  }
  const objects = forms.flatMap(flat).filter(({ properties }) => properties !== undefined);
  const open = forms
    .flatMap(flat)
    .some((form) => form.patternProperties ?? form.additionalProperties === true);
  if (!isObject(value) || objects.length === 0 || open) return [];
  const known = [...new Set(objects.flatMap(({ properties = {} }) => Object.keys(properties)))];
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = [...path, key];
    if (!known.includes(key)) return [{ pointer: toPointer(at), known }];
    const inside = objects.flatMap(({ properties = {} }) => properties[key] ?? []);
    return visit({ anyOf: inside }, inner, at);
  });
}

/** Forms of forms: an item of a list may itself be one of several. */
function flat(shape: Shape): readonly Shape[] {
  return shape.anyOf === undefined ? [shape] : shape.anyOf.flatMap(flat);
}
