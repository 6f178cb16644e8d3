import { expect } from 'chai';
import { KubernetesStub, marked } from '../../support/kubernetes-stub.ts';
import { workerOf } from '../../support/samples.ts';
import { json } from '../../support/scripted-server.ts';

describe('a worker on Kubernetes that was deleted', () => {
  const { signal } = new AbortController();
  const handle = (workerId: number) => ({
    batchID: `factory-${workerId}`,
    uid: `uid-of-factory-${workerId}`,
  });

  it('hole 7: says why it does not go, once its grace is over', async () => {
    const stub = await KubernetesStub.start();
    const long = '2026-01-01T00:00:00Z';
    const deleted = (workerId: number, deletionTimestamp: string, finalizers?: readonly string[]) => ({
      metadata: { ...marked(workerId), deletionTimestamp, ...(finalizers && { finalizers }) },
      status: {},
    });
    const soon = new Date(Date.now() + 600_000).toISOString();
    stub.jobs.set('factory-1', deleted(1, long, ['example.org/keep', 'orphan']));
    stub.jobs.set('factory-2', deleted(2, soon));
    const { metadata } = deleted(3, long, ['batch.kubernetes.io/job-tracking']);
    const labels = { ...metadata.labels, 'batch.kubernetes.io/job-name': 'factory-3' };
    stub.pods.set('pod-3', { metadata: { ...metadata, name: 'pod-3', uid: 'p', labels }, status: {} });
    // They are asked to go, and stay.
    stub.answer = (response, { verb }, seen) => {
      if (verb !== 'delete') return false;
      json(200, {})(response, seen);
      return true;
    };
    try {
      const sweeper = stub.plugin('sweeper');
      const workers = [1, 2, 3].map((workerId) => workerOf(workerId, { handle: handle(workerId) }));
      const outcomes = await sweeper.kill(workers, signal);
      expect(outcomes.get(2)).to.deep.equal({ kind: 'pending' });
      const told = [1, 3].map((workerId) => outcomes.get(workerId));
      const since = 'was to be gone at 2026-01-01T00:00:00.000Z and is still there';
      expect(told).to.deep.equal(
        [
          `Job grid/factory-1 ${since}: its finalizers (example.org/keep, orphan) keep it`,
          `Pod grid/pod-3 ${since}: its node has not said that it ended`,
        ].map((message) => ({ kind: 'pending', reason: { code: 'k8s-not-ending', message } })),
      );
      const orphan = { place: 'grid/jobs/factory-1', handle: handle(1), identity: workerOf(1) };
      expect(await sweeper.removeOrphan(orphan, signal)).to.deep.equal(told[0]);
    } finally {
      await stub.stop();
    }
  });
});
