import { chmodSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { Access, type AccessSource } from '../../../src/clients/kubernetes/access.ts';
import { parseCredential } from '../../../src/clients/kubernetes/exec-credential.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { kubeconfig, rejection, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const tls = resolve(import.meta.dirname, '../../fixtures/tls');
const server = 'https://127.0.0.1:6443';
const never = new AbortController().signal;

function open(
  user: Record<string, unknown>,
  cluster: Record<string, unknown> = {},
): { readonly file: string; readonly clock: ManualClock; readonly access: Access } {
  const file = writeKubeconfig(kubeconfig({ server, 'insecure-skip-tls-verify': true, ...cluster }, user));
  const clock = new ManualClock();
  return { file, clock, access: new Access({ kind: 'file', file }, { clock, files }) };
}

/** The message that the login of this user fails with. */
async function refused(
  user: Record<string, unknown>,
  cluster: Record<string, unknown> = {},
): Promise<string> {
  const { file, access } = open(user, cluster);
  const error = await rejection(access.current(never));
  expect(error).to.be.instanceOf(ThresherError).with.property('code', 'kubernetes-credentials');
  const { message } = error as ThresherError;
  expect(message).to.contain(file).and.contain('user "me"');
  return message;
}

/** A plugin that does what this script says, in a directory of its own. */
function plugin(script: string): string {
  const file = join(temporaryDirectory(), 'plugin');
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

const credential = (status: Record<string, unknown>) =>
  JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status });

