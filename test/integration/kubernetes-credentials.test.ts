import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  type Authority,
  issue,
  type Issued,
  makeAuthority,
  proxyOf,
  proxyText,
  rfcProxy,
} from '../support/credentials.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import {
  container,
  controlPlane,
  type ControlPlane,
  type Job,
  type KubeObject,
  type Namespace,
  realNode,
} from '../support/kubernetes.ts';
import { account } from '../support/kubernetes-rights.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

interface Secret extends KubeObject {
  readonly data: Readonly<Record<string, string>>;
}
interface Shown {
  readonly name: string;
  readonly manager: string;
  readonly state: string;
  readonly remaining: number | null;
  readonly message: string | null;
}

const hour = 3_600_000;
const manager = 'pandaharvester.harvestercredmanager.k8s_secret_cred_manager';
const pilot = {
  ...container('pilot'),
  volumeMounts: [{ name: 'proxy', mountPath: '/proxy' }],
};
const template = jobTemplate(
  {},
  { containers: [pilot], volumes: [{ name: 'proxy', secret: { secretName: 'proxy-secret' } }] },
);
const proxySecretPath = '/proxy/atlas.pilot.proxy';

/** Puts a new proxy where the site has it, as tools do: renamed into place. @returns its text. */
function putProxy(site: Site, ca: Authority, user: Issued, lifetime: number): string {
  const until = Date.now() + lifetime;
  const leaf = issue(ca.directory, user, { name: '/CN=Jane/CN=1', extensions: rfcProxy, until });
  const text = proxyText(leaf, user);
  writeFileSync(site.path('new'), text, { mode: 0o600 });
  renameSync(site.path('new'), site.path('atlas.pilot.proxy'));
  return text;
}

