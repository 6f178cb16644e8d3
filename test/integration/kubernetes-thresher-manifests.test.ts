/** What templates/kubernetes/thresher says, held against check-config, the rights in rbac.yaml and a real API server. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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
});
