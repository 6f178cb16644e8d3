import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  type ApiError,
  type ControlPlane,
  controlPlane,
  container,
  type FakeNode,
  type KubeObject,
  type Namespace,
  type Pod,
} from '../support/kubernetes.ts';
import { PoolCommands } from '../support/pool-commands.ts';
import { until } from '../support/until.ts';

interface Secret extends KubeObject {
  readonly data: Readonly<Record<string, string>>;
}

interface Deployment extends KubeObject {
  readonly spec: { readonly replicas: number };
}

interface Budget extends KubeObject {
  readonly status?: { readonly currentHealthy: number; readonly observedGeneration?: number };
}

describe('thresher pool init and manifests, on a real API server', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let pool: PoolCommands;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('pool');
    pool = new PoolCommands(plane, space);
  });

  afterEach(() => space[Symbol.asyncDispose]());

  const deployment = (name: string) => `/apis/apps/v1/namespaces/${space.name}/deployments/${name}`;
  const versions = async () => {
    const lists = [
      space.core('services'),
      space.core('secrets'),
      space.core('persistentvolumeclaims'),
      `/apis/apps/v1/namespaces/${space.name}/statefulsets`,
      `/apis/apps/v1/namespaces/${space.name}/deployments`,
      `/apis/policy/v1/namespaces/${space.name}/poddisruptionbudgets`,
      `/apis/networking.k8s.io/v1/namespaces/${space.name}/networkpolicies`,
    ];
    const objects = (await Promise.all(lists.map((list) => plane.client.list(list)))).flat();
    return objects.map(({ metadata }) => `${metadata.name} ${metadata.uid ?? ''}`).toSorted();
  };
  /** Times at which managers of fields wrote: an apply that changes nothing leaves them. */
  const writtenByUs = async () => {
    const { metadata } = await plane.client.get<
      KubeObject & { metadata: { managedFields: { manager: string; time: string }[] } }
    >(deployment('htcondor-worker'));
    return metadata.managedFields.filter(({ manager }) => manager === 'thresher-pool');
  };

  it('a dry run says what would be, and changes nothing', async () => {
    const directory = join(pool.directory, 'keys');
    const before = await versions();
    expect(await pool.outcomes('manifests', '--dry-run')).to.include({
      'StatefulSet htcondor-schedd': 'created',
      'Deployment htcondor-worker': 'created',
    });
    expect(await pool.outcomes('init', '--directory', directory, '--apply', '--dry-run')).to.deep.equal({
      'Secret htcondor-pool-signing-key': 'created',
      'Secret htcondor-schedd-token': 'created',
      'Secret htcondor-worker-token': 'created',
    });
    expect(await versions()).to.deep.equal(before);
  });

  it('init makes key, tokens and Secrets; a second --apply uses the same files and changes nothing', async () => {
    const directory = join(pool.directory, 'keys');
    const init = ['init', '--directory', directory, '--apply'];
    const { stdout, stderr } = await pool.run(...init);
    const key = readFileSync(join(directory, 'signing-key'));
    expect(stdout + stderr)
      .not.to.include(key.toString('base64'))
      .and.not.to.match(/eyJ/);
    expect(statSync(directory).mode & 0o777).to.equal(0o700);
    expect(statSync(join(directory, 'admin/token')).mode & 0o777).to.equal(0o600);
    const secret = await plane.client.get<Secret>(space.core('secrets', 'htcondor-pool-signing-key'));
    expect(secret.data['POOL']).to.equal(key.toString('base64'));
    const before = secret.metadata.resourceVersion;
    expect(Object.values(await pool.outcomes(...init))).to.deep.equal(Array(3).fill('unchanged'));
    const after = await plane.client.get<Secret>(space.core('secrets', 'htcondor-pool-signing-key'));
    expect(after.metadata.resourceVersion).to.equal(before);
    expect(readFileSync(join(directory, 'signing-key')).equals(key)).to.equal(true);
  });

  it('a second --apply changes nothing, and one of other options changes what they say', async () => {
    await pool.outcomes('manifests', '--apply');
    const before = await writtenByUs();
    expect(new Set(Object.values(await pool.outcomes('manifests', '--apply')))).to.deep.equal(
      new Set(['unchanged']),
    );
    expect(await writtenByUs()).to.deep.equal(before);
    const outcomes = await pool.outcomes('manifests', '--apply', '--workers', '3');
    expect(Object.entries(outcomes).filter(([, outcome]) => outcome !== 'unchanged')).to.deep.equal([
      ['Deployment htcondor-worker', 'changed'],
    ]);
  });

  it('an object that the server refuses keeps all others back', async () => {
    await plane.client.create(space.core('resourcequotas'), {
      metadata: { name: 'none' },
      spec: { hard: { persistentvolumeclaims: '0' } },
    });
    await until('the quota counts', async () => {
      const quota = await plane.client.get<KubeObject & { status?: { hard?: object } }>(
        space.core('resourcequotas', 'none'),
      );
      return quota.status?.hard;
    });
    const before = await versions();
    const { status, stderr } = await pool.run('manifests', '--apply');
    expect(status).to.equal(1);
    expect(stderr).to.match(
      /^thresher: PersistentVolumeClaim htcondor-schedd-spool: .*exceeded quota.*\[pool-refused\]\n$/,
    );
    expect(await versions()).to.deep.equal(before);
  });

  it('workers that kubectl scaled keep their number, and another one is refused with the name of kubectl', async () => {
    await pool.outcomes('manifests', '--apply');
    await plane.client.request(
      'PATCH',
      `${deployment('htcondor-worker')}/scale?fieldManager=kubectl`,
      { spec: { replicas: 2 } },
      { 'content-type': 'application/merge-patch+json' },
    );
    await pool.outcomes('manifests', '--apply');
    expect((await plane.client.get<Deployment>(deployment('htcondor-worker'))).spec.replicas).to.equal(2);
    const { status, stderr } = await pool.run('manifests', '--apply', '--workers', '5');
    expect(status).to.equal(1);
    expect(stderr).to.equal(
      'thresher: Deployment htcondor-worker: kubectl set .spec.replicas to another value: leave it to that program, or take it with --force-conflicts [pool-refused]\n',
    );
    await pool.outcomes('manifests', '--apply', '--workers', '5', '--force-conflicts');
    expect((await plane.client.get<Deployment>(deployment('htcondor-worker'))).spec.replicas).to.equal(5);
  });

  it("the seed's Secret serves the pool with a password; init leaves it alone", async () => {
    const directory = join(pool.directory, 'password');
    await pool.run('init', '--directory', directory, '--pool-password');
    expect(existsSync(join(directory, 'signing-key'))).to.equal(false);
    const password = ['manifests', '--apply', '--security', 'password'];
    const without = await pool.run(...password);
    expect(without.stderr).to.equal(
      `thresher: there is no Secret htcondor-pool-password in ${space.name}, so Pods wait for it; \`thresher pool init --apply\` makes it\n`,
    );
    // kubectl create secret generic htcondor-pool-password --from-file=/tmp/password
    const data = { password: Buffer.from('of the seed').toString('base64') };
    await plane.client.create(`${space.core('secrets')}?fieldManager=kubectl-create`, {
      metadata: { name: 'htcondor-pool-password' },
      type: 'Opaque',
      data,
    });
    expect((await pool.run(...password)).stderr).to.equal('');
    const { status, stderr } = await pool.run('init', '--directory', directory, '--pool-password', '--apply');
    expect(status).to.equal(1);
    expect(stderr).to.match(
      /Secret htcondor-pool-password: kubectl-create set \.data\.password to another value/,
    );
    const secret = await plane.client.get<Secret>(space.core('secrets', 'htcondor-pool-password'));
    expect(secret.data).to.deep.equal(data);
  });

  describe('the budget of workers that thresher starts', () => {
    let node: FakeNode;

    beforeEach(async () => {
      node = await plane.fakeNode();
    });

    afterEach(() => node[Symbol.asyncDispose]());

    const evict = (name: string) =>
      plane.client.create(`${space.core('pods', name)}/eviction`, {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace: space.name },
      });

    it('keeps one that runs a job (429), and lets an idle one go', async () => {
      await pool.outcomes('manifests', '--apply', '--workers', '0');
      const labels = {
        'app.kubernetes.io/name': 'htcondor-pool',
        'app.kubernetes.io/instance': 'htcondor',
        'app.kubernetes.io/component': 'demand-worker',
      };
      const create = (name: string) =>
        space.createJob({
          name,
          labels,
          podSpec: { ...node.podSpec, containers: [container('worker')], terminationGracePeriodSeconds: 1 },
        });
      const jobs = [await create('busy'), await create('idle')];
      const [busy, idle] = await Promise.all(
        jobs.map((job) =>
          space.untilPod(job, 'it is ready', ({ status }) =>
            Boolean(status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')),
          ),
        ),
      );
      if (busy === undefined || idle === undefined) throw new Error('there are no Pods');
      // Its probe says that no job runs there.
      await plane.client.request(
        'PATCH',
        `${space.core('pods', idle.metadata.name)}/status`,
        { status: { conditions: [{ type: 'Ready', status: 'False' }] } },
        { 'content-type': 'application/strategic-merge-patch+json' },
      );
      const path = `/apis/policy/v1/namespaces/${space.name}/poddisruptionbudgets/htcondor-demand-worker`;
      await until('the disruption controller has counted', async () => {
        const { status } = await plane.client.get<Budget>(path);
        return status?.currentHealthy === 1;
      });
      const refused = await evict(busy.metadata.name).then(
        () => undefined,
        (error: unknown) => error as ApiError,
      );
      expect(refused?.status).to.equal(429);
      expect(refused?.message).to.include('disruption budget');
      await evict(idle.metadata.name);
      const pod = await plane.client.find<Pod>(space.core('pods', idle.metadata.name));
      expect(pod === undefined || pod.metadata.deletionTimestamp !== undefined).to.equal(true);
    });
  });
});
