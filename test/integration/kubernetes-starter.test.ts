import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { brief, KubernetesBackend, watch } from '../support/kubernetes-backend.ts';
import { account, workerRights } from '../support/kubernetes-rights.ts';
import { jobTemplate } from '../support/kubernetes-site.ts';
import { container, controlPlane, type KubeObject, type Namespace, realNode } from '../support/kubernetes.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

interface ConfigMap extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { readonly annotations?: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
}

const hour = 3_600_000;
const soon = () => AbortSignal.timeout(60_000);
const small = { cpuAdjustRatio: 1, memoryAdjustRatio: 1, proxySecretPath: '/proxy/x509' };
const usersOf = ({ metadata }: ConfigMap) =>
  Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith('starter.thresher/'));

/** A template as sites of Harvester have it: an image, and no command. */
const silent = (podSpec: object = {}, pilot: object = {}) =>
  jobTemplate({}, { containers: [{ ...container('pilot'), command: undefined, ...pilot }], ...podSpec });

describe('the ConfigMap of a template without a command', () => {
  let space: Namespace;
  /** Of all factories, put forward together. */
  let forward: number;
  const clock: Clock = {
    now: () => systemClock.now() + forward,
    monotonic: () => systemClock.monotonic() + forward,
    sleep: (ms, signal) => systemClock.sleep(ms, signal),
  };

  beforeEach(async () => {
    forward = 0;
    space = await (await controlPlane()).namespace('starter');
  });
  afterEach(() => space[Symbol.asyncDispose]());

  const factory = async (factoryId: string) =>
    new KubernetesBackend(await controlPlane(), space, { clock, factoryId });
  const maps = async () =>
    (await space.client.list<ConfigMap>(space.core('configmaps'))).filter(
      ({ metadata }) => metadata.name === 'pilots-starter',
    );
  const endAll = async (backend: KubernetesBackend) => {
    for (const { metadata } of await space.client.list<KubeObject>(
      space.jobs(),
      `thresher/factory=${backend.context.factoryId}`,
    ))
      await space.client.delete(space.jobs(metadata.name));
  };

  it('is there before the first Job, is shared by two factories, and goes an hour after the last Job of both', async () => {
    const [one, two] = [await factory('factory-a'), await factory('factory-b')];
    await one.submit(one.worker(), silent(), small);
    const [first] = await maps();
    expect(first?.data?.['pilots_starter.py']).to.include('VERSION');
    await two.submit(two.worker({ name: 'factory-b-1' }), silent(), small);
    const [both] = await maps();
    expect(both && usersOf(both)).to.have.members([
      'starter.thresher/factory-a',
      'starter.thresher/factory-b',
    ]);
    expect(both?.metadata.uid).to.equal(first?.metadata.uid);

    const sweepers = [one.plugin('sweeper'), two.plugin('sweeper')] as const;
    forward += 2 * hour;
    for (const sweeper of sweepers) await sweeper.list(soon());
    expect(await maps(), 'while Jobs of both are there').to.have.length(1);

    await endAll(one);
    await sweepers[0].list(soon());
    expect((await maps()).map(usersOf), 'just after the last use').to.have.deep.members([
      both && usersOf(both),
    ]);
    forward += 2 * hour;
    await sweepers[0].list(soon());
    expect((await maps()).map(usersOf)).to.deep.equal([['starter.thresher/factory-b']]);

    await endAll(two);
    await sweepers[1].list(soon());
    forward += 2 * hour;
    await sweepers[1].list(soon());
    expect(await maps()).to.deep.equal([]);

    await one.submit(one.worker(), silent(), small);
    expect(await maps(), 'when it is needed again').to.have.length(1);
  });

  it('is made again while Jobs need it, when a person removed it', async () => {
    const backend = await factory('factory-a');
    await backend.submit(backend.worker(), silent(), small);
    await space.client.delete(space.core('configmaps', 'pilots-starter'));
    forward += hour;
    await backend.plugin('sweeper').list(soon());
    expect(await maps()).to.have.length(1);
  });

  it("of Harvester's is used as it is, and stays when the last Job has gone", async () => {
    const data = { 'pilots_starter.py': 'print("of Harvester")' };
    await space.client.create(space.core('configmaps'), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'pilots-starter' },
      data,
    });
    const backend = await factory('factory-a');
    await backend.submit(backend.worker(), silent(), small);
    await endAll(backend);
    const sweeper = backend.plugin('sweeper');
    forward += 2 * hour;
    await sweeper.list(soon());
    expect((await maps()).map((map) => map.data)).to.deep.equal([data]);
  });

  it('of a stranger without a starter in it stops the submission with the reason', async () => {
    await space.client.create(space.core('configmaps'), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'pilots-starter' },
    });
    const backend = await factory('factory-a');
    const failed = await backend.submit(backend.worker(), silent(), small).catch(String);
    expect(failed).to.match(/k8s-starter.*remove it, or name another in pilotsStarterConfigMap/);
    expect(await space.client.list<KubeObject>(space.jobs())).to.deep.equal([]);
  });

  it('needs rights that only queues with such a template are asked for', async () => {
    const plane = await controlPlane();
    await account(space, workerRights);
    const backend = await factory('factory-a');
    plane.writeKubeconfig(join(backend.directory, 'kubeconfig'), {
      token: await plane.token(space.name, 'thresher'),
    });
    backend.write('silent.yaml', silent());
    backend.write('speaks.yaml', jobTemplate());
    const problems = async (k8s_yaml_file: string) =>
      (await backend.plugin('submitter', { ...small, k8s_yaml_file }).preflight(soon())).problems;
    expect(await problems('speaks.yaml')).to.deep.equal([]);
    expect((await problems('silent.yaml')).map(({ message }) => message)).to.deep.equal([
      `the user lacks the right to create, get, patch, delete configmaps in namespace "${space.name}"; templates/kubernetes/rbac.yaml gives it`,
    ]);
  });
});

