import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { runHere } from '../support/command-line.ts';
import { type ControlPlane, controlPlane, type KubeObject, type Namespace } from '../support/kubernetes.ts';
import { kubernetesSite } from '../support/kubernetes-site.ts';
import {
  comparable,
  type ManifestTools,
  manifestTools,
  objectsIn,
  poolTemplates,
} from '../support/manifest-tools.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const base = join(poolTemplates, 'base');
const chart = join(poolTemplates, 'chart');
const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

/** A Pod of an object that makes Pods. */
interface PodMaker extends KubeObject {
  readonly spec: { readonly template: { readonly metadata: object; readonly spec: object } };
}

async function printed(...args: string[]): Promise<readonly KubeObject[]> {
  const { status, stdout, stderr } = await runHere('pool', 'manifests', ...args);
  expect(status, stderr).to.equal(0);
  return objectsIn(stdout);
}

/** A kustomization of a test's own upon the one of the project. */
function overlay(kustomization: object): string {
  const directory = join(temporaryDirectory(), 'overlay');
  mkdirSync(directory);
  const resources = [relative(directory, base)];
  writeFileSync(join(directory, 'kustomization.yaml'), stringify({ resources, ...kustomization }));
  return directory;
}

describe('the objects of a HTCondor pool', () => {
  let plane: ControlPlane;
  let tools: ManifestTools;

  before(async function () {
    this.timeout(900_000);
    plane = await controlPlane();
    tools = await manifestTools(dirname(plane.status.directory));
  });

  describe('are the same by kustomize, Helm and thresher', () => {
    it('with default values', async () => {
      const expected = comparable(await tools.kustomize(base));
      expect(Object.keys(expected)).to.have.lengthOf(14);
      expect(comparable(await tools.helm(chart))).to.deep.equal(expected);
      expect(comparable(await printed())).to.deep.equal(expected);
    });

    it('with a pool password', async () => {
      const expected = comparable(await tools.kustomize(join(poolTemplates, 'overlays/pool-password')));
      expect(comparable(await tools.helm(chart, '--set', 'security=password'))).to.deep.equal(expected);
      expect(comparable(await printed('--security', 'password'))).to.deep.equal(expected);
      expect(JSON.stringify(expected)).not.to.match(/-token"|tokens-orig|signing-key/);
    });

    it('with a digest, more workers, a storage class, networks', async () => {
      const kustomization = overlay({
        images: [{ name: 'registry.example.org/htcondor-pool', newName: 'example.net/condor', digest }],
        replicas: [{ name: 'htcondor-worker', count: 3 }],
        patches: [
          {
            target: { kind: 'PersistentVolumeClaim' },
            patch: stringify([
              { op: 'add', path: '/spec/storageClassName', value: 'fast' },
              { op: 'replace', path: '/spec/resources/requests/storage', value: '50Gi' },
            ]),
          },
          {
            target: { kind: 'NetworkPolicy' },
            patch: stringify([
              { op: 'add', path: '/spec/ingress/0/from/-', value: { ipBlock: { cidr: '192.0.2.0/24' } } },
              { op: 'add', path: '/spec/egress/1/to/-', value: { ipBlock: { cidr: '192.0.2.0/24' } } },
              {
                op: 'add',
                path: '/spec/egress/-',
                value: { to: [{ ipBlock: { cidr: '198.51.100.0/24' } }] },
              },
            ]),
          },
        ],
      });
      const expected = comparable(await tools.kustomize(kustomization));
      const values = {
        image: { repository: 'example.net/condor', digest },
        workers: 3,
        storageClass: 'fast',
        spoolSize: '50Gi',
        clients: ['192.0.2.0/24'],
        workerEgress: ['198.51.100.0/24'],
      };
      const file = join(temporaryDirectory(), 'values.yaml');
      writeFileSync(file, stringify(values));
      expect(comparable(await tools.helm(chart, '--values', file))).to.deep.equal(expected);
      const options = [
        '--image',
        `example.net/condor@${digest}`,
        '--workers',
        '3',
        '--storage-class',
        'fast',
      ];
      const more = [
        '--spool-size',
        '50Gi',
        '--clients',
        '192.0.2.0/24',
        '--worker-egress',
        '198.51.100.0/24',
      ];
      expect(comparable(await printed(...options, ...more))).to.deep.equal(expected);
    });

    it('with names, a trust domain and a size of workers, by Helm and thresher', async () => {
      const values = ['name=other', 'trustDomain=htcondor-worker', 'workerMemory=8192'];
      const helm = await tools.helm(
        chart,
        ...values.flatMap((value) => ['--set', value]),
        '--set-string',
        'workerCpus=4',
      );
      const options = ['--name', 'other', '--trust-domain', 'htcondor-worker', '--worker-memory', '8Gi'];
      const objects = comparable(await printed(...options, '--worker-cpus', '4'));
      expect(objects).to.deep.equal(comparable(helm));
      expect(Object.keys(objects).filter((key) => !key.includes(' other-'))).to.deep.equal([]);
      // A value is no name of the templates, even where it looks like one.
      expect(JSON.stringify(objects))
        .to.include('"value":"htcondor-worker"')
        .and.not.to.include('"htcondor-schedd"');
    });

    it('Helm refuses values that cannot be', async () => {
      for (const value of [
        'workers=-1',
        'security=none',
        'name=UPPER',
        'image.digest=sha256:12',
        'wrokers=2',
      ])
        await tools.helm(chart, '--set', value).then(
          () => expect.fail(`Helm takes ${value}`),
          (error: unknown) => expect(String(error)).to.match(/schema/),
        );
    });
  });

  describe('on a real API server', () => {
    let space: Namespace;

    before(async () => {
      space = await plane.namespace('pool');
      // Admission judges Pods alone by it.
      await plane.client.patch(`/api/v1/namespaces/${space.name}`, {
        metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
      });
    });

    after(() => space[Symbol.asyncDispose]());

    for (const security of ['tokens', 'password'])
      it(`Pods with ${security} need no more than the Pod security standard "restricted" lets them`, async () => {
        const makers = (await printed('--security', security)).filter(({ kind }) =>
          ['Deployment', 'StatefulSet'].includes(kind ?? ''),
        ) as PodMaker[];
        const job = (await printed('--security', security, '--worker-template')) as PodMaker[];
        const all = [...makers, ...job];
        expect(all).to.have.lengthOf(4);
        for (const { metadata, spec } of all) {
          const podSpec = { ...spec.template.spec, serviceAccountName: 'default' };
          const pod = {
            apiVersion: 'v1',
            kind: 'Pod',
            metadata: { name: metadata.name },
            spec: withoutPlaceholders(podSpec),
          };
          await space.client.create(`${space.core('pods')}?dryRun=All&fieldValidation=Strict`, pod);
        }
      });

    it('the template of workers and the queue are right by `check-config --server`', async () => {
      const queues = JSON.parse(readFileSync(join(poolTemplates, 'panda_queueconfig.json'), 'utf8')) as {
        readonly HTCONDOR: { readonly common: object };
      };
      const common = { k8s_config_file: 'kubeconfig', k8s_namespace: space.name };
      const site = kubernetesSite(
        plane,
        // The demand of the example has a test of its own.
        { queues: { HTCONDOR: { ...queues.HTCONDOR, demand: 'fill', common } } },
        { 'worker.yaml': readFileSync(join(poolTemplates, 'worker.yaml'), 'utf8') },
      );
      try {
        const { stdout, stderr } = await site.run('check-config', '--server', '--strict');
        expect(stdout + stderr).to.include('1 ready');
        const render = await site.run('render', 'HTCONDOR');
        expect(render.stdout)
          .to.match(/name: NUM_CPUS\n\s+value: ['"]1['"]/)
          .and.to.match(/name: MEMORY\n\s+value: ['"]2000['"]/)
          .and.to.match(/memory: 2256Mi/);
      } finally {
        await site.clean();
      }
    });
  });

  it('network policies let through the one port of HTCondor and DNS, and nothing else', async () => {
    const [policy] = (await printed()).filter(({ kind }) => kind === 'NetworkPolicy') as (KubeObject & {
      readonly spec: {
        readonly policyTypes: readonly string[];
        readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
        readonly ingress: readonly { readonly from: readonly object[]; readonly ports: readonly object[] }[];
        readonly egress: readonly { readonly to?: readonly object[]; readonly ports: readonly object[] }[];
      };
    })[];
    const spec = policy?.spec;
    expect(spec?.policyTypes).to.have.members(['Ingress', 'Egress']);
    const condor = [{ protocol: 'TCP', port: 9618 }];
    const dns = [
      { protocol: 'UDP', port: 53 },
      { protocol: 'TCP', port: 53 },
    ];
    const pool = { podSelector: spec?.podSelector };
    const clients = { podSelector: { matchLabels: { 'htcondor-pool-client': 'true' } } };
    expect(spec?.ingress).to.deep.equal([{ from: [pool, clients], ports: condor }]);
    expect(spec?.egress).to.deep.equal([
      { to: [pool], ports: condor },
      { to: [clients], ports: [{ protocol: 'TCP' }] },
      { ports: dns },
    ]);
    const labels = [...(await printed()), ...(await printed('--worker-template'))]
      .filter((object) => JSON.stringify(object).includes('"containers"'))
      .map((object) => (object as PodMaker).spec.template.metadata as { readonly labels: object });
    expect(labels).to.have.lengthOf(4);
    for (const one of labels) expect(one.labels).to.include(spec?.podSelector.matchLabels);
  });
});

/** thresher fills them in; the API server takes any text in their place. */
function withoutPlaceholders(value: object): object {
  return JSON.parse(JSON.stringify(value).replaceAll(/"\$[A-Za-z]+"/g, '"1"')) as object;
}
