import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { proxyOf } from '../support/credentials.ts';
import { account } from '../support/kubernetes-rights.ts';
import { controlPlane } from '../support/kubernetes.ts';
import { hour, makeUser, proxySecretPath, secretManager, SecretSite } from '../support/secret-site.ts';
import { until } from '../support/until.ts';

describe('credentials of queues on Kubernetes', () => {
  const owner = makeUser();
  let at: SecretSite;

  beforeEach(async () => {
    at = await SecretSite.on(await controlPlane(), owner);
  });

  afterEach(() => at[Symbol.asyncDispose]());

  it("work as in Harvester's guide: file, Secret, environment, what is shown, and no secret in any output", async () => {
    at.begin(
      {},
      {
        credmanager: {
          moduleName: [secretManager],
          className: ['K8sSecretCredManager'],
          certFile: ['secret.json'],
          outCertFile: ['dummy'],
          voms: ['dummy'],
          sleepTime: 1800,
        },
        http: { enabled: true, port: 0 },
      },
    );
    writeFileSync(at.site.path('secret.json'), JSON.stringify(at.plan()));
    const first = at.renew(12 * hour);
    at.start();
    await until('the Secret has the first proxy', at.hasText(first));
    const [job] = await until('there is a Job', async () =>
      (await at.jobs()).length > 0 ? at.jobs() : undefined,
    );
    expect(JSON.stringify(job)).to.contain(proxySecretPath);

    const second = at.renew(24 * hour);
    // Files are looked at every two seconds; the next renewal by time is half an hour away.
    await until('the Secret has the second proxy', at.hasText(second));
    const { metadata } = await at.secret();
    const said = JSON.parse(
      metadata.annotations?.['credential.thresher/atlas.pilot.proxy'] ?? '{}',
    ) as object;
    expect(said).to.include.keys('subject', 'expires', 'sha256');
    const view = await until('the second is shown', async () => {
      const [shown] = await at.shown();
      return shown?.state === 'good' && (shown.remaining ?? 0) > 23 * 3600 && shown;
    });
    expect(view.remaining).to.be.within(23 * 3600, 24 * 3600);
    const left = await until('the metrics know the second', async () => {
      const line = /^thresher_credential_remaining_seconds\{credential="(.*?)",.*\} (\S+)$/m;
      const value = line.exec(await at.metrics());
      return value !== null && Number(value[2]) > 23 * 3600 && value;
    });
    expect(left[1]).to.equal(view.name);

    const keys = [first, second].flatMap((text) => text.split('\n').filter((line) => line.length === 64));
    const files = readdirSync(at.site.stateDir).filter((name) => name.startsWith('thresher.db'));
    const written = files.map((name) => readFileSync(join(at.site.stateDir, name), 'latin1')).join('');
    expect(keys).to.have.length.above(20);
    for (const key of keys) expect(`${at.daemon.output()}${written}`).to.not.contain(key);
  });

  it('survive an API server that is down, hands that change the Secret, and push nothing twice', async () => {
    at.begin({ credmanagers: [at.inQueue()] }, { credmanager: { sleepTime: 1 } });
    const down = at.proxy.inject({
      verb: 'patch',
      resource: 'secrets',
      fault: { kind: 'status', status: 503 },
    });
    const first = at.renew(12 * hour);
    at.start();
    await until('the failure is loud', () => at.daemon.output().includes('credential not renewed'));
    await until('it was tried twice', () => down.hits >= 2);
    expect(await at.jobs()).to.be.empty;
    down.remove();
    await until('it is pushed', at.hasText(first));
    const pushes = at.patches();
    const looks = at.proxy.count({ verb: 'get', resource: 'secrets' });
    await until(
      'it was looked at again',
      () => at.proxy.count({ verb: 'get', resource: 'secrets' }) > looks + 8,
    );
    expect(at.patches()).to.equal(pushes);

    const path = at.space.core('secrets', 'proxy-secret');
    const wrong = Buffer.from('wrong').toString('base64');
    await at.space.client.patch(path, { data: { 'atlas.pilot.proxy': wrong, foreign: wrong } });
    await until('our key is back', at.hasText(first));
    expect((await at.secret()).data.foreign).to.equal(wrong);
    expect((await at.site.run('credentials', 'renew', 'K8sSecretCredManager')).stdout).to.match(
      /: renewed\n$/,
    );
    expect((await at.site.run('credentials', 'renew', 'nobody')).stderr).to.contain('no-such-credential');
  });

  it('go to several namespaces, beside keys of others; the right that is missing in one is named', async () => {
    await using second = await at.plane.namespace('credentials-too');
    await account(at.space, [{ apiGroups: [''], resources: ['secrets'], verbs: ['create', 'get', 'patch'] }]);
    const foreign = Buffer.from('of somebody else').toString('base64');
    await at.space.client.create(at.space.core('secrets'), {
      metadata: { name: 'proxy-secret' },
      data: { foreign },
    });
    const manager = {
      ...at.inQueue(),
      k8s_config_file: 'limited',
      k8s_namespace: [at.space.name, second.name],
    };
    at.begin({ credmanagers: [manager] });
    at.plane.writeKubeconfig(at.site.path('limited'), {
      token: await at.plane.token(at.space.name, 'thresher'),
    });
    const text = at.renew(12 * hour);
    at.start();
    await until('it is pushed where it may be', at.hasText(text));
    expect((await at.secret()).data.foreign).to.equal(foreign);
    const [lacking] = await until('the other one is shown', async () => {
      const bad = (await at.shown()).filter(({ state }) => state === 'bad');
      return bad.length > 0 && bad;
    });
    expect(lacking?.name).to.contain(second.name);
    expect(lacking?.message).to.match(/lacks the right to get secrets in namespace "/);
    await until('there is a Job, since its own is good', async () => (await at.jobs()).length > 0);
  });

  it('of several managers are beside each other in one Secret, each said on it', async () => {
    const other = { ...at.inQueue(), proxy_files: ['other.proxy'] };
    at.begin({ credmanagers: [at.inQueue(), other] });
    const first = at.renew(12 * hour);
    writeFileSync(at.site.path('other.proxy'), proxyOf('/CN=Joe'), { mode: 0o600 });
    at.start();
    const both = async () => {
      const { data, metadata } = await at.secret();
      const said = Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith('credential.'));
      return Object.keys(data).length === 2 && said.length === 2;
    };
    await until('both are there', async () => both().catch(() => false));
    const second = at.renew(24 * hour);
    expect(second).not.to.equal(first);
    await until('the first is replaced', at.hasText(second));
    expect(await both()).to.equal(true);
    await until('both are shown as good', async () => {
      const shown = (await at.shown()).map(({ state, manager }) => `${manager} ${state}`).sort();
      return shown.join() === 'K8sSecretCredManager 2 good,K8sSecretCredManager good';
    });
    const pushes = at.patches();
    writeFileSync(at.site.path('other.proxy'), proxyOf('/CN=Joe'), { mode: 0o600 });
    await until('one more push, of the other', () => at.patches() > pushes);
    expect(await both()).to.equal(true);
  });

  it('keep their queue waiting while the manager has a mistake, before and after it was at work', async () => {
    at.begin(
      {},
      {
        credmanager: {
          moduleName: [secretManager],
          className: ['K8sSecretCredManager'],
          certFile: ['secret.json'],
          outCertFile: ['dummy'],
          voms: ['dummy'],
        },
      },
    );
    at.renew(12 * hour);
    const checks = () => at.site.run('credentials', 'check');
    at.start();
    const why = async () => (await at.site.queue('Q')).reasons.map(({ message }) => message).join();
    await until('the mistake is the reason', async () => /is not known: .*secret\.json/.test(await why()));
    const checked = await checks();
    expect(checked.status).to.equal(1);
    expect(checked.stderr).to.match(/error: .*secret\.json.*\[file-unreadable\]/);
    expect(await at.jobs()).to.be.empty;
    writeFileSync(at.site.path('secret.json'), JSON.stringify(at.plan()));
    at.renew(-hour);
    at.touch();
    await until('the manager is at work', async () => (await at.reasons()).includes('credential-bad'));
    renameSync(at.site.path('secret.json'), at.site.path('away.json'));
    at.touch();
    await until(
      'the mistake is told',
      () => (at.daemon.output().match(/configuration error .*secret\.json/g) ?? []).length >= 2,
    );
    expect(await at.reasons()).to.include('credential-bad');
    expect(await at.jobs()).to.be.empty;
    at.renew(12 * hour);
    await until('the manager was kept, and pushes the good one', async () => (await at.jobs()).length > 0);
  });
});
