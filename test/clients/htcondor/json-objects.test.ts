import { expect } from 'chai';
import fc from 'fast-check';
import { Lines } from '../../../src/clients/htcondor/ad-text.ts';
import { type Ad, JsonObjects } from '../../../src/clients/htcondor/json-objects.ts';

describe('a list of ads as it arrives', () => {
  const ad = fc.dictionary(fc.string(), fc.jsonValue());

  it('a list of ads is the same wherever its text is cut', () => {
    fc.assert(
      fc.property(fc.array(ad), fc.constantFrom(undefined, 2), fc.array(fc.nat()), (ads, indent, cuts) => {
        const text = JSON.stringify(ads, undefined, indent);
        const objects = new JsonObjects();
        const found: Ad[] = [];
        const places = [...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
        let from = 0;
        for (const place of places) {
          found.push(...objects.push(text.slice(from, place)));
          from = place;
        }
        expect(found).to.deep.equal(JSON.parse(text));
        expect(objects.complete).to.equal(true);
      }),
    );
  });

  it('a list of ads is not whole before its end', () => {
    const text = '[{"a": "]}\\""}]';
    for (let length = 1; length < text.length; length++) {
      const objects = new JsonObjects();
      objects.push(text.slice(0, length));
      expect(objects.complete, text.slice(0, length)).to.equal(false);
    }
    expect(new JsonObjects().complete).to.equal(true);
  });

  it('hole 8: has no ad without end, and a text no such line', () => {
    const endless = 'x'.repeat(5_000_000);
    expect(() => new JsonObjects().push(`[{"a":"${endless}`)).to.throw(SyntaxError, 'more than 2097152');
    expect(() => new Lines().push(endless)).to.throw(SyntaxError, 'more than 2097152');
    expect(new Lines().push(`${endless}\n`)).to.deep.equal([endless]);
  });

  it('hole 8: has an ad with very many values without its lists, and none with very many attributes', () => {
    const many = (one: string) => Array.from({ length: 60_000 }, () => one).join(',');
    const deep = `${'['.repeat(60_000)}${']'.repeat(60_000)}`;
    for (const list of [
      `[${many('[]')}]`,
      `[${many('"],["')}]`,
      deep,
      `{"x":[${many('{}')}]}`,
      `[${many('1')}]`,
    ]) {
      const text = `[{"ClusterId":7,"A":${list},"B":"]}","C":${list}},{"D":[1]}]`;
      const found = new JsonObjects().push(text);
      expect(found).to.deep.equal([{ ClusterId: 7, A: null, B: ']}', C: null }, { D: [1] }]);
    }
    const attributes = Array.from({ length: 60_000 }, (_, at) => `"k${at}":1`);
    expect(() => new JsonObjects().push(`[{${attributes.join(',')}}]`)).to.throw(SyntaxError, 'attributes');
  });

  it('hole 8: has no ad of more than 2 MB, however it is cut, and none with more than 5,000 attributes', () => {
    const long = `[{"a":"${'x'.repeat(2_100_000)}"}]`;
    expect(() => new JsonObjects().push(long)).to.throw(SyntaxError, 'more than 2097152 characters');
    const ad = (attributes: number) =>
      `[{${Array.from({ length: attributes }, (_, at) => `"k${at}":1`).join(',')}}]`;
    expect(Object.keys(new JsonObjects().push(ad(5000))[0] ?? {})).to.have.length(5000);
    expect(() => new JsonObjects().push(ad(5002))).to.throw(SyntaxError, 'more than 5000 attributes');
  });

  it('hole 8: is looked at once where it comes in pieces of one character', () => {
    const value = '\\"x'.repeat(350_000);
    const objects = new JsonObjects();
    const found = Array.from(JSON.stringify([{ value }])).flatMap((piece) => objects.push(piece));
    expect(found).to.deep.equal([{ value }]);
  });

  it('is nothing else than a list of objects', () => {
    for (const text of ['no', '[1]', '[]]', '[[]]', '{"a": }', 'null']) {
      expect(() => new JsonObjects().push(text), text).to.throw(SyntaxError);
    }
  });
});
