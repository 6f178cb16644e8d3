import { expect } from 'chai';
import type { Payload } from '../../src/worker/payload.ts';
import { modeOf, payloadBounds, payloadProblems, requirePayload } from '../../src/worker/payload-check.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const file = (name: string, size = 1) => ({ name, mode: 0o644, content: base64('x'.repeat(size)) });
const told = (payload: unknown) => payloadProblems(payload).map(({ code, message }) => `${code}: ${message}`);

/** A payload in a wrong form, and the beginning of what is said of it. */
const mistakes: readonly (readonly [what: string, payload: unknown, said: RegExp])[] = [
  ['no object', 'run.sh', /^payload-wrong: payload: it is a string; it must be an object$/],
  [
    'a part that there is not',
    { file: [] },
    /payload\/file: there is no such part; a payload has values, files/,
  ],
  ['files as an object', { files: {} }, /payload\/files: it is an object; it must be a list of files/],
  ['a file that is a text', { files: ['a'] }, /payload\/files\/0: it is a string; it must be \{ name, mode/],
  [
    'an absolute name',
    { files: [file('/etc/passwd')] },
    /files\/0\/name: .*absolute path; write a relative one/,
  ],
  ['a name that leads out', { files: [file('a/../../b')] }, /files\/0\/name: .*no part may be "\." or begin/],
  ['a name with a dot alone', { files: [file('./a')] }, /no part may be "\."/],
  ['a name that Kubernetes keeps', { files: [file('..data')] }, /begin with "\.\."/],
  ['an empty name', { files: [file('')] }, /the name is empty/],
  ['an empty part', { files: [file('a//b')] }, /a part between its slashes is empty/],
  ['a directory', { files: [file('a/')] }, /a part between its slashes is empty/],
  ['a NUL in a name', { files: [file('a\0b')] }, /files\/0\/name: it has a NUL character/],
  ['half of a character', { files: [file('a\ud800')] }, /files\/0\/name: it has half of a character/],
  [
    'a part of 256 bytes',
    { files: [file('ü'.repeat(128))] },
    /a part of it has 256 bytes, and 255 are allowed/,
  ],
  [
    'a name of very many parts',
    { files: [file('a/'.repeat(250_000) + 'b')] },
    /it has 500001 bytes, and 1000/,
  ],
  ['a long path', { files: [file(Array(6).fill('n'.repeat(200)).join('/'))] }, /it has 1205 bytes, and 1000/],
  ['one name twice', { files: [file('a'), file('a')] }, /files\/1\/name: files 0 and 1 have one name, "a"/],
  ['a file and its directory', { files: [file('a'), file('a/b')] }, /"a" is a file, and "a\/b" needs/],
  ['a directory of a directory', { files: [file('a/b/c'), file('a')] }, /files\/1\/name: "a" is a file/],
  [
    'a mode with more bits',
    { files: [{ ...file('a'), mode: 0o4755 }] },
    /files\/0\/mode: the mode of .*0777/,
  ],
  ['a mode as a text', { files: [{ ...file('a'), mode: '0755' }] }, /files\/0\/mode: the mode of/],
  ['content that is no base64', { files: [{ ...file('a'), content: '#!/bin/sh' }] }, /content of .*base64/],
  [
    'base64 without padding',
    { files: [{ ...file('a'), content: 'YQ' }] },
    /must be base64, with its padding/,
  ],
  [
    'a secret that is a word',
    { files: [{ ...file('a'), secret: 'yes' }] },
    /secret of .* must be true or false/,
  ],
  [
    'too many files',
    { files: Array.from({ length: 101 }, (_, at) => file(`f${at}`)) },
    /^payload-too-large: .*101 files/,
  ],
  ['argv as one text', { argv: 'ls -l' }, /payload\/argv: it is a string; it must be a list of texts/],
  ['a number in argv', { argv: ['sleep', 3] }, /payload\/argv\/1: it is a number; it must be a text/],
  ['a NUL in argv', { argv: ['a', 'b\0'] }, /payload\/argv\/1: it has a NUL/],
  ['an empty program', { argv: ['', 'b'] }, /payload\/argv\/0: the program is empty/],
  ['a variable with a dash', { env: { 'A-B': '1' } }, /payload\/env\/A-B: this is no name of a variable/],
  ['a variable with a digit first', { env: { '1A': '1' } }, /payload\/env\/1A: this is no name/],
  ['a variable of thresher', { env: { THRESHER_WORKER: '1' } }, /begin with THRESHER_ are for thresher/],
  ['a variable of the shell', { env: { PWD: '/' } }, /a shell sets this variable itself/],
  ['a number as a variable', { env: { A: 1 } }, /payload\/env\/A: it is a number; it must be a text/],
  ['a key that no placeholder can name', { values: { 'a}b': '1' } }, /payload\/values\/a}b: the key must be/],
  ['a NUL in a value', { values: { image: 'a\0' } }, /payload\/values\/image: it has a NUL/],
  [
    'long arguments',
    { argv: ['echo', 'x'.repeat(payloadBounds.wordBytes)] },
    /^payload-too-large: payload\/argv: .*100000 are allowed: put what is long into a file/,
  ],
  [
    'one long argument very often',
    { argv: Array.from({ length: 50_000 }, () => 'x'.repeat(20_000)) },
    /^payload-too-large: payload\/argv/,
  ],
  [
    'long values',
    { values: { a: 'x'.repeat(payloadBounds.valueBytes) } },
    /^payload-too-large: payload\/values/,
  ],
  [
    'a file that is too large',
    { files: [file('small'), file('big', payloadBounds.bytes)] },
    /^payload-too-large: payload\/files: the payload has \d+ bytes, and 1048576 .* its largest file, "big", has 1048576/,
  ],
];

