import { expect } from 'chai';
import fc from 'fast-check';
import { editDistance, nearest, similar } from '../../src/util/nearest.ts';

describe('the word that was meant', () => {
  const keys = ['maxWorkers', 'mapType', 'condorSchedd', 'nCore', 'nCoreFactor', 'throttler'];
  const meant: [word: string, candidate: string | undefined][] = [
    ['maxWorker', 'maxWorkers'],
    ['maxworkers', 'maxWorkers'],
    ['mxaWorkers', 'maxWorkers'],
    ['MAPTYPE', 'mapType'],
    ['nCoreFactor1', 'nCoreFactor'],
    ['nCores', 'nCore'],
    // Other words, not slips.
    ['condorScheddNew', undefined],
    ['site', undefined],
    ['x', undefined],
    ['', undefined],
  ];
  for (const [word, candidate] of meant) {
    it(`"${word}" probably stands for ${candidate ?? 'no known word'}`, () => {
      expect(nearest(word, keys)).to.equal(candidate);
    });
  }

  it('a word never stands for itself as a misspelt one', () => {
    expect(nearest('nCore', ['nCore'])).to.equal(undefined);
  });

  it('a name also stands for one that begins alike, the likeliest first and no more than five', () => {
    const queues = ['SITE_4G', 'SITE_8G', 'SITE_12G', 'SITE_16G', 'SITE_20G', 'SITE_24G', 'OTHER'];
    expect(similar('SITE', queues)).to.deep.equal(queues.slice(0, 5));
    expect(similar('SITE_4', queues)[0]).to.equal('SITE_4G');
    expect(similar('nothing like it', queues)).to.deep.equal([]);
  });

  it('is as far from one side as from the other, and no further than the longer word', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
        const distance = editDistance(a, b);
        expect(distance).to.equal(editDistance(b, a));
        expect(distance === 0).to.equal(a === b);
        expect(distance).to.be.at.most(Math.max(a.length, b.length));
        expect(distance).to.be.at.least(Math.abs(a.length - b.length));
      }),
    );
  });
});
