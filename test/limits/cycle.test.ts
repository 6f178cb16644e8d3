import { expect } from 'chai';
import { cycleAt, noCycle } from '../../src/limits/cycle.ts';

describe('the cycle of new workers', () => {
  const last = { startedAt: 1000, made: 7 };

  it('goes on until its length is over, and is then empty', () => {
    expect(cycleAt(last, 9999, 9000)).to.equal(last);
    expect(cycleAt(last, 10_000, 9000)).to.deep.equal({ startedAt: 10_000, made: 0 });
  });

  it('is empty where none ever began', () => {
    expect(cycleAt(noCycle, 5, 9000)).to.deep.equal({ startedAt: 5, made: 0 });
  });
});
