import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import type {
  DefinitionProblem,
  Payload,
  SubmitOutcome,
  Submitter,
  Worker,
} from '../../src/plugins/contracts/index.ts';
import { type Fault, FaultProxy, type Injected, type Rule } from '../support/fault-proxy.ts';
import { KubernetesBackend } from '../support/kubernetes-backend.ts';
import { History, livingPods } from '../support/kubernetes-history.ts';
import { account, workerRights } from '../support/kubernetes-rights.ts';
import { jobTemplate } from '../support/kubernetes-site.ts';
import {
  container,
  type ControlPlane,
  controlPlane,
  type Job,
  type KubeObject,
  type Namespace,
} from '../support/kubernetes.ts';
import { until } from '../support/until.ts';

const file = (name: string, text: string, more: object = {}) => ({
  name,
  mode: 0o644,
  content: Buffer.from(text).toString('base64'),
  ...more,
});
const payloads = {
  ConfigMap: { files: [file('input', 'open')] },
  Secret: { files: [file('input', 'open'), file('token', 'hush-hush', { secret: true })] },
} as const satisfies Record<string, Payload>;

const hasErrors = (found: readonly DefinitionProblem[]) =>
  found.some(({ severity = 'error' }) => severity === 'error');

/** The requests that begin a worker with files, in their order. */
const steps = [
  { what: 'its Job', rule: { verb: 'create', resource: 'jobs' } },
  { what: 'its files', rule: { verb: 'create', resource: 'configmaps' } },
  { what: 'the change that begins it', rule: { verb: 'patch', resource: 'jobs' } },
] as const;

