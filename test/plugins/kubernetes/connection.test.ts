import { expect } from 'chai';
import { leaveQueue, replaceConfig } from '../../support/backend-parts.ts';
import { KubernetesStub } from '../../support/kubernetes-stub.ts';
import { ManualClock } from '../../support/manual-clock.ts';
const other = (queue: string, configId = 1) => ({ queue, configId });

describe('the pace of requests to one cluster', () => {
  let stub: KubernetesStub;
  let clock: ManualClock;

  beforeEach(async () => {
    clock = new ManualClock();
    stub = await KubernetesStub.start({ clock });
  });

  afterEach(() => stub.stop());

  /** Requests that go at once after a long rest: twice the rate. */
  async function burst(): Promise<number> {
    const { pacer } = stub.connection().cluster;
    await clock.advance(600_000);
    const stop = new AbortController();
    const asked = Array.from({ length: 1000 }, () => pacer.admitted(Infinity, stop.signal));
    const gone = 1000 - clock.sleeping.length;
    stop.abort();
    await Promise.all(asked);
    return gone;
  }

  it('is the least that any queue says, whoever was made first, and those that say nothing do not count', async () => {
    stub.plugin('monitor', { requestsPerSecond: 50 }, other('A'));
    stub.plugin('monitor', { requestsPerSecond: 20 }, other('B'));
    stub.plugin('monitor', {}, other('C'));
    expect(await burst()).to.equal(40);
  });

  it('is what one section of a queue says, also where its other sections say nothing', async () => {
    stub.plugin('sweeper', { requestsPerSecond: 15 }, other('A'));
    stub.plugin('monitor', {}, other('A'));
    expect(await burst()).to.equal(30);
  });

  it('is that of the newest configuration of a queue, also where an earlier one is made after it', async () => {
    stub.plugin('monitor', { requestsPerSecond: 5 }, other('A', 1));
    stub.plugin('monitor', { requestsPerSecond: 25 }, other('A', 2));
    stub.plugin('sweeper', { requestsPerSecond: 10 }, other('A', 1));
    expect(await burst()).to.equal(50);
  });

  it('is no longer bound by a queue that was removed', async () => {
    stub.plugin('monitor', { requestsPerSecond: 5 }, other('A'));
    stub.plugin('monitor', { requestsPerSecond: 20 }, other('B'));
    expect(await burst()).to.equal(10);
    leaveQueue('A', stub.context);
    expect(await burst()).to.equal(40);
  });

  it('is no longer bound by a removed queue of another namespace of the cluster', async () => {
    stub.plugin('monitor', { requestsPerSecond: 5, k8s_namespace: 'other' }, other('A'));
    stub.plugin('monitor', {}, other('B'));
    expect(await burst()).to.equal(10);
    leaveQueue('A', stub.context);
    expect(await burst()).to.equal(400);
  });

  it('is no longer bound by the former configuration of a queue that moved to another namespace', async () => {
    stub.plugin('monitor', { requestsPerSecond: 5, k8s_namespace: 'other' }, other('A', 1));
    stub.plugin('monitor', {}, other('A', 2));
    replaceConfig('A', 1, stub.context);
    expect(await burst()).to.equal(400);
  });

  it('is no longer bound by a removed queue whose workers are followed beside a current queue', async () => {
    stub.plugin('monitor', { requestsPerSecond: 5 }, other('A'));
    stub.plugin('monitor', { requestsPerSecond: 20 }, other('B'));
    replaceConfig('A', 1, stub.context);
    expect(await burst()).to.equal(40);
  });

  it('is that of removed queues while the cluster has no other', async () => {
    stub.plugin('monitor', { requestsPerSecond: 5, k8s_namespace: 'other' }, other('A'));
    stub.plugin('monitor', { requestsPerSecond: 20 }, other('B'));
    replaceConfig('A', 1, stub.context);
    replaceConfig('B', 1, stub.context);
    expect(await burst()).to.equal(10);
  });

  it('is 200 again when nobody says anything any more', async () => {
    stub.plugin('monitor', { requestsPerSecond: 5 }, other('A', 1));
    stub.plugin('monitor', {}, other('A', 2));
    expect(await burst()).to.equal(400);
  });
});
