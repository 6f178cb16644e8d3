import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { KubernetesStub } from '../../support/kubernetes-stub.ts';
import { workerOf } from '../../support/samples.ts';
import { json } from '../../support/scripted-server.ts';

const { signal } = new AbortController();
const job = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  spec: {
    backoffLimit: 0,
    podReplacementPolicy: 'Failed',
    template: {
      spec: {
        restartPolicy: 'Never',
        containers: [{ name: 'pilot', image: 'busybox', command: ['true'] }],
      },
    },
  },
};

/** A server on which the user may do everything but create Secrets. */
async function withoutSecrets(): Promise<KubernetesStub> {
  const stub = await KubernetesStub.start();
  stub.answer = (response, { resource }, seen) => {
    if (resource !== 'selfsubjectaccessreviews') return false;
    const allowed = !seen.body.includes('"secrets"');
    json(201, { status: { allowed } })(response, seen);
    return true;
  };
  writeFileSync(join(stub.directory, 'job.json'), JSON.stringify(job));
  return stub;
}

describe('a rehearsal on Kubernetes', () => {
  let stub: KubernetesStub;
  beforeEach(async () => {
    stub = await withoutSecrets();
  });
  afterEach(() => stub.stop());

  const rehearsed = async (...parts: readonly (readonly ('files' | 'argv')[])[]) => {
    const submitter = stub.plugin('submitter', { k8s_yaml_file: 'job.json' });
    const found = (await submitter.rehearse?.(workerOf(1), signal, ...parts)) ?? [];
    return found.map(({ code, severity = 'error' }) => `${severity} ${code}`);
  };

  it('refuses a queue whose own source gives files without the rights', async () => {
    expect(await rehearsed(['files'])).to.deep.equal(['error server-refused']);
  });

  it('notes the rights that files from operators need, and refuses nothing', async () => {
    expect(await rehearsed([], ['files', 'argv'])).to.deep.equal(['notice server-warned']);
  });

  it('asks for no such right where no source gives files', async () => {
    expect(await rehearsed([], ['argv'])).to.deep.equal([]);
  });
});
