import { expect } from 'chai';
import { cpSync } from 'node:fs';
import { OwnControlPlane } from '../support/kubernetes.ts';
import { workersWithJobs } from '../support/kubernetes-history.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import { untilSaid } from '../support/site.ts';
import { removeDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const ascending = (ids: readonly number[]) => ids.toSorted((a, b) => a - b);

describe('on Kubernetes an etcd that an operator restores to an older revision', function () {
  // The whole control plane starts three times.
  this.timeout(600_000);

  it('is noticed by its versions: rows without a Job end, and others take their place', async () => {
    await using own = await OwnControlPlane.start();
    const space = await own.plane.namespace('restored');
    const queueOf = (count: number) => ({
      Q: kubernetesQueue(space, { queue: { maxWorkers: count, nQueueLimitWorker: count } }),
    });
    const settings = { monitor: { missingGrace: 0.5 }, qconf: { checkInterval: 0.5 } };
    const site = kubernetesSite(own.plane, { settings, queues: queueOf(2) }, { 'job.yaml': jobTemplate() });
    const running = (count: number) =>
      until(`${count} workers run, each with its Job`, async () => {
        const workers = await site.workers({ status: 'running' });
        const ids = ascending(workers.map(({ workerID }) => workerID));
        if (ids.length !== count) return false;
        return (await workersWithJobs(space)).join() === ids.join() && ids;
      });
    try {
      const daemon = site.start();
      const saved = await running(2);
      const copy = `${own.directory}/etcd-copy`;
      await own.whileStopped((data) => {
        cpSync(data, copy, { recursive: true });
      });
      site.writeQueues(queueOf(6));
      const since = (await running(6)).filter((id) => !saved.includes(id));
      await own.whileStopped((data) => {
        removeDirectory(data);
        cpSync(copy, data, { recursive: true });
      });
      await until('the rows without a Job have ended', async () => {
        const missed = await site.workers({ status: 'missed' });
        return ascending(missed.map(({ workerID }) => workerID)).join() === since.join();
      });
      expect((await running(6)).slice(0, 2)).to.deep.equal(saved);
      await untilSaid(daemon, 'the API server went back to an older state');
    } finally {
      await site.clean();
    }
  });
});
