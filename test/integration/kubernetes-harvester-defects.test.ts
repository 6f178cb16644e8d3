import { expect } from 'chai';
import { stateOf } from '../../src/plugins/kubernetes/state/pod-state.ts';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brief, KubernetesBackend, watch } from '../support/kubernetes-backend.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import {
  container,
  type ControlPlane,
  controlPlane,
  type Job,
  type KubeObject,
  type Namespace,
} from '../support/kubernetes.ts';
import { requirements } from '../support/samples.ts';
import { until } from '../support/until.ts';

const soon = () => AbortSignal.timeout(90_000);
const forbidden = (verb: string, resource: string) =>
  `${resource} is forbidden: User "u" cannot ${verb} resource "${resource}" in API group "" in the namespace "n"`;
const init = { initContainers: [container('setup')] };

interface PodOfJob extends KubeObject {
  readonly spec: {
    readonly containers: readonly {
      readonly env: readonly { readonly name: string; readonly value?: string }[];
      readonly resources: unknown;
    }[];
  };
}

/** Eleven things that go wrong in Harvester's Kubernetes plugins, in its own order. */
describe("what goes wrong in Harvester's Kubernetes plugins, and not here", () => {
  let plane: ControlPlane;
  let space: Namespace;
  let backend: KubernetesBackend;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('defects');
    backend = new KubernetesBackend(plane, space);
  });

  afterEach(() => space[Symbol.asyncDispose]());

  /** A backend that reaches the API server through this proxy. */
  function behind(proxy: FaultProxy): KubernetesBackend {
    const backend = new KubernetesBackend(plane, space);
    plane.writeKubeconfig(join(backend.directory, 'kubeconfig'), { server: proxy.url });
    return backend;
  }

  /** What is shown of a worker until `last` is. */
  async function shownUntil(last: string, workerId: number, section: Readonly<Record<string, unknown>> = {}) {
    await using watched = watch(backend.plugin('monitor', section));
    const told = () => (watched.history.get(workerId) ?? []).map(brief);
    await until(`"${last}" is shown`, () => told().includes(last)).catch(() => {
      throw new Error(`not shown: ${last}; but ${JSON.stringify(told())}`);
    });
    return watched.history.get(workerId)?.find((observation) => brief(observation) === last);
  }

  it('1: a Job that has no Pod yet is a submitted worker, not a cancelled one', async () => {
    const worker = await backend.submit(backend.worker(), jobTemplate({}, { serviceAccountName: 'nobody' }));
    await shownUntil('submitted NoPod', worker.workerId);
    const checked = (await backend.plugin('monitor').check([worker], soon())).get(worker.workerId);
    expect(checked).to.have.nested.property('observation.status', 'submitted');
  });

  it('2: the intent is in the database before the Job is made, and a daemon killed in between orphans nothing', async () => {
    await using proxy = await FaultProxy.inFrontOf(plane);
    // Two requests never arrive. Of the third the answer is lost: its Pod may be seen before this test looks.
    proxy.inject({ verb: 'create', resource: 'jobs', times: 2, fault: { kind: 'stall' } });
    proxy.inject({ verb: 'create', resource: 'jobs', times: 1, fault: { kind: 'stall', lines: 0 } });
    const three = { maxWorkers: 3, nQueueLimitWorker: 3 };
    const queues = { Q: kubernetesQueue(space, { queue: three, submitter: { nProcesses: 3 } }) };
    const site = kubernetesSite(plane, { queues }, undefined, { server: proxy.url });
    try {
      const daemon = site.start();
      await until('all are asked for', () => proxy.count({ verb: 'create', resource: 'jobs' }) === 3);
      const intents = await site.workers();
      expect(intents).to.have.length(3);
      expect(intents.filter(({ status }) => status === 'pending')).to.have.length.at.least(2);
      daemon.process.kill('SIGKILL');
      await daemon.ended;
      site.start();
      await until('three run, and it is known as what', async () => {
        const running = await site.workers({ status: 'running' });
        return running.length === 3 && running.every(({ batchID }) => batchID !== null);
      });
      const jobs = (await space.client.list<Job>(space.jobs())).map(({ metadata }) => metadata.name);
      const known = (await site.workers({ status: 'running' })).map(({ batchID }) => batchID);
      expect(jobs.toSorted()).to.deep.equal(known.toSorted());
    } finally {
      await site.clean();
    }
  });

  it('3: a Failed condition without reason or message is a failed worker, and nothing breaks', () => {
    const status = { conditions: [{ type: 'Failed', status: 'True', reason: null, message: null }] };
    const { observation } = stateOf(1, { status }, [], Date.now(), { podQueueTimeLimit: 1 }) ?? {};
    expect(observation).to.include({ status: 'failed', nativeStatus: 'Failed' });
    expect(observation?.error).to.deep.equal({ code: 'k8s-failed', message: 'failed' });
  });

  it('4: all conditions of a Job count: one that was suspended first ends as any other', async () => {
    const { name, workerId } = await backend.submit(
      backend.worker(),
      jobTemplate({ run: '100ms' }, {}, { suspend: true }),
    );
    await shownUntil('idle Suspended', workerId);
    await space.client.patch(space.jobs(name), { spec: { suspend: false } });
    await shownUntil('finished Complete 0; node, start, end', workerId);
    const { status } = await space.client.get<Job>(space.jobs(name));
    expect(status.conditions?.[0]).to.include({ type: 'Suspended', status: 'False' });
  });

  it('5: what cannot start is given up: by its reason, in init containers too, and without any node', async () => {
    const rules = {
      pendingRules: [
        { reason: 'ImagePullBackOff|CreateContainerConfigError|ErrImagePull', graceSeconds: 0, then: 'fail' },
      ],
    };
    // A limit that is over before the node says more would win over what it says.
    const soon = { ...rules, podQueueTimeLimit: 2 };
    const cases = [
      [{ waiting: 'ImagePullBackOff' }, {}, 'failed ImagePullBackOff k8s-image; node, end', rules],
      [
        { waiting: 'CreateContainerConfigError' },
        {},
        'failed CreateContainerConfigError k8s-config; node, end',
        rules,
      ],
      [{ 'init-waiting': 'ErrImagePull' }, init, 'failed ErrImagePull k8s-image; node, end', rules],
      [{}, { nodeSelector: { no: 'node' } }, 'failed Unschedulable k8s-queue-time; end', soon],
    ] as const;
    for (const [play, podSpec, expected, rules] of cases) {
      const { workerId } = await backend.submit(backend.worker(), jobTemplate(play, podSpec));
      await shownUntil(expected, workerId, rules);
    }
  });

  it('6: the cause, the node and the times of an end are those that the cluster says', async () => {
    const oom = await backend.submit(backend.worker(), jobTemplate({ run: '1s', reason: 'OOMKilled' }));
    const killed = await shownUntil(
      'failed BackoffLimitExceeded k8s-oom 137; node, start, end',
      oom.workerId,
    );
    expect(killed?.error?.message).to.include('killed for memory');
    const [pod] = await space.podsOf(backend.job(oom));
    const { state } = pod?.status.containerStatuses?.[0] ?? {};
    const { startedAt, finishedAt } = { startedAt: '', finishedAt: '', ...state?.terminated };
    expect(killed).to.include({
      node: pod?.spec.nodeName,
      startTime: Date.parse(startedAt),
    });
    expect(killed?.endTime).to.equal(Date.parse(finishedAt));
    const play = {
      run: '100ms',
      'pod-reason': 'Evicted',
      'pod-message': 'The node was low on resource: memory.',
    };
    const evicted = await backend.submit(backend.worker(), jobTemplate(play));
    const away = await shownUntil('failed Evicted k8s-evicted 137; node, start, end', evicted.workerId);
    expect(away?.error?.message).to.include('The node was low on resource: memory.');
  });

  it('7: what a pilot needs and could not be made is a refusal: no Job, nothing recorded as submitted', async () => {
    await using proxy = await FaultProxy.inFrontOf(plane);
    proxy.inject({
      verb: 'create',
      resource: 'secrets',
      fault: { kind: 'status', status: 403, message: forbidden('create', 'secrets') },
    });
    const backend = behind(proxy);
    writeFileSync(join(backend.directory, 'x509'), '-----BEGIN CERTIFICATE-----\n');
    const refused = await backend
      .submit(backend.worker(), jobTemplate(), { x509UserProxy: 'x509' })
      .catch(String);
    expect(refused).to.match(/"kind":"rejected".*"code":"kubernetes-forbidden"/);
    expect(proxy.count({ verb: 'create', resource: 'jobs' })).to.equal(0);
  });

  it('8: a deletion that failed is said to have failed, and the worker is not gone', async () => {
    await using proxy = await FaultProxy.inFrontOf(plane);
    const backend = behind(proxy);
    const worker = await backend.submit(backend.worker(), jobTemplate());
    const fault = { kind: 'status', status: 403, message: forbidden('delete', 'jobs') } as const;
    proxy.inject({ verb: 'delete', resource: 'jobs', fault });
    const sweeper = backend.plugin('sweeper');
    const failed = (await sweeper.kill([worker], soon())).get(worker.workerId);
    expect(failed).to.have.nested.include({ kind: 'failed', 'error.code': 'kubernetes-forbidden' });
    proxy.heal();
    await until(
      'it is gone',
      async () => (await sweeper.kill([worker], soon())).get(worker.workerId)?.kind === 'gone',
    );
    expect(await space.client.list(space.jobs())).to.deep.equal([]);
  });

  it('9: a pilot may have a token alone, without any proxy', async () => {
    const tokens = { tokenDir: '/tokens', pandaTokenFilename: 'token', pandaTokenKeyFilename: 'key' };
    const worker = await backend.submit(backend.worker(), jobTemplate(), tokens);
    const [pod] = await until('it has a Pod', async () => {
      const pods = await space.client.list<PodOfJob>(space.core('pods'), `job-name=${worker.name}`);
      return pods.length > 0 && pods;
    });
    const env = Object.fromEntries(
      (pod?.spec.containers[0]?.env ?? []).map(({ name, value }) => [name, value]),
    );
    expect(env).to.include({
      PANDA_AUTH_DIR: '/tokens',
      PANDA_AUTH_TOKEN: 'token',
      PANDA_AUTH_TOKEN_KEY: 'key',
    });
    expect(env).not.to.have.any.keys('proxySecretPath', 'proxyContent');
  });

  it('10: two clusters in one process keep their clients apart, whoever is first', async () => {
    await using one = await FaultProxy.inFrontOf(plane);
    await using two = await FaultProxy.inFrontOf(plane);
    const sides = [one, two].map((proxy) => ({ proxy, backend: behind(proxy) }));
    const sent = sides.flatMap(({ backend, proxy }, side) =>
      [1, 2, 3].map(async () => {
        const worker = backend.worker({ name: `side-${side}-${Math.random().toString(36).slice(2)}` });
        await backend.submit(worker, jobTemplate({}, {}, { suspend: true }));
        return { proxy, name: worker.name };
      }),
    );
    await Promise.all(sent);
    for (const { proxy } of sides) expect(proxy.count({ verb: 'create', resource: 'jobs' })).to.equal(3);
    const names = (await space.client.list<Job>(space.jobs())).map(({ metadata }) => metadata.name);
    expect(names.filter((name) => name.startsWith('side-0'))).to.have.length(3);
  });

  it('11: cores are cores and memory is memory, with every kind of queue', async () => {
    const asks = { ...requirements, nCore: 4, minRamCount: 7000, resourceType: 'MCORE' };
    const limits = { 'k8s.resources.limits.use_memory_limit': true };
    const { name } = await backend.submit(
      backend.worker({ requirements: asks }),
      jobTemplate({}, {}, { suspend: true }),
      limits,
    );
    const job = await space.client.get<KubeObject & { spec: { template: PodOfJob } }>(space.jobs(name));
    expect(job.spec.template.spec.containers[0]?.resources).to.deep.equal({
      requests: { cpu: '4', memory: '7000Mi' },
      limits: { cpu: '4', memory: '7000Mi' },
    });
  });
});
