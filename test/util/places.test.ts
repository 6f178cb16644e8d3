import { expect } from 'chai';
import fc from 'fast-check';
import { lastPlaceOf, placesOf, unitsOf } from '../../src/util/places.ts';

describe('places of a text in another one', () => {
  const all = (text: ArrayLike<number>, wanted: ArrayLike<number>) => {
    const places: number[] = [];
    placesOf(text, wanted, (at) => places.push(at));
    return places;
  };

  it('are all that there are, overlapping ones as well', () => {
    const short = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 30 });
    fc.assert(
      fc.property(
        short,
        fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 5 }),
        (text, wanted) => {
          const expected = Array.from(text, (_, at) => at).filter((at) => text.startsWith(wanted, at));
          expect(all(Buffer.from(text), Buffer.from(wanted))).to.deep.equal(expected);
          expect(lastPlaceOf(unitsOf(text), unitsOf(wanted))).to.equal(text.lastIndexOf(wanted));
        },
      ),
      { numRuns: 500 },
    );
    expect(all(Buffer.from('abc'), Buffer.alloc(0))).to.deep.equal([]);
  });

  it('hole 8: are found at once, also of a text that repeats itself and is not there', () => {
    const text = Buffer.alloc(64 * 1024 * 1024, 'a');
    const wanted = Buffer.from(`${'a'.repeat(500)}b${'a'.repeat(3595)}`);
    expect(all(text, wanted)).to.deep.equal([]);
  });
});
