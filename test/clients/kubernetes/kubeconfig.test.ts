import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readAccess } from '../../../src/clients/kubernetes/access.ts';
import { readKubeconfig } from '../../../src/clients/kubernetes/kubeconfig.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { kubeconfig, rejection, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const server = 'https://127.0.0.1:6443';

/** What reading a kubeconfig is refused with. */
async function refused(value: unknown, context?: string): Promise<string> {
  const file = writeKubeconfig(value);
  try {
    await readKubeconfig(files, file, context);
  } catch (error) {
    expect(error).to.be.instanceOf(ThresherError);
    expect((error as ThresherError).code).to.equal('kubeconfig-wrong');
    expect((error as ThresherError).message).to.contain(file);
    return (error as ThresherError).message;
  }
  throw new Error('it was accepted');
}

describe('a kubeconfig', () => {
  it('is read with its context, and paths count from its directory', async () => {
    const file = writeKubeconfig(
      kubeconfig(
        {
          server: `${server}/`,
          'certificate-authority': 'pki/ca.crt',
          'tls-server-name': 'api',
          'proxy-url': 'http://proxy:3128',
        },
        {
          'client-certificate': '/etc/me.crt',
          'client-key': '../me.key',
          tokenFile: 'token',
          token: 'old',
          as: 'you',
          'as-groups': ['g'],
        },
      ),
    );
    const directory = join(file, '..');
    expect(await readKubeconfig(files, file)).to.deep.equal({
      source: file,
      context: 'here',
      namespace: 'grid',
      server,
      insecure: false,
      ca: { file: join(directory, 'pki/ca.crt') },
      serverName: 'api',
      proxyUrl: 'http://proxy:3128',
      user: {
        name: 'me',
        certificate: { file: '/etc/me.crt' },
        key: { file: join(directory, '../me.key') },
        tokenFile: join(directory, 'token'),
        impersonate: { user: 'you', groups: ['g'] },
      },
    });
  });

  it('may have several contexts, and one without a user is anonymous', async () => {
    const value = {
      contexts: [
        { name: 'a', context: { cluster: 'one' } },
        { name: 'b', context: { cluster: 'two' } },
      ],
      clusters: [
        { name: 'one', cluster: { server: 'https://one' } },
        { name: 'two', cluster: { server: 'https://two/k8s/clusters/x', 'insecure-skip-tls-verify': true } },
      ],
    };
    const file = writeKubeconfig(value);
    expect(await readKubeconfig(files, file, 'b')).to.deep.include({
      server: 'https://two/k8s/clusters/x',
      insecure: true,
      user: { name: '' },
    });
    expect(await refused(value))
      .to.contain('no context is chosen')
      .and.contain('"a", "b"');
  });

  it("c24: is read with kubectl's leniency: null is not written, and a host alone speaks TLS", async () => {
    const none = (...keys: string[]) => Object.fromEntries(keys.map((key) => [key, null]));
    const cluster = none('insecure-skip-tls-verify', 'certificate-authority', 'proxy-url', 'tls-server-name');
    const user = none('as', 'as-groups', 'as-user-extra', 'exec', 'auth-provider', 'client-key', 'username');
    for (const [written, read] of [
      ['10.0.0.1:6443', 'https://10.0.0.1:6443'],
      ['api.site.org:6443', 'https://api.site.org:6443'],
      ['localhost', 'https://localhost'],
      ['http://localhost:8001', 'http://localhost:8001'],
    ] as const) {
      const file = writeKubeconfig(kubeconfig({ server: written, ...cluster }, { token: 't', ...user }));
      const access = await readKubeconfig(files, file);
      expect(access).to.include({ server: read, insecure: false });
      expect(access.user).to.deep.equal({ name: 'me', token: 't' });
    }
    const exec = {
      command: 'login',
      apiVersion: 'v1',
      ...none('provideClusterInfo', 'args', 'env', 'installHint'),
    };
    const file = writeKubeconfig(kubeconfig({ server }, { exec }));
    expect((await readKubeconfig(files, file)).user.exec).to.deep.equal({
      command: 'login',
      apiVersion: 'v1',
    });
  });

  it('a missing kubeconfig is named', async () => {
    const file = join(temporaryDirectory(), 'none');
    const missing = await rejection(readKubeconfig(files, file));
    expect(missing).to.be.instanceOf(ThresherError).with.property('code', 'kubeconfig-missing');
    expect(missing).to.have.property('message').that.contains(file);
    const directory = await rejection(readKubeconfig(files, temporaryDirectory()));
    expect(directory).to.be.instanceOf(ThresherError).with.property('code', 'kubeconfig-missing');
  });

  const mistakes: [what: string, value: unknown, message: RegExp, context?: string][] = [
    ['broken YAML', 'a: [', /line \d+.*not valid YAML/],
    ['a list', '- a', /an object/],
    ['a word', 'hello', /an object/],
    ['nothing', '', /no context is chosen.*there is none/],
    [
      'an unknown context',
      kubeconfig({ server }),
      /line \d+, \/contexts: there is no context "heere"; did you mean "here"\?/,
      'heere',
    ],
    [
      'no such cluster',
      { ...kubeconfig({ server }), clusters: [] },
      /contexts\/0\/context\/cluster: there is no cluster "one"; it has none/,
    ],
    [
      'no such user',
      { ...kubeconfig({ server }), users: [{ name: 'you', user: {} }] },
      /there is no user "me"; it has "you"/,
    ],
    ['no server', kubeconfig({}), /clusters\/0\/cluster.*"server" is missing/],
    ['no cluster at all', kubeconfig(null as never), /"server" is missing/],
    [
      'a server that is no address',
      kubeconfig({ server: 'ftp://10.0.0.1' }),
      /server is "ftp:\/\/10.0.0.1"; it must be http:\/\/host:port or https:\/\/host:port/,
    ],
    ['a server that is a number', kubeconfig({ server: 6443 }), /server is 6443; it must be a string/],
    ['a server with more', kubeconfig({ server: 'https://a/?b=c' }), /without more/],
    [
      'a proxy of an unknown kind',
      kubeconfig({ server, 'proxy-url': 'ftp://proxy' }),
      /proxy-url is "ftp:\/\/proxy"; it must be http/,
    ],
    [
      'a CA beside insecure',
      kubeconfig({ server, 'certificate-authority': 'a', 'insecure-skip-tls-verify': true }),
      /exclude each other/,
    ],
    [
      'a path as data',
      kubeconfig({ server, 'certificate-authority-data': './ca.crt' }),
      /certificate-authority-data is not base64; a path goes/,
    ],
    [
      'a certificate without a key',
      kubeconfig({ server }, { 'client-certificate': 'a' }),
      /user "me" has a client-certificate but no client-key/,
    ],
    [
      'a key without a certificate',
      kubeconfig({ server }, { 'client-key-data': 'YQ==' }),
      /a client-key but no client-certificate/,
    ],
    [
      'a plugin without a command',
      kubeconfig({ server }, { exec: { args: [] } }),
      /users\/0\/user\/exec.*"command" is missing/,
    ],
    [
      'a plugin that needs a terminal',
      kubeconfig({ server }, { exec: { command: 'a', interactiveMode: 'Always' } }),
      /a daemon has none/,
    ],
  ];
  for (const [what, value, message, context] of mistakes) {
    it(`a kubeconfig with ${what} gets an error with its position and the correct form`, async () => {
      expect(await refused(value, context)).to.match(message);
    });
  }
});

