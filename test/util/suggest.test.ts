import { expect } from 'chai';
import fc from 'fast-check';
import { editDistance, suggest } from '../../src/util/suggest.ts';

describe('the word that was meant', () => {
  const known = ['sleepTime', 'maxNewWorkers', 'submissionRate'];

  for (const [word, meant] of [
    ['sleeptime', 'sleepTime'],
    ['sleepTimes', 'sleepTime'],
    ['maxnewworker', 'maxNewWorkers'],
    ['submisionRate', 'submissionRate'],
    ['xyz', undefined],
    ['', undefined],
  ] as const) {
    it(`behind "${word}" is ${meant ?? 'none'}`, () => {
      expect(suggest(word, known)).to.equal(meant);
    });
  }

  it('is found by a distance that is one', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (a, b, c) => {
        expect(editDistance(a, a)).to.equal(0);
        expect(editDistance(a, b)).to.equal(editDistance(b, a));
        expect(editDistance(a, c)).to.be.at.most(editDistance(a, b) + editDistance(b, c));
        expect(editDistance(a, a + b)).to.equal(b.length);
      }),
    );
  });
});
