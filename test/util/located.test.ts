import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { fromPointer, parseJson, parseYaml, toPointer } from '../../src/util/located.ts';
import { readJsonFile, readYamlFile } from '../../src/util/located-file.ts';
import { files } from '../support/operator-files.ts';
import { temporaryDirectory } from '../support/temporary.ts';

describe('a JSON pointer', () => {
  it('comes back from any path it was made of', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom('~', '/', '0', '1', 'a') })), (path) => {
        expect(fromPointer(toPointer(path))).to.deep.equal(path);
      }),
    );
  });
});

describe('a JSON file', () => {
  it('is read as JSON.parse reads it, whatever is in it', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseJson(text, 'f').value).to.deep.equal(JSON.parse(text));
      }),
    );
  });

  it('a JSON file is refused whenever JSON.parse refuses it', () => {
    const cut = fc.tuple(
      fc.json(),
      fc.nat(),
      fc.constantFrom('', ',', '"', '}', ']', '1', '/**/', "'", '\t'),
    );
    fc.assert(
      fc.property(cut, ([text, at, instead]) => {
        const place = at % text.length;
        const broken = text.slice(0, place) + instead + text.slice(place + 1);
        let valid = true;
        try {
          JSON.parse(broken);
        } catch {
          valid = false;
        }
        const located = parseJson(broken, 'f');
        expect(located.value !== undefined, broken).to.equal(valid);
        expect(located.problems.some(({ code }) => code === 'syntax')).to.equal(!valid);
      }),
      { numRuns: 300 },
    );
  });

  const text = `{
  "Q": {
    "maxWorkers": 1,
    "list": [
      1,
      { "a/b": 2 }
    ],
    "maxWorkers": 2
  }
}`;

  it('keeps the last of two equal keys, and warns of it on the line of the second', () => {
    const located = parseJson(text, 'queues.json');
    expect(located.value).to.deep.equal({ Q: { list: [1, { 'a/b': 2 }], maxWorkers: 2 } });
    expect(located.problems).to.deep.equal([
      {
        file: 'queues.json',
        pointer: '/Q/maxWorkers',
        line: 8,
        severity: 'warning',
        code: 'duplicate-key',
        message:
          '"maxWorkers" stands twice in this object, first on line 3 with another value; the last one counts',
      },
    ]);
    expect(located.lineOf('/Q/maxWorkers')).to.equal(8);
  });

  it('a JSON key that stands twice with the same value is only a notice', () => {
    const [problem, ...others] = parseJson('{"a": {"b": [1]},\n"a": {"b": [1]}}', 'queues.json').problems;
    expect(others).to.deep.equal([]);
    expect(problem).to.include({ severity: 'notice', code: 'duplicate-key', line: 2, pointer: '/a' });
    expect(problem?.message).to.contain('first on line 1 with the same value');
  });

  it('hole 8: of twenty thousand equal keys keeps the last, with the lines of that alone', () => {
    const entry = (at: number) => `"Q": {"a": [${at}, {"x": ${at}}]}`;
    const many = Array.from({ length: 20_000 }, (_, at) => entry(at)).join(',\n');
    const located = parseJson(`{${many},\n"Q": {"b": 1}}`, 'f');
    expect(located.value).to.deep.equal({ Q: { b: 1 } });
    expect([located.problems.length, located.lineOf('/Q/b'), located.lineOf('/Q/a/1/x')]).to.deep.equal([
      20_000, 20_001, 20_001,
    ]);
  });

  it('hole 8: refuses a file with more values than any honest one has, before it reads them', () => {
    const { value, problems } = parseJson(`[${'1,'.repeat(500_000)}1]`, 'f');
    expect(value).to.equal(undefined);
    expect(problems.map(({ message }) => message)).to.deep.equal([
      'the file has too many values (over 500000)',
    ]);
  });

  it('a key of any length is refused on its line, in its object, before pointers are made of it', () => {
    const inner = Array.from({ length: 200 }, (_, at) => `"k${at}":1`).join();
    const { value, problems } = parseJson(`{"Q":{\n"${'k'.repeat(500_000)}":{${inner}}}}`, 'f');
    expect([value, problems]).to.deep.equal([
      undefined,
      [
        {
          file: 'f',
          pointer: '/Q',
          line: 2,
          severity: 'error',
          code: 'syntax',
          message: `the key "${'k'.repeat(40)}..." has 500000 characters; a key may have 400`,
        },
      ],
    ]);
    const longest = parseJson(`{"${'k'.repeat(400)}":\n{"a":\n1}}`, 'f');
    expect([longest.problems, longest.lineOf(`/${'k'.repeat(400)}/a`)]).to.deep.equal([[], 2]);
  });

  it('long keys within each other are refused where the pointers of their values would be far longer than the file', () => {
    const key = `{"${'k'.repeat(400)}":`;
    const text = `${key.repeat(50)}[${'1,'.repeat(10_000)}1]${'}'.repeat(50)}`;
    const [problem] = parseJson(text, 'f').problems;
    expect(problem?.message).to.match(/^the JSON pointers of the values up to this one have over 67108864 /);
    expect(problem?.pointer).to.match(/^(?:\/k{400}){50}\/\d+$/);
  });

  it('an object of more keys, or a file of more equal keys, than any honest one has is refused', () => {
    const keys = (count: number, key: (at: number) => string) =>
      `{"Q":{${Array.from({ length: count }, (_, at) => `"${key(at)}":1`).join()}}}`;
    const said = (text: string) =>
      parseJson(text, 'f').problems.map(({ pointer, message }) => [pointer, message]);
    expect(said(keys(20_000, String))).to.deep.equal([]);
    expect(said(keys(20_001, String))).to.deep.equal([['/Q', 'this object has over 20000 keys']]);
    expect(said(keys(20_002, () => 'a'))).to.deep.equal([
      ['/Q/a', 'the file has over 20000 keys that stand twice in their objects'],
    ]);
  });

  it('equal keys within equal keys are not compared at each level without end', () => {
    const inner = `"${'\\u0041'.repeat(200_000)}"`;
    const { problems } = parseJson(`${'{"a":1,"a":'.repeat(60)}${inner}${'}'.repeat(60)}`, 'f');
    expect(problems.length).to.equal(60);
    expect(problems[0]?.message).to.match(/first on line 1 with another value; the last one counts$/);
    expect(problems.at(-1)?.message).to.match(/first on line 1; the last one counts$/);
  });

  it('knows the line of every value, or of its nearest parent', () => {
    const located = parseJson(text, 'f');
    expect(
      ['', '/Q', '/Q/list', '/Q/list/0', '/Q/list/1', '/Q/list/1/a~1b'].map((pointer) =>
        located.lineOf(pointer),
      ),
    ).to.deep.equal([1, 2, 4, 5, 6, 6]);
    expect(located.lineOf('/Q/list/7/x')).to.equal(4);
    expect(located.lineOf('/nowhere')).to.equal(1);
  });

  it('forgets the places of an object that a later one of the same key replaced', () => {
    const located = parseJson('{\n"Q": {\n"x": 1 },\n"Q": {\n"y": 2 }\n}', 'f');
    expect(located.lineOf('/Q/y')).to.equal(5);
    expect(located.lineOf('/Q/x')).to.equal(4);
  });

  for (const [what, broken, pointer, line, message] of [
    ['a missing comma', '{\n"a": 1\n"b": 2\n}', '/b', 3, 'not valid JSON: comma expected'],
    ['a missing value', '{\n"a":\n}', '/a', 3, 'not valid JSON: value expected'],
    [
      'a comma too many',
      '{\n"a": [1,\n2,\n]\n}',
      '/a/2',
      3,
      'not valid JSON: there is a comma too many before the ]',
    ],
    ['a comment', '{\n"a":\n// why\n1\n}', '/a', 3, 'not valid JSON: a comment, which JSON does not have'],
    ['an empty file', '', '', 1, 'not valid JSON: the file is empty'],
    ['a file of blanks', ' \n\n', '', 1, 'not valid JSON: the file is empty'],
    [
      'a comma too many in an object',
      '{\n"a": 1,\n\n}',
      '',
      2,
      'not valid JSON: there is a comma too many before the }',
    ],
    [
      'a byte order mark',
      '\uFEFF{}',
      '',
      1,
      'not valid JSON: a byte order mark (BOM); save the file as UTF-8 without one',
    ],
    ['no number', '{\n"a": NaN}', '/a', 2, 'not valid JSON: NaN is no number of JSON'],
    ['no number below 0', '{\n"a": -Infinity}', '/a', 2, 'not valid JSON: -Infinity is no number of JSON'],
    ['a word of Python', '{\n"a": True}', '/a', 2, 'not valid JSON: True; write true'],
    [
      'single quotes',
      "{\n'a': 1}",
      '',
      2,
      "not valid JSON: 'a' does not stand in double quotes, the only ones that JSON has",
    ],
    ['no quotes', '{\n"a": b}', '/a', 2, 'not valid JSON: b is no value; a text needs double quotes'],
    [
      'a tab in a string',
      '{\n"a": "\t"}',
      '/a',
      2,
      'not valid JSON: a tab or another control character inside a string; write \\t or its like',
    ],
    ['an early end', '{\n"a": 1', '/a', 2, 'not valid JSON: the file ends too early: close brace expected'],
  ] as const) {
    it(`names the place of ${what}`, () => {
      const { value, problems } = parseJson(broken, 'f.json');
      expect(value).to.equal(undefined);
      expect(problems).to.deep.equal([
        { file: 'f.json', pointer, line, severity: 'error', code: 'syntax', message },
      ]);
    });
  }
});

