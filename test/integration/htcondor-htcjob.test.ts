/** htc-operator's examples from the real API server to the real pool and back, in images, with events. */
import { chmodSync, chownSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { Pool as Connections } from 'undici';
import { tokenOf } from '../../src/sources/htcjob/job/token.ts';
import { freePort } from '../env/kubernetes/ports.ts';
import { type Apptainer, apptainer } from '../support/apptainer.ts';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { resourceStep, stateOf } from '../support/argo.ts';
import { applyCrd, example, HtcJobs, isOver, leaseOf } from '../support/htcjobs.ts';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();

describe('HTCJobs on HTCondor', () => {
  let plane: ControlPlane;
  let pool: Pool;
  let runtime: Apptainer;
  let space: Namespace;
  let condor: CondorSpace;
  let jobs: HtcJobs;
  let site: Site;
  let daemon: RunningDaemon;
  let url: string;

  before(async () => {
    [plane, pool, runtime] = await Promise.all([controlPlane(), condorPool(), apptainer()]);
    await applyCrd(plane);
  });
  after(() => {
    runtime[Symbol.dispose]();
  });

  async function finish(): Promise<void> {
    await site.clean();
    await jobs.letGo();
    await space[Symbol.asyncDispose]();
    await clearSpaces(pool, [condor]);
  }

  /** @param isTold whether jobs can reach the daemon with their events */
  async function begin({ isTold = true } = {}): Promise<void> {
    space = await plane.namespace('htcjob');
    condor = condorSpace(pool);
    jobs = new HtcJobs(space);
    const port = await freePort();
    url = `http://127.0.0.1:${port}/sources/htcjob/cloudevents`;
    const environment = { PATH: `${runtime.bin}:/usr/bin:/bin`, HOME: '/', HTCJOB_EVENT_PAUSE: '0' };
    const queue = { demand: 'htcjob', maxWorkers: 100, nQueueLimitWorker: 100 };
    const htcjob = {
      k8s_config_file: 'kubeconfig',
      namespaces: [space.name],
      ...leaseOf(space),
      binds: [],
      imagePaths: [dirname(runtime.image)],
      eventsUrl: isTold ? url : 'http://127.0.0.1:9/nothing/listens',
    };
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { template: 'job.sub.yaml', queue }) },
        settings: {
          master: { factoryId: condor.factory },
          http: { enabled: true, port },
          sources: { htcjob },
        },
      },
      { 'job.sub.yaml': shellTemplate(condor, 'exit 99', { environment }) },
    );
    plane.writeKubeconfig(site.path('kubeconfig'));
    // The jobs are those of the pool's user, who reads the payloads below the state directory.
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chmodSync(site.stateDir, 0o711);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    daemon = site.start([], condorEnvironment(pool, site.directory));
  }

  const inImage = (source: string) => ({
    script: { image: runtime.image, command: 'sh', source },
    runtime: 'apptainer' as const,
  });
  const end = (name: string) => jobs.until(name, 'has ended', isOver);

  describe('whose events arrive', () => {
    before(() => begin());
    after(finish);

    it('zero.yaml, notzero.yaml and five.yaml run in their image as they stand, and a queue of 5 is one cluster', async () => {
      for (const name of ['zero', 'notzero', 'five'])
        await space.client.create(jobs.path(), example(name, runtime.image));
      await jobs.create('four', '', { ...inImage('[ "$1" -lt 4 ]\n'), queue: 5 });
      expect(await end('zero')).to.include({ active: 0, succeeded: 1, failed: 0 });
      expect(await end('notzero')).to.include({ active: 0, succeeded: 0, failed: 1 });
      expect(await end('five')).to.include({ active: 0, succeeded: 5, failed: 0 });
      const { jobid = [], clusterId, ...four } = await end('four');
      expect(four).to.include({ active: 0, succeeded: 4, failed: 1, failedIndexes: '4' });
      expect(jobid).to.deep.equal([0, 1, 2, 3, 4].map((proc) => `${String(clusterId)}.${proc}`));
      // The command asks HTCondor, too.
      const logOf = async (...args: readonly string[]) => {
        const command = ['--config', site.config, 'htcjob', 'logs', ...args];
        const program = site.startWith(command, condorEnvironment(pool, site.directory));
        await program.ended;
        return program.output();
      };
      const logs = await Promise.all([
        logOf(`${space.name}/zero`),
        logOf(`${space.name}/five`, '0'),
        logOf('five', '3'),
      ]);
      expect(logs).to.deep.equal(['A\n', 'job 0 of five\n', 'job 3 of five\n']);
    });

    it('a step of an Argo Workflow ends by its conditions, with the labels of its template', async () => {
      const [right, wrong] = ['echo "job $1"', 'exit "$1"'].map(async (source) => {
        const step = resourceStep('workflow', 'five', { image: runtime.image, source });
        const { metadata } = await space.client.create(jobs.path(), step.manifest);
        const state = await until(`${metadata.name} meets a condition`, async () => {
          const seen = stateOf(step, await jobs.find(metadata.name));
          return seen !== 'waits' && seen;
        });
        return [state, (await jobs.find(metadata.name))?.metadata.labels];
      });
      expect(await Promise.all([right, wrong])).to.deep.equal([
        ['succeeded', { workflow: 'five' }],
        ['failed', { workflow: 'five' }],
      ]);
    });

    it('B4: lines of htcopts are in the ad of the job; a forbidden one is refused with its line', async () => {
      await jobs.create('long', '', { ...inImage('sleep 1000'), htcopts: '+MaxRuntime=10\nrank = 5' });
      const { clusterId = '' } = await jobs.until(
        'long',
        'is active',
        (status) => status.clusterId !== undefined,
      );
      const [ad] = await clientOf(pool, 'local').queue(
        `ClusterId == ${clusterId}`,
        ['MaxRuntime', 'Rank'],
        signal,
      );
      expect({ ...ad, Rank: Number(ad?.['Rank']) }).to.include({ MaxRuntime: 10, Rank: 5 });
      await jobs.create('second', '', { ...inImage('true'), htcopts: '+MaxRuntime=10\nqueue 7' });
      const { conditions = [] } = await jobs.until('second', 'is refused', (status) =>
        (status.conditions ?? []).some(({ message }) => message.includes('line 2')),
      );
      expect(conditions.map(({ message }) => message).join()).to.contain(
        `line 2, "queue 7": the number of jobs is the resource's own field "queue"`,
      );
    });

    it('B6: an event is shown beside the word of HTCondor; a forged or repeated one changes nothing', async () => {
      const { metadata } = await jobs.create('told', '', inImage('exit 3'));
      const ended = await jobs.until('told', 'has reported', ({ returnCodes = [] }) =>
        returnCodes.some(({ reported, exitCode }) => reported !== undefined && exitCode !== undefined),
      );
      expect(ended.returnCodes).to.deep.equal([{ index: 0, exitCode: 3, reported: 3 }]);
      await end('told');
      const key = readFileSync(site.path('state/htcjob/event.key'));
      const identity = { uid: metadata.uid ?? '', index: 0 };
      const send = async (changes: object) => {
        const data = { ...identity, retcode: '0', token: tokenOf(key, identity), ...changes };
        const headers = {
          'content-type': 'application/json',
          'ce-specversion': '1.0',
          'ce-type': 'htcjob.cloudevent',
          'ce-source': 'cern.ch',
          'ce-id': 'a',
        };
        const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(data) });
        return [answer.status, await answer.text()];
      };
      expect((await send({ token: 'forged' }))[0]).to.equal(401);
      expect((await send({ index: 1 }))[0]).to.equal(401);
      expect(await send({})).to.deep.equal([200, '{"result":"without effect"}']);
      const after = await end('told');
      expect(after).to.include({ succeeded: 0, failed: 1 });
      expect(after.returnCodes).to.deep.equal(ended.returnCodes);
    });

    it('B6: the receiver outlives 10,000 rubbish requests, and the operator goes on beside them', async () => {
      await until('it listens', async () => {
        const answer = await fetch(url, { method: 'POST', body: '{}' }).catch(() => undefined);
        return answer?.status === 415;
      });
      await jobs.create('beside', '', inImage('exit 0'));
      const kinds = [
        { body: '{', headers: { 'ce-specversion': '1.0', 'content-type': 'application/json' }, status: 400 },
        { body: '{"a":1}', headers: { 'content-type': 'application/cloudevents+json' }, status: 400 },
        { body: '', headers: { 'content-type': 'text/plain' }, status: 415 },
        { body: 'x'.repeat(70_000), headers: {}, status: 413 },
      ];
      const connections = new Connections(new URL(url).origin, { connections: 20 });
      const statuses = new Map<string, number>();
      const worker = async (nth: number) => {
        for (let sent = nth; sent < 10_000; sent += 20) {
          const { body, headers, status } = kinds[sent % 50 === 0 ? 3 : sent % 3]!;
          const answer = await connections
            .request({ method: 'POST', path: new URL(url).pathname, headers, body })
            .catch(() => undefined);
          await answer?.body.dump();
          // The server may hang up on a body that is too long before it is sent whole.
          const isRight = answer?.statusCode === status || (answer === undefined && status === 413);
          const what = isRight ? 'right' : `${answer?.statusCode ?? 'hung up'} in the place of ${status}`;
          statuses.set(what, (statuses.get(what) ?? 0) + 1);
        }
      };
      await Promise.all(Array.from({ length: 20 }, (_, nth) => worker(nth)));
      await connections.close();
      expect([...statuses]).to.deep.equal([['right', 10_000]]);
      expect(await end('beside')).to.include({ succeeded: 1 });
      daemon.process.kill('SIGTERM');
      expect(await daemon.ended, daemon.output()).to.equal(0);
    });
  });

  describe('whose events are lost', () => {
    before(() => begin({ isTold: false }));
    after(finish);

    it('B7: a job whose event is lost ends as it would', async () => {
      await jobs.create('silent', '', inImage('exit 0'));
      expect(await end('silent')).to.include({ active: 0, succeeded: 1, failed: 0 });
    });
  });
});
