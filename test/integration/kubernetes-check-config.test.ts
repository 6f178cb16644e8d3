import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { controlPlane, type ControlPlane, type Namespace } from '../support/kubernetes.ts';
import { account, workerRights } from '../support/kubernetes-rights.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import type { Site } from '../support/site.ts';

/** A template whose pilot's container has this beside what every one has. */
function withContainer(more: Record<string, unknown>): Record<string, unknown> {
  const container = { name: 'pilot', image: 'busybox', ...more };
  return jobTemplate({}, { containers: [container] });
}

describe('check-config --server', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let site: Site;

  before(async () => {
    plane = await controlPlane();
  });
  beforeEach(async () => {
    space = await plane.namespace('check');
  });
  afterEach(async () => {
    await site.clean();
    await space[Symbol.asyncDispose]();
  });

  /** What is printed, without the directory. */
  async function checked(
    templates: Record<string, unknown>,
    access: Parameters<typeof kubernetesSite>[3] = {},
  ): Promise<{ status: number | null; lines: string[] }> {
    const names = Object.keys(templates);
    const queues = Object.fromEntries(
      names.map((name) => [name, kubernetesQueue(space, { template: `${name}.yaml` })]),
    );
    const files = Object.fromEntries(names.map((name) => [`${name}.yaml`, templates[name]]));
    site = kubernetesSite(plane, { queues }, files, access);
    const { status, stdout } = await site.run('check-config', '--server');
    return { status, lines: stdout.replaceAll(`${site.directory}/`, '').trimEnd().split('\n') };
  }

  const jobs = async () => (await space.client.list(space.jobs())).length;

  it('finds what only the server knows, at its line of the template, and keeps nothing there', async () => {
    const { status, lines } = await checked({
      GOOD: jobTemplate(),
      POLICY: withContainer({ imagePullPolicy: 'Sometimes' }),
      UNKNOWN: withContainer({ fooBar: 1 }),
    });
    expect(status).to.equal(1);
    expect(lines[0]).to.match(/^GOOD\s+ready$/);
    const ofQueue = (name: string) =>
      lines.find((line) => line.startsWith(`  ${name}.yaml:`) && line.includes(': error: ')) ?? '';
    const [policy, unknown] = [ofQueue('POLICY'), ofQueue('UNKNOWN')];
    expect(policy).to.match(
      /^ {2}POLICY\.yaml:\d+ \/spec\/template\/spec\/containers\/0\/imagePullPolicy: error: .*Unsupported value: "Sometimes".* \[server-refused\]$/,
    );
    expect(unknown).to.match(
      /^ {2}UNKNOWN\.yaml:\d+ \/spec\/template\/spec\/containers\/0\/fooBar: error: .*unknown field.* \[server-refused\]$/,
    );
    const line = Number(/:(\d+) /.exec(policy)?.[1]);
    const text = readFileSync(site.path('POLICY.yaml'), 'utf8').split('\n');
    expect(text[line - 1]).to.include('imagePullPolicy');
    expect(await jobs()).to.equal(0);
  });

  it('says of a queue whose server does not answer that it could not be asked', async () => {
    const { status, lines } = await checked({ Q: jobTemplate() }, { server: 'https://127.0.0.1:1' });
    expect(status).to.equal(1);
    expect(lines[0]).to.match(/^Q\s+ready$/);
    expect(lines[1]).to.match(
      /\/Q\/submitter\/k8s_config_file: error: .*127\.0\.0\.1:1.* \[server-unknown\]$/,
    );
  });

  it('names the rights that the user lacks', async () => {
    await space.client.create(space.core('serviceaccounts'), { metadata: { name: 'nobody' } });
    const token = await plane.token(space.name, 'nobody');
    const { lines } = await checked({ Q: jobTemplate() }, { token });
    expect(lines.slice(1, 3).join('\n')).to.include(
      `the user lacks the right to create, get, list, watch, delete jobs in namespace "${space.name}"`,
    );
    expect(lines.slice(1, 3).join('\n')).to.include('list, watch, delete pods');
  });

  it('warns of rights that it can do without, and says what is lost', async () => {
    await account(space, [...workerRights, { apiGroups: [''], resources: ['events'], verbs: ['create'] }]);
    const token = await plane.token(space.name, 'thresher');
    const { status, lines } = await checked({ Q: jobTemplate() }, { token });
    expect(status).to.equal(0);
    const said = lines.join('\n');
    expect(said).to.match(
      /warning: .*right to get pods\/log .*`thresher logs` reads nothing \[server-warned\]/,
    );
    expect(said).to.match(/warning: .*right to list events .*\[server-warned\]/);
  });

  it('says of a login that is refused that the kubeconfig is wrong, not the template', async () => {
    const { status, lines } = await checked({ Q: jobTemplate() }, { token: 'nobody-knows-it' });
    expect(status).to.equal(1);
    expect(lines[1]).to.match(
      /\/Q\/submitter\/k8s_config_file: error: .*kubernetes-unauthorized.*\[server-refused\]$/,
    );
  });

  it('warns where a quota leaves no room at the moment', async () => {
    await space.client.create(space.core('resourcequotas'), {
      metadata: { name: 'none' },
      spec: { hard: { 'count/jobs.batch': '0' } },
    });
    const { status, lines } = await checked({ Q: jobTemplate() });
    expect(status).to.equal(0);
    expect(lines[1]).to.match(/warning: .*exceeded quota: none.* \[server-warned\]$/);
  });

  it('finds nothing wrong with the example, but that its kubeconfig is not there', async () => {
    const example = join(import.meta.dirname, '../../templates/kubernetes/panda_queueconfig.json');
    site = kubernetesSite(plane, { queues: {}, settings: { qconf: { configFile: example } } });
    const { stdout } = await site.run('check-config', '--output', 'json');
    const found = JSON.parse(stdout) as { state: string; problems: { message: string }[] }[];
    expect(found.map(({ state }) => state)).to.deep.equal(['incomplete', 'incomplete']);
    for (const { problems } of found)
      expect(problems.map(({ message }) => message).join()).to.match(/^kubeconfig [^,]*ENOENT[^,]*$/);
  });

  it('asks nobody without --server', async () => {
    site = kubernetesSite(plane, { queues: { Q: kubernetesQueue(space) } }, undefined, {
      server: 'https://127.0.0.1:1',
    });
    expect((await site.run('check-config')).status).to.equal(0);
  });
});
