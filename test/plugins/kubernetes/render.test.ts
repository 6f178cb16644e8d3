import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { KubernetesStub } from '../../support/kubernetes-stub.ts';
import { jobTemplate } from '../../support/kubernetes-site.ts';
import { json } from '../../support/scripted-server.ts';
import { workerOf } from '../../support/samples.ts';
import type { Rendered } from '../../../src/plugins/contracts/index.ts';

const { signal } = new AbortController();
const silent = jobTemplate({}, { containers: [{ name: 'pilot', image: 'busybox' }] });

describe('a Job that is rendered', () => {
  let stub: KubernetesStub;
  /** Jobs that the server got. */
  let sent: unknown[];

  beforeEach(async () => {
    stub = await KubernetesStub.start();
    sent = [];
    stub.answer = (response, asked, seen) => {
      if (asked.verb !== 'create' || asked.resource !== 'jobs') return false;
      sent.push(JSON.parse(seen.body));
      json(201, JSON.parse(seen.body))(response, seen);
      return true;
    };
    writeFileSync(join(stub.directory, 'x509'), '-----BEGIN CERTIFICATE-----\n');
  });
  afterEach(() => stub.stop());

  for (const [what, template, section] of [
    ['of a template with a command', jobTemplate(), {}],
    ['of a template without a command', silent, { proxySecretPath: '/proxy/x509' }],
    ['with a proxy of this machine', jobTemplate(), { x509UserProxy: 'x509' }],
  ] as const) {
    it(`${what} is the very Job that the server gets for the same worker, and asks the server nothing`, async () => {
      writeFileSync(join(stub.directory, 'job.yaml'), stringify(template));
      const submitter = stub.plugin('submitter', { k8s_yaml_file: 'job.yaml', ...section });
      const worker = workerOf(17, { name: 'factory-17', placement: 'kubernetes:here/grid' });
      const rendered = await submitter.render?.(worker);
      expect(stub.requests).to.deep.equal([]);
      const outcome = (await submitter.submit([worker], signal)).get(17);
      expect(outcome?.kind).to.equal('accepted');
      expect(sent).to.deep.equal([JSON.parse(JSON.stringify(rendered?.document))]);
    });
  }

  it('names the files of a payload and the object that they go into, and shows none of them', async () => {
    writeFileSync(join(stub.directory, 'job.yaml'), stringify(jobTemplate()));
    const submitter = stub.plugin('submitter', { k8s_yaml_file: 'job.yaml' });
    const files = [{ name: 'token', mode: 0o600, content: 'aHVzaC1odXNo', secret: true }];
    const rendered = await submitter.render?.({ ...workerOf(17), payload: { files, argv: ['./a'] } });
    const notes = rendered?.notes.join('\n');
    expect(notes).to.include('go into the Secret factory-17-payload-1 of grid, which the Job owns');
    expect(notes).to.include('file of the payload: "token", mode 0600, 9 bytes, secret');
    expect(JSON.stringify(rendered)).not.to.match(/aHVzaC1|hush-/);
    expect(stub.requests).to.deep.equal([]);
  });

  it('says which Secret and ConfigMap go before it, and from which files it is', async () => {
    writeFileSync(join(stub.directory, 'job.yaml'), stringify(silent));
    const submitter = stub.plugin('submitter', { k8s_yaml_file: 'job.yaml', x509UserProxy: 'x509' });
    const { files, notes, environment } = (await submitter.render?.(workerOf(17))) as Rendered;
    expect(files.map(({ role, path }) => `${role} ${path.replace(stub.directory, '')}`)).to.deep.equal([
      ...['template /job.yaml', 'kubeconfig /kubeconfig', 'proxy /x509'],
    ]);
    expect(notes.join('\n')).to.match(
      /into the Secret factory-proxy-\w{16} of grid.*\n.*ConfigMap pilots-starter of grid/,
    );
    expect(environment).to.include({ workerID: '17', submit_mode: 'PULL' });
    expect(environment['proxyContent']).to.match(/^\(from .*secretKeyRef/);
  });
});
