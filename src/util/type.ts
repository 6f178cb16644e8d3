import type TypeBox from 'typebox';

/** The types of the package: what `Static` makes of a schema is its work. */
type Builders = Pick<
  typeof TypeBox,
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe'
>;

type Options = Readonly<Record<string, unknown>>;

/** TypeBox's own marks cannot be seen: they are no keywords of JSON Schema. */
const kind = '~kind';
const optional = '~optional';
const unsafe = '~unsafe';
/** The keys of a record whose keys are any strings. */
const anyKey = '^.*$';

function made(name: string, keywords: Options, options: Options = {}): object {
  return Object.defineProperty({ ...keywords, ...options }, kind, { value: name });
}

const plain = (name: string, type: string) => (options?: Options) => made(name, { type }, options);

const builders = {
  Array: (items: object, options?: Options) => made('Array', { type: 'array', items }, options),
  Boolean: plain('Boolean', 'boolean'),
  Integer: plain('Integer', 'integer'),
  Literal: (value: string | number | boolean, options?: Options) =>
    made('Literal', { type: typeof value, const: value }, options),
  Null: plain('Null', 'null'),
  Number: plain('Number', 'number'),
  Object: (properties: Readonly<Record<string, object>>, options?: Options) => {
    const required = Object.keys(properties).filter(
      (name) => !Object.hasOwn(properties[name] ?? {}, optional),
    );
    return made('Object', { type: 'object', ...(required.length > 0 && { required }), properties }, options);
  },
  Optional: (schema: object) =>
    Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(schema), [optional]: { value: true } }),
  Record: (key: { readonly pattern?: string }, value: object, options?: Options) =>
    made('Record', { type: 'object', patternProperties: { [key.pattern ?? anyKey]: value } }, options),
  String: plain('String', 'string'),
  Union: (anyOf: readonly object[], options?: Options) => made('Union', { anyOf }, options),
  Unknown: (options?: Options) => made('Unknown', {}, options),
  Unsafe: (schema: object) =>
    Object.defineProperty({ ...schema }, unsafe, { value: null, configurable: true, writable: true }),
};

/**
 * The builders of TypeBox that our schemas are made with: the same JSON Schema, and the same types. The package itself has 373 modules,
 * which would take an eighth of a daemon's start and 20 MB.
 */
const Type = builders as unknown as Builders;
export default Type;
