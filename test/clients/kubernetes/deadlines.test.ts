import { expect } from 'chai';
import { Deadlines } from '../../../src/clients/kubernetes/deadlines.ts';
import { ManualClock } from '../../support/manual-clock.ts';

describe('deadlines of requests', () => {
  let clock: ManualClock;
  let deadlines: Deadlines;
  let late: string[];

  beforeEach(() => {
    clock = new ManualClock();
    deadlines = new Deadlines(clock);
    late = [];
  });

  const open = (name: string, ms: number) => deadlines.open(ms, () => late.push(name));

  it('that pass are told once, each at its own time, whatever their order', async () => {
    open('b', 2000);
    open('a', 1000);
    open('c', 3000);
    await clock.advance(999);
    expect(late).to.deep.equal([]);
    await clock.advance(1);
    expect(late).to.deep.equal(['a']);
    await clock.advance(1000);
    expect(late).to.deep.equal(['a', 'b']);
    await clock.advance(60_000);
    expect(late).to.deep.equal(['a', 'b', 'c']);
  });

  it('that are closed in time are not told', async () => {
    const first = open('a', 1000);
    const second = open('b', 2000);
    deadlines.close(second);
    await clock.advance(500);
    deadlines.close(first);
    await clock.advance(60_000);
    expect(late).to.deep.equal([]);
  });

  it('share one sleep, and leave none behind', async () => {
    const opened = [1000, 2000, 3000].map((ms) => open('a', ms));
    expect(clock.sleeping).to.have.length(1);
    for (const deadline of opened) deadlines.close(deadline);
    await clock.advance(0);
    expect(clock.sleeping).to.deep.equal([]);
  });

  it('are kept by a sleep that was about to end', async () => {
    deadlines.close(open('a', 1000));
    open('b', 1000);
    await clock.advance(1000);
    expect(late).to.deep.equal(['b']);
  });

  it('may be opened where another has passed', async () => {
    deadlines.open(1000, () => open('b', 500));
    await clock.advance(1500);
    expect(late).to.deep.equal(['b']);
    await clock.advance(0);
    expect(clock.sleeping).to.deep.equal([]);
  });
});
