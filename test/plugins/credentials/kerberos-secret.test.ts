/** Secrets as htc-operator has them, mounted as the kubelet does it, with a real KDC. */
import { chmodSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { KerberosCredManager } from '../../../src/plugins/credentials/kerberos/index.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { kadmin, user } from '../../env/kerberos/kdc.ts';
import { facts, inspected, makeManager, mistakes, renewed } from '../../support/credential-manager.ts';
import { type Kdc, ownKdc } from '../../support/kdc.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { removeDirectory, temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const hour = 3_600_000;

type Keys = Readonly<Record<string, string | Buffer>>;

/** A Secret in a volume: the kubelet writes a directory of its own for each version, and swaps one link. */
class MountedSecret {
  readonly directory = temporaryDirectory();
  #version = 0;

  constructor(keys: Keys) {
    this.replace(keys);
    for (const key of ['user', 'keytab', 'username', 'password'])
      symlinkSync(`..data/${key}`, join(this.directory, key));
  }

  replace(keys: Keys): void {
    const before = `..version-${this.#version++}`;
    const now = `..version-${this.#version}`;
    mkdirSync(join(this.directory, now));
    for (const [key, value] of Object.entries(keys))
      writeFileSync(join(this.directory, now, key), value, { mode: 0o440 });
    symlinkSync(now, join(this.directory, '..data_tmp'));
    renameSync(join(this.directory, '..data_tmp'), join(this.directory, '..data'));
    removeDirectory(join(this.directory, before));
  }
}

describe('B9: KerberosCredManager with a Secret', () => {
  let kdc: Kdc;
  let configDir: string;
  let keytab: Buffer;

  before(async () => {
    kdc = await ownKdc();
    process.env['KRB5_CONFIG'] = kdc.config;
    keytab = readFileSync(kdc.keytab);
    await admin('addprinc -pw "another password" -maxlife "600 seconds" other@EXAMPLE.ORG');
  });

  after(async () => {
    delete process.env['KRB5_CONFIG'];
    await kdc.stop();
  });

  beforeEach(() => {
    configDir = temporaryDirectory();
  });

  const admin = (query: string) => kadmin(join(kdc.directory, '..'), query);
  const keytabSecret = () => new MountedSecret({ user: user.principal, keytab });
  const passwordSecret = () => new MountedSecret({ username: 'pilot', password: user.password });
  const manager = ({ directory }: Pick<MountedSecret, 'directory'>, options: object = {}, clock?: Clock) =>
    makeManager(
      KerberosCredManager,
      { ccache: 'krb5cc', secretDirectory: directory, ...options },
      { configDir, ...(clock && { clock }) },
    );
  const flaws = async (own: ReturnType<typeof manager>) =>
    (await inspected(own)).flatMap((state) =>
      state.kind === 'there' ? state.warnings.map(({ code, message }) => `${code}: ${message}`) : [],
    );

  it('gets a ticket by user and keytab of kerberos-keytab-secret', async () => {
    const own = manager(keytabSecret());
    expect(await renewed(own)).to.deep.equal(['renewed']);
    expect(await facts(own)).to.include({ kind: 'kerberos', subject: user.principal });
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    expect(await flaws(own)).to.deep.equal([]);
  });

  it('gets a ticket by username and password of kinit-secret, and no process shows the password', async () => {
    const own = manager(new MountedSecret({ username: 'pilot\n', password: `${user.password}\n` }));
    expect(await renewed(own)).to.deep.equal(['renewed']);
    expect(await facts(own)).to.include({ subject: user.principal });
    const tool = join(temporaryDirectory(), 'tool');
    writeFileSync(
      tool,
      '#!/bin/sh\ncat /proc/$$/cmdline /proc/$$/environ >"$0.seen"; cat >"$0.input"; exit 1\n',
    );
    chmodSync(tool, 0o755);
    const [said = ''] = await renewed(manager(passwordSecret(), { renewCommand: tool }), true);
    expect(said).to.match(/^credential-tool: /);
    expect(said + readFileSync(`${tool}.seen`, 'utf8')).to.not.contain(user.password);
    expect(readFileSync(`${tool}.input`, 'utf8')).to.equal(`${user.password}\n`);
  });

  it('renews a ticket before it ends', async () => {
    const own = manager(new MountedSecret({ username: 'other', password: 'another password' }), {
      // After some seconds of its life: the rest is time for a busy machine, and a ticket has whole seconds.
      lifetime: 600,
      renewBelow: 597,
      minNewLifetime: 0,
    });
    expect(await renewed(own)).to.deep.equal(['renewed']);
    const { expiresAt = 0 } = await facts(own);
    expect(expiresAt - Date.now()).to.be.within(1, 610_000);
    await until('it is renewed', async () => (await renewed(own))[0] === 'renewed');
    const now = await facts(own);
    expect(now.notBefore, 'it began before the first one had ended').to.be.below(expiresAt);
    expect(now.expiresAt).to.be.above(expiresAt);
  });

  it('uses a replaced Secret: at the next renewal, and at once where it is of another user', async () => {
    const clock = new ManualClock(Date.now());
    const secret = passwordSecret();
    const own = manager(secret, {}, clock);
    const look = () => own.fingerprint?.(new AbortController().signal);
    await renewed(own);
    const { digest } = await facts(own);
    const before = await look();
    secret.replace({ user: 'pilot', keytab });
    expect(await look(), 'the agent asks for a renewal').to.not.equal(before);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    await clock.advance(13 * hour);
    expect(await renewed(own)).to.deep.equal(['renewed']);
    expect((await facts(own)).digest).to.not.equal(digest);
    secret.replace({ username: 'other@EXAMPLE.ORG', password: 'another password' });
    const atOnce = manager(secret, { minNewLifetime: 0 });
    expect(await renewed(atOnce)).to.deep.equal(['renewed']);
    expect(await facts(atOnce)).to.include({ subject: 'other@EXAMPLE.ORG' });
  });

  it('keeps the last good ticket, and says which Secret is wrong in the words of the KDC', async () => {
    const secret = passwordSecret();
    const own = manager(secret);
    await renewed(own);
    const good = await facts(own);
    secret.replace({ username: 'pilot', password: 'not the password' });
    const [refused = ''] = await renewed(own, true);
    expect(refused).to.match(/^credential-tool: kinit ended with exit status 1: .*Password incorrect/);
    expect(refused).to.not.contain('not the password');
    secret.replace({ user: 'other', keytab });
    expect((await renewed(own, true))[0]).to.match(
      /^credential-tool: kinit .*no suitable keys for other@EXAMPLE.ORG/,
    );
    secret.replace({ user: 'nobody', keytab: 'rubbish' });
    expect((await renewed(own, true))[0]).to.match(/^credential-tool: kinit /);
    secret.replace({ username: 'pilot' });
    expect(await renewed(own), 'the ticket is good for long').to.deep.equal(['unchanged']);
    expect(await flaws(own)).to.deep.equal([
      `credential-missing: ${secret.directory} has no password: a Secret such as kinit-secret has the keys username and password`,
    ]);
    expect(await facts(own)).to.deep.equal(good);
  });

  it('says of a Secret in the wrong form what would be right', async () => {
    const password = user.password;
    const rows: readonly (readonly [keys: Keys, said: RegExp])[] = [
      [{}, /^credential-missing: \S+ has no login: a Secret with the keys user and keytab, or username and/],
      [{ user: 'pilot' }, /^credential-missing: \S+ has no keytab: .*such as kerberos-keytab-secret has/],
      [{ keytab }, /^credential-missing: \S+ has no user: /],
      [{ password }, /^credential-missing: \S+ has no username: /],
      [{ user: 'pilot', keytab, username: 'pilot', password }, /^credential-wrong: \S+ has keys of both/],
      [{ user: 'pilot', password }, /^credential-wrong: \S+ has keys of both forms/],
      [{ user: 'pilot', keytab: '' }, /^credential-wrong: \S+\/keytab is empty: it must be a keytab$/],
      [{ username: ' \n', password }, /^credential-wrong: \S+\/username is no name of a user/],
      [{ username: '-k', password }, /^credential-wrong: \S+\/username is no name of a user/],
      [{ username: 'pilot x', password }, /^credential-wrong: \S+\/username is no name of a user/],
      [{ username: 'pilot', password: '\n' }, /^credential-wrong: \S+\/password has no password in its/],
    ];
    for (const [keys, said] of rows) {
      const [outcome = ''] = await renewed(manager(new MountedSecret(keys)));
      expect(outcome).to.match(said);
      expect(outcome).to.not.contain(password);
    }
    expect((await renewed(manager({ directory: '/nowhere' })))[0]).to.match(
      /^credential-missing: \/nowhere has no login/,
    );
  });

  it('warns of a Secret that all users of the machine can read, and not of one for a group', async () => {
    const secret = keytabSecret();
    const own = manager(secret);
    await renewed(own);
    expect(await flaws(own)).to.deep.equal([]);
    chmodSync(join(secret.directory, 'keytab'), 0o444);
    expect(await flaws(own)).to.have.length(1);
    expect((await flaws(own))[0]).to.match(/^credential-exposed: .*keytab holds a secret and has mode 0444/);
  });

  it('finds mistakes in its options', async () => {
    const from = (options: object) =>
      mistakes(KerberosCredManager, { ccache: '/c', secretDirectory: '/s', ...options });
    expect(await from({})).to.deep.equal([]);
    for (const key of ['principal', 'keytab', 'passwordFile'])
      expect(await from({ [key]: 'a' })).to.deep.equal([
        `/${key}: ${key} is given, and secretDirectory too, whose Secret has it; write one of them`,
      ]);
    expect((await from({ secretDirectory: undefined, keytab: '/k' }))[0]).to.contain('principal is missing');
    expect((await from({ ccache: '/s/krb5cc' }))[0]).to.contain('must be elsewhere');
  });
});
