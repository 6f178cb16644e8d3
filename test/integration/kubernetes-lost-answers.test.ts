import { expect } from 'chai';
import { type Fault, FaultProxy } from '../support/fault-proxy.ts';
import { type ControlPlane, controlPlane, type Namespace, OwnControlPlane } from '../support/kubernetes.ts';
import { History, livingPods, workerJobs, workersWithJobs } from '../support/kubernetes-history.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import type { Site, SiteOptions } from '../support/site.ts';
import { until } from '../support/until.ts';

const wanted = 2;
const limits = { maxWorkers: wanted, nQueueLimitWorker: wanted };
/** Jobs as they are created: the first of each worker is the worker's own, a fence comes later. */
const creations = { verb: 'create', resource: 'jobs' } as const;

async function running(site: Site, count: number): Promise<number[]> {
  return until(`${count} workers run and no intent is open`, async () => {
    const workers = await site.workers();
    const ids = workers.flatMap(({ status, workerID }) => (status === 'running' ? [workerID] : []));
    const settled = workers.every(({ status, batchID }) => status !== 'running' || batchID !== null);
    const open = workers.some(({ status }) => status === 'pending');
    return ids.length === count && settled && !open && ids.sort((a, b) => a - b);
  });
}

describe('on Kubernetes a submission whose answer is lost', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let proxy: FaultProxy;
  let site: Site;
  let history: History;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('lost');
    proxy = await FaultProxy.inFrontOf(plane);
    history = await History.begin(space);
  });

  afterEach(async () => {
    await site.clean();
    await proxy[Symbol.asyncDispose]();
    await space[Symbol.asyncDispose]();
  });

  function makeSite(settings: SiteOptions['settings'] = {}, queue: Record<string, unknown> = {}): Site {
    const queues = { Q: kubernetesQueue(space, { queue: { ...limits, ...queue } }) };
    const access = { server: proxy.url };
    site = kubernetesSite(plane, { settings, queues }, { 'job.yaml': jobTemplate() }, access);
    return site;
  }

  const lost: readonly [string, Fault][] = [
    ['after the Job was created', { kind: 'cut-after' }],
    ['before the server saw it', { kind: 'cut-before' }],
    ['by a gateway that says 504 of what was done', { kind: 'status', status: 504 }],
  ];
  for (const [description, fault] of lost) {
    it(`is settled by asking, not by repeating: ${description}`, async () => {
      const injected = proxy.inject({ ...creations, times: wanted, fault });
      makeSite();
      site.start();
      const ids = await running(site, wanted);
      expect(injected.hits).to.equal(wanted);
      expect(await workersWithJobs(space)).to.deep.equal(ids);
      expect((await site.workers()).length, 'the same workers, not others in their place').to.equal(wanted);
      expect(await livingPods(space)).to.equal(wanted);
      expect(await history.twice()).to.deep.equal([]);
    });
  }

  it('starts no Pod when it is carried out after the worker was given up', async () => {
    const release = Promise.withResolvers<undefined>();
    proxy.inject({ ...creations, times: wanted, fault: { kind: 'late', until: release.promise } });
    makeSite({ master: { pluginTimeout: 1 } }, { maxSubmissionAttempts: 1 });
    site.start();
    const missed = await until('both are given up', async () => {
      const workers = await site.workers({ status: 'missed' });
      return workers.length >= wanted && workers.map(({ workerID }) => workerID);
    });
    const ids = await running(site, wanted);
    release.resolve(undefined);
    const late = () => proxy.requests.filter(({ fault }) => fault === 'late');
    await until('the server has answered', () => late().every(({ status }) => status !== undefined));
    expect(late().map(({ status }) => status)).to.deep.equal([409, 409]);
    const made = await history.made();
    expect(missed.filter((id) => made.has(id))).to.deep.equal([]);
    expect([...made.keys()].sort((a, b) => a - b)).to.deep.equal(ids);
  });

  it('starts no Pod when it is carried out after the sweep, however short workers are kept', async () => {
    const release = Promise.withResolvers<undefined>();
    proxy.inject({ ...creations, times: wanted, fault: { kind: 'late', until: release.promise } });
    makeSite({ master: { pluginTimeout: 1 }, sweeper: { keepMissed: 0 } }, { maxSubmissionAttempts: 1 });
    site.start();
    await until('both are given up', async () => (await site.workers({ status: 'missed' })).length >= wanted);
    await running(site, wanted);
    const swept = await site.run('sweep');
    expect(swept.stdout).to.contain('0 workers were swept; 2 workers of Q are kept for now');
    release.resolve(undefined);
    const late = () => proxy.requests.filter(({ fault }) => fault === 'late');
    await until('the server has answered', () => late().every(({ status }) => status !== undefined));
    expect(late().map(({ status }) => status)).to.deep.equal([409, 409]);
    expect(await livingPods(space)).to.equal(wanted);
  });

  it('starts no Pod when it is carried out after its worker was killed and swept', async () => {
    const release = Promise.withResolvers<undefined>();
    proxy.inject({ ...creations, times: wanted, fault: { kind: 'late', until: release.promise } });
    makeSite({ master: { pluginTimeout: 1 }, sweeper: { keepCancelled: 0 } });
    site.start();
    const ids = await running(site, wanted);
    await site.run('pause', 'Q', '--reason', 'test');
    await site.run('kill', ...ids.map(String));
    await until('both are cancelled', async () => (await site.workers({ status: 'cancelled' })).length === 2);
    await site.run('sweep');
    release.resolve(undefined);
    const late = () => proxy.requests.filter(({ fault }) => fault === 'late');
    await until('the server has answered', () => late().every(({ status }) => status !== undefined));
    expect(late().map(({ status }) => status)).to.deep.equal([409, 409]);
    expect(await history.twice()).to.deep.equal([]);
  });

  it('starts no Pod when the monitor sees the end of its killed worker before the kill is done', async () => {
    const release = Promise.withResolvers<undefined>();
    proxy.inject({ ...creations, times: wanted, fault: { kind: 'late', until: release.promise } });
    makeSite({ master: { pluginTimeout: 1 }, sweeper: { keepCancelled: 0 } });
    site.start();
    const ids = await running(site, wanted);
    const pods = (await space.client.list(space.core('pods'), 'thresher/factory')).map(({ metadata }) =>
      space.core('pods', metadata.name),
    );
    for (const pod of pods) await space.client.patch(pod, { metadata: { finalizers: ['test/stays'] } });
    await site.run('pause', 'Q', '--reason', 'test');
    await site.run('kill', ...ids.map(String));
    await until('their Jobs are deleted', async () => (await workerJobs(space)).length === 0);
    for (const pod of pods) await space.client.patch(`${pod}/status`, { status: { phase: 'Failed' } });
    await until('both are cancelled', async () => (await site.workers({ status: 'cancelled' })).length === 2);
    for (const pod of pods) await space.client.patch(pod, { metadata: { finalizers: null } });
    await site.run('sweep');
    release.resolve(undefined);
    const late = () => proxy.requests.filter(({ fault }) => fault === 'late');
    await until('the server has answered', () => late().every(({ status }) => status !== undefined));
    expect(late().map(({ status }) => status)).to.deep.equal([409, 409]);
    expect(await history.twice()).to.deep.equal([]);
  });

  it('starts no Pod when the kill of its worker fails after the Job was deleted', async () => {
    const release = Promise.withResolvers<undefined>();
    proxy.inject({ ...creations, times: wanted, fault: { kind: 'late', until: release.promise } });
    makeSite({ master: { pluginTimeout: 1 }, sweeper: { keepCancelled: 0 } });
    site.start();
    const ids = await running(site, wanted);
    await site.run('pause', 'Q', '--reason', 'test');
    // What ends the worker is there; what keeps its earlier creation out is not.
    const refused = proxy.inject({ ...creations, fault: { kind: 'status', status: 500 } });
    await site.run('kill', ...ids.map(String));
    await until('it is tried again', () => refused.hits >= 4 * wanted);
    expect((await workerJobs(space)).length).to.equal(0);
    refused.remove();
    await until('both are cancelled', async () => (await site.workers({ status: 'cancelled' })).length === 2);
    await site.run('sweep');
    release.resolve(undefined);
    const late = () => proxy.requests.filter(({ fault }) => fault === 'late');
    await until('the server has answered', () => late().every(({ status }) => status !== undefined));
    expect(late().map(({ status }) => status)).to.deep.equal([409, 409]);
    expect(await history.twice()).to.deep.equal([]);
  });

  it('adds nothing when it is carried out after the next attempt', async () => {
    const release = Promise.withResolvers<undefined>();
    proxy.inject({ ...creations, times: wanted, fault: { kind: 'late', until: release.promise } });
    makeSite({ master: { pluginTimeout: 1 } });
    site.start();
    const ids = await running(site, wanted);
    release.resolve(undefined);
    const late = () => proxy.requests.filter(({ fault }) => fault === 'late');
    await until('the server has answered', () => late().every(({ status }) => status !== undefined));
    expect(late().map(({ status }) => status)).to.deep.equal([409, 409]);
    expect(await workersWithJobs(space)).to.deep.equal(ids);
    expect(await livingPods(space)).to.equal(wanted);
    expect(await history.twice()).to.deep.equal([]);
  });

  for (const database of ['kept', 'removed']) {
    it(`of a daemon that is dead is carried out late, the database ${database}`, async () => {
      const release = Promise.withResolvers<undefined>();
      const fault: Fault = { kind: 'late', until: release.promise };
      const injected = proxy.inject({ ...creations, skip: 1, times: 1, fault });
      makeSite();
      const first = site.start();
      await until(
        'one Job is there, and one on its way',
        async () => injected.hits === 1 && (await workerJobs(space)).length === 1,
      );
      first.process.kill('SIGKILL');
      await first.ended;
      if (database === 'removed') site.removeDatabase();
      site.start();
      await running(site, wanted);
      release.resolve(undefined);
      const late = () => proxy.requests.find(({ fault }) => fault === 'late');
      await until('the server has answered', () => late()?.status !== undefined);
      // Kept, the intent is known and was fenced. Removed, nobody can know of it: what it makes is found and followed.
      const count = database === 'kept' ? wanted : wanted + 1;
      expect(late()?.status).to.equal(database === 'kept' ? 409 : 201);
      const ids = await running(site, count);
      expect(await workersWithJobs(space)).to.deep.equal(ids);
      expect(await history.twice()).to.deep.equal([]);
    });
  }
});

