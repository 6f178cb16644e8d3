import { join } from 'node:path';
import { expect } from 'chai';
import { FaultProxy } from '../support/fault-proxy.ts';
import {
  type ControlPlane,
  controlPlane,
  type KubeObject,
  type Namespace,
  type Pod,
} from '../support/kubernetes.ts';
import { History, livingPods } from '../support/kubernetes-history.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import type { Site } from '../support/site.ts';
import { heard, taskOf } from '../support/toy-source.ts';
import { until } from '../support/until.ts';

const wanted = 3;

/** The requests that begin a worker with files, in their order. */
const requests = [
  ['the Job', { verb: 'create', resource: 'jobs' }],
  ['the files', { verb: 'create', resource: 'configmaps' }],
  ['the change that begins the worker', { verb: 'patch', resource: 'jobs' }],
] as const;

type FileMap = KubeObject & { readonly binaryData?: Readonly<Record<string, string>> };

describe('on Kubernetes a source that names three workers with files', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let proxy: FaultProxy;
  let history: History;
  let site: Site;
  let journal: string;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('toys');
    proxy = await FaultProxy.inFrontOf(plane);
    history = await History.begin(space);
    const module = join(import.meta.dirname, '../support/toy-source.ts');
    // Room for more than it asks for: a worker too many would not be kept away by a limit.
    const limits = { maxWorkers: 10, nQueueLimitWorker: 10, demand: 'toy' };
    site = kubernetesSite(
      plane,
      {
        // One after the other: the daemon dies with one worker begun, one on its way and one that is only recorded.
        queues: { Q: kubernetesQueue(space, { submitter: { nProcesses: 1 }, queue: limits }) },
        settings: { sources: { toy: { module, journal: 'journal' } } },
      },
      { 'job.yaml': jobTemplate() },
      { server: proxy.url },
    );
    journal = site.path('journal');
  });

  afterEach(async () => {
    await site.clean();
    await proxy[Symbol.asyncDispose]();
    await space[Symbol.asyncDispose]();
  });

  const filesOf = async ({ metadata }: Pod): Promise<string[]> => {
    const job = metadata.labels?.['batch.kubernetes.io/job-name'] ?? '';
    const maps = await space.client.list<FileMap>(space.core('configmaps'), 'thresher/worker-id');
    const owned = maps.filter(({ metadata: { ownerReferences = [] } }) =>
      ownerReferences.some(({ name }) => name === job),
    );
    return owned.map(({ binaryData }) => Buffer.from(binaryData?.['f0'] ?? '', 'base64').toString());
  };

  for (const [what, rule] of requests) {
    for (const database of rule.verb === 'patch' ? ['kept', 'removed'] : ['kept']) {
      it(`gets each at most once, through SIGKILL at the request for ${what}, the database ${database}`, async () => {
        const release = Promise.withResolvers<undefined>();
        const fault = { kind: 'late', until: release.promise } as const;
        const injected = proxy.inject({ ...rule, skip: 1, times: 1, fault });
        const first = site.start();
        await until('the request is on its way', () => injected.hits === 1);
        first.process.kill('SIGKILL');
        await first.ended;
        if (database === 'removed') site.removeDatabase();
        const second = site.start();
        // Without the database nothing has the files of a worker that was on its way: it ends, and says why.
        const isOver = ({ status }: { readonly status: string }) =>
          status === 'running' || (database === 'removed' && ['failed', 'missed'].includes(status));
        const workers = await until('all its workers run', async () => {
          const shown = await site.workers();
          return shown.length === wanted && shown.every(isOver) && shown;
        });
        release.resolve(undefined);
        const late = () => proxy.requests.find((request) => request.fault === 'late');
        await until('the server has answered the late request', () => late()?.status !== undefined);

        const running = workers.filter(({ status }) => status === 'running');
        expect(running.length).to.be.at.least(database === 'kept' ? wanted : wanted - 1);
        for (const { status, errorCode } of workers)
          if (status !== 'running') expect(errorCode).to.equal('payload-lost');
        await until('it heard of each', () => {
          const news = heard(journal).filter(({ pid }) => pid === second.pid || database === 'kept');
          return new Set(news.map(({ index }) => index)).size === wanted;
        });
        // No worker ever had two Pods, and each has the files of its own request.
        expect(await livingPods(space)).to.equal(running.length);
        expect([...(await history.made()).values()].every(({ pods }) => pods <= 1)).to.equal(true);
        const pods = await space.client.list<Pod>(space.core('pods'), 'thresher/factory');
        const tasks = (await Promise.all(pods.map(filesOf))).flat().sort();
        const every = Array.from({ length: wanted }, (_, index) => taskOf(index));
        expect(new Set(tasks).size).to.equal(running.length);
        expect(every).to.include.members(tasks);
        second.process.kill('SIGTERM');
        expect(await second.ended, second.output()).to.equal(0);
      });
    }
  }
});