describe('credentials of queues on Kubernetes', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let proxy: FaultProxy;
  let ca: Authority;
  let user: Issued;
  let site: Site;
  let daemon: RunningDaemon;

  before(() => {
    ca = makeAuthority();
    user = issue(ca.directory, ca, { name: '/CN=Jane' });
  });

  beforeEach(async () => {
    plane = await controlPlane();
    space = await plane.namespace('credentials');
    proxy = await FaultProxy.inFrontOf(plane);
  });

  afterEach(async () => {
    await site.clean();
    await proxy[Symbol.asyncDispose]();
    await space[Symbol.asyncDispose]();
  });

  const renew = (lifetime: number) => putProxy(site, ca, user, lifetime);

  const plan = () => ({
    ...{ k8s_namespace: space.name, k8s_config_file: 'kubeconfig', proxy_files: ['atlas.pilot.proxy'] },
  });
  const secret = () => space.client.get<Secret>(space.core('secrets', 'proxy-secret'));
  const hasText = (text: string) => async () => {
    const { data } = await secret();
    return data['atlas.pilot.proxy'] === Buffer.from(text).toString('base64');
  };
  const patches = () => proxy.count({ verb: 'patch', resource: 'secrets' });
  const jobs = () => space.client.list<Job>(space.jobs());
  const metrics = async () => {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(daemon.output())?.[0] ?? '';
    return (await fetch(`${url}/metrics`)).text();
  };
  const shown = async () => JSON.parse((await site.run('credentials', '--output', 'json')).stdout) as Shown[];
  const reason = async () => (await site.queue('Q')).reasons.map(({ code }) => code);

  function begin(
    queue: Record<string, unknown>,
    settings: Record<string, Record<string, unknown>> = {},
  ): void {
    const [submitter, common] = [{ proxySecretPath }, { k8s_namespace: space.name }];
    const queues = { Q: kubernetesQueue(space, { submitter, queue: { common, ...queue } }) };
    const quick = { submitter: { sleepTime: 0.2 }, ...settings };
    site = kubernetesSite(
      plane,
      { queues, settings: quick },
      { 'job.yaml': template },
      { server: proxy.url },
    );
  }

  it("work as in Harvester's guide: file, Secret, environment, what is shown, and no secret in any output", async () => {
    begin(
      {},
      {
        credmanager: {
          ...{ moduleName: [manager], className: ['K8sSecretCredManager'] },
          ...{ certFile: ['secret.json'], outCertFile: ['dummy'], voms: ['dummy'], sleepTime: 1800 },
        },
        http: { enabled: true, port: 0 },
      },
    );
    writeFileSync(site.path('secret.json'), JSON.stringify(plan()));
    const first = renew(12 * hour);
    daemon = site.start();
    await until('the Secret has the first proxy', hasText(first));
    const [job] = await until('there is a Job', async () => ((await jobs()).length > 0 ? jobs() : undefined));
    expect(JSON.stringify(job)).to.contain(proxySecretPath);

    const second = renew(24 * hour);
    await until('the Secret has the second proxy', hasText(second), 5000);
    const { metadata } = await secret();
    const said = JSON.parse(
      metadata.annotations?.['credential.thresher/atlas.pilot.proxy'] ?? '{}',
    ) as object;
    expect(said).to.include.keys('subject', 'expires', 'sha256');
    const [view] = await shown();
    expect(view).to.include({ state: 'good' });
    expect(view?.remaining).to.be.within(23 * 3600, 24 * 3600);
    const left = await until('the metrics know the second', async () => {
      const line = /^thresher_credential_remaining_seconds\{credential="(.*?)",.*\} (\S+)$/m;
      const value = line.exec(await metrics());
      return value !== null && Number(value[2]) > 23 * 3600 && value;
    });
    expect(left[1]).to.equal(view?.name);

    const keys = [first, second].flatMap((text) => text.split('\n').filter((line) => line.length === 64));
    const files = readdirSync(site.stateDir).filter((name) => name.startsWith('thresher.db'));
    const written = files.map((name) => readFileSync(join(site.stateDir, name), 'latin1')).join('');
    expect(keys).to.have.length.above(20);
    for (const key of keys) expect(`${daemon.output()}${written}`).to.not.contain(key);
  });

  it('stop submission while expired, over a minute of trying, and let it go on at once when good', async () => {
    begin({ credmanagers: [inQueue()] }, { http: { enabled: true, port: 0 } });
    renew(-hour / 2);
    daemon = site.start();
    await until('the queue says why', async () => (await reason()).includes('credential-bad'));
    const passes = async () => {
      const count = /^thresher_loop_duration_seconds_count\{kind="submit",target="Q"\} (\d+)/m;
      return Number(count.exec(await metrics())?.[1]);
    };
    // Five a second: a minute of trying.
    await until('three hundred passes are over', async () => (await passes()) > 300, 150_000);
    expect(proxy.count({ verb: 'create', resource: 'jobs' })).to.equal(0);
    expect(await site.workers()).to.be.empty;
    expect(patches()).to.equal(0);

    const good = renew(12 * hour);
    await until('the good one is pushed', hasText(good), 6000);
    await until('there is a Job', async () => (await jobs()).length > 0, 6000);
    const pushes = patches();

    // One too short is not pushed: the good one stays, and so does submission.
    renew(60_000);
    await until('it is said', () => daemon.output().includes('it is not pushed'));
    expect(await hasText(good)()).to.equal(true);
    expect(patches()).to.equal(pushes);
  }).timeout(240_000);

  it('survive an API server that is down, hands that change the Secret, and push nothing twice', async () => {
    begin({ credmanagers: [inQueue()] }, { credmanager: { sleepTime: 1 } });
    const down = proxy.inject({ verb: 'patch', resource: 'secrets', fault: { kind: 'status', status: 503 } });
    const first = renew(12 * hour);
    daemon = site.start();
    await until('the failure is loud', () => daemon.output().includes('credential not renewed'));
    await until('it was tried twice', () => down.hits >= 2);
    expect(await jobs()).to.be.empty;
    down.remove();
    await until('it is pushed', hasText(first));
    const pushes = patches();
    const looks = proxy.count({ verb: 'get', resource: 'secrets' });
    await until(
      'it was looked at again',
      () => proxy.count({ verb: 'get', resource: 'secrets' }) > looks + 8,
    );
    expect(patches()).to.equal(pushes);

    const path = space.core('secrets', 'proxy-secret');
    const wrong = Buffer.from('wrong').toString('base64');
    await space.client.patch(path, { data: { 'atlas.pilot.proxy': wrong, foreign: wrong } });
    await until('our key is back', hasText(first));
    expect((await secret()).data.foreign).to.equal(wrong);
    expect((await site.run('credentials', 'renew', 'K8sSecretCredManager')).stdout).to.match(/: renewed\n$/);
    expect((await site.run('credentials', 'renew', 'nobody')).stderr).to.contain('no-such-credential');
  }).timeout(180_000);

  it('go to several namespaces, beside keys of others; the right that is missing in one is named', async () => {
    await using second = await plane.namespace('credentials-too');
    await account(space, [{ apiGroups: [''], resources: ['secrets'], verbs: ['create', 'get', 'patch'] }]);
    const foreign = Buffer.from('of somebody else').toString('base64');
    await space.client.create(space.core('secrets'), {
      metadata: { name: 'proxy-secret' },
      data: { foreign },
    });
    const manager = { ...inQueue(), k8s_config_file: 'limited', k8s_namespace: [space.name, second.name] };
    begin({ credmanagers: [manager] });
    plane.writeKubeconfig(site.path('limited'), { token: await plane.token(space.name, 'thresher') });
    const text = renew(12 * hour);
    daemon = site.start();
    await until('it is pushed where it may be', hasText(text));
    expect((await secret()).data.foreign).to.equal(foreign);
    const [lacking] = await until('the other one is shown', async () => {
      const bad = (await shown()).filter(({ state }) => state === 'bad');
      return bad.length > 0 && bad;
    });
    expect(lacking?.name).to.contain(second.name);
    expect(lacking?.message).to.match(/lacks the right to get secrets in namespace "/);
    await until('there is a Job, since its own is good', async () => (await jobs()).length > 0);
  });

  it('of several managers are beside each other in one Secret, each said on it', async () => {
    const other = { ...inQueue(), proxy_files: ['other.proxy'] };
    begin({ credmanagers: [inQueue(), other] });
    const first = renew(12 * hour);
    writeFileSync(site.path('other.proxy'), proxyOf('/CN=Joe'), { mode: 0o600 });
    daemon = site.start();
    const both = async () => {
      const { data, metadata } = await secret();
      const said = Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith('credential.'));
      return Object.keys(data).length === 2 && said.length === 2;
    };
    await until('both are there', async () => both().catch(() => false));
    const second = renew(24 * hour);
    expect(second).not.to.equal(first);
    await until('the first is replaced', hasText(second));
    expect(await both()).to.equal(true);
    expect((await shown()).map(({ state, manager }) => `${manager} ${state}`)).to.have.members([
      ...['K8sSecretCredManager good', 'K8sSecretCredManager 2 good'],
    ]);
    const pushes = patches();
    writeFileSync(site.path('other.proxy'), proxyOf('/CN=Joe'), { mode: 0o600 });
    await until('one more push, of the other', () => patches() > pushes);
    expect(await both()).to.equal(true);
  });

  it('keep their queue waiting while the manager has a mistake, before and after it was at work', async () => {
    begin(
      {},
      {
        credmanager: {
          ...{ moduleName: [manager], className: ['K8sSecretCredManager'], certFile: ['secret.json'] },
          ...{ outCertFile: ['dummy'], voms: ['dummy'] },
        },
      },
    );
    renew(12 * hour);
    const checks = () => site.run('credentials', 'check');
    daemon = site.start();
    const why = async () => (await site.queue('Q')).reasons.map(({ message }) => message).join();
    await until('the mistake is the reason', async () => /is not known: .*secret\.json/.test(await why()));
    const checked = await checks();
    expect(checked.status).to.equal(1);
    expect(checked.stderr).to.match(/error: .*secret\.json.*\[file-unreadable\]/);
    expect(await jobs()).to.be.empty;
    writeFileSync(site.path('secret.json'), JSON.stringify(plan()));
    renew(-hour);
    const touch = () => {
      const file = site.path('panda_queueconfig.json');
      writeFileSync(file, `${readFileSync(file, 'utf8')}\n`);
    };
    touch();
    await until('the manager is at work', async () => (await reason()).includes('credential-bad'));
    renameSync(site.path('secret.json'), site.path('away.json'));
    touch();
    await until(
      'the mistake is told',
      () => (daemon.output().match(/configuration error .*secret\.json/g) ?? []).length >= 2,
    );
    expect(await reason()).to.include('credential-bad');
    expect(await jobs()).to.be.empty;
    renew(12 * hour);
    await until('the manager was kept, and pushes the good one', async () => (await jobs()).length > 0);
  });

  function inQueue(): Record<string, unknown> {
    return {
      ...{ module: manager, name: 'K8sSecretCredManager', k8s_config_file: 'kubeconfig' },
      ...{ k8s_namespace: '${common.k8s_namespace}', proxy_files: ['atlas.pilot.proxy'] },
    };
  }
});

