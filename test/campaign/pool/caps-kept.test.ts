import { expect } from 'chai';
import { brokenCaps, type CapFacts, type RecordedWorker } from './caps-kept.ts';

const worker = (workerId: number, createdAt: number, version = 1): RecordedWorker => ({
  workerId,
  queue: 'Q',
  shape: 'small',
  version,
  createdAt,
});

/** Version 1 lets two live, and version 2 none. */
const written: CapFacts['written'] = new Map([
  [1, { Q: { small: 2 } }],
  [2, { Q: { small: 0 } }],
]);

const broken = (
  workers: readonly RecordedWorker[],
  lastSeen: readonly (readonly [number, number])[],
  taken: CapFacts['taken'] = [],
) => brokenCaps({ written, workers, lastSeen: new Map(lastSeen), taken });

describe('the judgement of caps', () => {
  it('lets as many workers live as the cap says, and the next one once another has ended', () => {
    const workers = [worker(1, 10), worker(2, 10), worker(3, 100)];
    expect(
      broken(workers, [
        [1, 99],
        [2, 200],
        [3, 200],
      ]),
    ).to.deep.equal([]);
  });

  it('finds a worker that came while as many as the cap says still ran', () => {
    const workers = [worker(1, 10), worker(2, 10), worker(3, 100)];
    expect(
      broken(workers, [
        [1, 100],
        [2, 200],
        [3, 200],
      ]),
    ).to.deep.equal(['worker 3 of Q/small came beside 1, 2: its cap was 2']);
  });

  it('lets workers above a lowered cap live, and finds a new one', () => {
    const before = [worker(1, 10), worker(2, 10)];
    const seen = [[1, 900] as const, [2, 900] as const];
    expect(broken(before, seen, [{ queue: 'Q', version: 2, at: 50 }])).to.deep.equal([]);
    expect(broken([...before, worker(3, 100, 2)], [...seen, [3, 150]])).to.deep.equal([
      'worker 3 of Q/small came beside 1, 2: its cap was 0',
    ]);
  });

  it('finds a worker that was made by an earlier cap after thresher ran by a later one', () => {
    const taken = [{ queue: 'Q', version: 2, at: 50 }];
    expect(broken([worker(1, 51)], [[1, 60]], taken)).to.deep.equal([
      'worker 1 of Q/small was made by version 1, and thresher had 2 by then',
    ]);
  });

  it('takes no account of an intent that never became a process, and finds a process without a record', () => {
    const workers = [worker(1, 10), worker(2, 11), worker(3, 12)];
    expect(
      broken(workers, [
        [1, 50],
        [3, 50],
        [7, 50],
      ]),
    ).to.deep.equal(['worker 7 lived and has no record']);
  });
});
