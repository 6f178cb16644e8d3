import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { FaultProxy } from '../support/fault-proxy.ts';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import { livingPods, workerJobs } from '../support/kubernetes-history.ts';
import { account, rbac, workerRights } from '../support/kubernetes-rights.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

/** Waits until the queue gives such a reason, and returns its message. */
async function reason(site: Site, queue: string, pattern: RegExp): Promise<string> {
  return until(`${queue} says ${pattern.source}`, async () => {
    const { reasons } = await site.queue(queue);
    return reasons.map(({ code, message }) => `${code}: ${message}`).find((text) => pattern.test(text));
  });
}

const running = async (site: Site, queue: string) =>
  (await site.workers({ queue, status: 'running' })).length;

describe('on Kubernetes what the API server refuses', () => {
  let plane: ControlPlane;
  let spaces: Namespace[] = [];
  let proxies: FaultProxy[] = [];
  let site: Site | undefined;

  before(async () => {
    plane = await controlPlane();
  });

  afterEach(async () => {
    await site?.clean();
    await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    await Promise.all(spaces.map((space) => space[Symbol.asyncDispose]()));
    spaces = [];
    proxies = [];
  });

  async function namespace(name: string): Promise<Namespace> {
    const space = await plane.namespace(name);
    spaces.push(space);
    return space;
  }

  async function proxyBefore(): Promise<FaultProxy> {
    const proxy = await FaultProxy.inFrontOf(plane);
    proxies.push(proxy);
    return proxy;
  }

  it('names the missing right by verb and resource, and goes on once it is given', async () => {
    const [jobs, pods] = workerRights;
    const noCreate = await namespace('no-create');
    const noWatch = await namespace('no-watch');
    await account(noCreate, [{ ...jobs, verbs: ['get', 'list', 'watch', 'delete'] }, pods]);
    await account(noWatch, [jobs, { ...pods, verbs: ['list', 'delete'] }]);
    site = kubernetesSite(plane, {
      queues: {
        CREATE: kubernetesQueue(noCreate, { kubeconfig: 'create.kubeconfig' }),
        WATCH: kubernetesQueue(noWatch, { kubeconfig: 'watch.kubeconfig' }),
      },
    });
    for (const [name, space] of Object.entries({ create: noCreate, watch: noWatch })) {
      const token = await plane.token(space.name, 'thresher');
      plane.writeKubeconfig(site.path(`${name}.kubeconfig`), { token });
    }
    const daemon = site.start();
    const create = await reason(site, 'CREATE', /kubernetes-forbidden/);
    expect(create).to.contain(`lacks the right to create jobs in namespace "${noCreate.name}"`);
    expect(create).to.contain('templates/kubernetes/rbac.yaml');
    const watch = await reason(site, 'WATCH', /status-unknown.*lacks the right/);
    expect(watch).to.contain(`lacks the right to watch pods in namespace "${noWatch.name}"`);
    expect(await site.workers(), daemon.output()).to.deep.equal([]);

    await noCreate.client.patch(rbac(noCreate, 'roles', 'thresher'), { rules: workerRights });
    await until('it has its worker', async () => (await running(site as Site, 'CREATE')) === 1);
  });

  it('is a reason and no storm of requests: quota, admission policy, 429', async () => {
    const queues = ['QUOTA', 'POLICY', 'BUSY'] as const;
    const parts = {
      QUOTA: { space: await namespace('quota'), proxy: await proxyBefore() },
      POLICY: { space: await namespace('policy'), proxy: await proxyBefore() },
      BUSY: { space: await namespace('busy'), proxy: await proxyBefore() },
    };
    const { client } = plane;
    const quota = { metadata: { name: 'two-jobs' }, spec: { hard: { 'count/jobs.batch': '2' } } };
    await client.create(parts.QUOTA.space.core('resourcequotas'), quota);
    await until('the quota is in force', async () => {
      const path = parts.QUOTA.space.core('resourcequotas', 'two-jobs');
      return (await client.get<{ metadata: { name: string }; status?: { used?: object } }>(path)).status
        ?.used;
    });
    const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
    const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
    const { name: policy } = parts.POLICY.space;
    const match = { matchLabels: { 'kubernetes.io/metadata.name': policy } };
    const rule = {
      apiGroups: ['batch'],
      apiVersions: ['v1'],
      resources: ['jobs'],
      operations: ['CREATE'],
    };
    await client.create(policies, {
      metadata: { name: policy },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: { resourceRules: [rule] },
        validations: [
          { expression: 'has(object.spec.suspend) && object.spec.suspend', message: 'no pilots on Sundays' },
        ],
      },
    });
    await client.create(bindings, {
      metadata: { name: policy },
      spec: {
        policyName: policy,
        validationActions: ['Deny'],
        matchResources: { namespaceSelector: match },
      },
    });
    try {
      await until('the policy is in force', async () => {
        const job = { ...jobTemplate(), metadata: { name: 'probe' } };
        const { status } = await client.raw('POST', `${parts.POLICY.space.jobs()}?dryRun=All`, job);
        return status === 422;
      });
      const retryAfter = 8;
      const busy = parts.BUSY.proxy.inject({
        verb: 'create',
        resource: 'jobs',
        times: 1,
        fault: { kind: 'status', status: 429, retryAfter },
      });
      site = kubernetesSite(plane, {
        queues: Object.fromEntries(
          queues.map((name) => [
            name,
            kubernetesQueue(parts[name].space, {
              kubeconfig: `${name}.kubeconfig`,
              submitter: { nProcesses: 2 },
              queue: { maxWorkers: 4, nQueueLimitWorker: 4 },
            }),
          ]),
        ),
      });
      for (const name of queues)
        plane.writeKubeconfig(site.path(`${name}.kubeconfig`), { server: parts[name].proxy.url });
      const daemon = site.start();

      expect(await reason(site, 'QUOTA', /exceeded quota/)).to.contain('two-jobs');
      expect(await reason(site, 'POLICY', /Sundays/)).to.contain(policy);
      const begun = performance.now();
      expect(await livingPods(parts.POLICY.space)).to.equal(0);

      // 429: nobody asks anything of that cluster for as long as it said, and then all goes well.
      await until('the busy one has its workers', async () => (await running(site as Site, 'BUSY')) === 4);
      expect(busy.hits).to.equal(1);
      const { requests } = parts.BUSY.proxy;
      const at = requests.find(({ fault }) => fault === 'status')?.at ?? 0;
      // What was under way at that moment is let through, which a busy machine may take its time for.
      const allowed = at + retryAfter * 1000 - 100;
      const meanwhile = requests.filter((request) => request.at > at + 3000 && request.at < allowed);
      expect(meanwhile).to.deep.equal([]);
      // Two creations at once: the one that was refused waited, and so did others that were not.
      const later = requests.filter((request) => request.resource === 'jobs' && request.verb === 'create');
      expect(later.filter((request) => request.at >= allowed).length).to.be.greaterThan(1);
      expect((await site.workers({ queue: 'BUSY' })).map(({ status }) => status)).to.deep.equal(
        Array.from({ length: 4 }, () => 'running'),
      );

      // No more than a few tries in ten seconds, of four workers that are wanted at once and a pass each 0.3 s.
      await until('ten seconds are over', () => performance.now() - begun > 10_000);
      for (const name of ['QUOTA', 'POLICY'] as const) {
        const creations = parts[name].proxy.count({ verb: 'create', resource: 'jobs' });
        expect(creations, `${name}\n${daemon.output()}`).to.be.within(2, 20);
      }
      expect(await workerJobs(parts.QUOTA.space)).to.have.length(2);
      expect(await running(site, 'QUOTA')).to.equal(2);
      // Room is made: it goes on by itself.
      await client.patch(parts.QUOTA.space.core('resourcequotas', 'two-jobs'), {
        spec: { hard: { 'count/jobs.batch': '4' } },
      });
      await until('the rest follows', async () => (await running(site as Site, 'QUOTA')) === 4);
    } finally {
      await client.delete(`${bindings}/${policy}`, {});
      await client.delete(`${policies}/${policy}`, {});
    }
  });

  it('is told of a wrong token and of one that was revoked; a new one in its file is taken up', async () => {
    const space = await namespace('token');
    await account(space);
    site = kubernetesSite(plane, {
      queues: { Q: kubernetesQueue(space) },
      settings: { monitor: { missingGrace: 0.2 } },
    });
    const tokenFile = site.path('token');
    plane.writeKubeconfig(site.path('kubeconfig'), { tokenFile });
    writeFileSync(tokenFile, 'wrong');
    site.start();
    expect(await reason(site, 'Q', /redentials|nauthorized/)).to.match(/^not-listed: /);
    writeFileSync(tokenFile, await plane.token(space.name, 'thresher'));
    await until('it has its worker', async () => (await running(site as Site, 'Q')) === 1);

    // Its account goes, and with it the token.
    const token = readFileSync(tokenFile, 'utf8');
    await space.client.delete(space.core('serviceaccounts', 'thresher'), {});
    await until('the token is worth nothing', async () => {
      const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
      const path = '/apis/authentication.k8s.io/v1/tokenreviews';
      const { text } = await plane.client.raw('POST', path, review);
      return !text.includes('"authenticated":true');
    });
    // The watches go on, and tell of an end; the replacement is refused.
    await space.client.delete(space.jobs((await site.workers())[0]?.batchID ?? ''));
    expect(await reason(site, 'Q', /nauthorized/)).to.contain('Unauthorized');

    await space.client.create(space.core('serviceaccounts'), { metadata: { name: 'thresher' } });
    writeFileSync(tokenFile, await plane.token(space.name, 'thresher'));
    await until('it has another worker', async () => (await running(site as Site, 'Q')) === 1);
    expect(await workerJobs(space)).to.have.length(1);
  });

  it('stops a queue whose namespace was deleted, and no other; it goes on when the namespace is back', async () => {
    const space = await namespace('deleted');
    const other = await namespace('other');
    site = kubernetesSite(plane, {
      settings: { monitor: { missingGrace: 0.2 } },
      queues: {
        Q: kubernetesQueue(space, { queue: { maxWorkers: 2, nQueueLimitWorker: 2 } }),
        OTHER: kubernetesQueue(other),
      },
    });
    site.start();
    await until('all run', async () => (await site?.workers({ status: 'running' }))?.length === 3);
    const first = (await site.workers({ queue: 'Q' })).map(({ workerID }) => workerID);
    await plane.client.delete(`/api/v1/namespaces/${space.name}`, {});
    expect(await reason(site, 'Q', /namespace/)).to.contain(space.name);
    await until('its workers are ended', async () =>
      (await site?.workers({ queue: 'Q' }))
        ?.filter(({ workerID }) => first.includes(workerID))
        .every(({ status }) => ['missed', 'failed'].includes(status)),
    );
    // The other one still replaces what ends.
    const [one] = await other.client.list(other.jobs());
    await other.client.delete(other.jobs(one?.metadata.name));
    await until('it is replaced', async () => {
      const [newest] = (await site?.workers({ queue: 'OTHER', status: 'running' })) ?? [];
      return newest !== undefined && newest.batchID !== one?.metadata.name;
    });
    await until(
      'it is gone',
      async () => (await plane.client.find(`/api/v1/namespaces/${space.name}`)) === undefined,
    );
    expect(await reason(site, 'Q', /namespace/)).to.contain(space.name);
    await plane.client.create('/api/v1/namespaces', { metadata: { name: space.name } });
    await until('it goes on', async () => (await running(site as Site, 'Q')) === 2);
    expect(await workerJobs(space)).to.have.length(2);
  });

  it('of a Pod is shown with its worker, whose Job it took', async () => {
    const space = await namespace('no-pods');
    await space.client.create(space.core('resourcequotas'), {
      metadata: { name: 'no-pods' },
      spec: { hard: { pods: '0' } },
    });
    const own = kubernetesSite(plane, { queues: { Q: kubernetesQueue(space) } });
    site = own;
    own.start();
    const worker = await until('a Job is there', async () => (await own.workers({ status: 'submitted' }))[0]);
    await until(
      'it is said why it has no Pod',
      async () => {
        const { stdout } = await own.run('worker', String(worker.workerID));
        return /NoPod/.test(stdout) && /FailedCreate: .*exceeded quota: no-pods/.test(stdout);
      },
      60_000,
    );
  });
});