describe('the login to a cluster', () => {
  it('the login to a cluster is a token, a password, or nothing', async () => {
    const headers = async (user: Record<string, unknown>) => (await open(user).access.current(never)).headers;
    expect(await headers({ token: 'secret' })).to.deep.equal({ authorization: 'Bearer secret' });
    expect(await headers({ username: 'a', password: 'b' })).to.deep.equal({ authorization: 'Basic YTpi' });
    expect(await headers({})).to.deep.equal({});
    expect(await headers({ token: 's', as: 'you', 'as-uid': '7', 'as-groups': ['g', 'h'] })).to.deep.equal({
      authorization: 'Bearer s',
      'impersonate-user': 'you',
      'impersonate-uid': '7',
      'impersonate-group': ['g', 'h'],
    });
  });

  it('is a certificate, from files or from the kubeconfig itself', async () => {
    const read = (name: string) => readFileSync(join(tls, name), 'utf8');
    const base64 = (name: string) => Buffer.from(read(name)).toString('base64');
    const wanted = { ca: read('ca.crt'), cert: read('client.crt'), key: read('client.key') };
    const cluster = { 'insecure-skip-tls-verify': false };
    const files = open(
      { 'client-certificate': join(tls, 'client.crt'), 'client-key': join(tls, 'client.key') },
      { ...cluster, 'certificate-authority': join(tls, 'ca.crt') },
    );
    const first = await files.access.current(never);
    expect(first.tls).to.deep.equal(wanted);
    const inline = open(
      { 'client-certificate-data': base64('client.crt'), 'client-key-data': base64('client.key') },
      { ...cluster, 'certificate-authority-data': base64('ca.crt') },
    );
    const second = await inline.access.current(never);
    expect(second.tls).to.deep.equal(wanted);
    expect(second.connectionKey).to.equal(first.connectionKey);
  });

  it("trusts this machine's authorities where the kubeconfig names none", async () => {
    const { tls: options } = await open({}, { 'insecure-skip-tls-verify': false }).access.current(never);
    expect(options.ca).to.be.an('array').with.length.greaterThan(10);
  });

  it('is read again when its token file changes, also by a symbolic link as Kubernetes does it', async () => {
    const directory = temporaryDirectory();
    const link = join(directory, 'token');
    writeFileSync(join(directory, '1'), 'first\n');
    writeFileSync(join(directory, '2'), 'second\n');
    symlinkSync('1', link);
    const { access, clock } = open({ tokenFile: link });
    const first = await access.current(never);
    expect(first.headers).to.deep.equal({ authorization: 'Bearer first' });
    symlinkSync('2', join(directory, 'new'));
    renameSync(join(directory, 'new'), link);
    expect((await access.current(never)).headers, 'it is not looked at for each request').to.equal(
      first.headers,
    );
    await clock.advance(10_000);
    const second = await access.current(never);
    expect(second.headers).to.deep.equal({ authorization: 'Bearer second' });
    expect(second.connectionKey, 'the connections stay').to.equal(first.connectionKey);
  });

  it('is the last good one while its files are half written or gone', async () => {
    const { access, clock, file } = open({ token: 'good' });
    await access.current(never);
    const good = readFileSync(file, 'utf8');
    for (const broken of [
      () => {
        rmSync(file);
      },
      () => {
        writeFileSync(file, 'clusters: [');
      },
    ]) {
      broken();
      await clock.advance(10_000);
      expect((await access.current(never)).headers).to.deep.equal({ authorization: 'Bearer good' });
    }
    writeFileSync(file, good.replace('good', 'better'));
    await clock.advance(10_000);
    expect((await access.current(never)).headers).to.deep.equal({ authorization: 'Bearer better' });
  });

  it('the login is read again once after a refusal, however many callers were refused', async () => {
    const count = join(temporaryDirectory(), 'count');
    const exec = { command: plugin(`echo x >>${count}; echo '${credential({ token: 'a' })}'`) };
    const { access, clock } = open({ exec });
    const runs = () => readFileSync(count, 'utf8').length / 2;
    const [first] = await Promise.all(Array.from({ length: 20 }, () => access.current(never)));
    expect(runs()).to.equal(1);
    await Promise.all(Array.from({ length: 20 }, () => access.renew(first!.generation, never)));
    expect(runs()).to.equal(2);
    const second = await access.renew(first!.generation, never);
    expect(second.generation).to.equal(2);
    expect((await access.renew(2, never)).generation, 'a plugin is not asked by each refusal').to.equal(2);
    await clock.advance(5000);
    expect((await access.renew(2, never)).generation).to.equal(3);
  });

  it('names the file or the part that is wrong', async () => {
    const missing = join(temporaryDirectory(), 'none');
    const empty = join(temporaryDirectory(), 'empty');
    writeFileSync(empty, '\n');
    const binary = join(temporaryDirectory(), 'binary');
    writeFileSync(binary, 'a\nb');
    const pair = (certificate: string, key: string) => ({
      'client-certificate': certificate,
      'client-key': key,
    });
    const [certificate, key] = [join(tls, 'client.crt'), join(tls, 'client.key')];
    expect(await refused({ tokenFile: missing })).to.contain(`tokenFile ${missing}: cannot read the file`);
    expect(await refused({ tokenFile: empty })).to.contain(`token file ${empty} is empty`);
    expect(await refused({ tokenFile: binary })).to.contain(`${binary} holds no token`);
    expect(await refused({ token: 't'.repeat(16_385) })).to.match(/its token has more than 16384 characters/);
    expect(await refused(pair(missing, key))).to.contain(
      `client-certificate ${missing}: cannot read the file`,
    );
    expect(await refused(pair(empty, key))).to.contain('client-certificate cannot be used');
    expect(await refused(pair(certificate, certificate))).to.contain('client-key cannot be used');
    expect(await refused(pair(certificate, join(tls, 'client2.key')))).to.contain(
      'client-certificate and client-key cannot be used',
    );
    const ca = { 'insecure-skip-tls-verify': false, 'certificate-authority': empty };
    expect(await refused({}, ca)).to.contain(
      'certificate-authority cannot be used: it holds no PEM certificate',
    );
    expect(await refused({ 'auth-provider': { name: 'oidc' } })).to.contain('auth-provider "oidc"');
  });

  it('the login within a Pod follows the token that Kubernetes renews', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'ca.crt'), readFileSync(join(tls, 'ca.crt')));
    writeFileSync(join(directory, 'token'), 'one');
    const environment = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
    const source: AccessSource = { kind: 'in-cluster', directory, environment };
    const clock = new ManualClock();
    const access = new Access(source, { clock, files });
    expect((await access.current(never)).headers).to.deep.equal({ authorization: 'Bearer one' });
    writeFileSync(join(directory, 'token'), 'another');
    await clock.advance(10_000);
    expect((await access.current(never)).headers).to.deep.equal({ authorization: 'Bearer another' });
  });
});

