import { Ajv, type ValidateFunction } from 'ajv';
import type { Static, TSchema } from 'typebox';
import { messageOf } from '../worker/errors.ts';
import { type Checked, verdict } from './verdict.ts';

export type { Checked, SchemaProblem } from './verdict.ts';

/**
 * `strict: false`: TypeBox writes keywords of its own. That alone would let 1e999 pass as a number, which is no limit at
 * all. `useDefaults`: a schema's defaults are the only ones there are.
 */
export const ajvOptions = {
  allErrors: true,
  strict: false,
  strictNumbers: true,
  useDefaults: true,
  verbose: true,
} as const;

/** Our own schemas are right, as a test shows. To compile the schema of all schemas would take a twentieth of a daemon's start. */
const ajv = new Ajv({ ...ajvOptions, validateSchema: false });
const foreign = new WeakSet<object>();
const compiled = new WeakMap<TSchema, ValidateFunction>();

/** Has a schema of a third party checked, too, once it is used. */
export function distrust(schema: unknown): void {
  if (typeof schema === 'object' && schema !== null) foreign.add(schema);
}

const ajvOfFirst = new Ajv({ ...ajvOptions, allErrors: false, validateSchema: false });
const compiledForFirst = new WeakMap<TSchema, ValidateFunction>();

/** The same for what others send, which may be wrong in a hundred thousand places: the first mistake alone is found. */
export function checkFirst<T extends TSchema>(schema: T, value: unknown): Checked<Static<T>> {
  const validate = compiledForFirst.get(schema) ?? ajvOfFirst.compile(schema);
  compiledForFirst.set(schema, validate);
  return verdict(validate, value);
}

/** Checks a copy of `value` and fills in the schema's defaults. Each schema is compiled once. */
export function check<T extends TSchema>(schema: T, value: unknown): Checked<Static<T>> {
  let validate = compiled.get(schema);
  if (validate === undefined) {
    try {
      if (foreign.has(schema) && ajv.validateSchema(schema) !== true)
        throw new Error(`schema is invalid: ${ajv.errorsText()}`);
      validate = ajv.compile(schema);
    } catch (error) {
      // A schema of a third party is its own queue's trouble.
      const message = `the schema of these options cannot be used: ${messageOf(error)}`;
      return { ok: false, problems: [{ pointer: '', code: 'wrong-type', message }] };
    }
    compiled.set(schema, validate);
  }
  return verdict(validate, value);
}

const quick = new Ajv({
  ...ajvOptions,
  verbose: false,
  allErrors: false,
  useDefaults: false,
  validateSchema: false,
});
const quickly = new WeakMap<TSchema, ValidateFunction>();

/**
 * What is wrong in an answer of another program; undefined: nothing. The first mistake alone, without a copy and without the value: an
 * answer may have a mistake in each of a million numbers, or be one.
 */
export function wrongInAnswer(schema: TSchema, value: unknown): string | undefined {
  const validate = quickly.get(schema) ?? quick.compile(schema);
  quickly.set(schema, validate);
  if (validate(value)) return undefined;
  const [{ instancePath, message } = { instancePath: '', message: undefined }] = validate.errors ?? [];
  return `${instancePath.slice(0, 100) || 'data'} ${message ?? 'has another form'}`;
}
