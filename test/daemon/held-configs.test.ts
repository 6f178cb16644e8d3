import { expect } from 'chai';
import { HeldConfigs } from '../../src/daemon/held-configs.ts';

describe('configurations that a listing may still adopt workers with', () => {
  it('are held until every pass that was given them releases them', () => {
    const held = new HeldConfigs();
    const [one, other] = [held.open(), held.open()];
    one.keep(1);
    one.keep(2);
    other.keep(2);
    expect([...held.take()].sort()).to.deep.equal([1, 2]);
    one.release();
    held.take();
    expect([...held.take()]).to.deep.equal([2]);
    other.release();
    held.take();
    expect([...held.take()]).to.deep.equal([]);
  });

  it('count once more after their release, since a reload may have read the rows before', () => {
    const held = new HeldConfigs();
    const hold = held.open();
    hold.keep(7);
    hold.release();
    hold.release();
    expect([...held.take()]).to.deep.equal([7]);
    expect([...held.take()]).to.deep.equal([]);
  });
});
