import { expect } from 'chai';
import { judge } from '../../src/agents/reconciling/reconciler-agent.ts';
import type { Observation, Worker } from '../../src/plugins/contracts/index.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import { KubernetesBackend, watch } from '../support/kubernetes-backend.ts';
import { jobTemplate, untilGone } from '../support/kubernetes-site.ts';
import {
  container,
  type ControlPlane,
  controlPlane,
  type Job,
  type KubeObject,
  type Namespace,
} from '../support/kubernetes.ts';
import { account } from '../support/kubernetes-rights.ts';
import { until } from '../support/until.ts';

const soon = () => AbortSignal.timeout(90_000);

describe('on a real control plane', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let backend: KubernetesBackend;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('review');
    backend = new KubernetesBackend(plane, space);
  });

  afterEach(() => space[Symbol.asyncDispose]());

  const find = async (worker: Worker, section: object) =>
    (await backend.plugin('submitter', { k8s_yaml_file: 'x.yaml', ...section }).find([worker], soon())).get(
      worker.workerId,
    );
  const kill = async (worker: Worker, section = {}) =>
    (await backend.plugin('sweeper', section).kill([worker], soon())).get(worker.workerId);
  const job = (worker: Worker) => space.client.find<Job>(space.jobs(worker.name));
  const podOf = (worker: Worker, phase: string) =>
    space.untilPod(backend.job(worker), `it is ${phase}`, ({ status }) => status.phase === phase);
  const withoutHandle = (worker: Worker): Worker => {
    const { handle, ...identity } = worker;
    expect(handle).to.have.property('uid');
    return identity;
  };

  it('the Job of an intent is found in a namespace that is being deleted, and what is not there is absent', async () => {
    const worker = await backend.submit(backend.worker(), jobTemplate());
    await space.client.patch(space.jobs(worker.name), { metadata: { finalizers: ['test/stays'] } });
    const other = backend.worker();
    await space[Symbol.asyncDispose]();
    await until('it is being deleted', async () => {
      const { metadata } = await space.client.get<KubeObject>(`/api/v1/namespaces/${space.name}`);
      return metadata.deletionTimestamp !== undefined;
    });
    try {
      expect(await find(withoutHandle(worker), {})).to.deep.equal({ kind: 'found', handle: worker.handle });
      expect(await find(other, {})).to.deep.equal({ kind: 'absent' });
    } finally {
      await space.client.patch(space.jobs(worker.name), { metadata: { finalizers: null } });
    }
  });

  it('a full quota of Jobs keeps nobody from finding and killing the one that is there', async () => {
    const worker = await backend.submit(backend.worker(), jobTemplate());
    const quota = { metadata: { name: 'one' }, spec: { hard: { 'count/jobs.batch': '1' } } };
    await space.client.create(space.core('resourcequotas'), quota);
    await until('the quota is full', async () => {
      const probe = { ...jobTemplate(), metadata: { name: 'probe' } };
      const { status, text } = await space.client.raw('POST', `${space.jobs()}?dryRun=All`, probe);
      return status === 403 && text.includes('exceeded quota');
    });
    expect(await find(withoutHandle(worker), {})).to.deep.equal({ kind: 'found', handle: worker.handle });
    // What is not there cannot be fenced now: nothing is concluded.
    const missing = await find(backend.worker(), {});
    expect(missing?.kind === 'unknown' && missing.error.code).to.equal('kubernetes-quota');
    expect(await kill(withoutHandle(worker))).to.deep.equal({ kind: 'gone' });
    expect(await job(worker)).to.equal(undefined);
  });

  it("a fence has the labels and the image of its queue's own template, and a policy against it is found by check-config", async () => {
    const pod = { containers: [{ name: 'pilot', image: 'registry.example/pilot:1', command: ['true'] }] };
    const template = { ...jobTemplate({}, pod), metadata: { name: 'pilot', labels: { team: 'grid' } } };
    const first = await backend.submit(backend.worker(), template);
    const section = { k8s_yaml_file: `${first.workerId}.yaml` };
    const lost = backend.worker();
    expect(await find(lost, section)).to.deep.equal({ kind: 'absent' });
    const fence = (await job(lost)) as (Job & { readonly spec: Record<string, unknown> }) | undefined;
    expect(fence?.metadata.labels).to.include({ team: 'grid' });
    expect(fence?.spec).to.deep.include({ suspend: true, parallelism: 0 });
    expect(JSON.stringify(fence?.spec.template)).to.include('registry.example/pilot:1');

    const submitter = backend.plugin('submitter', section);
    expect(await submitter.rehearse?.(backend.worker(), soon())).to.deep.equal([]);
    const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
    const { name } = space;
    const rule = { apiGroups: ['batch'], apiVersions: ['v1'], resources: ['jobs'], operations: ['CREATE'] };
    const expression = '!has(object.spec.suspend) || !object.spec.suspend';
    await plane.client.create(policies, {
      metadata: { name },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: { resourceRules: [rule] },
        validations: [{ expression, message: 'no Job may be suspended here' }],
      },
    });
    await plane.client.create(`${policies.slice(0, -3)}ybindings`, {
      metadata: { name },
      spec: {
        policyName: name,
        validationActions: ['Deny'],
        matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } },
      },
    });
    try {
      const problems = await until('the policy is in force', async () => {
        const found = (await submitter.rehearse?.(backend.worker(), soon())) ?? [];
        return found.length > 0 && found;
      });
      expect(problems.map(({ code }) => code)).to.deep.equal(['server-refused']);
      expect(problems[0]?.message).to.include('no Job may be suspended here');
    } finally {
      await plane.client.delete(`${policies.slice(0, -3)}ybindings/${name}`, {});
      await plane.client.delete(`${policies}/${name}`, {});
    }
  });

  it('a clock of ours that is two hours ahead gives up nobody early', async () => {
    const ahead = 2 * 3_600_000;
    const clock: Clock = { ...systemClock, now: () => systemClock.now() + ahead };
    backend = new KubernetesBackend(plane, space, { clock });
    const slow = await backend.submit(backend.worker(), jobTemplate({ waiting: 'ImagePullBackOff' }));
    const creating = await backend.submit(backend.worker(), jobTemplate({ waiting: 'ContainerCreating' }));
    await using watched = watch(backend.plugin('monitor'));
    const last = ({ workerId }: Worker) => watched.history.get(workerId)?.at(-1);
    await until('both wait', () =>
      [slow, creating].every((worker) =>
        /ImagePullBackOff|ContainerCreating/.test(last(worker)?.nativeStatus ?? ''),
      ),
    );
    // What no waiting helps is given up at once: by then the others would be, too.
    const hopeless = await backend.submit(backend.worker(), jobTemplate({ waiting: 'InvalidImageName' }));
    await until('it is given up', () => last(hopeless)?.status === 'failed');
    expect([slow, creating].map((worker) => last(worker)?.status)).to.deep.equal(['idle', 'idle']);
    // When something was seen is by our own clock.
    expect((last(slow)?.observedAt ?? 0) - clock.now()).to.be.within(-30_000, 0);
  });

  it('a queue without Secrets is not stopped by the right to them that another queue lacks', async () => {
    await account(space);
    const token = await plane.token(space.name, 'thresher');
    plane.writeKubeconfig(`${backend.directory}/kubeconfig`, { token });
    backend.write('job.yaml', jobTemplate());
    backend.write('x509', '-----BEGIN CERTIFICATE-----\n');
    const section = { k8s_yaml_file: 'job.yaml' };
    const withSecrets = backend.plugin('submitter', { ...section, x509UserProxy: 'x509' }, 'PROXY');
    const without = backend.plugin('submitter', section, 'PLAIN');
    const { problems } = await withSecrets.preflight(soon());
    expect(problems.map(({ message }) => message)).to.deep.equal([
      `the user lacks the right to create, list, delete secrets in namespace "${space.name}"; templates/kubernetes/rbac.yaml gives it`,
    ]);
    expect((await without.preflight(soon())).problems).to.deep.equal([]);
    const worker = backend.worker({ queue: 'PLAIN' });
    expect((await without.submit([worker], soon())).get(worker.workerId)?.kind).to.equal('accepted');
    // The listing goes on as well.
    expect(await backend.plugin('sweeper').list(soon())).to.have.length(1);
  });

  it('a Pod whose Job is gone is known by its row and adopted without one; on its way out it is no orphan', async () => {
    const worker = await backend.submit(
      backend.worker(),
      jobTemplate({ terminating: '30s' }, { terminationGracePeriodSeconds: 600 }),
    );
    const { metadata } = await podOf(worker, 'Running');
    await space.client.delete(space.jobs(worker.name), { propagationPolicy: 'Orphan' });
    await untilGone(() => job(worker));
    const sweeper = backend.plugin('sweeper');
    const [found, ...others] = await sweeper.list(soon());
    if (found === undefined) throw new Error('it was not listed');
    expect(others).to.deep.equal([]);
    expect(found.place).to.equal(`${space.name}/pods/${metadata.name}`);
    expect(found.handle).to.deep.equal({ batchID: worker.name, podUid: metadata.uid });
    expect(found.observation?.status).to.equal('running');
    const row = { status: 'running', swept: false } as const;
    expect(judge(found, row, worker.placement, () => 7, 'factory')).to.deep.equal({ kind: 'known' });
    const identity = withoutHandle(worker);
    expect(judge(found, undefined, worker.placement, () => 7, 'factory')).to.deep.equal({
      kind: 'adopt',
      worker: { ...identity, configId: 7, handle: found.handle },
    });
    await space.client.delete(space.core('pods', metadata.name), {});
    expect(await sweeper.list(soon())).to.deep.equal([]);
    // Killed by the handle that it was adopted with.
    const adopted = { ...identity, handle: found.handle };
    expect(await kill(adopted, { killGrace: 0 })).to.deep.equal({ kind: 'gone' });
  });

  it("a kill's own grace that is shorter than the Pod's is applied to a Pod that leaves already", async () => {
    const worker = await backend.submit(
      backend.worker(),
      jobTemplate({ terminating: '60s' }, { terminationGracePeriodSeconds: 600 }),
    );
    const { metadata } = await podOf(worker, 'Running');
    const path = space.core('pods', metadata.name);
    await space.client.delete(path, {});
    const grace = async () =>
      (await space.client.get<KubeObject & { metadata: { deletionGracePeriodSeconds?: number } }>(path))
        .metadata.deletionGracePeriodSeconds;
    expect(await grace()).to.equal(600);
    const outcome = kill(worker, { killGrace: 7 });
    await until('its grace is the shorter one', async () => (await grace()) === 7);
    expect(await outcome).to.deep.equal({ kind: 'pending' });
  });

  it('a kill of a worker that has just finished leaves it finished, with its Job', async () => {
    const worker = await backend.submit(backend.worker(), jobTemplate({ run: '50ms' }));
    await space.untilJob(backend.job(worker), 'it is complete', ({ status }) =>
      (status.conditions ?? []).some(({ type, status }) => type === 'Complete' && status === 'True'),
    );
    expect(await kill(worker)).to.deep.equal({ kind: 'gone' });
    expect((await job(worker))?.metadata.deletionTimestamp).to.equal(undefined);
    const result = (await backend.plugin('monitor').check([worker], soon())).get(worker.workerId);
    expect(result?.kind === 'observed' && result.observation.status).to.equal('finished');
  });

  it('a Job that somebody made anew under the same name and marks is killed, and not removed without a word', async () => {
    const worker = await backend.submit(backend.worker(), jobTemplate());
    const anew = async () => {
      const old = await space.client.get<
        Job & { readonly spec: { template: { metadata: KubeObject['metadata'] } } }
      >(space.jobs(worker.name));
      await space.client.delete(space.jobs(worker.name));
      await untilGone(() => job(worker));
      // A Pod of the first, ended and on its way out, would still speak for the worker.
      await untilGone(async () => (await space.podsOf(old))[0]);
      const { labels, annotations } = old.metadata;
      const { template } = jobTemplate().spec as { template: object };
      return space.client.create<Job>(space.jobs(), {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: worker.name, labels, annotations },
        spec: { backoffLimit: 0, template: { ...template, metadata: { labels } } },
      });
    };
    const second = await anew();
    const [oldUid, newUid] = [String(worker.handle?.uid), String(second.metadata.uid)];
    expect(oldUid).not.to.equal(newUid);
    const removed = (await backend.plugin('sweeper').remove([worker], soon())).get(worker.workerId);
    if (removed?.kind !== 'failed') throw new Error(JSON.stringify(removed));
    expect(removed.error.code).to.equal('k8s-name-taken');
    expect(removed.error.message).to.include(oldUid).and.to.include(newUid);
    expect((await job(worker))?.metadata.uid).to.equal(newUid);
    expect(await kill(worker)).to.deep.equal({ kind: 'gone' });
    expect(await job(worker)).to.equal(undefined);
  });

  it('a watch of two that breaks and is back at once opens the connection again', async () => {
    await using proxy = await FaultProxy.inFrontOf(plane);
    proxy.inject({ verb: 'watch', resource: 'pods', times: 1, fault: { kind: 'cut-line' } });
    // Nothing is ever heard of the Jobs: the Pods' watch alone makes it complete again.
    proxy.inject({ verb: 'watch', resource: 'jobs', fault: { kind: 'stall', lines: 0 } });
    plane.writeKubeconfig(`${backend.directory}/kubeconfig`, { server: proxy.url });
    const words: string[] = [];
    const say = (word: string) => words.push(word);
    const stop = new AbortController();
    const nothing = () => undefined;
    const work = backend.plugin('monitor').observe(
      {
        begin: nothing,
        observe: nothing,
        gone: nothing,
        complete: () => say('complete'),
        trouble: () => say('trouble'),
      },
      stop.signal,
    );
    try {
      await until('it is complete', () => words.at(-1) === 'complete');
      const watches = () => proxy.requests.filter(({ verb }) => verb === 'watch');
      await until(
        'both watches are open',
        () => watches().filter(({ status }) => status === 200).length === 2,
      );
      await space.client.create(space.core('pods'), {
        metadata: { name: 'by-hand', labels: { 'thresher/factory': 'factory-a' } },
        spec: { containers: [container('pilot')] },
      });
      await until('it is told', () => words.at(-1) === 'trouble');
      await until('it is complete again', () => words.at(-1) === 'complete');
    } finally {
      stop.abort();
      await work;
    }
  });

  it('the last warning of the cluster is in the message of a worker that is given up', async () => {
    const worker = await backend.submit(backend.worker(), jobTemplate({}, { serviceAccountName: 'nobody' }));
    await until('the controller has warned', async () => {
      const events = await space.client.list(
        space.core('events'),
        undefined,
        `involvedObject.name=${worker.name},type=Warning`,
      );
      return events.length > 0;
    });
    await using watched = watch(backend.plugin('monitor', { podQueueTimeLimit: 1 }));
    const last = (): Observation | undefined => watched.history.get(worker.workerId)?.at(-1);
    await until('it is given up', () => last()?.status === 'failed');
    expect(last()?.error?.message).to.match(
      /^podQueueTimeLimit of 1 s is over: NoPod for \d+ s; FailedCreate: .*serviceaccount "nobody" not found/,
    );
  });
});
