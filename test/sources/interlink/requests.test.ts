import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { batchInterval, PodRequests } from '../../../src/sources/interlink/requests.ts';
import { TrackedPod } from '../../../src/sources/interlink/pods/tracked-pod.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function waitingPod(): TrackedPod {
  const identity = { uid: randomUUID(), name: 'one', namespace: 'default' };
  return new TrackedPod({ version: 1, ...identity, containers: [], initContainers: [], acceptedAt: 0 });
}

describe('the requests of Pods that wait for jobs', () => {
  let clock: ManualClock;
  /** UIDs, one for each plan that was made. */
  let planned: string[];
  let wakes: number;
  let requests: PodRequests;

  beforeEach(() => {
    clock = new ManualClock();
    planned = [];
    wakes = 0;
    requests = new PodRequests({
      clock,
      batchInterval,
      plan: ({ origin }) => {
        planned.push(origin.uid);
        return { origin };
      },
    });
  });

  const ask = (pods: readonly TrackedPod[]) => requests.of(pods, () => wakes++);

  it('have one plan for each Pod, however often and beside however many others it waits', async () => {
    const pods: TrackedPod[] = [];
    for (let nth = 0; nth < 50; nth++) {
      pods.push(waitingPod());
      ask(pods);
      await clock.advance(batchInterval);
    }
    const [before, after] = [ask(pods), ask(pods)];
    expect(planned).to.deep.equal(pods.map(({ origin }) => origin.uid));
    // The daemon looks at a request again only if it is another object.
    for (const [nth, request] of after.entries()) expect(request).to.equal(before[nth]);
  });

  it('come at once after a pause, and then in batches: 500 Pods at 20 a second are at most five submissions a second', async () => {
    const pods: TrackedPod[] = [];
    let asked = 0;
    let batches = 0;
    const pass = () => {
      const now = ask(pods).length;
      if (now > asked) batches++;
      asked = now;
    };
    for (let nth = 0; nth < 500; nth++) {
      pods.push(waitingPod());
      pass();
      if (nth === 0) expect(asked).to.equal(1);
      await clock.advance(50);
    }
    await clock.advance(batchInterval);
    pass();
    expect(asked).to.equal(500);
    expect(batches).to.be.at.most((500 * 50 + batchInterval) / batchInterval + 1);
  });

  it('of a batch that is not due yet ask for one pass as soon as it is', async () => {
    const pods = [waitingPod()];
    ask(pods);
    pods.push(waitingPod(), waitingPod());
    expect(ask(pods)).to.have.length(1);
    ask(pods);
    expect(clock.sleeping).to.deep.equal([batchInterval]);
    expect(wakes).to.equal(0);
    await clock.advance(batchInterval);
    expect(wakes).to.equal(1);
    expect(ask(pods)).to.have.length(3);
  });

  it('hole 8: of Pods that take long to plan come in several batches, so that the daemon goes on between them', async () => {
    let spent = 0;
    const slow = new PodRequests({
      clock: {
        now: () => clock.now(),
        monotonic: () => clock.monotonic() + spent,
        sleep: (ms, signal) => clock.sleep(ms, signal),
      },
      batchInterval,
      plan: ({ origin }) => {
        spent += 20;
        return { origin };
      },
    });
    const pods = Array.from({ length: 8 }, waitingPod);
    const sizes: number[] = [];
    while (sizes.length < 3) {
      sizes.push(slow.of(pods, () => wakes++).length);
      await clock.advance(batchInterval);
    }
    expect(sizes).to.deep.equal([3, 6, 8]);
    expect(wakes).to.equal(2);
  });

  it('are forgotten as soon as their Pods wait no more, since they hold Secrets', async () => {
    const pod = waitingPod();
    ask([pod]);
    ask([]);
    await clock.advance(batchInterval);
    ask([pod]);
    expect(planned).to.deep.equal([pod.origin.uid, pod.origin.uid]);
  });
});