describe('a YAML file', () => {
  it('knows the line of every value, or of its nearest parent', () => {
    const located = parseYaml('# top\nmaster:\n  a: 1\nlist:\n  - x\n  - y: 2\n', 'f');
    expect(located.value).to.deep.equal({ master: { a: 1 }, list: ['x', { y: 2 }] });
    expect(located.problems).to.deep.equal([]);
    expect(
      ['/master', '/master/a', '/list', '/list/0', '/list/1/y'].map((pointer) => located.lineOf(pointer)),
    ).to.deep.equal([2, 3, 4, 5, 6]);
    expect(located.lineOf('/master/nothing')).to.equal(2);
  });

  it('an empty YAML file is an empty map', () => {
    expect(parseYaml('', 'f').value).to.deep.equal({});
    expect(parseYaml('# nothing\n', 'f').value).to.deep.equal({});
  });

  it('a YAML file with the same key twice is refused', () => {
    const { value, problems } = parseYaml('a: 1\nb: 2\na: 3\n', 'f.yaml');
    expect(value).to.equal(undefined);
    expect(problems).to.deep.equal([
      {
        file: 'f.yaml',
        pointer: '',
        line: 3,
        severity: 'error',
        code: 'syntax',
        message: 'not valid YAML: Map keys must be unique',
      },
    ]);
  });

  it('a YAML file with a cron expression without quotes is refused on its line', () => {
    const { value, problems } = parseYaml('sweeper:\n  cron: */10 * * * *\n', 'f');
    expect(value).to.equal(undefined);
    expect(problems[0]).to.include({ line: 2, code: 'syntax', severity: 'error' });
  });

  it('a YAML alias of nothing is refused, not thrown', () => {
    const { value, problems } = parseYaml('command: /bin/ls\nargs: *all\n', 'f');
    expect(value).to.equal(undefined);
    expect(problems.map(({ code }) => code)).to.deep.equal(['syntax']);
  });
});

