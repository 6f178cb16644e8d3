import { expect } from 'chai';
import { until } from '../support/until.ts';
import type { Seen } from './arena.ts';
import { Dice } from './dice.ts';
import { Observer } from './observer.ts';

/** What an observer says of a backend that stays as it is. */
async function brokenBy(
  living: readonly Seen[],
  starts: ReadonlyMap<number, number>,
): Promise<readonly string[]> {
  const observer = new Observer({ living: () => Promise.resolve(living), starts: () => starts });
  observer.strikes('4 s: kill -9');
  observer.begin();
  await until('it has looked five times', () => observer.looks >= 5);
  await observer.end();
  return observer.broken;
}

const workersOf = (queue: string, ...ids: number[]): Seen[] => ids.map((workerId) => ({ workerId, queue }));

describe('the observer of a campaign', () => {
  it('finds nothing wrong with full queues', async () => {
    const living = [...workersOf('A', 1, 2, 3), ...workersOf('B', 4, 5)];
    expect(await brokenBy(living, new Map(living.map(({ workerId }) => [workerId, 1])))).to.deep.equal([]);
  });

  it('tells of a queue with more workers than it may have, once, with the fault before it', async () => {
    expect(await brokenBy(workersOf('B', 1, 2, 3), new Map())).to.deep.equal([
      'promise 4: 3 workers of B live, 2 may\n  before it: 4 s: kill -9',
    ]);
  });

  it('tells of a worker that lives twice', async () => {
    const [broken = ''] = await brokenBy(workersOf('B', 7, 7), new Map());
    expect(broken).to.contain('promise 1: worker 7 lives 2 times');
  });

  it('tells of a worker that was started twice, also when neither lives any more', async () => {
    const [broken = ''] = await brokenBy([], new Map([[7, 2]]));
    expect(broken).to.contain('promise 1: worker 7 was started 2 times');
  });
});

describe('the dice of a campaign', () => {
  const throws = (seed: number) => {
    const dice = new Dice(seed);
    return Array.from({ length: 200 }, () => dice.between(1, 6));
  };

  it('give the same throws for the same seed, and others for another', () => {
    expect(throws(7)).to.deep.equal(throws(7));
    expect(throws(7)).not.to.deep.equal(throws(8));
  });

  it('show every face', () => {
    expect(new Set(throws(1))).to.deep.equal(new Set([1, 2, 3, 4, 5, 6]));
  });

  it('choose by weight, and never what has none', () => {
    const dice = new Dice(3);
    const list = [
      { name: 'often', weight: 9 },
      { name: 'never', weight: 0 },
      { name: 'seldom', weight: 1 },
    ];
    const chosen = Array.from({ length: 1000 }, () => dice.pickByWeight(list)?.name);
    expect(chosen.filter((name) => name === 'often').length).to.be.within(800, 970);
    expect(chosen).not.to.include('never');
  });
});
