import type { Static, TSchema } from 'typebox';
import { check } from './schema.ts';

/** The options where none is written, of a schema that asks for none. They are made when they are first needed. */
export function defaultsOf<T extends TSchema>(schema: T): () => Static<T> {
  let made: { readonly value: Static<T> } | undefined;
  return () => {
    made ??= { value: read(schema) };
    return made.value;
  };
}

function read<T extends TSchema>(schema: T): Static<T> {
  const checked = check(schema, {});
  if (!checked.ok) throw new Error(checked.problems.map(({ message }) => message).join('; '));
  return checked.value;
}
