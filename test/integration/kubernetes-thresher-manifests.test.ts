/** What templates/kubernetes/{thresher,harvester-chart} says, held against check-config, the rights in rbac.yaml and a real API server. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { recipeIn } from '../env/kubernetes/thresher-image.ts';
import { apply } from '../support/applied.ts';
import { runHere } from '../support/command-line.ts';
import { type ControlPlane, controlPlane, type KubeObject, type Namespace } from '../support/kubernetes.ts';
import { type ManifestTools, manifestTools, thresherTemplates } from '../support/manifest-tools.ts';
import { onPostgresql } from '../support/postgresql.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { isConfigMap, isDeployment, placed } from '../support/thresher-pods.ts';

type Variant = keyof typeof thresherTemplates;
type Settings = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

interface Role extends KubeObject {
  readonly rules: readonly object[];
}

const checkout = join(import.meta.dirname, '../..');

describe('the manifests of thresher', () => {
  let plane: ControlPlane;
  let tools: ManifestTools;
  let home: Namespace;
  let pilots: Namespace;

  before(async function () {
    this.timeout(900_000);
    plane = await controlPlane();
    tools = await manifestTools(dirname(plane.status.directory));
  });

  beforeEach(async () => {
    [home, pilots] = await Promise.all([plane.namespace('thresher'), plane.namespace('pilots')]);
  });

  afterEach(async () => {
    for (const space of [home, pilots]) await space[Symbol.asyncDispose]();
  });

  const objectsOf = async (variant: Variant): Promise<readonly KubeObject[]> =>
    placed(await tools.kustomize(thresherTemplates[variant]), home, pilots);

  /** All files of the ConfigMaps, as both lie in one directory of the Pod. */
  const filesOf = (objects: readonly KubeObject[]): Record<string, string> =>
    Object.assign({}, ...objects.filter(isConfigMap).map(({ data }) => data)) as Record<string, string>;

  const settingsOf = async (variant: Variant): Promise<Settings> =>
    parse(filesOf(await objectsOf(variant))['thresher.yaml'] ?? '') as Settings;

  /** The files as a Pod has them, below a directory of the test's own. @returns the settings */
  function lay(files: Readonly<Record<string, string>>, database: object | undefined): string {
    const directory = temporaryDirectory();
    const secret = join(directory, 'secret');
    mkdirSync(secret);
    for (const key of ['http-token', 'database-password']) writeFileSync(join(secret, key), `${key}-1\n`);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
    const config = join(directory, 'thresher.yaml');
    const local = (files['thresher.yaml'] ?? '')
      .replaceAll('/etc/thresher-secret/', `${secret}/`)
      .replaceAll('/etc/thresher/', `${directory}/`)
      .replaceAll('/var/lib/thresher', join(directory, 'state'));
    const settings = parse(local) as Record<string, object>;
    if (database !== undefined) settings['database'] = { ...settings['database'], ...database };
    writeFileSync(config, stringify(settings));
    return config;
  }

  for (const [variant, onServer] of [
    ['base', true],
    ['sqlite', false],
  ] as const)
    it(`${variant}: are taken by the API server, and check-config finds all that the queue needs`, async () => {
      const objects = await objectsOf(variant);
      for (const object of objects)
        if (object.kind !== 'Namespace') await apply(plane.client, object, object.metadata.namespace ?? '');
      const config = lay(filesOf(objects), onServer ? (await onPostgresql()).database : undefined);
      // A Pod finds its account by itself.
      const kubeconfig = join(dirname(config), 'kubeconfig');
      plane.writeKubeconfig(kubeconfig, { token: await plane.token(home.name, 'thresher') });
      const queueFile = join(dirname(config), 'panda_queueconfig.json');
      const queues = readFileSync(queueFile, 'utf8');
      writeFileSync(queueFile, queues.replace('"common": {', `"common": { "k8s_config_file": "kubeconfig",`));
      const { status, stdout } = await runHere('--config', config, 'check-config', '--server', '--strict');
      expect(status, stdout).to.equal(0);
      expect(stdout).to.match(/^KUBERNETES +ready$/m);
    });

  it('give thresher the rights that every queue needs by rbac.yaml, and no others', async () => {
    const all = parseAllDocuments(readFileSync(join(checkout, 'templates/kubernetes/rbac.yaml'), 'utf8'));
    const [expected] = all.map((document) => document.toJS() as Role).filter(({ kind }) => kind === 'Role');
    for (const variant of ['base', 'sqlite'] as const) {
      const objects = await objectsOf(variant);
      const roles = objects.filter(({ kind }) => kind?.endsWith('Role')) as Role[];
      expect(roles.map(({ rules }) => rules)).to.deep.equal([expected?.rules]);
    }
  });

  it('name the factory, since a new Pod has neither its file nor the same host', async () => {
    const { database, ...common } = await settingsOf('base');
    expect(common['master']).to.include({ factoryId: 'thresher', harvester_id: 'thresher' });
    expect(database).to.have.keys('url', 'passwordFile');
    expect(await settingsOf('sqlite')).to.deep.equal(common);
  });

  it('start two Pods on PostgreSQL, and never a second one on a volume', async () => {
    const kinds = async (variant: Variant) => {
      const objects = await objectsOf(variant);
      const { replicas, strategy } = objects.find(isDeployment)?.spec ?? {};
      const has = (kind: string) => objects.some((object) => object.kind === kind);
      const [budget, claim] = [has('PodDisruptionBudget'), has('PersistentVolumeClaim')];
      return { replicas, strategy: strategy?.type, budget, claim };
    };
    const base = { replicas: 2, strategy: 'RollingUpdate', budget: true, claim: false };
    expect(await kinds('base')).to.deep.equal(base);
    const sqlite = { replicas: 1, strategy: 'Recreate', budget: false, claim: true };
    expect(await kinds('sqlite')).to.deep.equal(sqlite);
  });

  it('hole 6: give the next Pod on a volume the name of the machine that the former one had, and none to Pods side by side', async () => {
    const hostnameOf = async (variant: Variant) => {
      const { spec } = (await objectsOf(variant)).find(isDeployment) as unknown as {
        readonly spec: { readonly template: { readonly spec: { readonly hostname?: string } } };
      };
      return spec.template.spec.hostname;
    };
    expect([await hostnameOf('base'), await hostnameOf('sqlite')]).to.deep.equal([undefined, 'thresher']);
  });

  it('take other settings by new Pods, and other queues without', async () => {
    const names = async (variant: Variant) =>
      (await objectsOf(variant)).filter(isConfigMap).map(({ metadata }) => metadata.name);
    const [base, sqlite] = [await names('base'), await names('sqlite')];
    for (const [queues, settings] of [base.sort(), sqlite.sort()]) {
      expect(queues).to.equal('thresher-queues');
      expect(settings).to.match(/^thresher-settings-[a-z0-9]{10}$/);
    }
    expect(base).not.to.deep.equal(sqlite);
  });

  it('run the user of the Containerfile, with its home on a volume', async () => {
    const { config, packages } = recipeIn(readFileSync(join(checkout, 'Containerfile'), 'utf8'));
    for (const variant of ['base', 'sqlite'] as const) {
      const text = JSON.stringify((await objectsOf(variant)).find(isDeployment));
      expect(text).to.include('"readOnlyRootFilesystem":true').and.include('"runAsNonRoot":true');
      const [user, group] = config.User.split(':');
      expect(text)
        .to.include(`"runAsUser":${user ?? ''}`)
        .and.include(`"runAsGroup":${group ?? ''}`);
      const home = config.Env.find((variable) => variable.startsWith('HOME='))?.slice('HOME='.length);
      expect(text).to.include(`"mountPath":"${home ?? ''}"`);
    }
    // The probe of readiness calls it.
    expect(packages).to.include('curl');
  });

  describe("of PanDA's chart, with thresher in place of Harvester", () => {
    const labels = { 'app.kubernetes.io/name': 'harvester' };
    /** What matters here of the StatefulSet in helm/harvester of panda-k8s, as Helm makes it. */
    const chart = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'panda-harvester', labels },
      spec: {
        replicas: 1,
        serviceName: 'panda-harvester',
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            hostname: 'panda',
            containers: [
              {
                name: 'harvester',
                image: 'ghcr.io/hsf/harvester:v0.6.5',
                livenessProbe: {
                  exec: { command: ['cat', '/var/log/panda/harvester_healthy'] },
                  initialDelaySeconds: 1800,
                  periodSeconds: 600,
                },
                command: ['/bin/sh', '-c'],
                args: ['runuser -u atlpan -g zp -- run-harvester-services; sleep infinity & wait'],
                ports: [{ name: 'http', containerPort: 8080 }],
                volumeMounts: [{ name: 'temp', mountPath: '/tmp' }],
              },
            ],
            volumes: [{ name: 'temp', emptyDir: {} }],
          },
        },
      },
    };

    interface Container {
      readonly args: readonly string[];
      readonly livenessProbe: object;
      readonly volumeMounts: readonly { readonly name: string }[];
    }

    async function patched(): Promise<{ objects: readonly KubeObject[]; container: Container }> {
      const directory = join(temporaryDirectory(), 'chart');
      cpSync(join(checkout, 'templates/kubernetes/harvester-chart'), directory, { recursive: true });
      writeFileSync(join(directory, 'chart.yaml'), stringify(chart));
      const objects = await tools.kustomize(directory);
      const { spec } = objects.find(({ kind }) => kind === 'StatefulSet') as unknown as {
        readonly spec: { readonly template: { readonly spec: { readonly containers: [Container] } } };
      };
      return { objects, container: spec.template.spec.containers[0] };
    }

    it('are taken by the API server: one container, a probe of the daemon, a volume for its state', async () => {
      const { objects, container } = await patched();
      for (const object of objects) await apply(plane.client, object, home.name);
      expect(container.livenessProbe).to.have.keys(
        ...['httpGet', 'initialDelaySeconds', 'periodSeconds', 'timeoutSeconds', 'failureThreshold'],
      );
      expect(container.volumeMounts.map(({ name }) => name)).to.have.members([
        ...['thresher', 'thresher-state', 'temp'],
      ]);
      expect(objects.map(({ kind }) => kind).sort()).to.deep.equal(['PersistentVolumeClaim', 'StatefulSet']);
    });

    /** The start of the container below a directory of the test's own, by its own user. @returns what it says, in lines */
    async function started(services: string): Promise<readonly string[]> {
      const root = join(temporaryDirectory(), 'root');
      const write = (path: string, text: string) => {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), text, { mode: 0o755 });
      };
      const script = '#!/bin/bash\n';
      for (const name of ['panda', 'harvester_wdirs', 'condor_logs']) write(`/var/log/${name}/x`, '');
      write('/var/www/html/x', '');
      write('/var/lib/thresher/x', '');
      write('/opt/harvester/sandbox/init-harvester', `${script}echo init\n`);
      write('/opt/harvester/sandbox/run-harvester-crons', `${script}true\n`);
      write('/opt/harvester/sandbox/setup-harvester', 'export HARVESTER_ID=site-0\n');
      write('/data/harvester/x', '');
      write(
        '/thresher/node_modules/.bin/thresher',
        `${script}echo "thresher $* with $HARVESTER_ID of $PANDA_HOME"\n`,
      );
      write('/opt/harvester/etc/rc.d/init.d/panda_harvester-uwsgi', `${script}echo harvester runs\n`);
      const below = (text: string) =>
        text.replaceAll(/(?<![\w/.$}-])\/(opt|data|thresher|var)\//g, `${root}/$1/`);
      write('/opt/harvester/etc/rc.d/init.d/run-harvester-services', script + below(services));
      const [args = ''] = (await patched()).container.args;
      const own = below(args)
        .replace('chown atlpan:zp', 'chown root:root')
        .replace('setpriv --reuid atlpan --regid zp --init-groups --', 'exec');
      const ran = promisify(execFile)('bash', ['--norc', '-c', own.replace('exec exec', 'exec')], {
        env: { PATH: process.env['PATH'], PANDA_HOME: '/opt/harvester' },
      });
      const { stdout, stderr } = await ran.catch((error: unknown) => error as Awaited<typeof ran>);
      return (stdout + stderr).replaceAll(root, '').trim().split('\n');
    }

    it("start thresher where the image's own script starts Harvester, and else nothing", async () => {
      const steps = [
        'set -m',
        '/data/harvester/init-harvester',
        '/data/harvester/run-harvester-crons &',
        'source /data/harvester/setup-harvester',
      ];
      // With blanks at the ends of lines, as the Dockerfile of Harvester writes them.
      const services = (last: string) => `${[...steps, last].join(' \n')} \n `;
      expect(
        await started(services('/opt/harvester/etc/rc.d/init.d/panda_harvester-uwsgi start')),
      ).to.deep.equal(['init', 'thresher run with site-0 of /opt/harvester']);
      for (const other of ['exec panda_harvester-uwsgi restart', '/opt/harvester/bin/harvester'])
        expect(await started(services(other))).to.deep.equal([
          '/opt/harvester/etc/rc.d/init.d/run-harvester-services starts Harvester in another way than this patch knows',
        ]);
    });
  });
});
