import { expect } from 'chai';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { htcJobSite } from '../support/htcjob-site.ts';
import { applyCrd, HtcJobs, isOver } from '../support/htcjobs.ts';
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

  it('gives a HTCJob its status again: of the jobs, and not of then', async () => {
    await using own = await OwnControlPlane.start();
    await applyCrd(own.plane);
    const space = await own.plane.namespace('restored');
    const jobs = new HtcJobs(space);
    const site = htcJobSite(own.plane, space);
    const [copy, release, runs] = [`${own.directory}/etcd-copy`, site.path('release'), site.path('runs')];
    try {
      await jobs.create('early', `echo x >> ${runs}; until [ -e ${release} ]; do sleep 0.1; done`);
      await own.whileStopped((data) => {
        cpSync(data, copy, { recursive: true });
      });
      site.start();
      await jobs.until('early', 'runs', ({ reason }) => reason === 'Running');
      await own.whileStopped((data) => {
        removeDirectory(data);
        cpSync(copy, data, { recursive: true });
      });
      await jobs.until('early', 'runs again by its status', ({ reason }) => reason === 'Running');
      writeFileSync(release, '');
      expect(await jobs.until('early', 'has ended', isOver)).to.include({ succeeded: 1, failed: 0 });
      expect(readFileSync(runs, 'utf8')).to.equal('x\n');
    } finally {
      await site.clean();
    }
  });
});