describe('the check of a payload', () => {
  for (const [what, payload, said] of mistakes)
    it(`names ${what}, with its place and what would be right`, () => {
      expect(told(payload).join('\n')).to.match(said);
    });

  it('takes odd names, all bytes, and every text that a process can have', () => {
    const payload: Payload = {
      values: { image: '', 'a.b-c_1': '$(x)\n' },
      files: [file('-rf'), file('new\nline'), file('a/b'), file('a/c'), file('.hidden'), file('empty', 0)],
      argv: ['./-rf', '', '\n', '"', '\\'],
      env: { _A: '', B1: '\n$HOME' },
    };
    expect(told(payload)).to.deep.equal([]);
    expect(told({})).to.deep.equal([]);
  });

  it('takes as much as the bound, to the byte', () => {
    const full = { files: [file('a', payloadBounds.bytes - 1)] };
    expect(told(full)).to.deep.equal([]);
    expect(told({ ...full, values: { a: '' } })).to.have.length(1);
  });

  it('names all mistakes at once, and never a content', () => {
    const secret = { name: '../a', mode: 0o600, content: 'hush!', secret: true };
    const payload = { files: [secret], env: { 'A B': 'hush' }, argv: ['hush\0'] };
    expect(told(payload)).to.have.length(4);
    expect(told(payload).join()).not.to.include('hush');
    expect(() => {
      requirePayload(payload);
    })
      .to.throw(/no part may be .*; .*base64/)
      .with.property('code', 'payload-wrong');
  });

  it('hole 8: looks at no content where names are there twice or the files are too large: a few bytes may name one content very often', () => {
    const wrong = 'no base64!';
    const twice = Array.from({ length: 98 }, () => ({ ...file('a'), content: wrong }));
    expect(told({ files: twice })).to.have.length(97);
    expect(told({ files: twice }).join()).not.to.include('base64');
    const large = [{ ...file('a'), content: `${wrong}${'A'.repeat(4 * payloadBounds.bytes)}` }];
    expect(told({ files: large }).join()).to.match(
      /^payload-too-large: payload\/files: the payload has 31457\d\d bytes/,
    );
  });

  it('gives a secret file to its owner alone', () => {
    expect(modeOf({ mode: 0o755, secret: true })).to.equal(0o600);
    expect(modeOf({ mode: 0o400, secret: true })).to.equal(0o400);
    expect(modeOf({ mode: 0o755 })).to.equal(0o755);
  });
});