describe('a pilot of a template without a command', function () {
  this.timeout(300_000);

  it("runs the wrapper of /cvmfs on a real node with its own proxy, and its exit status is the pilot's", async () => {
    const plane = await realNode();
    await using space = await plane.namespace('starts');
    const host = temporaryDirectory();
    const wrapper = 'repo/sw/PandaPilotWrapper/latest';
    mkdirSync(join(host, wrapper), { recursive: true });
    writeFileSync(
      join(host, wrapper, 'runpilot2-wrapper.sh'),
      'echo "proxy: $(cat "$X509_USER_PROXY")"; echo "options: $*"; echo "gtag: $GTAG"; exit 65\n',
    );
    await space.client.create(space.core('secrets'), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'proxy' },
      stringData: { x509: 'the proxy' },
    });
    // bash and Python are the machine's own: the image has neither.
    const borrowed = { usr: '/usr', lib: '/usr/lib', lib64: '/usr/lib64', cvmfs: '/cvmfs/atlas.cern.ch' };
    const paths = { ...borrowed, lib: '/lib', lib64: '/lib64' };
    const volumes = Object.entries({ ...borrowed, cvmfs: host }).map(([name, path]) => ({
      name,
      hostPath: { path },
    }));
    const volumeMounts = Object.entries(paths).map(([name, mountPath]) => ({ name, mountPath }));
    const template = silent(
      { volumes: [...volumes, { name: 'proxy', secret: { secretName: 'proxy' } }] },
      { volumeMounts: [...volumeMounts, { name: 'proxy', mountPath: '/proxy' }] },
    );
    const backend = new KubernetesBackend(plane, space);
    await using watched = watch(backend.plugin('monitor'));
    const logs = { logs_frontend_r: 'https://cache.example/logs' };
    const worker = await backend.submit(backend.worker(), template, { ...small, ...logs });
    const shown = () => (watched.history.get(worker.workerId) ?? []).map(brief);
    await until('it has ended', () => shown().some((line) => /^(failed|finished)/.test(line)), 120_000).catch(
      (error: unknown) => {
        throw new Error(`${String(error)}: ${JSON.stringify(watched.history.get(worker.workerId))}`);
      },
    );
    const [pod] = await space.podsOf({ metadata: { name: worker.name } });
    const { text: log } = await space.client.raw(
      'GET',
      space.core('pods', `${pod?.metadata.name ?? ''}/log`),
    );
    expect(shown().at(-1), log).to.match(/^failed \w+ exit-status 65; node, start, end$/);
    expect(log).to.include('proxy: the proxy\n');
    expect(log).to.match(/options: -q Q -r Q -s \S+ -a \/pilotdir --resource-type SCORE -j unified -i PR/);
    expect(log).to.include(`gtag: https://cache.example/logs/test-harvester_${worker.workerId}_gz.out\n`);
  });
});
