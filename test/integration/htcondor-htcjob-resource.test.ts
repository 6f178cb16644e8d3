import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
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
import { applyCrd, example, HtcJobs, isOver, leaseOf } from '../support/htcjobs.ts';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();

for (const kind of ['local', 'remote'] as const)
  describe(`HTCJobs on a ${kind} schedd`, function () {
    this.timeout(240_000);
    let plane: ControlPlane;
    let pool: Pool;
    let space: CondorSpace;
    let namespace: Namespace;
    let jobs: HtcJobs;
    let site: Site;

    before(async () => {
      [plane, pool] = await Promise.all([controlPlane(), condorPool()]);
      await applyCrd(plane);
      namespace = await plane.namespace('htcjob');
      jobs = new HtcJobs(namespace);
      space = condorSpace(pool);
      const queue = { demand: 'htcjob', maxWorkers: 50, nQueueLimitWorker: 50 };
      const htcjob = {
        k8s_config_file: 'kubeconfig',
        namespaces: [namespace.name],
        ...leaseOf(namespace),
        runtime: 'none',
      };
      site = condorSite(
        {
          queues: { Q: condorQueue(pool, { kind, template: 'job.sub.yaml', queue }) },
          settings: { sources: { htcjob }, master: { factoryId: space.factory } },
        },
        // Sizes of a template's own would win over those of the HTCJob.
        { 'job.sub.yaml': shellTemplate(space, 'exit 99', { request_memory: undefined }) },
      );
      plane.writeKubeconfig(site.path('kubeconfig'));
      // The jobs are those of the pool's user, who reads the payloads below the state directory.
      for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
      chmodSync(site.stateDir, 0o711);
      chownSync(site.path('logs'), pool.uid, pool.gid);
      site.start([], condorEnvironment(pool, site.directory));
    });

    after(async () => {
      await site.clean();
      await jobs.letGo();
      await namespace[Symbol.asyncDispose]();
      await clearSpaces(pool, [space]);
    });

    const apply = (name: string) => namespace.client.create(jobs.path(), example(name));
    const adsOf = (cluster: string, attributes: string[]) =>
      clientOf(pool, kind).queue(`ClusterId == ${cluster}`, attributes, signal);
    const payloads = () => {
      const directory = join(site.stateDir, 'htcondor/payloads');
      return existsSync(directory)
        ? readdirSync(directory).flatMap((one) => readdirSync(join(directory, one)))
        : [];
    };
    /** Directories of a cluster in the spool of the schedd. */
    const spooled = (cluster: string) => {
      const directory = join(pool.directory, kind === 'local' ? 'spool' : 'spool-remote');
      const found = readdirSync(directory, { recursive: true, encoding: 'utf8' });
      return found.filter((path) => path.includes(`cluster${cluster}.`));
    };

    it('B1, B3, B7: the examples end as they should, with no event sent', async () => {
      await Promise.all(['zero', 'notzero', 'five'].map(apply));
      const zero = await jobs.until('zero', 'has ended', isOver);
      expect(zero).to.include({ active: 0, succeeded: 1, failed: 0, reason: 'Succeeded' });
      // Single jobs share a cluster.
      expect(zero.jobid?.[0]).to.match(/^\d+\.\d+$/);
      expect(zero.clusterId).to.equal(zero.jobid?.[0]?.split('.')[0]);
      const notzero = await jobs.until('notzero', 'has ended', isOver);
      expect(notzero).to.include({ active: 0, succeeded: 0, failed: 1, reason: 'JobsFailed' });
      expect(notzero.returnCodes).to.deep.equal([{ index: 0, exitCode: 1 }]);
      const five = await jobs.until('five', 'has ended', isOver);
      expect(five).to.include({ active: 0, succeeded: 5, failed: 0, reason: 'Succeeded' });
    });

    it('a user with kubectl alone reads the last lines of a job that failed', async () => {
      await jobs.create('tells', 'echo no such file: a.root >&2; exit 3');
      const { conditions = [] } = await jobs.until('tells', 'has ended', isOver);
      const failed = conditions.find(({ type }) => type === 'Failed');
      expect(failed?.message).to.match(/^1 of 1 jobs failed; job 0 ended with return code 3: /);
      expect(failed?.message).to.match(/; the end of its stderr:\nno such file: a\.root$/);
    });

    it('B2, B4, B5: a queue of 5 is one cluster with its htcopts, and leaves nothing', async () => {
      const more: Partial<HtcJobSpec> = {
        queue: 5,
        htcopts: '+MaxRuntime = 10\nrank = 5',
        requests: { memory: '96Mi' },
      };
      await jobs.create('five-more', 'sleep 1000', more);
      const active = await jobs.until('five-more', 'is active', ({ active }) => active === 5);
      const cluster = active.clusterId ?? '';
      expect(active.jobIds).to.deep.equal([0, 1, 2, 3, 4].map((proc) => `${cluster}.${proc}`));
      const ads = await adsOf(cluster, ['ClusterId', 'ProcId', 'MaxRuntime', 'Rank', 'RequestMemory']);
      expect(ads.map((ad) => [ad['MaxRuntime'], Number(ad['Rank']), ad['RequestMemory']])).to.deep.equal(
        Array(5).fill([10, 5, 96]),
      );
      if (kind === 'remote') expect(spooled(cluster)).to.not.deep.equal([]);
      await jobs.delete('five-more');
      await jobs.untilGone('five-more');
      expect(await adsOf(cluster, ['ClusterId'])).to.deep.equal([]);
      expect(payloads()).to.deep.equal([]);
      expect(spooled(cluster)).to.deep.equal([]);
    });

    if (kind === 'remote') return;

    it('one with a line of htcopts that HTCondor cannot read fails alone, with the words of HTCondor', async () => {
      await jobs.create('wrong', 'exit 0', { htcopts: '+MaxRuntime = 10\nrank = 3 +', queue: 2 });
      const { conditions, ...wrong } = await jobs.until('wrong', 'has failed', isOver);
      expect(wrong).to.include({ active: 0, failed: 2, reason: 'JobsFailed' });
      const { message } = conditions?.find(({ type }) => type === 'Failed') ?? {};
      expect(message).to.match(/Parse error in expression.*Rank = 3 \+/s);
      // The queue does not wait for what is no fault of the schedd.
      expect((await site.queue('Q')).reasons.map(({ code }) => code)).to.not.include('submission-backoff');
      await jobs.create('right', 'exit 0');
      expect(await jobs.until('right', 'has ended', isOver)).to.include({ succeeded: 1 });
    });

    it('one whose job ignores its signal keeps no other from being deleted', async () => {
      const deaf = join(space.directory, 'deaf');
      await jobs.create('deaf', `trap "" TERM; echo >${deaf}; while :; do sleep 1; done`);
      await jobs.until('deaf', 'runs', ({ reason }) => reason === 'Running');
      await until('its job ignores signals', () => existsSync(deaf));
      await Promise.all([jobs.create('early', 'sleep 1000'), jobs.create('late', 'sleep 1000')]);
      for (const name of ['early', 'late'])
        await jobs.until(name, 'runs', ({ reason }) => reason === 'Running');
      await Promise.all([jobs.delete('deaf'), jobs.delete('early')]);
      await jobs.untilGone('early');
      await jobs.delete('late');
      await jobs.untilGone('late');
      expect(await jobs.find('deaf'), 'its job has still its time').to.not.equal(undefined);
      await jobs.untilGone('deaf');
    });

    it('says that HTCondor holds a job, and why', async () => {
      await jobs.create('held', 'sleep 1000');
      const { clusterId = '' } = await jobs.until('held', 'runs', ({ reason }) => reason === 'Running');
      const mine = `ClusterId == ${clusterId}`;
      await clientOf(pool, kind).act('hold', mine, 'the test says so', signal);
      const held = await jobs.until('held', 'is held', (status) => status.held === 1);
      expect(held).to.include({ active: 1, reason: 'Held' });
      await jobs.until('held', 'says why', ({ conditions }) =>
        conditions?.some(({ type, message }) => type === 'Held' && message.includes('the test says so')),
      );
      await until('an Event says so', async () =>
        (await jobs.events('held')).some((event) => event.includes('the test says so')),
      );
      await clientOf(pool, kind).act('release', mine, 'the test says so', signal);
      await jobs.until('held', 'is held no more', (status) => status.held === 0);
    });
  });
