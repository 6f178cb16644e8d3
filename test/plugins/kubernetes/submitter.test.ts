import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { KubernetesClient } from '../../../src/clients/kubernetes/client.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { KubernetesStub, type StubObject } from '../../support/kubernetes-stub.ts';
import { workerOf } from '../../support/samples.ts';
import { json } from '../../support/scripted-server.ts';

const { signal } = new AbortController();
const containers = [{ name: 'pilot', image: 'busybox', command: ['true'] }];
const template = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  spec: {
    backoffLimit: 0,
    podReplacementPolicy: 'Failed',
    template: { spec: { restartPolicy: 'Never', containers } },
  },
};

describe('a Kubernetes cluster that gives an object of a worker a uid with our own login in it', () => {
  const secret = 'opaque-6e2f8b0c4d9a1375';
  const worker = workerOf(1);
  let stub: KubernetesStub;

  beforeEach(async () => {
    rememberSecret(secret);
    stub = await KubernetesStub.start();
    writeFileSync(join(stub.directory, 'job.json'), JSON.stringify(template));
  });
  afterEach(() => stub.stop());

  it('leaves the outcome of a submission unknown, until the Job is found by its right uid', async () => {
    let uid = `u-${secret}`;
    stub.answer = (response, { verb, resource }, seen) => {
      if (verb !== 'create' || resource !== 'jobs') return false;
      const made = JSON.parse(seen.body) as StubObject;
      const object = { ...made, metadata: { ...made.metadata, uid } };
      stub.jobs.set(made.metadata.name, object);
      json(201, object)(response, seen);
      return true;
    };
    const submitter = stub.plugin('submitter', { k8s_yaml_file: 'job.json' });
    const outcome = (await submitter.submit([worker], signal)).get(1);
    expect(outcome).to.have.nested.property('error.code', 'kubernetes-secret-name');
    const unclear = (await submitter.find([worker], signal)).get(1);
    expect([outcome?.kind, unclear?.kind]).to.deep.equal(['unknown', 'unknown']);
    expect(JSON.stringify([outcome, unclear]))
      .to.contain('(hidden)')
      .and.not.contain(secret);

    uid = 'right';
    const [[name, object] = []] = stub.jobs;
    stub.jobs.set(name!, { ...object!, metadata: { ...object!.metadata, uid } });
    expect((await submitter.find([worker], signal)).get(1)).to.deep.equal({
      kind: 'found',
      handle: { batchID: worker.name, uid },
    });
  });
});

describe('hole 7: a Kubernetes cluster that makes a Job and whose answer is of no use', () => {
  const worker = workerOf(1);
  let stub: KubernetesStub;

  beforeEach(async () => {
    stub = await KubernetesStub.start();
    writeFileSync(join(stub.directory, 'job.json'), JSON.stringify(template));
  });
  afterEach(() => stub.stop());

  /** The outcome of the submission, and what is found of it. */
  const outcomes = async () => {
    const submitter = stub.plugin('submitter', { k8s_yaml_file: 'job.json' });
    const outcome = (await submitter.submit([worker], signal)).get(1);
    return [outcome?.kind, (await submitter.find([worker], signal)).get(1)?.kind];
  };

  it('has an unknown outcome where a gateway answers with two Retry-After headers', async () => {
    stub.answer = (response, { verb, resource }, seen) => {
      if (verb !== 'create' || resource !== 'jobs') return false;
      const made = JSON.parse(seen.body) as StubObject;
      stub.jobs.set(made.metadata.name, { ...made, metadata: { ...made.metadata, uid: 'u' } });
      response.writeHead(504, ['Retry-After', '1', 'Retry-After', '2']).end('upstream timeout');
      return true;
    };
    expect(await outcomes()).to.deep.equal(['unknown', 'found']);
  });

  it('has an unknown outcome where anything fails behind the creation that is no error of thresher', async () => {
    stub.answer = (response, { verb, resource }, seen) => {
      if (verb !== 'create' || resource !== 'jobs') return false;
      const made = JSON.parse(seen.body) as StubObject;
      const object = { ...made, metadata: { ...made.metadata, uid: 'u' } };
      stub.jobs.set(made.metadata.name, object);
      json(201, object)(response, seen);
      return true;
    };
    const own = Object.getOwnPropertyDescriptor(KubernetesClient.prototype, 'createText')!;
    const createText = own.value as KubernetesClient['createText'];
    const failing: KubernetesClient['createText'] = async function (this: KubernetesClient, ...given) {
      await createText.apply(this, given);
      throw new TypeError('a fault of our own');
    };
    Object.defineProperty(KubernetesClient.prototype, 'createText', { ...own, value: failing });
    try {
      expect(await outcomes()).to.deep.equal(['unknown', 'found']);
    } finally {
      Object.defineProperty(KubernetesClient.prototype, 'createText', own);
    }
  });
});

describe('c13: the credentials of a Kubernetes queue', () => {
  let stub: KubernetesStub;

  beforeEach(async () => {
    stub = await KubernetesStub.start();
    const mounts = [
      { name: 'proxy', mountPath: '/proxy' },
      { name: 'token', mountPath: '/token' },
    ];
    const volumes = [
      { name: 'proxy', secret: { secretName: 'proxy-secret' } },
      { name: 'token', secret: { secretName: 'token-secret', items: [{ key: 'panda', path: 'pilot' }] } },
    ];
    const spec = {
      restartPolicy: 'Never',
      containers: [{ ...containers[0], volumeMounts: mounts }],
      volumes,
    };
    writeFileSync(
      join(stub.directory, 'job.json'),
      JSON.stringify({ ...template, spec: { ...template.spec, template: { spec } } }),
    );
  });
  afterEach(() => stub.stop());

  const named = async (options: object) => {
    const submitter = stub.plugin('submitter', { k8s_yaml_file: 'job.json', ...options });
    return ((await submitter.credentials?.()) ?? []).map((name) =>
      String(name).replace(/^.*kubeconfig\W*/, ''),
    );
  };
  const token = { tokenDir: '/token', pandaTokenFilename: 'pilot' };

  it("are the proxy and the pilot's token, in the Secrets where the template mounts them", async () => {
    const [proxy = '', panda = ''] = await named({ proxySecretPath: '/proxy/x509', ...token });
    expect(proxy).to.match(/proxy-secret\W+x509$/);
    expect(panda).to.match(/token-secret\W+panda$/);
    expect(await named(token)).to.deep.equal([panda]);
    expect(await named({ tokenDir: '/token' })).to.deep.equal([]);
    expect(await named({ ...token, pandaTokenFilename: 'other' })).to.deep.equal([]);
  });

  it('are the token beside a proxy of this machine', async () => {
    const [file, panda] = await named({ x509UserProxy: '/run/proxy', ...token });
    expect(file).to.equal('/run/proxy');
    expect(panda).to.match(/token-secret\W+panda$/);
  });
});