describe('an exec plugin', () => {
  it('gives a token, which is asked for again shortly before its end', async () => {
    const start = Date.UTC(2026, 0, 1);
    const end = new Date(start + 600_000).toISOString();
    const count = join(temporaryDirectory(), 'count');
    const exec = {
      command: plugin(`echo x >>${count}; echo '${credential({ token: 'abc', expirationTimestamp: end })}'`),
    };
    const { access, clock } = open({ exec });
    const runs = () => readFileSync(count, 'utf8').length / 2;
    expect((await access.current(never)).headers).to.deep.equal({ authorization: 'Bearer abc' });
    await clock.advance(569_000);
    await access.current(never);
    expect(runs()).to.equal(1);
    await clock.advance(2000);
    await access.current(never);
    expect(runs()).to.equal(2);
  });

  for (const [what, lasts] of [
    ['has ended', -1000],
    ['ends soon', 25_000],
  ] as const)
    it(`hole 8: is not run for each request while its login ${what}, but after pauses that grow`, async () => {
      const count = join(temporaryDirectory(), 'count');
      const answer = join(temporaryDirectory(), 'answer');
      const exec = { command: plugin(`echo x >>${count}; cat ${answer}`) };
      const { access, clock, file } = open({ exec });
      const give = (token: string, ms: number) => {
        const expirationTimestamp = new Date(clock.now() + ms).toISOString();
        writeFileSync(answer, credential({ token, expirationTimestamp }));
      };
      const runs = () => readFileSync(count, 'utf8').length / 2;
      const runsAfter: number[] = [];
      for (const wait of [0, 4999, 1, 9999, 1, 19_999, 1]) {
        await clock.advance(wait);
        give('same', lasts);
        for (let request = 0; request < 30; request++) await access.current(never);
        runsAfter.push(runs());
      }
      expect(runsAfter).to.deep.equal([1, 1, 2, 2, 3, 3, 4]);
      if (lasts < 0) {
        const refusal = await rejection(access.renew(4, never));
        expect(refusal).to.have.property('code', 'kubernetes-credentials');
        expect((refusal as ThresherError).message).to.match(
          /user "me": .* had ended at .*Z; it is asked again in 40 s$/,
        );
        expect(runs()).to.equal(4);
      }
      give('new', 600_000);
      // An operator's change of the kubeconfig counts at once.
      writeFileSync(file, `${readFileSync(file, 'utf8')}\n`);
      await clock.advance(10_000);
      expect((await access.current(never)).headers).to.deep.equal({ authorization: 'Bearer new' });
    });

  it('an exec plugin may give a certificate', async () => {
    const pem = (name: string) => readFileSync(join(tls, name), 'utf8');
    const answer = join(temporaryDirectory(), 'answer');
    writeFileSync(
      answer,
      credential({ clientCertificateData: pem('client.crt'), clientKeyData: pem('client.key') }),
    );
    const { tls: options } = await open({ exec: { command: '/bin/cat', args: [answer] } }).access.current(
      never,
    );
    expect(options).to.include({ cert: pem('client.crt'), key: pem('client.key') });
  });

  it('an exec plugin gets the cluster, its own variables, and the hint that no user can be asked', async () => {
    const seen = join(temporaryDirectory(), 'seen');
    const command = plugin(
      `echo "$KUBERNETES_EXEC_INFO $OWN" >${seen}; cat; echo '${credential({ token: 'a' })}'`,
    );
    const exec = {
      command,
      provideClusterInfo: true,
      env: [{ name: 'OWN', value: 'value' }],
      apiVersion: 'client.authentication.k8s.io/v1beta1',
    };
    await open({ exec }).access.current(never);
    const text = readFileSync(seen, 'utf8');
    expect(text).to.match(/ value\n$/);
    expect(JSON.parse(text.slice(0, text.lastIndexOf('}') + 1))).to.deep.equal({
      kind: 'ExecCredential',
      apiVersion: 'client.authentication.k8s.io/v1beta1',
      spec: { interactive: false, cluster: { server, 'insecure-skip-tls-verify': true } },
    });
  });

  it('the error of an exec plugin that fails quotes the plugin', async () => {
    const failing = (script: string) => refused({ exec: { command: plugin(script) } });
    expect(await failing('echo "log in first" >&2; exit 3')).to.match(
      /exec plugin .* ended with exit status 3: log in first/,
    );
    expect(await failing('kill -9 $$')).to.contain('was ended by SIGKILL');
    expect(await failing('echo hello')).to.contain('printed no JSON; it must print an ExecCredential');
    expect(await failing('head -c 2000000 /dev/zero')).to.contain('printed more than 1 MB');
    const hint = { command: 'no-such-plugin', installHint: 'install it with: dnf install no-such-plugin' };
    expect(await refused({ exec: hint })).to.contain('no-such-plugin was not found; install it with');
    const file = join(temporaryDirectory(), 'plain');
    writeFileSync(file, '');
    expect(await refused({ exec: { command: file } })).to.contain('may not be executed');
  });

  describe('hole 3: says again what it was given, and the error hides of it', () => {
    const echo = plugin('echo "refused: $1 $SAID and $*" | sed s/--[a-z-]*=//g >&2; exit 1');
    const said = (exec: Record<string, unknown>, cluster = {}) => refused({ exec }, cluster);
    const secret = (kind: string) => `k3J-${kind}-sUperValue-77`;

    it('a variable whose name says that it is secret, and no other', async () => {
      const given = [
        { name: 'OIDC_CLIENT_SECRET', value: secret('env') },
        { name: 'CLIENT_ID', value: 'client-of-the-pilots' },
      ];
      const command = plugin('echo "client $CLIENT_ID has not the secret $OIDC_CLIENT_SECRET" >&2; exit 1');
      expect(await said({ command, env: given })).to.match(
        /client client-of-the-pilots has not the secret \(hidden\)$/,
      );
    });

    it("a secret variable of the daemon's own, and the login of its proxy", async () => {
      const [token, password] = [secret('own'), secret('proxy')];
      const sent = Buffer.from(`bob:${password}`).toString('base64');
      process.env['R10_PLUGIN_TOKEN'] = token;
      process.env['R10_HTTPS_PROXY'] = `http://bob:${password}@proxy:3128`;
      try {
        const command = plugin(`echo "the proxy got ${sent}, the issuer $R10_PLUGIN_TOKEN" >&2; exit 1`);
        expect(await said({ command })).to.match(/the proxy got \(hidden\), the issuer \(hidden\)$/);
      } finally {
        delete process.env['R10_PLUGIN_TOKEN'];
        delete process.env['R10_HTTPS_PROXY'];
      }
    });

    const args: Readonly<Record<string, (value: string) => readonly string[]>> = {
      'an option and its value': (value) => ['--client-secret', value],
      'an option with its value': (value) => [`--client-secret=${value}`],
      'an option of one dash': (value) => ['-password', value],
      'a variable for env': (value) => [`AWS_SESSION_TOKEN=${value}`],
      'a header': (value) => ['-H', `Authorization: Bearer ${value}`],
      'a script': (value) => ['-c', `kubelogin get-token --client-secret='${value}' | head -1`],
      'a script that begins with a variable': (value) => ['-c', `TOKEN="${value}" kubelogin get-token`],
      'a password with blanks': (value) => [`--password=${value} and more`],
      'a script in a script': (value) => ['-c', `sh -c "kubelogin --token ${value}"`],
      'a URL with a login': (value) => [`--proxy=http://bob:${value}@proxy:3128`],
    };
    for (const [index, [what, of]] of Object.entries(args).entries())
      it(`the secret of ${what}`, async () => {
        const value = secret(`arg${index}`);
        const given = [plugin(`echo "cannot log in with ${value}" >&2; exit 1`), ...of(value)];
        expect(await said({ command: '/bin/sh', args: given })).to.match(/cannot log in with \(hidden\)$/);
      });

    it('no argument whose option says nothing of a secret', async () => {
      const given = ['--cluster-name', 'pilots-of-the-north-1'];
      expect(await said({ command: echo, args: given })).to.contain('pilots-of-the-north-1');
    });

    it('the login of the proxy, which it gets with the cluster', async () => {
      const password = secret('info');
      const command = plugin(`echo "got $KUBERNETES_EXEC_INFO, which is ${password}" >&2; exit 1`);
      const proxy = { 'proxy-url': `http://bob:${password}@127.0.0.1:9` };
      const message = await said({ command, provideClusterInfo: true }, proxy);
      expect(message).to.contain('which is (hidden)').and.not.contain(password);
    });
  });

  it('hole 3: the command of a legacy auth provider says again what it was given, and the error hides it', async () => {
    const [option, token] = ['k3J-gcpOption-sUper-77', 'k3J-gcpToken-sUper-77'];
    const settings = {
      'access-token': token,
      expiry: '2020-01-01T00:00:00Z',
      'cmd-path': plugin(`echo "neither ${option} nor ${token}" >&2; exit 1`),
      'cmd-args': `--client-secret ${option}`,
    };
    const message = await refused({ 'auth-provider': { name: 'gcp', config: settings } });
    expect(message).to.contain('neither (hidden) nor (hidden)').and.not.match(/k3J-/);
  });

  it('a caller that gives up does not wait for an exec plugin that hangs', async () => {
    const { access } = open({ exec: { command: '/bin/sleep', args: ['60'] } });
    const abort = new AbortController();
    const waiting = rejection(access.current(abort.signal));
    abort.abort();
    await waiting;
    access.close();
    expect(await rejection(access.current(never)))
      .to.have.property('message')
      .that.contains('was given up');
  });

  it('must print what is asked of it', () => {
    const cases: [output: string, wrong: RegExp][] = [
      ['', /no JSON/],
      ['null', /something else/],
      ['{"kind":"Status"}', /something else/],
      ['{"kind":"ExecCredential"}', /neither a token nor a certificate/],
      [credential({ token: 7 }), /neither a token/],
      [credential({ clientCertificateData: 'a' }), /only in part/],
      [credential({ token: 'a', expirationTimestamp: 'the token again' }), /that is no time$/],
    ];
    for (const [output, wrong] of cases) expect(parseCredential(output)).to.match(wrong);
  });
});
