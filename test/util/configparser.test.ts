import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { type ConfigMistake, parseConfig } from '../../src/util/configparser.ts';

type Values = Record<string, Record<string, string>>;
interface Expected {
  readonly sections?: Values;
  readonly error?: string;
  readonly lines?: number[];
  readonly section?: string;
  readonly option?: string;
}
interface Case {
  readonly name: string;
  readonly text: string;
  readonly expected: Expected;
}

const fixture = resolve(import.meta.dirname, '../fixtures/configparser/cases.json');
const { python, cases } = JSON.parse(readFileSync(fixture, 'utf8')) as { python: string; cases: Case[] };

const nameInPython: Record<ConfigMistake['kind'], RegExp> = {
  'missing-header': /^MissingSectionHeaderError$/,
  'duplicate-section': /^DuplicateSectionError$/,
  'duplicate-option': /^DuplicateOptionError$/,
  'no-key-or-value': /^ParsingError$/,
  interpolation: /^Interpolation(Syntax|MissingOption|Depth)Error$/,
};

function valuesOf(text: string): Values {
  const { sections, mistakes } = parseConfig(text);
  expect(mistakes).to.deep.equal([]);
  return Object.fromEntries(
    [...sections.values()].map(({ name, options }) => [
      name,
      Object.fromEntries(
        [...options.values()].map((option) => [
          option.name,
          option.lines.map((line) => line.text).join('\n'),
        ]),
      ),
    ]),
  );
}

/** The lines of one value, as [text, line]. */
function linesOf(text: string, section: string, option: string) {
  const found = parseConfig(text).sections.get(section)?.options.get(option);
  return found?.lines.map((line) => [line.text, line.line]);
}

describe(`the grammar of Python ${python}'s configparser`, () => {
  for (const { name, text, expected } of cases) {
    if (expected.sections !== undefined) {
      it(`${name}: reads the same values`, () => {
        expect(valuesOf(text)).to.deep.equal(expected.sections);
      });
      continue;
    }
    it(`${name}: refused as ${expected.error ?? ''}`, () => {
      const { mistakes } = parseConfig(text);
      const alike = mistakes.filter(({ kind }) => nameInPython[kind].test(expected.error ?? ''));
      expect(alike.length, JSON.stringify(mistakes)).to.be.greaterThan(0);
      // Python ends at the first mistake of these kinds; a parsing error lists all its lines.
      if (expected.lines !== undefined) expect(alike.map(({ line }) => line)).to.deep.equal(expected.lines);
      const [first] = alike;
      if (expected.option !== undefined) expect(first).to.include({ option: expected.option });
      if (expected.section !== undefined) expect(first).to.include({ section: expected.section });
    });
  }

  it('covers what it is made of', () => {
    expect(cases.length).to.be.at.least(60);
    const errors = new Set(cases.map(({ expected }) => expected.error));
    for (const pattern of Object.values(nameInPython)) {
      expect([...errors].some((error) => error !== undefined && pattern.test(error))).to.equal(true);
    }
  });

  const word = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.-]{0,8}$/);
  const value = fc
    .string({ unit: 'grapheme', maxLength: 20 })
    .map((text) => text.replace(/[\p{Cc}\p{Z}]+/gu, ' ').trim());
  const item = value.filter((text) => text !== '' && !/^[#;]/.test(text));
  const name = word.filter((text) => text !== 'DEFAULT');
  const content = fc.dictionary(
    name,
    fc.dictionary(
      name,
      fc.oneof(
        value,
        fc.array(item, { minLength: 1, maxLength: 4 }).map((items) => ['', ...items].join('\n')),
      ),
    ),
  );

  it('reads back whatever is written in it', () => {
    fc.assert(
      fc.property(
        content,
        fc.constantFrom('\n', '\r\n'),
        fc.constantFrom(' = ', ':', '='),
        (values, end, is) => {
          const text = Object.entries(values).flatMap(([section, options]) => [
            `[${section}]`,
            '# a comment',
            ...Object.entries(options).map(
              ([key, text]) => `${key}${is}${text.replaceAll('%', '%%').replaceAll('\n', '\n  ')}`,
            ),
            '',
          ]);
          expect(valuesOf(text.join('\n').replaceAll('\n', end))).to.deep.equal(values);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('the reader of panda_harvester.cfg never throws, whatever the text', () => {
    const piece = fc.constantFrom(
      '[a]',
      '[',
      ']',
      'k',
      '=',
      ':',
      '%',
      '%(k)s',
      '%%',
      '\n',
      ' ',
      '#',
      '\t',
      'DEFAULT',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        parseConfig(pieces.join(''));
      }),
      { numRuns: 1000 },
    );
  });
});

describe('every value knows its line', () => {
  it('every item of a list knows its own line', () => {
    const text = '[a]\n# why\nk =\n one\n\n# not two\n three\n';
    expect(linesOf(text, 'a', 'k')).to.deep.equal([
      ['', 3],
      ['one', 4],
      ['', 5],
      ['three', 7],
    ]);
  });

  it('every value knows its line also if its references are replaced', () => {
    const text = '[a]\nd = /srv\nboth =\n x\n y\nl =\n %(d)s/one\n# c\n %(both)s/two\n z %(d)s%%\n';
    expect(linesOf(text, 'a', 'l')).to.deep.equal([
      ['', 6],
      ['/srv/one', 7],
      ['', 6],
      ['x', 9],
      ['y/two', 9],
      ['z /srv%', 10],
    ]);
  });

  it('an inherited value knows its line in [DEFAULT]', () => {
    const { sections } = parseConfig('[DEFAULT]\nk = 1\nl = 2\n[a]\nl = 3\n');
    const options = [...(sections.get('a')?.options.values() ?? [])];
    expect(options.map(({ name, line, inherited }) => [name, line, inherited])).to.deep.equal([
      ['k', 2, true],
      ['l', 5, false],
    ]);
  });
});

describe('mistakes of the grammar', () => {
  const all = [
    'early = 1',
    'again = 2',
    '[a]',
    'k = 1',
    'k = 2',
    'nothing here',
    '= 5',
    'p = 100%',
    'q = %(no)s',
    'r = %(r)s',
    '[a]',
  ];

  it('are all named at once, each with its line and what would be right', () => {
    const right =
      'a line must be [section], key = value, a comment (# or ;), or go on with a value by being indented deeper than its key';
    expect(parseConfig(all.join('\n')).mistakes.map(({ line, message }) => [line, message])).to.deep.equal([
      [1, '"early = 1" stands before any section; a header such as [master] must come first'],
      [5, '"k" stands twice in [a], first on line 4; remove one of them'],
      [6, `"nothing here" has no "=": ${right}`],
      [7, `"= 5" has no key: ${right}`],
      [8, 'p: "%" is no reference such as "%(name)s"; a percent sign is written "%%"'],
      [9, 'q: "%(no)s" refers to a key that neither its section nor [DEFAULT] has'],
      [10, 'r: its references lead more than 10 deep, or in a circle'],
      [11, 'section [a] stands twice, first on line 3; move its keys there'],
    ]);
  });

  it('are named once, however many sections inherit them', () => {
    expect(parseConfig('[DEFAULT]\nk = %\n[a]\n[b]\n').mistakes.map(({ line }) => line)).to.deep.equal([2]);
  });
});