describe('a pilot on a real node', function () {
  this.timeout(300_000);

  it('that mounts the Secret reads the proxy that was replaced while it runs', async () => {
    const plane = await realNode();
    await using space = await plane.namespace('mounted');
    const ca = makeAuthority();
    const user = issue(ca.directory, ca, { name: '/CN=Jane' });
    const script = [
      ...['first=$(cat "$proxySecretPath"); echo "$first"; echo begun'],
      ...['while [ "$(cat "$proxySecretPath")" = "$first" ]; do sleep 0.2; done; cat "$proxySecretPath"'],
    ].join('; ');
    const reading = { ...pilot, command: ['sh', '-c', script] };
    const volumes = [{ name: 'proxy', secret: { secretName: 'proxy-secret' } }];
    const entry = {
      ...{ module: manager, name: 'K8sSecretCredManager', k8s_config_file: 'kubeconfig' },
      ...{ k8s_namespace: '${common.k8s_namespace}', proxy_files: ['atlas.pilot.proxy'] },
    };
    const submitter = { proxySecretPath, cpuAdjustRatio: 1, memoryAdjustRatio: 1 };
    const queue = { common: { k8s_namespace: space.name }, credmanagers: [entry], maxWorkers: 1 };
    const queues = { Q: kubernetesQueue(space, { submitter, queue }) };
    const site = kubernetesSite(
      plane,
      { queues },
      { 'job.yaml': jobTemplate({}, { containers: [reading], volumes }) },
    );
    try {
      const first = putProxy(site, ca, user, 12 * hour).trim();
      site.start();
      const worker = await until(
        'the pilot runs',
        async () => (await site.workers({ status: 'running' }))[0],
        120_000,
      );
      const log = async () => (await site.run('logs', String(worker.workerID))).stdout;
      await until('it has read the first', async () => (await log()).includes('begun'), 60_000);
      const second = putProxy(site, ca, user, 24 * hour).trim();
      await until(
        'it has read the second',
        async () => {
          const text = await log();
          return text.startsWith(first) && text.trimEnd().endsWith(second);
        },
        150_000,
      );
    } finally {
      await site.clean();
    }
  });
});
