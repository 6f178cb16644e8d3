import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runHere } from '../support/command-line.ts';
import { removeDirectory, temporaryDirectory } from '../support/temporary.ts';

describe('thresher pool init', () => {
  let directory = '';

  beforeEach(() => {
    directory = join(temporaryDirectory(), 'pool');
  });

  const init = (...args: string[]) => runHere('pool', 'init', '--directory', directory, ...args);
  const claims = (path: string) => {
    const [, middle = ''] = readFileSync(join(directory, path), 'utf8').split('.');
    return JSON.parse(Buffer.from(middle, 'base64url').toString()) as Record<string, unknown>;
  };

  it('makes a key and a token for each role, and says what is where', async () => {
    const { status, stdout } = await init('--trust-domain', 'pool.example.org', '--lifetime', '30d');
    expect(status).to.equal(0);
    for (const path of ['signing-key', 'schedd/token', 'worker/token', 'admin/token'])
      expect(stdout).to.include(join(directory, path));
    expect(claims('worker/token')).to.deep.include({
      iss: 'pool.example.org',
      sub: 'worker@pool.example.org',
      scope: 'condor:/READ condor:/ADVERTISE_MASTER condor:/ADVERTISE_STARTD',
    });
    const { exp, iat } = claims('worker/token') as { readonly exp: number; readonly iat: number };
    expect(exp - iat).to.equal(30 * 86_400);
    expect(claims('admin/token')).not.to.have.property('scope');
  });

  it('makes tokens for a year unless it is told otherwise, and says when they end', async () => {
    const { stdout } = await init();
    for (const path of ['schedd/token', 'worker/token', 'admin/token']) {
      const { exp, iat } = claims(path) as { readonly exp: number; readonly iat: number };
      expect(exp - iat).to.equal(365 * 86_400);
    }
    const end = new Date((claims('admin/token') as { readonly exp: number }).exp * 1000);
    expect(stdout).to.include(`the tokens are good until ${end.toISOString().slice(0, 10)}; `);
  });

  for (const password of [[], ['--pool-password']])
    it(`--renew ${password.join(' ')} makes new tokens by the same key, for the same domain`, async () => {
      await init('--trust-domain', 'pool.test', ...password);
      const file = join(directory, password.length > 0 ? 'password' : 'signing-key');
      const key = readFileSync(file);
      const old = claims('admin/token');
      const { status, stdout, stderr } = await init('--renew', '--lifetime', '2d', ...password);
      expect(status, stderr).to.equal(0);
      expect(stdout).to.include('Pods that run have the old tokens until they restart');
      expect(readFileSync(file).equals(key)).to.equal(true);
      const { exp, iat, iss, jti } = claims('admin/token');
      expect(Number(exp) - Number(iat)).to.equal(2 * 86_400);
      expect([iss, jti === old['jti']]).to.deep.equal(['pool.test', false]);
      expect(statSync(join(directory, 'admin/token')).mode & 0o777).to.equal(0o600);
      expect(readdirSync(join(directory, 'admin'))).to.deep.equal(['token']);
    });

  it('--renew needs a pool that was made, and makes none', async () => {
    const { status, stderr } = await init('--renew');
    expect(status).to.equal(1);
    expect(stderr).to.match(/cannot be read: it is not there; `thresher pool init` makes it/);
    expect(existsSync(directory)).to.equal(false);
  });

  it('refuses options that would change nothing of files that are there', async () => {
    await init('--trust-domain', 'pool.test');
    const before = claims('admin/token');
    const long = await init('--print-secrets', '--lifetime', '30d');
    expect([long.status, long.stdout]).to.deep.equal([1, '']);
    expect(long.stderr).to.match(
      /--lifetime does not change them: leave it out, or make new ones by --renew/,
    );
    for (const more of [[], ['--renew']]) {
      const other = await init('--print-secrets', '--trust-domain', 'other.test', ...more);
      expect([other.status, other.stdout]).to.deep.equal([1, '']);
      expect(other.stderr).to.match(
        /name the TRUST_DOMAIN pool\.test, and --trust-domain does not change that/,
      );
    }
    expect((await init('--print-secrets', '--trust-domain', 'pool.test')).status).to.equal(0);
    expect(claims('admin/token')).to.deep.equal(before);
  });

  it('leaves a key that is there alone, unless --force moves it aside', async () => {
    await init();
    const key = readFileSync(join(directory, 'signing-key'));
    const again = await init();
    expect(again.status).to.equal(1);
    expect(again.stderr).to.match(/is in use already: use its files with --apply.* \[pool-exists\]/);
    expect(readFileSync(join(directory, 'signing-key')).equals(key)).to.equal(true);
    const forced = await init('--force');
    const [, before = ''] = /the files of before are in (\S+);/.exec(forced.stdout) ?? [];
    expect(readFileSync(join(before, 'signing-key')).equals(key)).to.equal(true);
    expect(readFileSync(join(directory, 'signing-key')).equals(key)).to.equal(false);
  });

  it('of two at once one makes the key, and no half-made directory stays', async () => {
    const results = await Promise.all([init(), init()]);
    expect(results.map(({ status }) => status).toSorted()).to.deep.equal([0, 1]);
    expect(readdirSync(join(directory, '..'))).to.deep.equal(['pool']);
  });

  it('prints Secrets where it is asked to, and nothing else on the standard output', async () => {
    const { stdout, stderr } = await init('--print-secrets', '--name', 'other');
    expect(stdout).to.match(/^apiVersion: v1\nkind: Secret\n/);
    expect(stdout).to.include('name: other-pool-signing-key');
    expect(stderr).to.include('signing-key');
    expect((await init('--print-secrets', '--name', 'other')).stdout).to.equal(stdout);
  });

  const wrongForms: readonly (readonly [args: readonly string[], status: number, says: RegExp])[] = [
    [
      ['--lifetime', 'soon'],
      1,
      /--lifetime is "soon"; it must be at least a minute and at most 100 years, such as 12h or 365d/,
    ],
    [['--renew', '--force'], 2, /--renew keeps the key, and --force makes a new one/],
    [['--lifetime', '200000d'], 1, /at most 100 years/],
    [['--lifetime', '5s'], 1, /--lifetime is "5s"/],
    [['--trust-domain', 'pool example'], 1, /--trust-domain is "pool example"; it must be a name/],
    [['--trust-domain', ''], 1, /--trust-domain is ""/],
    [['--name', 'UPPER'], 1, /--name is "UPPER"; it must be at most 47 small letters/],
    [['--namespace', 'a/b', '--apply'], 1, /--namespace is "a\/b"/],
    [
      ['--apply', '--kubeconfig', '/nonexistent/kubeconfig'],
      1,
      /\/nonexistent\/kubeconfig.*\[kubeconfig-missing\]/,
    ],
    [['--dry-run'], 2, /--dry-run and --force-conflicts go with --apply/],
    [['--apply', '--print-secrets'], 2, /choose one/],
    [['--pasword'], 2, /unknown option '--pasword'/],
    [['here'], 2, /too many arguments/],
  ];
  for (const [args, status, says] of wrongForms)
    it(`refuses ${args.join(' ')}`, async () => {
      const result = await init(...args);
      expect(result.status, result.stderr).to.equal(status);
      expect(result.stderr).to.match(says);
    });

  it('wrong words make no key', async () => {
    await init('--lifetime', 'soon');
    expect(existsSync(directory)).to.equal(false);
  });

  it('takes no key that others can read, that is empty or not there', async () => {
    await init();
    const key = join(directory, 'signing-key');
    chmodSync(key, 0o644);
    expect((await init('--print-secrets')).stderr).to.match(
      /signing-key cannot be read: others than its owner may read it: chmod 600/,
    );
    chmodSync(key, 0o600);
    writeFileSync(key, '');
    expect((await init('--print-secrets')).stderr).to.match(/signing-key cannot be read: it is empty/);
    removeDirectory(join(directory, 'worker'));
    writeFileSync(key, 'key');
    expect((await init('--print-secrets')).stderr).to.match(/worker\/token cannot be read: it is not there/);
  });

  it('takes no pool password for a pool with tokens, nor the other way round', async () => {
    await init('--pool-password');
    const { status, stderr } = await init('--print-secrets');
    expect(status).to.equal(1);
    expect(stderr).to.match(/has a pool password: write --pool-password/);
  });

  it('names a place that cannot be written', async () => {
    writeFileSync(join(directory, '..', 'file'), '');
    directory = join(directory, '../file/pool');
    const { status, stderr } = await init();
    expect(status).to.equal(1);
    expect(stderr).to.match(/file\/pool cannot be written: .*\[pool-files\]/);
    directory = '/proc/pool';
    expect((await init()).stderr).to.match(/\/proc\/pool cannot be written/);
  });

  it('a directory with other files in it stays as it is', async () => {
    mkdirSync(directory);
    writeFileSync(join(directory, 'mine'), 'mine');
    const { status, stderr } = await init();
    expect(status).to.equal(1);
    expect(stderr).to.include('[pool-exists]');
    expect(readdirSync(directory)).to.deep.equal(['mine']);
  });
});