describe('on Kubernetes a worker with files', () => {
  const { signal } = new AbortController();
  let plane: ControlPlane;
  let space: Namespace;
  let proxy: FaultProxy;
  let history: History;
  let backend: KubernetesBackend;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('files');
    proxy = await FaultProxy.inFrontOf(plane);
    history = await History.begin(space);
    backend = new KubernetesBackend(plane, space);
    plane.writeKubeconfig(join(backend.directory, 'kubeconfig'), { server: proxy.url });
    backend.write('job.yaml', stringify(jobTemplate()));
  });

  afterEach(async () => {
    await proxy[Symbol.asyncDispose]();
    await space[Symbol.asyncDispose]();
  });

  const submitter = (queue = 'Q'): Submitter =>
    backend.plugin('submitter', { k8s_yaml_file: 'job.yaml' }, queue);
  const worker = (): Worker => backend.worker({ payloadId: 'p1' });
  async function submit(
    one: Worker,
    payload: Payload = payloads.ConfigMap,
    by = submitter(),
    upTo: AbortSignal = signal,
  ): Promise<SubmitOutcome | undefined> {
    return (await by.submit([{ ...one, payload }], upTo)).get(one.workerId);
  }
  /** Submits a worker, and gives the submission up while this request is on its way. */
  async function submitUntil(one: Worker, injected: Injected): Promise<SubmitOutcome | undefined> {
    const giveUp = new AbortController();
    const outcome = submit(one, payloads.ConfigMap, submitter(), giveUp.signal);
    await until('the request is on its way', () => injected.hits === 1);
    giveUp.abort();
    return outcome;
  }
  const find = async (one: Worker, by = submitter()) => (await by.find([one], signal)).get(one.workerId);
  const objects = (kind: string) => space.client.list<KubeObject>(space.core(kind), 'thresher/worker-id');
  /** The objects with files that are there. Kubernetes removes them when their Job is gone. */
  const left = async () => [...(await objects('configmaps')), ...(await objects('secrets'))];
  const untilPod = (one: Worker) =>
    space.untilPod(backend.job(one), 'its Pod is there', ({ metadata }) => metadata.uid !== undefined);

  for (const [kind, payload] of Object.entries(payloads)) {
    it(`has them in a ${kind} that its Job owns, and that goes with it`, async () => {
      const one = worker();
      expect((await submit(one, payload))?.kind).to.equal('accepted');
      const job = await space.client.get<Job>(space.jobs(one.name));
      const made = await left();
      expect(made.map(({ metadata }) => metadata.name)).to.deep.equal([`${one.name}-payload-1`]);
      expect(made[0]?.metadata.ownerReferences?.map(({ uid }) => uid)).to.deep.equal([job.metadata.uid]);
      expect(await objects(kind === 'Secret' ? 'secrets' : 'configmaps')).to.have.length(1);
      expect(JSON.stringify([job, await untilPod(one)])).not.to.match(/hush|aHVzaC/);
      // As an operator or `ttlSecondsAfterFinished` would.
      await space.client.delete(space.jobs(one.name));
      await until('they are gone', async () => (await left()).length === 0);
    });
  }

  it('costs three requests, and one without files a single one', async () => {
    const by = submitter();
    await by.preflight(signal);
    expect((await submit(worker(), payloads.ConfigMap, by))?.kind).to.equal('accepted');
    const changes = () =>
      proxy.requests.filter(
        ({ verb, resource }) =>
          ['create', 'patch', 'delete', 'get', 'list'].includes(verb) && !resource.includes('access'),
      );
    expect(changes().map(({ verb, resource }) => `${verb} ${resource}`)).to.deep.equal(
      steps.map(({ rule }) => `${rule.verb} ${rule.resource}`),
    );
    expect((await submit(worker(), { argv: ['true'], env: { A: 'b' } }, by))?.kind).to.equal('accepted');
    expect(changes()).to.have.length(4);
  });

  const lost: readonly (readonly [what: string, fault: Fault])[] = [
    ['before the server saw the request for', { kind: 'cut-before' }],
    ['after the server carried out', { kind: 'cut-after' }],
  ];
  for (const { what, rule } of steps) {
    for (const [when, fault] of lost) {
      it(`runs once, whatever a crash leaves: ${when} ${what}`, async () => {
        const one = worker();
        proxy.inject({ ...rule, times: 1, fault } satisfies Rule);
        expect((await submit(one))?.kind).to.equal('unknown');
        const begun = rule.verb === 'patch' && fault.kind === 'cut-after';
        // Until it has begun, neither a monitor nor a listing takes the Job for the worker.
        const [listed] = await backend.plugin('sweeper').list(signal);
        if (begun) expect(listed?.observation?.status).to.be.a('string');
        else expect(listed?.observation).to.equal(undefined);
        const found = await find(one);
        expect(found?.kind).to.equal(begun ? 'found' : 'absent');
        const last = begun ? one : { ...one, attempt: 2 };
        if (!begun) expect((await submit(last))?.kind).to.equal('accepted');
        await untilPod(one);
        expect((await history.made()).get(one.workerId)?.pods).to.equal(1);
        await until('the files of its attempt are left', async () => {
          const names = (await left()).map(({ metadata }) => metadata.name);
          return names.join() === `${one.name}-payload-${last.attempt}`;
        });
      });
    }
  }

  for (const { what, rule } of steps) {
    it(`starts no Pod when the request for ${what} is carried out after it was given up`, async () => {
      const release = Promise.withResolvers<undefined>();
      const fault: Fault = { kind: 'late', until: release.promise };
      const injected = proxy.inject({ ...rule, times: 1, fault } satisfies Rule);
      const one = worker();
      expect((await submitUntil(one, injected))?.kind).to.equal('unknown');
      expect((await find(one))?.kind).to.equal('absent');
      release.resolve(undefined);
      const late = () => proxy.requests.find((request) => request.fault === 'late');
      await until('the server has answered', () => late()?.status !== undefined);
      if (rule.resource === 'jobs') expect(late()?.status).to.be.within(404, 422);
      await until('late files find no owner', async () => (await left()).length === 0);
      expect((await history.made()).get(one.workerId)?.pods ?? 0).to.equal(0);
      const second = { ...one, attempt: 2 };
      expect((await submit(second))?.kind).to.equal('accepted');
      await untilPod(one);
      expect((await history.made()).get(one.workerId)?.pods).to.equal(1);
    });
  }

  it('is there once that change came between a look and the fence', async () => {
    const one = worker();
    const release = Promise.withResolvers<undefined>();
    const change: Rule = { ...steps[2].rule, times: 1, fault: { kind: 'late', until: release.promise } };
    await submitUntil(one, proxy.inject(change));
    // The deletion of what looked like a fence waits until the change was carried out.
    const deleted = proxy.inject({
      verb: 'delete',
      resource: 'jobs',
      times: 1,
      fault: {
        kind: 'late',
        until: (async () => {
          await until('the deletion is asked for', () => deleted.hits === 1);
          release.resolve(undefined);
          const late = () => proxy.requests.find(({ verb }) => verb === 'patch');
          await until('the change was carried out', () => late()?.status === 200);
        })(),
      },
    });
    expect((await find(one))?.kind).to.equal('found');
    await untilPod(one);
    expect((await history.made()).get(one.workerId)).to.deep.equal({ jobs: 0, pods: 1 });
  });

  it('is rejected, and leaves nothing, where the server takes no files; the next attempt runs', async () => {
    const quota = { metadata: { name: 'none' }, spec: { hard: { 'count/secrets': '0' } } };
    await space.client.create(space.core('resourcequotas'), quota);
    await until('the quota counts', async () =>
      (await space.client.raw('GET', space.core('resourcequotas', 'none'))).text.includes('"used"'),
    );
    const one = worker();
    const by = submitter();
    const outcome = await submit(one, payloads.Secret, by);
    expect(outcome).to.deep.include({ kind: 'rejected', permanent: false });
    expect(outcome?.kind === 'rejected' && outcome.error.code).to.equal('kubernetes-quota');
    expect(JSON.stringify(outcome)).not.to.match(/hush|aHVzaC/);
    expect(await space.client.find(space.jobs(one.name))).to.equal(undefined);
    expect((await find(one, by))?.kind).to.equal('absent');
    await space.client.delete(space.core('resourcequotas', 'none'));
    const second = { ...one, attempt: 2 };
    await until('the quota is forgotten', async () => {
      const again = await submit(second, payloads.Secret, by);
      return again?.kind === 'accepted';
    });
    expect((await history.made()).get(one.workerId)?.pods ?? 0).to.be.at.most(1);
  });

  it('is rejected with the right that is missing; one without files needs no new right', async () => {
    await account(space);
    const token = await plane.token(space.name, 'thresher');
    plane.writeKubeconfig(join(backend.directory, 'kubeconfig'), { token });
    const by = submitter();
    expect((await by.preflight(signal)).problems).to.deep.equal([]);
    const outcome = await submit(worker(), payloads.Secret, by);
    expect(outcome?.kind === 'rejected' && outcome.error).to.deep.include({ code: 'kubernetes-forbidden' });
    const message = outcome?.kind === 'rejected' ? outcome.error.message : '';
    expect(message)
      .to.include('lacks the right to patch jobs in')
      .and.include('the right to create secrets in');
    expect(message).to.include('templates/kubernetes/rbac.yaml gives it');
    expect(await by.rehearse?.(worker(), signal, ['argv', 'env', 'values'])).to.not.satisfy(hasErrors);
    const rehearsed = (await by.rehearse?.(worker(), signal, ['files'])) ?? [];
    expect(rehearsed.map(({ message }) => message).join()).to.match(
      /patch jobs .*create configmaps.*create secrets/,
    );
    expect(rehearsed).to.satisfy(hasErrors);
    expect((await submit(worker(), { argv: ['true'] }, by))?.kind).to.equal('accepted');
    expect(await livingPods(space)).to.be.at.most(1);
  });

  it('needs to create its files and to change its Job, and no right to read, list or delete files', async () => {
    const more = [
      { apiGroups: ['batch'], resources: ['jobs'], verbs: ['patch'] },
      { apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: ['create'] },
    ];
    await account(space, [...workerRights, ...more]);
    const token = await plane.token(space.name, 'thresher');
    plane.writeKubeconfig(join(backend.directory, 'kubeconfig'), { token });
    const [one, two] = [worker(), worker()];
    expect((await submit(one, payloads.ConfigMap))?.kind).to.equal('accepted');
    expect((await submit(two, payloads.Secret))?.kind).to.equal('accepted');
    const sweeper = backend.plugin('sweeper');
    await until('all is gone', async () => {
      const outcomes = await sweeper.remove([one, two], signal);
      return [...outcomes.values()].every(({ kind }) => kind === 'gone') && (await left()).length === 0;
    });
  });

  it('is ended before it begins, where it is killed then, and begins never', async () => {
    const one = worker();
    proxy.inject({ ...steps[2].rule, times: 1, fault: { kind: 'cut-before' } });
    expect((await submit(one))?.kind).to.equal('unknown');
    await until('it is gone', async () => {
      const outcomes = await backend.plugin('sweeper').kill([one], signal);
      return outcomes.get(one.workerId)?.kind === 'gone';
    });
    await until('its files are gone', async () => (await left()).length === 0);
    expect((await history.made()).get(one.workerId)?.pods ?? 0).to.equal(0);
  });

  it('is fenced by a Job that the server takes, also where the template names values', async () => {
    const pilot = { ...container('pilot'), image: '${payload.image}' };
    const nodeSelector = { zone: '${payload.zone}' };
    backend.write('job.yaml', jobTemplate({}, { containers: [pilot], nodeSelector }));
    const one = worker();
    const by = submitter();
    expect((await find(one, by))?.kind).to.equal('absent');
    expect((await submit(one, { values: { image: 'a', zone: 'b' } }, by))?.kind).to.equal('rejected');
    const filled = await submit({ ...one, attempt: 2 }, { values: { image: 'a', zone: 'b' } }, by);
    expect(filled?.kind, JSON.stringify(filled)).to.equal('accepted');
    const job = await space.client.get<Job>(space.jobs(one.name));
    expect(job).to.have.nested.property('spec.template.spec.containers[0].image', 'a');
    expect(job).to.have.nested.property('spec.template.spec.nodeSelector.zone', 'b');
    expect(await by.rehearse?.(backend.worker(), signal)).to.deep.equal([]);
  });
});
