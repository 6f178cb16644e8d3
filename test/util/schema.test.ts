import { Ajv } from 'ajv';
import { expect } from 'chai';
import Type from 'typebox';
import { builtInPlugins } from '../../src/plugins/registry.ts';
import { maskedCharacters } from '../support/masked-characters.ts';
import { ajvOptions, check, checkFirst, distrust } from '../../src/util/schema.ts';

const Sample = Type.Object(
  {
    maxWorkers: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
    ratio: Type.Number({ default: 0.5, exclusiveMinimum: 0 }),
    mode: Type.Optional(Type.Union([Type.Literal('self'), Type.Literal('slave')])),
    value: Type.Optional(Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
    on: Type.Optional(Type.Boolean()),
    rule: Type.Optional(
      Type.Union([
        Type.Object({ level: Type.Literal('cores'), maxCores: Type.Integer() }),
        Type.Object({ level: Type.Literal('workers'), maxWorkers: Type.Integer() }),
      ]),
    ),
    factor: Type.Optional(
      Type.Union([Type.Integer(), Type.Record(Type.String(), Type.Record(Type.String(), Type.Integer()))]),
    ),
    name: Type.Optional(Type.String({ pattern: '^[a-z]+$' })),
    list: Type.Optional(Type.Array(Type.String())),
    named: Type.Optional(
      Type.Record(Type.String({ pattern: '^[a-z]+$' }), Type.Integer(), { additionalProperties: false }),
    ),
    inner: Type.Optional(Type.Object({ must: Type.String() }, { additionalProperties: false })),
  },
  { additionalProperties: false },
);

describe('a schema', () => {
  it('fills in its defaults and leaves the value alone', () => {
    const value = { maxWorkers: 3 };
    expect(check(Sample, value)).to.deep.equal({ ok: true, value: { maxWorkers: 3, ratio: 0.5 } });
    expect(value).to.deep.equal({ maxWorkers: 3 });
  });

  it('shows no secret that has a wrong type, alone, in a list or inside a text', () => {
    const secrets = Type.Object({
      db_password: Type.Integer(),
      tokens: Type.Integer(),
      accessKey: Type.Array(Type.Integer()),
      options: Type.Integer(),
    });
    const checked = check(secrets, {
      db_password: 'hunter2',
      tokens: 'Bearer hunter3',
      accessKey: ['hunter4'],
      options: '--password hunter5',
    });
    const said = JSON.stringify(checked);
    expect(said)
      .to.include('db_password is \\"(hidden)\\"; it must be an integer')
      .and.not.match(/hunter\d/);
    expect(JSON.stringify(check(secrets, { db_password: '1234' }))).to.not.include('1234');
  });

  const long = 'x'.repeat(100);
  for (const [what, value, pointer, code, message] of [
    [
      'an integer in quotes',
      { maxWorkers: '1000' },
      '/maxWorkers',
      'wrong-type',
      'maxWorkers is "1000"; it must be an integer: write 1000 without quotes',
    ],
    [
      'a name that may not stand there',
      { named: { 'a b': 1 } },
      '/named/a b',
      'unknown-setting',
      '"a b" is no name that may stand here: it must fit ^[a-z]+$',
    ],
    [
      'a word for an integer',
      { maxWorkers: 'many' },
      '/maxWorkers',
      'wrong-type',
      'maxWorkers is "many"; it must be an integer',
    ],
    [
      'a fraction for an integer',
      { maxWorkers: 1.5 },
      '/maxWorkers',
      'wrong-type',
      'maxWorkers is 1.5; it must be an integer',
    ],
    [
      'a number beyond all numbers',
      { maxWorkers: Infinity },
      '/maxWorkers',
      'wrong-type',
      'maxWorkers is Infinity; it must be an integer that a computer can count to',
    ],
    [
      'what is not even a number',
      { ratio: NaN },
      '/ratio',
      'wrong-type',
      'ratio is NaN; it must be a number that a computer can count to',
    ],
    ['too little', { maxWorkers: -1 }, '/maxWorkers', 'wrong-type', 'maxWorkers is -1; it must be >= 0'],
    ['too much', { maxWorkers: 11 }, '/maxWorkers', 'wrong-type', 'maxWorkers is 11; it must be <= 10'],
    ['the bound itself', { ratio: 0 }, '/ratio', 'wrong-type', 'ratio is 0; it must be > 0'],
    [
      'a number in quotes',
      { ratio: '7' },
      '/ratio',
      'wrong-type',
      'ratio is "7"; it must be a number: write 7 without quotes',
    ],
    [
      'none of a union of words',
      { mode: 'both' },
      '/mode',
      'wrong-type',
      'mode is "both"; it must be one of "self", "slave"',
    ],
    [
      'none of a union of types',
      { value: [] },
      '/value',
      'wrong-type',
      'value is []; it must be one of a string, a number, true or false',
    ],
    [
      'none of a union of objects',
      { rule: { level: 'cores', maxWorkers: 3 } },
      '/rule',
      'wrong-type',
      'rule is {"level":"cores","maxWorkers":3}; it must be one of { "level": "cores", "maxCores" }, { "level": "workers", "maxWorkers" }',
    ],
    [
      'neither a number nor a table of them',
      { factor: 'two' },
      '/factor',
      'wrong-type',
      'factor is "two"; it must be one of an integer, { NAME: { NAME: an integer } }',
    ],
    ['a word for a switch', { on: 'yes' }, '/on', 'wrong-type', 'on is "yes"; it must be true or false'],
    ['nothing', { on: null }, '/on', 'wrong-type', 'on is null; it must be true or false'],
    ['a wrong word', { name: 'A' }, '/name', 'wrong-type', 'name is "A"; it must match ^[a-z]+$'],
    ['a word for a list', { list: 'a' }, '/list', 'wrong-type', 'list is "a"; it must be a list [ ... ]'],
    [
      'a list for an object',
      { inner: [] },
      '/inner',
      'wrong-type',
      'inner is []; it must be an object { ... }',
    ],
    ['a missing key', { inner: {} }, '/inner', 'wrong-type', '"must" is missing here'],
    [
      'an unknown key',
      { maxWorker: 1 },
      '/maxWorker',
      'unknown-setting',
      '"maxWorker" is not a known setting here; did you mean "maxWorkers"?',
    ],
    [
      'an unknown key deep down, with a slash',
      { inner: { must: '', 'a/b': 1 } },
      '/inner/a~1b',
      'unknown-setting',
      '"a/b" is not a known setting here; there are must',
    ],
    [
      'a long value, cut',
      { on: long },
      '/on',
      'wrong-type',
      `on is "${'x'.repeat(76)}...; it must be true or false`,
    ],
    ['another thing altogether', [], '', 'wrong-type', 'it is []; it must be an object { ... }'],
  ] as const) {
    it(`a schema names the mistake of ${what}`, () => {
      expect(check(Sample, value)).to.deep.equal({ ok: false, problems: [{ pointer, code, message }] });
    });
  }

  it('hole 8: refuses what is too deep to be copied, and shows of what is long the beginning', () => {
    const deep: unknown = JSON.parse('['.repeat(20_000) + ']'.repeat(20_000));
    expect(check(Sample, { inner: deep })).to.deep.equal({
      ok: false,
      problems: [
        {
          pointer: '',
          code: 'wrong-type',
          message: 'it has more than 100 levels of lists and objects, one in another',
        },
      ],
    });
    const checked = check(Sample, { on: 'x-'.repeat(5e5), ['k'.repeat(1e6)]: 1 });
    for (const { message } of checked.ok ? [] : checked.problems) expect(message.length).to.be.below(300);
    const many = Array.from({ length: 100_000 }, () => ({ on: 'x' }));
    const [all, first] = [check, checkFirst].map((by) => by(Type.Array(Sample), many));
    expect(all?.ok === false && all.problems.length).to.equal(1000);
    expect(first?.ok === false && first.problems).to.have.length(1);
  });

  it('hole 8: looks for secrets in what a message shows of a value, and in nothing of one that it does not show', async () => {
    const texts = (levels: number): unknown =>
      levels === 0
        ? 'password=$('.repeat(180)
        : Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`k${at}`, texts(levels - 1)]));
    const wrong = { on: texts(3), named: texts(2), inner: texts(2) };
    const work = () => expect(check(Sample, wrong).ok).to.equal(false);
    expect(await maskedCharacters(work)).to.be.within(1, 20_000);
    const nothing = () => expect(check(Type.Object({ must: Type.String() }), texts(2)).ok).to.equal(false);
    expect(await maskedCharacters(nothing)).to.equal(0);
  });

  it('hole 3: shows nothing of a secret that is cut, nor what follows one under the name of another', () => {
    const long = 'hunter7'.repeat(1000);
    const messages = [
      { on: `{"password": "${long}` },
      { on: { token: `eyJhbGciOiJIUzI1.eyJzdWIiOiIx.a ${long}` } },
    ]
      .map((value) => check(Sample, value))
      .flatMap((checked) => (checked.ok ? [] : checked.problems.map(({ message }) => message)));
    expect(messages).to.have.length(2);
    for (const message of messages) expect(message).to.include('(hidden)').and.not.include('hunter7');
  });

  it('hole 8: shows no number of any length as the right way to write it', () => {
    const checked = check(Sample, { maxWorkers: '1'.repeat(400) });
    expect(checked.ok ? '' : checked.problems[0]?.message).to.have.length.within(1, 200);
  });

  it('names all mistakes at once', () => {
    const checked = check(Sample, { maxWorkers: '1', mode: 1, on: 1 });
    expect(checked.ok ? [] : checked.problems.map(({ pointer }) => pointer)).to.deep.equal([
      '/maxWorkers',
      '/mode',
      '/on',
    ]);
  });

  it('of each plugin and source of ours is right itself', () => {
    const ajv = new Ajv(ajvOptions);
    for (const definition of builtInPlugins) {
      const schemas = [definition.config, ...(definition.kind === 'source' ? [definition.queueConfig] : [])];
      for (const schema of schemas)
        expect(ajv.validateSchema(schema), `${definition.name}: ${ajv.errorsText()}`).to.equal(true);
    }
  });

  it('of a third party is checked itself, and what is no schema of one is left alone', () => {
    const wrong = { type: 'object', properties: { name: { type: 'string', minLength: 'long' } } };
    for (const one of [wrong, undefined, null, 'text']) distrust(one);
    const checked = check(wrong, { name: 'a' });
    expect(checked.ok ? [] : checked.problems.map(({ message }) => message)).to.deep.equal([
      'the schema of these options cannot be used: schema is invalid: data/properties/name/minLength must be integer',
    ]);
  });
});
