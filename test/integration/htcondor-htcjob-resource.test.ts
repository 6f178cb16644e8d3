import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import type { HtcJobSpec } from '../../src/clients/htcjob/resource.ts';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { applyCrd, HtcJobs } from '../support/htcjobs.ts';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();

/** The examples of htc-operator; their image is none that this pool could have. */
const examples = {
  zero: `
apiVersion: htc.cern.ch/v1alpha1
kind: HTCJob
metadata:
  name: zero
spec:
  name: zero
  script:
    image: centos
    command: bash
    source: |
      echo "A"
`,
  notzero: `
apiVersion: htc.cern.ch/v1alpha1
kind: HTCJob
metadata:
  name: notzero
spec:
  name: notzero
  script:
    image: centos
    command: bash
    source: |
      exit 1
`,
};

const isOver = ({ completionTime }: { readonly completionTime?: string }) => completionTime !== undefined;

describe('HTCJobs on HTCondor', function () {
  this.timeout(240_000);
  let plane: ControlPlane;
  let pool: Pool;
  let space: CondorSpace;
  let namespace: Namespace;
  let jobs: HtcJobs;
  let site: Site;
  let environment: Record<string, string>;

  before(async () => {
    [plane, pool] = await Promise.all([controlPlane(), condorPool()]);
    await applyCrd(plane);
  });

  afterEach(async () => {
    await site.clean();
    await jobs.letGo();
    await namespace[Symbol.asyncDispose]();
    await clearSpaces(pool, [space]);
  });

  async function begin(kind: 'local' | 'remote'): Promise<void> {
    namespace = await plane.namespace('htcjob');
    jobs = new HtcJobs(namespace);
    space = condorSpace(pool);
    const queue = { demand: 'htcjob', maxWorkers: 50, nQueueLimitWorker: 50 };
    const htcjob = { k8s_config_file: 'kubeconfig', namespaces: [namespace.name], runtime: 'none' };
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { kind, template: 'job.sub.yaml', queue }) },
        settings: { sources: { htcjob }, master: { factoryId: space.factory } },
      },
      { 'job.sub.yaml': shellTemplate(space, 'exit 99') },
    );
    plane.writeKubeconfig(site.path('kubeconfig'));
    // The jobs are those of the pool's user, who reads the payloads below the state directory.
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chmodSync(site.stateDir, 0o711);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    environment = condorEnvironment(pool, site.directory);
    site.start([], environment);
  }

  const apply = (text: string) => namespace.client.create(jobs.path(), parse(text) as object);
  const adsOf = (kind: 'local' | 'remote', attributes: string[]) =>
    clientOf(pool, kind).queue(`${space.mine} && JobStatus =!= 3`, attributes, signal);
  const payloads = () => {
    const directory = join(site.stateDir, 'htcondor/payloads');
    return existsSync(directory)
      ? readdirSync(directory).flatMap((one) => readdirSync(join(directory, one)))
      : [];
  };

  for (const kind of ['local', 'remote'] as const) {
    it(`B1, B3, B7: the examples end as they should on a ${kind} schedd, with no event sent`, async () => {
      await begin(kind);
      await Promise.all([apply(examples.zero), apply(examples.notzero)]);
      const zero = await jobs.until('zero', 'has ended', isOver);
      expect(zero).to.include({ active: 0, succeeded: 1, failed: 0, reason: 'Succeeded' });
      expect(zero.jobid?.[0]).to.match(/^\d+\.0$/);
      expect(zero.clusterId).to.equal(zero.jobid?.[0]?.split('.')[0]);
      const notzero = await jobs.until('notzero', 'has ended', isOver);
      expect(notzero).to.include({ active: 0, succeeded: 0, failed: 1, reason: 'JobsFailed' });
      expect(notzero.returnCodes).to.deep.equal([{ index: 0, exitCode: 1 }]);
    });

    it(`B2, B4, B5: a queue of 5 is one cluster with its htcopts on a ${kind} schedd, and leaves nothing`, async () => {
      await begin(kind);
      const more: Partial<HtcJobSpec> = {
        queue: 5,
        htcopts: '+MaxRuntime = 10',
        requests: { memory: '96Mi' },
      };
      await jobs.create('five', 'sleep 1000', more);
      const active = await jobs.until('five', 'is active', ({ active }) => active === 5);
      const cluster = active.clusterId ?? '';
      expect(active.jobIds).to.deep.equal([0, 1, 2, 3, 4].map((proc) => `${cluster}.${proc}`));
      const ads = await adsOf(kind, ['ClusterId', 'ProcId', 'MaxRuntime', 'RequestMemory']);
      expect(ads.map((ad) => [ad['ClusterId'], ad['MaxRuntime']])).to.deep.equal(
        Array(5).fill([Number(cluster), 10]),
      );
      await jobs.delete('five');
      await jobs.untilGone('five');
      expect(await adsOf(kind, ['ClusterId'])).to.deep.equal([]);
      expect(payloads()).to.deep.equal([]);
    });
  }

  it('says that HTCondor holds a job, and why', async () => {
    await begin('local');
    await jobs.create('held', 'sleep 1000');
    await jobs.until('held', 'runs', ({ reason }) => reason === 'Running');
    await clientOf(pool, 'local').act('hold', space.mine, 'the test says so', signal);
    const held = await jobs.until('held', 'is held', (status) => status.held === 1);
    expect(held).to.include({ active: 1, reason: 'Held' });
    const { message } = held.conditions?.find(({ type }) => type === 'Held') ?? {};
    expect(message).to.contain('the test says so');
    await until('an Event says so', async () =>
      (await jobs.events('held')).some((event) => event.includes('the test says so')),
    );
    await clientOf(pool, 'local').act('release', space.mine, 'the test says so', signal);
    await jobs.until('held', 'is held no more', (status) => status.held === 0);
  });
});
