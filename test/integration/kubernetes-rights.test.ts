import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { makeAuthority } from '../support/credentials.ts';
import { container, controlPlane, type KubeObject, type Namespace, type Pod } from '../support/kubernetes.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const manifest = join(import.meta.dirname, '../../templates/kubernetes/rbac.yaml');

/** templates/kubernetes/rbac.yaml as its operator applies it, in another namespace. */
async function applyRights(space: Namespace): Promise<void> {
  const text = readFileSync(manifest, 'utf8').replaceAll('namespace: pilots', `namespace: ${space.name}`);
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS() as KubeObject;
    const plural = `${object.kind?.toLowerCase() ?? ''}s`;
    const path =
      object.kind === 'ServiceAccount'
        ? space.core(plural)
        : `/apis/rbac.authorization.k8s.io/v1/namespaces/${space.name}/${plural}`;
    await space.client.create(path, object);
  }
}

describe('the rights of templates/kubernetes/rbac.yaml', () => {
  let space: Namespace;
  let site: Site;

  afterEach(async () => {
    await site.clean();
    await space[Symbol.asyncDispose]();
  });

  it('are enough to submit with a proxy, to start pilots, to follow, to kill, to sweep and to tell', async () => {
    const plane = await controlPlane();
    space = await plane.namespace('rights');
    await applyRights(space);
    const token = await plane.token(space.name, 'thresher');
    const submitter = { x509UserProxy: 'proxy.pem' };
    const settings = { sweeper: { keepFinished: 0 } };
    const queues = {
      ENDS: kubernetesQueue(space, { submitter }),
      RUNS: kubernetesQueue(space, { submitter, template: 'runs.yaml' }),
      STARTED: kubernetesQueue(space, { submitter, template: 'started.yaml' }),
    };
    const started = jobTemplate({}, { containers: [{ ...container('pilot'), command: undefined }] });
    const templates = {
      'job.yaml': jobTemplate({ run: '300ms' }),
      'runs.yaml': jobTemplate(),
      'started.yaml': started,
    };
    site = kubernetesSite(plane, { queues, settings }, templates, { token });
    copyFileSync(makeAuthority().certificate, site.path('proxy.pem'));
    const checked = await site.run('check-config', '--server', '--strict');
    expect(checked.stdout).to.include('3 ready');
    site.start();
    const running = await until(
      'one runs',
      async () => (await site.workers({ status: 'running', queue: 'RUNS' }).catch(() => []))[0],
    );
    const first = await until('one finished', async () => (await site.workers({ status: 'finished' }))[0]);
    await until('what it left is swept', async () =>
      (await space.client.list<KubeObject>(space.jobs())).every(
        ({ metadata }) => metadata.name !== first.batchID,
      ),
    );
    const [pod] = await space.client.list<Pod>(space.core('pods'), `thresher/worker-id=${running.workerID}`);
    await until('each queue has its Secret', async () => {
      const secrets = await space.client.list<KubeObject>(space.core('secrets'), 'thresher/proxy-secret');
      return secrets.length === 3;
    });
    await until('the starter is there', async () => {
      const maps = await space.client.list<KubeObject>(space.core('configmaps'), 'thresher/pilots-starter');
      return maps.map(({ metadata }) => metadata.name).join() === 'pilots-starter';
    });
    expect(JSON.stringify(pod)).to.include(`"name":"proxyContent"`).and.not.include('BEGIN CERTIFICATE');
    expect((await site.run('kill', String(running.workerID))).status).to.equal(0);
    await until('it is cancelled', async () => {
      const { stdout } = await site.run('worker', String(running.workerID), '--output', 'json');
      return stdout.includes('"cancelled"');
    });
    // It writes Events beside its work.
    await until('it is told', async () => {
      const events = await space.client.list<KubeObject & { reason: string; message: string }>(
        space.core('events'),
      );
      return events.some(
        ({ reason, message }) => reason === 'Killed' && message.includes(String(running.workerID)),
      );
    });
  });
});
