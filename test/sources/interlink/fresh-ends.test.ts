import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { FreshEnds } from '../../../src/sources/interlink/looks/fresh-ends.ts';
import type { PodFacts } from '../../../src/sources/interlink/pods/facts.ts';
import { TrackedPod } from '../../../src/sources/interlink/pods/tracked-pod.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const finished: PodFacts = {
  workerId: 1,
  status: 'finished',
  native: 'Completed',
  exitCode: 0,
  message: null,
  batchId: '1.0',
  startTime: 1,
  endTime: 2,
};

describe('Pods whose jobs have just ended', () => {
  let clock: ManualClock;
  let pods: TrackedPod[];
  /** Times of the looks, ms since the first end. */
  let looks: number[];
  let freshEnds: FreshEnds;
  let over: AbortController;
  let running: Promise<void>;

  beforeEach(() => {
    clock = new ManualClock();
    pods = Array.from({ length: 3 }, () => {
      const identity = { uid: randomUUID(), name: 'one', namespace: 'default' };
      return new TrackedPod({ version: 1, ...identity, containers: [], initContainers: [], acceptedAt: 0 });
    });
    looks = [];
    freshEnds = new FreshEnds(clock, () => pods);
    over = new AbortController();
    const look = async () => {
      looks.push(clock.monotonic());
    };
    running = freshEnds.run(look, over.signal);
  });
  afterEach(async () => {
    over.abort();
    await running;
  });

  const end = async (nth: number) => {
    const [pod] = pods.slice(nth);
    if (pod !== undefined) pod.ending = { facts: finished, since: clock.monotonic(), heardAt: 0 };
    freshEnds.heard();
    await clock.advance(0);
  };

  it('are looked at at once, and then more often than others, but not for ever', async () => {
    await clock.advance(10_000);
    expect(looks).to.deep.equal([]);
    await end(0);
    expect(looks).to.deep.equal([10_000]);
    await clock.advance(1000);
    expect(looks).to.deep.equal([10_000, 10_200, 10_400, 10_600, 10_800, 11_000]);
    await clock.advance(600_000);
    expect(looks).to.have.length(25);
    expect(freshEnds.has(pods[0] as TrackedPod)).to.equal(false);
  });

  it('are looked at no more once their ends are shown', async () => {
    await end(0);
    for (const pod of pods) pod.ending = undefined;
    await clock.advance(600_000);
    expect(looks).to.have.length(1);
  });

  it('are looked at while the files of another one hang', async () => {
    over.abort();
    await running;
    over = new AbortController();
    const hanging = Promise.withResolvers<undefined>();
    let others = 0;
    const look = async (pod: TrackedPod) => {
      if (pod === pods[0]) await hanging.promise;
      else others++;
    };
    running = freshEnds.run(look, over.signal);
    await end(0);
    await clock.advance(200);
    await end(1);
    await clock.advance(200);
    expect(others).to.be.greaterThan(0);
  });

  it('stay fresh for the same time when the wall clock steps', async () => {
    await end(0);
    for (const step of [-600_000, 600_000]) {
      const now = clock.now() + step;
      clock.now = () => now;
      expect(freshEnds.has(pods[0] as TrackedPod)).to.equal(true);
    }
    await clock.advance(5000);
    expect(freshEnds.has(pods[0] as TrackedPod)).to.equal(false);
  });

  it('share the looks: an end beside another one brings no pass of its own', async () => {
    await end(0);
    await clock.advance(50);
    await end(1);
    await end(2);
    expect(looks).to.deep.equal([0]);
    await clock.advance(150);
    expect(looks).to.deep.equal([0, 200, 200, 200]);
  });
});
