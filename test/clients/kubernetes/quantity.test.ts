import { inspect } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import { cores, mebibytes, quantityOf } from '../../../src/clients/kubernetes/quantity.ts';

describe('a Kubernetes quantity', () => {
  for (const [written, value] of [
    ...([
      [2, 2],
      ['2', 2],
      ['0.5', 0.5],
      ['.5', 0.5],
      ['5.', 5],
      ['500m', 0.5],
      ['1k', 1000],
      ['+1', 1],
    ] as const),
    ...([
      ['1Ki', 1024],
      ['2Gi', 2 ** 31],
      ['4G', 4e9],
      ['1e3', 1000],
      ['1E3', 1000],
      ['1E', 1e18],
      ['-1', -1],
    ] as const),
  ] as const) {
    it(`may be ${JSON.stringify(written)}`, () => {
      expect(quantityOf(written)).to.be.closeTo(value, 1e-9);
    });
  }

  for (const written of [
    '',
    'm',
    '4GB',
    '4 Gi',
    '4gi',
    '1,5',
    'two',
    '1Ki5',
    '0x10',
    true,
    null,
    undefined,
    [1],
    {},
    NaN,
  ]) {
    it(`is not ${inspect(written)}`, () => {
      expect(quantityOf(written)).to.equal(undefined);
    });
  }

  it('is written so that it is read again, and is never nothing', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.001, max: 1e6, noNaN: true }), (count) => {
        const read = quantityOf(cores(count)) ?? 0;
        const memory = (quantityOf(mebibytes(count)) ?? 0) / 2 ** 20;
        return Math.abs(read - count) <= 0.000501 && read > 0 && memory >= count && memory < count + 1;
      }),
    );
  });
});