describe('on Kubernetes an API server that is killed in the middle of a batch', () => {
  it('costs no worker, and makes none twice', async () => {
    await using own = await OwnControlPlane.start();
    const { plane } = own;
    const space = await plane.namespace('batch');
    const count = 24;
    const slow = { nProcesses: 2, requestsPerSecond: 12 };
    const site = kubernetesSite(plane, {
      queues: {
        Q: kubernetesQueue(space, {
          submitter: slow,
          monitor: { requestsPerSecond: 12 },
          sweeper: { requestsPerSecond: 12 },
          queue: { maxWorkers: count, nQueueLimitWorker: count },
        }),
      },
    });
    try {
      site.start();
      // The burst is over, and half of it is to come.
      await until('some are there', async () => (await workerJobs(space)).length >= count / 4);
      await own.kill('kube-apiserver');
      await until(
        'the daemon has noticed',
        async () => (await site.queue('Q')).reasons[0]?.code === 'status-unknown',
      );
      expect((await site.workers()).length, 'and makes no others').to.equal(count);
      await own.restart();
      const ids = await running(site, count);
      expect(await workersWithJobs(space)).to.deep.equal(ids);
      // The answers to Kubernetes' own Job controller are cut off, too: it makes a Pod twice, and removes the second one itself.
      await until('each Job has one Pod', async () => (await livingPods(space)) === count);
      const uids = new Set((await workerJobs(space)).map(({ metadata }) => metadata.name));
      expect(new Set((await site.workers()).map(({ batchID }) => batchID))).to.deep.equal(uids);
    } finally {
      await site.clean();
    }
  });
});
