import { expect } from 'chai';
import TypeBox from 'typebox';
import Type from '../../src/util/type.ts';

/** Schemas made of every builder of ours, with and without options. */
const all = (builders: typeof Type) => {
  const { String: text, Object: object, Optional: optional, Record: record } = builders;
  const plain = [
    builders.Boolean({ default: true }),
    builders.Integer({ minimum: 0 }),
    builders.Number({ description: 'A number.' }),
    text(),
    text({ pattern: '^a$' }),
    builders.Null(),
    builders.Unknown(),
    builders.Literal('a', { description: 'A letter.' }),
    builders.Literal(1),
    builders.Literal(true),
    builders.Unsafe({ type: 'string', nullable: true }),
  ];
  const union = builders.Union(plain, { default: 1 });
  return [
    ...plain,
    union,
    builders.Array(union, { minItems: 1 }),
    optional(union),
    optional(optional(text({ default: 'a' }))),
    record(text(), union),
    record(text({ pattern: '^a$' }), text(), { additionalProperties: false }),
    object({}),
    object({ a: text(), b: optional(text()), c: builders.Null() }, { additionalProperties: false }),
    object({ a: optional(builders.Number()) }),
    // Options come last, as TypeBox has them.
    object({ a: text() }, { type: 'other', required: [] }),
  ];
};

/** All properties, those that cannot be seen among them. */
const properties = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(properties);
  if (typeof schema !== 'object' || schema === null) return schema;
  const described = Object.entries(Object.getOwnPropertyDescriptors(schema));
  return Object.fromEntries(
    described.map(([name, { value, enumerable }]) => [
      name,
      { enumerable, value: properties(value as unknown) },
    ]),
  );
};

describe('the builders of schemas', () => {
  it('make what those of TypeBox make, its hidden marks among it', () => {
    const [ours, theirs] = [all(Type), all(TypeBox)];
    expect(JSON.stringify(ours, undefined, 1)).to.equal(JSON.stringify(theirs, undefined, 1));
    for (const [at, one] of ours.entries()) expect(properties(one)).to.deep.equal(properties(theirs[at]));
  });

  it('leave a schema as it is that they make optional', () => {
    const required = Type.Object({ a: Type.String() });
    Type.Optional(required);
    expect(Object.hasOwn(required, '~optional')).to.equal(false);
  });
});
