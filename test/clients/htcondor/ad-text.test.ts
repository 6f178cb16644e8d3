import { expect } from 'chai';
import fc from 'fast-check';
import {
  adText,
  AdTexts,
  closureOf,
  isTrue,
  numberIn,
  parseAds,
  referencesIn,
  stringIn,
} from '../../../src/clients/htcondor/ad-text.ts';

const text = 'Cpus = 4\nName = "slot1@a \\"b\\" \\\\c"\nStart = Owner == "x = y"\n\nCpus = 5\n\n';

describe('ads in the text of HTCondor', () => {
  it('the ads are the same wherever their text is cut', () => {
    const whole = parseAds(text);
    expect(whole).to.have.length(2);
    fc.assert(
      fc.property(fc.nat(text.length), fc.nat(text.length), (one, other) => {
        const [first, second] = [Math.min(one, other), Math.max(one, other)];
        const reader = new AdTexts();
        const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)];
        expect(pieces.flatMap((piece) => reader.push(piece))).to.deep.equal(whole);
        expect(reader.complete).to.equal(true);
      }),
    );
  });

  it('hole 8: names in a text of quotes and line separators are found at once', () => {
    const quotes = '\\"'.repeat(500_000);
    for (const evil of [`"${quotes}\\\u2028"`, `"${quotes}\\\u2028`, '"\\\n'.repeat(300_000)])
      expect([...referencesIn(`Foo + ${evil}`).own]).to.deep.equal(['foo']);
  });

  it('hole 8: an ad of hundreds of thousands of names may rest on anything: they are not followed', () => {
    const names = Array.from({ length: 300_000 }, (_, at) => `n${at}`);
    const ad = new Map([
      ['requestcpus', 'a + b'],
      ['requestevil', `{${names.join(',')}}`],
    ]);
    const closure = closureOf(ad, ['requestcpus', 'requestevil']);
    expect(closure.any).to.equal(true);
    expect(closure.other.size).to.be.lessThan(10);
    expect(closureOf(ad, ['requestcpus'])).to.deep.equal({
      own: new Set(['requestcpus']),
      other: new Set(['a', 'b']),
      any: false,
    });
  });

  it('an ad of more characters than HTCondor would send is none, also in short lines', () => {
    const reader = new AdTexts();
    const line = `a${'b'.repeat(98)}=1\n`;
    const push = () => {
      for (let at = 0; at < 50_000; at++) reader.push(line);
    };
    expect(push).to.throw(SyntaxError, 'an ad has more than');
  });

  it('hole 8: an ad has some thousands of attributes at most: very many short ones would hold up everything else', () => {
    const ad = (attributes: number) => Array.from({ length: attributes }, (_, at) => `a${at}=\n`).join('');
    expect(parseAds(ad(5000))[0]?.size).to.equal(5000);
    expect(() => new AdTexts().push(ad(5001))).to.throw(SyntaxError, 'more than 5000 attributes');
  });

  it('hole 8: an ad that comes in pieces of one character is looked at once', () => {
    const value = 'x'.repeat(1_000_000);
    const reader = new AdTexts();
    const found = Array.from(`A = ${value}\n\n`).flatMap((piece) => reader.push(piece));
    expect(found).to.deep.equal([new Map([['a', value]])]);
  });

  it('an ad without the empty line after it is not complete', () => {
    for (let length = 1; length < text.length - 1; length++) {
      const reader = new AdTexts();
      const found = reader.push(text.slice(0, length));
      expect(reader.complete && found.length === 2, `${length}`).to.equal(false);
    }
  });

  it('what is read is written as it was', () => {
    expect(parseAds(parseAds(text).map(adText).join(''))).to.deep.equal(parseAds(text));
  });

  it('a value with the end of a line writes no attribute of its own', () => {
    const hostile = new Map([
      ['a', '1\nRequirements = true'],
      ['b', '2'],
    ]);
    expect(parseAds(adText(hostile))).to.deep.equal([new Map([['b', '2']])]);
  });

  it('literals are read, and expressions are not', () => {
    const [ad = new Map<string, string>()] = parseAds(
      'a = "x\\"y"\nb = -1.5E3\nc = 10 * 60\nd = TRUE\ne = strcat("a", "b")\n',
    );
    expect([stringIn(ad, 'a'), numberIn(ad, 'b'), isTrue(ad, 'd')]).to.deep.equal(['x"y', -1500, true]);
    expect([numberIn(ad, 'c'), stringIn(ad, 'e'), stringIn(ad, 'missing')]).to.deep.equal([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('hole 8: a value keeps its blanks within, and loses those around it', () => {
    const blanks = ' '.repeat(60_000);
    const [ad = new Map<string, string>()] = parseAds(` A =\t"b${blanks}c" \t\nB == 1\n C=D = E\n2 = 3\n`);
    expect([...ad]).to.deep.equal([
      ['a', `"b${blanks}c"`],
      ['c', 'D = E'],
    ]);
  });

  it('hole 8: names of an expression with a string without end are those before it', () => {
    expect([...referencesIn(`A + "${'\\"'.repeat(60_000)} + B`).own]).to.deep.equal(['a']);
  });

  it('names are told from functions, strings, numbers and words', () => {
    const { own, target } = referencesIn(
      'TARGET.Memory >= RequestMemory && MY.Wants is true && regexp("OpSys", Arch) && 1e5 > ifThenElse(isUndefined(X), 2, y)',
    );
    expect([...own].toSorted()).to.deep.equal(['arch', 'requestmemory', 'wants', 'x', 'y']);
    expect([...target]).to.deep.equal(['memory']);
    expect(referencesIn('eval("Cp" + "us") > 2').any).to.equal(true);
  });

  it('a condition is followed through the attributes of its own ad, in circles too', () => {
    const [ad = new Map<string, string>()] = parseAds(
      'Start = Loop || WantIt\nLoop = Start && TARGET.Owner == Who\nWho = "me"\n',
    );
    const { own, other } = closureOf(ad, ['start']);
    expect([...own].toSorted()).to.deep.equal(['loop', 'start', 'who']);
    expect([...other].toSorted()).to.deep.equal(['owner', 'wantit']);
  });
});