describe('an address in a kubeconfig that is none', () => {
  it('hole 3: is shown without the login that it has', async () => {
    const without = await refused(kubeconfig({ server, 'proxy-url': 'bob:Zq7-proxyPw-91xKd@proxy:3128' }));
    expect(without).to.match(/proxy-url is "\(hidden\)@proxy:3128"; it must be http/);
    const unescaped = await refused(kubeconfig({ server, 'proxy-url': 'http://bob:Zq7#pr@xyPw@proxy:3128' }));
    expect(unescaped).to.match(/proxy-url is "\(hidden\)@proxy:3128"; it must be http/);
  });
});

describe('within a Pod', () => {
  it('within a Pod the service account is the login', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'token'), 'secret');
    writeFileSync(join(directory, 'namespace'), 'grid\n');
    const environment = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    expect(await readAccess(files, { kind: 'in-cluster', directory, environment })).to.deep.equal({
      source: directory,
      context: 'in-cluster',
      namespace: 'grid',
      server: 'https://[fd00::1]:443',
      insecure: false,
      ca: { file: join(directory, 'ca.crt') },
      user: { name: '', tokenFile: join(directory, 'token') },
    });
  });

  it('outside of a Pod, or without a service account, the login within a Pod fails', async () => {
    const directory = temporaryDirectory();
    const message = async (environment: NodeJS.ProcessEnv) => {
      try {
        await readAccess(files, { kind: 'in-cluster', directory, environment });
      } catch (error) {
        expect((error as ThresherError).code).to.equal('kubeconfig-missing');
        return (error as ThresherError).message;
      }
      throw new Error('it was accepted');
    };
    expect(await message({})).to.contain('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
    expect(await message({ KUBERNETES_SERVICE_HOST: 'a', KUBERNETES_SERVICE_PORT: '1' })).to.contain(
      join(directory, 'token'),
    );
  });
});