describe('a file that cannot be read', () => {
  for (const [kind, read] of [
    ['JSON', readJsonFile],
    ['YAML', readYamlFile],
  ] as const) {
    it(`a missing file is one problem without a line: ${kind}`, async () => {
      const file = join(temporaryDirectory(), 'nothing');
      const located = await read(files, file, 'queues');
      expect(located.value).to.equal(undefined);
      const message = `cannot read the file: ENOENT: no such file or directory`;
      expect(located.problems).to.deep.equal([
        { file, pointer: '', line: 0, severity: 'error', code: 'file-unreadable', message },
      ]);
      expect(located.lineOf('/a')).to.equal(0);
    });
  }

  for (const [kind, read] of [
    ['JSON', readJsonFile],
    ['YAML', readYamlFile],
  ] as const) {
    it(`has bytes that are no UTF-8, on a line: ${kind}`, async () => {
      const file = join(temporaryDirectory(), 'f');
      writeFileSync(file, Buffer.from('{"é": 1,\n"b": "\xe9"}', 'latin1').fill('é', 2, 4));
      const located = await read(files, file, 'queues');
      expect(located.value).to.equal(undefined);
      const message = 'this line has bytes that are no UTF-8; save the file as UTF-8';
      expect(located.problems).to.deep.equal([
        { file, pointer: '', line: 2, severity: 'error', code: 'syntax', message },
      ]);
    });

    for (const [what, text] of [
      ['deeper than a stack', `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`],
      ['deeper than anybody means', `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`],
      ['of lists', `${'['.repeat(50_000)}1${']'.repeat(50_000)}`],
    ] as const) {
      it(`a file that is nested too deeply is a problem: ${kind} ${what}`, async () => {
        const file = join(temporaryDirectory(), 'f');
        writeFileSync(file, text);
        const { value, problems } = await read(files, file, 'queues');
        const message = 'the file is nested too deeply (over 100 levels), or refers to itself';
        expect([value, problems]).to.deep.equal([
          undefined,
          [{ file, pointer: '', line: 1, severity: 'error', code: 'syntax', message }],
        ]);
      });
    }
  }

  it('refers to itself', () => {
    for (const text of ['a: &a [*a]', '&a {b: {c: [*a]}}']) {
      const { value, problems } = parseYaml(text, 'f');
      expect([value, problems.map(({ code }) => code)]).to.deep.equal([undefined, ['syntax']]);
      expect(problems[0]?.message).to.match(/or refers to itself$/);
    }
  });

  it('is no longer one once it is there', async () => {
    const file = join(temporaryDirectory(), 'f');
    writeFileSync(file, '{"a": 1}');
    expect((await readJsonFile(files, file, 'queues')).value).to.deep.equal({ a: 1 });
    expect((await readYamlFile(files, file, 'template')).value).to.deep.equal({ a: 1 });
  });
});
