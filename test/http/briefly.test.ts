import { expect } from 'chai';
import { briefly } from '../../src/http/app.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('an answer that is kept briefly', () => {
  it('is asked for once in its time, also by those who ask at once', async () => {
    const clock = new ManualClock();
    let asked = 0;
    const ask = briefly(clock, 1000, async () => ++asked);
    expect(await Promise.all([ask(), ask()])).to.deep.equal([1, 1]);
    await clock.advance(999);
    expect(await ask()).to.equal(1);
    await clock.advance(1);
    expect(await ask()).to.equal(2);
  });

  it('is not kept when it is a failure', async () => {
    let asked = 0;
    const ask = briefly(new ManualClock(), 1000, async () => {
      if (++asked === 1) throw new Error('no');
      return asked;
    });
    expect(await ask().catch((error: unknown) => String(error))).to.equal('Error: no');
    expect(await ask()).to.equal(2);
  });
});
