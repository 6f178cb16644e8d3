import { expect } from 'chai';
import { FaultProxy } from '../support/fault-proxy.ts';
import { type ControlPlane, controlPlane, type Namespace, type Pod } from '../support/kubernetes.ts';
import { History, workerJobs, workersWithJobs } from '../support/kubernetes-history.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite, untilGone } from '../support/kubernetes-site.ts';
import type { Site, SiteOptions } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('on Kubernetes what others do to Jobs', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let sites: Site[] = [];

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('strangers');
  });

  afterEach(async () => {
    await Promise.all(sites.map((site) => site.clean()));
    sites = [];
    await space[Symbol.asyncDispose]();
  });

  function makeSite(
    settings: SiteOptions['settings'] = {},
    queue: Record<string, unknown> = {},
    access: Parameters<typeof kubernetesSite>[3] = {},
    template = jobTemplate(),
  ): Site {
    const quick = { ...settings, monitor: { missingGrace: 0.2, ...settings.monitor } };
    const queues = { Q: kubernetesQueue(space, { queue }) };
    const site = kubernetesSite(plane, { settings: quick, queues }, { 'job.yaml': template }, access);
    sites.push(site);
    return site;
  }

  async function untilRunning(site: Site, count: number): Promise<number[]> {
    return until(`${count} run`, async () => {
      const ids = (await site.workers({ status: 'running' })).map(({ workerID }) => workerID);
      return ids.length === count && ids.sort((a, b) => a - b);
    });
  }

  it('two factories of one harvester_id in one namespace leave each other alone', async () => {
    const two = { maxWorkers: 2, nQueueLimitWorker: 2 };
    const listing = { sweeper: { listInterval: 0.5, keepCancelled: 0 } };
    const first = makeSite({ ...listing, master: { factoryId: 'factory-a' } }, two);
    const second = makeSite({ ...listing, master: { factoryId: 'factory-b' } }, two);
    first.start();
    second.start();
    const [ofFirst, ofSecond] = await Promise.all([untilRunning(first, 2), untilRunning(second, 2)]);
    const names = async () => (await workerJobs(space)).map(({ metadata }) => metadata.name);
    const expected = (factory: string, ids: readonly number[]) => ids.map((id) => `${factory}-${id}`);
    expect(await names()).to.have.members([
      ...expected('factory-a', ofFirst),
      ...expected('factory-b', ofSecond),
    ]);
    // One loses its database and the other kills all of its own: neither touches or adopts what is the other's.
    await first.run('pause', 'Q', '--reason', 'test');
    await first.run('kill', ...ofFirst.map(String));
    await until('those of the first are gone', async () =>
      (await names()).every((name) => name.startsWith('factory-b')),
    );
    expect(await names()).to.have.members(expected('factory-b', ofSecond));
    const orphans = await Promise.all([first, second].map((site) => site.run('orphans', '--output', 'json')));
    expect(orphans.map(({ stdout }) => JSON.parse(stdout) as unknown)).to.deep.equal([[], []]);
    expect((await first.workers()).map(({ workerID }) => workerID)).to.have.members(ofFirst);
    expect((await second.workers()).map(({ workerID }) => workerID)).to.have.members(ofSecond);
  });

  it('a Job of the name of the next worker is not adopted, and stays as it is', async () => {
    const site = makeSite({ master: { factoryId: 'factory-a' } }, { maxWorkers: 2, nQueueLimitWorker: 2 });
    site.start();
    const ids = await untilRunning(site, 2);
    await site.run('pause', 'Q', '--reason', 'test');
    const name = `factory-a-${Math.max(...ids) + 1}`;
    const clashing = await space.createJob({ name });
    await site.run('resume', 'Q');
    site.writeQueues({ Q: kubernetesQueue(space, { queue: { maxWorkers: 3, nQueueLimitWorker: 3 } }) });
    const missed = await until('the worker of that name is given up', async () =>
      (await site.workers({ status: 'missed' })).at(0),
    );
    expect(missed).to.include({ errorCode: 'k8s-name-taken', workerID: Math.max(...ids) + 1 });
    expect(missed.diagMessage).to.contain(
      `there is a Job ${name} in ${space.name} that is not this worker's`,
    );
    // The next one has another name.
    await untilRunning(site, 3);
    expect((await space.client.get(space.jobs(name))).metadata.uid).to.equal(clashing.metadata.uid);
  });

  it('a copy of a Job with all its marks under another name is an orphan, and never killed by itself', async () => {
    const site = makeSite({ sweeper: { listInterval: 0.5, keepCancelled: 0 } });
    site.start();
    const ids = await untilRunning(site, 1);
    const [job] = await workerJobs(space);
    const { labels = {}, annotations = {} } = job?.metadata ?? {};
    const template = { ...jobTemplate(), metadata: { name: 'copy', labels, annotations } };
    Object.assign(template, { spec: { ...(jobTemplate().spec as object), suspend: true } });
    const copy = await space.client.create(space.jobs(), template);
    const orphans = async () =>
      JSON.parse((await site.run('orphans', '--output', 'json')).stdout) as { place: string }[];
    const [orphan] = await until('it is listed', async () => {
      const found = await orphans();
      return found.length === 1 && found;
    });
    expect(orphan?.place).to.equal(`${space.name}/jobs/copy`);
    // Its worker is killed, with everything that is the worker's: not with the copy.
    await site.run('pause', 'Q', '--reason', 'test');
    await site.run('kill', ...ids.map(String));
    await until('it is cancelled', async () => (await site.workers())[0]?.status === 'cancelled');
    await untilGone(() => space.client.find(space.jobs(job?.metadata.name)));
    expect((await space.client.get(space.jobs('copy'))).metadata.uid).to.equal(copy.metadata.uid);
    expect(await orphans()).to.have.length(1);
    const removed = await site.run('orphans', '--remove');
    expect(removed.stdout).to.equal('1 orphans were removed\n');
    await untilGone(() => space.client.find(space.jobs('copy')));
  });

  it('workers of a lost database are adopted, with their names and their ends', async () => {
    const history = await History.begin(space);
    const site = makeSite({}, { maxWorkers: 3, nQueueLimitWorker: 3 });
    const daemon = site.start();
    const ids = await untilRunning(site, 3);
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended).to.equal(0);
    site.removeDatabase();
    // One ends while nobody looks.
    const [pod] = await space.client.list<Pod>(space.core('pods'));
    const annotations = { 'play/run': '1ms', 'play/exit': '3' };
    await space.client.patch(space.core('pods', pod?.metadata.name), { metadata: { annotations } });
    site.start();
    const replaced = await untilRunning(site, 3);
    const workers = await site.workers();
    const ended = workers.filter(({ status }) => status === 'failed');
    expect(ended.map(({ nativeExitCode }) => nativeExitCode)).to.deep.equal([3]);
    expect(workers.map(({ workerID }) => workerID)).to.include.members(ids);
    expect(Math.min(...replaced.filter((id) => !ids.includes(id)))).to.be.greaterThan(Math.max(...ids));
    expect([...(await history.made()).keys()]).to.have.length(4);
    expect(await history.twice()).to.deep.equal([]);
  });

  it('a Pod deleted by hand is a failed worker that says so, and is replaced', async () => {
    const site = makeSite();
    site.start();
    const [id] = await untilRunning(site, 1);
    const [pod] = await space.client.list<Pod>(space.core('pods'));
    await space.client.delete(space.core('pods', pod?.metadata.name), {});
    const failed = await until('it is failed', async () =>
      (await site.workers()).find(({ workerID, status }) => workerID === id && status === 'failed'),
    );
    expect(failed.diagMessage).to.contain('its Pod was deleted');
    const [next] = await until('it is replaced', async () => {
      const found = await untilRunning(site, 1);
      return found[0] !== id && found;
    });
    expect(next).to.be.greaterThan(id ?? 0);
  });

  it('a Job deleted by hand while its pilot runs is a failed worker that says so', async () => {
    const site = makeSite();
    site.start();
    await untilRunning(site, 1);
    await space.client.delete(space.jobs((await workerJobs(space))[0]?.metadata.name));
    const failed = await until('it is failed', async () => (await site.workers({ status: 'failed' })).at(0));
    expect(failed.diagMessage).to.contain('its Pod was deleted');
  });

  it('a Job deleted by hand, Pod and all, is missed after the grace and not before, and looked up by name first', async () => {
    await using proxy = await FaultProxy.inFrontOf(plane);
    const missingGrace = 2;
    const access = { server: proxy.url };
    // On no node: nothing is left that would say how it ended.
    const template = jobTemplate({}, { nodeSelector: { 'test/node': 'nowhere' } });
    const site = makeSite({ monitor: { missingGrace } }, {}, access, template);
    site.start();
    const id = await until('it waits', async () => (await site.workers({ status: 'idle' })).at(0)?.workerID);
    const name = (await workerJobs(space))[0]?.metadata.name ?? '';
    // The daemon may hear of it before this process does.
    const deleted = performance.now();
    await space.client.delete(space.jobs(name));
    await untilGone(() => space.client.find(space.jobs(name)));
    const missed = await until('it is missed', async () =>
      (await site.workers()).find(({ workerID, status }) => workerID === id && status === 'missed'),
    );
    expect(performance.now() - deleted).to.be.greaterThan(missingGrace * 1000);
    expect(missed.errorCode).to.equal('lost');
    // By its label among all Jobs and Pods, and by its name.
    const lookUps = proxy.requests.filter(
      (request) =>
        (request.verb === 'get' && request.name === name) ||
        (request.verb === 'list' && decodeURIComponent(request.url).includes(`(${id})`)),
    );
    expect(lookUps.map(({ verb, resource }) => `${verb} ${resource}`)).to.include.members([
      ...['list jobs', 'list pods', 'get jobs'],
    ]);
    expect(Math.min(...lookUps.map(({ at }) => at)) - deleted).to.be.greaterThan(missingGrace * 900);
  });

  it('a living Job that lost its labels is not called missed, and its state returns with them', async () => {
    const site = makeSite();
    const daemon = site.start();
    const [id] = await untilRunning(site, 1);
    const [job] = await workerJobs(space);
    const [pod] = await space.client.list<Pod>(space.core('pods'));
    const labels = {
      'thresher/factory': job?.metadata.labels?.['thresher/factory'],
      'thresher/worker-id': job?.metadata.labels?.['thresher/worker-id'],
    };
    const none = { 'thresher/factory': null, 'thresher/worker-id': null };
    await space.client.patch(space.jobs(job?.metadata.name), { metadata: { labels: none } });
    await space.client.patch(space.core('pods', pod?.metadata.name), { metadata: { labels: none } });
    await until('it was looked up, and found under its name', () =>
      daemon.output().includes('k8s-marks-lost'),
    );
    expect((await site.workers()).map(({ workerID, status }) => [workerID, status])).to.deep.equal([
      [id, 'running'],
    ]);
    await space.client.patch(space.core('pods', pod?.metadata.name), {
      metadata: { labels, annotations: { 'play/run': '1ms' } },
    });
    await space.client.patch(space.jobs(job?.metadata.name), { metadata: { labels } });
    await until('its end is seen', async () => (await site.workers()).at(-1)?.status === 'finished');
    await untilRunning(site, 1);
    expect(await workersWithJobs(space)).to.have.length(2);
  });
});
