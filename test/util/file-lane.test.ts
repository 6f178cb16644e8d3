import { expect } from 'chai';
import { FileLane } from '../../src/util/file-lane.ts';
import { ManualClock } from '../support/manual-clock.ts';

const never = () => new Promise<never>(() => undefined);

describe('FileLane', () => {
  const laneOn = (clock: ManualClock) =>
    new FileLane({ clock, name: 'local:/pilots', atOnce: 2, timeoutMs: 5000 });

  it('gives back what a call gives back, or throws what it throws', async () => {
    const lane = laneOn(new ManualClock());
    expect(await lane.run('reading', () => Promise.resolve('text'))).to.equal('text');
    const failed = lane.run('reading', () => Promise.reject(new Error('no such file')));
    expect(await failed.catch(String)).to.equal('Error: no such file');
  });

  it('gives up a call that hangs, and names it', async () => {
    const clock = new ManualClock();
    const hung = laneOn(clock).run('reading worker 7', never).catch(String);
    await clock.advance(5000);
    expect(await hung).to.contain('reading worker 7 (local:/pilots) did not come back within 5 s');
  });

  it('keeps the place of a hung call, so that a dead disk never takes more threads than its own', async () => {
    const clock = new ManualClock();
    const lane = laneOn(clock);
    let begun = 0;
    const calls = Array.from({ length: 20 }, () =>
      lane
        .run('stat', () => {
          begun++;
          return never();
        })
        .catch(() => 'given up'),
    );
    await clock.advance(5000);
    expect(await Promise.all(calls)).to.deep.equal(Array.from({ length: 20 }, () => 'given up'));
    expect(begun).to.equal(2);
  });

  for (const importance of ['foreground', 'background'] as const) {
    it(`does not give up ${importance} calls while others of them come back, however many wait`, async () => {
      const clock = new ManualClock();
      const lane = laneOn(clock);
      const step = () => clock.sleep(1000, new AbortController().signal);
      const calls = Array.from({ length: 24 }, () => lane.run('writing', step, importance).catch(String));
      for (let second = 0; second < 24; second++) await clock.advance(1000);
      expect(await Promise.all(calls)).to.deep.equal(Array.from({ length: 24 }, () => undefined));
    });
  }

  it('gives up a call once it has a place and hangs, also where it had to wait for that', async () => {
    const clock = new ManualClock();
    const lane = laneOn(clock);
    const step = () => clock.sleep(1000, new AbortController().signal);
    const others = Array.from({ length: 4 }, () => lane.run('a look', step));
    const hung = lane.run('reading worker 7', never).catch(String);
    for (let second = 0; second < 10; second++) await clock.advance(1000);
    await Promise.all(others);
    expect(await hung).to.contain('reading worker 7 (local:/pilots) did not come back within 5 s');
  });

  it('gives up background calls once none comes back, and one that hangs among others that do', async () => {
    const clock = new ManualClock();
    const lane = laneOn(clock);
    const ends = [never, never].map((call) => lane.run('removal', call, 'background').catch(String));
    for (let second = 0; second < 10; second++) {
      await clock.advance(1000);
      await lane.run('a look', () => Promise.resolve());
    }
    for (const end of await Promise.all(ends)) expect(end).to.contain('did not come back');
  });

  it('goes on with the next call as soon as a hung one comes back', async () => {
    const clock = new ManualClock();
    const lane = laneOn(clock);
    const release: (() => void)[] = [];
    const hang = () => new Promise<void>((resolve) => release.push(resolve));
    const hung = [lane.run('a', hang), lane.run('b', hang)].map((call) => call.catch(() => 'given up'));
    await clock.advance(5000);
    expect(await Promise.all(hung)).to.deep.equal(['given up', 'given up']);
    const next = lane.run('c', () => Promise.resolve('read'));
    release[0]?.();
    expect(await next).to.equal('read');
  });
});
