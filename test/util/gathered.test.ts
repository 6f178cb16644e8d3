import { expect } from 'chai';
import fc from 'fast-check';
import { Gathered, GatheredText } from '../../src/util/gathered.ts';

describe('a text in pieces', () => {
  it('is the same whatever pieces it came in, and begins anew when it is taken', () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 70_000 })), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(fc.array(sizes, { maxLength: 3 }), (texts) => {
        const gathered = new Gathered();
        for (const text of texts) {
          const pieces = text.map((size, at) => Buffer.alloc(size, at + 1));
          for (const piece of pieces) gathered.add(piece);
          const whole = Buffer.concat(pieces);
          expect(gathered.length).to.equal(whole.length);
          expect(gathered.take().equals(whole)).to.equal(true);
          expect(gathered.length).to.equal(0);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('is the same as characters, also where a piece ends within one', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), fc.integer({ min: 1, max: 3 }), (texts, size) => {
        const gathered = new GatheredText();
        for (const text of texts) {
          const long = text.repeat(1500);
          for (let at = 0; at < long.length; at += size) gathered.add(long.slice(at, at + size));
          expect(gathered.length).to.equal(long.length);
          expect(gathered.take() === long).to.equal(true);
          expect(gathered.length).to.equal(0);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('hole 8: keeps no pieces of one byte: a million of them take some megabytes', () => {
    const source = Buffer.alloc(1_000_000, 'x');
    const gathered = new Gathered();
    const before = process.memoryUsage();
    for (let at = 0; at < source.length; at++) gathered.add(source.subarray(at, at + 1));
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).to.be.below(4_000_000);
    expect(gathered.take().equals(source)).to.equal(true);
  });
});
