import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { KerberosCredManager } from '../../../src/plugins/credentials/kerberos/index.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { fromOutside } from '../../../src/util/own-secrets.ts';
import { kadmin, user } from '../../env/kerberos/kdc.ts';
import { facts, makeManager, mistakes, renewed, warnings } from '../../support/credential-manager.ts';
import { type Kdc, ownKdc } from '../../support/kdc.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const hour = 3_600_000;

describe('KerberosCredManager', () => {
  let kdc: Kdc;
  let configDir: string;
  let cache: string;

  before(async () => {
    kdc = await ownKdc();
    process.env['KRB5_CONFIG'] = kdc.config;
  });

  after(async () => {
    delete process.env['KRB5_CONFIG'];
    await kdc.stop();
  });

  beforeEach(() => {
    configDir = temporaryDirectory();
    cache = join(configDir, 'krb5cc');
  });

  const manager = (options: object = {}, clock?: Clock) =>
    makeManager(
      KerberosCredManager,
      { principal: user.principal, ccache: 'krb5cc', keytab: kdc.keytab, ...options },
      { configDir, ...(clock && { clock }) },
    );
  const hoursLeft = (at: number | undefined) => Math.round(((at ?? 0) - Date.now()) / hour);

  it('gets a ticket by a keytab from a real KDC, and another one before it ends', async () => {
    const clock = new ManualClock(Date.now());
    const own = manager({ lifetime: 10, renewBelow: 5, renewableLifetime: 48 }, clock);
    expect(await renewed(own)).to.deep.equal(['renewed']);
    const first = await facts(own);
    expect(first).to.include({ name: cache, kind: 'kerberos', subject: user.principal });
    expect(hoursLeft(first.expiresAt)).to.equal(10);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    await clock.advance(4.9 * hour);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    await clock.advance(0.2 * hour);
    expect(await renewed(own)).to.deep.equal(['renewed']);
    expect((await facts(own)).digest).to.not.equal(first.digest);
    expect(readdirSync(configDir)).to.deep.equal(['krb5cc']);
    expect(await warnings(own)).to.deep.equal([]);
  });

  it('gets one by a password that no process shows', async () => {
    const byPassword = { keytab: undefined, passwordFile: kdc.passwordFile };
    expect(await renewed(manager(byPassword))).to.deep.equal(['renewed']);
    expect(hoursLeft((await facts(manager())).expiresAt)).to.equal(24);
    const tool = program('cat /proc/$$/cmdline /proc/$$/environ >"$0.seen"; cat >"$0.input"; exit 1');
    await renewed(manager({ ...byPassword, renewCommand: tool }), true);
    expect(readFileSync(`${tool}.seen`, 'utf8')).to.not.contain(user.password);
    expect(readFileSync(`${tool}.input`, 'utf8')).to.equal(`${user.password}\n`);
  });

  it('gets one anew when there is another’s in its place', async () => {
    await renewed(manager());
    const nobody = manager({ principal: 'nobody' });
    expect((await renewed(nobody))[0]).to.match(/^credential-tool: kinit .*no suitable keys for nobody@/);
    expect(await renewed(manager({ principal: 'pilot' }))).to.deep.equal(['unchanged']);
  });

  it('gets one anew at the same part of its life when the KDC gives less than was asked for', async () => {
    const clock = new ManualClock(Date.now());
    // The KDC gives a day at most.
    const own = manager({ lifetime: 96, renewBelow: 24 }, clock);
    await renewed(own);
    expect(hoursLeft((await facts(own)).expiresAt)).to.equal(24);
    await clock.advance(17 * hour);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    await clock.advance(2 * hour);
    expect(await renewed(own)).to.deep.equal(['renewed']);
  });

  it('hole 7: gets one anew that is not valid yet, and takes none that is not', async () => {
    await renewed(manager());
    const behind = new ManualClock(Date.now() - hour);
    expect((await renewed(manager({}, behind)))[0]).to.match(
      /^credential-unfit: the new ticket for .* is not valid before 2/,
    );
  });

  describe('keeps the last good ticket and says why when', () => {
    let good: string;

    beforeEach(async () => {
      await renewed(manager());
      good = readFileSync(cache, 'latin1');
    });

    afterEach(() => {
      expect(readFileSync(cache, 'latin1') === good, 'it stays').to.be.true;
      expect(readdirSync(configDir).filter((name) => name.endsWith('.new'))).to.deep.equal([]);
    });

    const failing = async (options: object, clock?: Clock) =>
      (await renewed(manager(options, clock), true))[0] ?? '';

    it('the password is wrong, and does not show it', async () => {
      const passwordFile = join(configDir, 'password');
      writeFileSync(passwordFile, 'not the password\n', { mode: 0o600 });
      const said = await failing({ keytab: undefined, passwordFile });
      expect(said).to.match(/^credential-tool: kinit ended with exit status 1: .*Password incorrect/);
      expect(said).to.not.contain('not the password');
      const repeated = `bad ${Buffer.from('not the password').toString('base64')}`;
      expect(fromOutside(repeated)).to.equal('bad (hidden)');
      writeFileSync(passwordFile, '\n');
      expect(await failing({ keytab: undefined, passwordFile })).to.match(
        /^credential-wrong: .* has no password in its first line$/,
      );
    });

    it('the password has expired, and no prompt for another one is waited for', async () => {
      await kadmin(join(kdc.directory, '..'), 'addprinc -pw "old" -pwexpire "1 second ago" late@EXAMPLE.ORG');
      const passwordFile = join(configDir, 'password');
      writeFileSync(passwordFile, 'old\n', { mode: 0o600 });
      const said = await failing({ principal: 'late@EXAMPLE.ORG', keytab: undefined, passwordFile });
      expect(said).to.match(/^credential-tool: kinit ended with exit status 1: /);
    });

    it('the keytab is missing', async () => {
      expect(await failing({ keytab: '/nowhere/keytab' })).to.equal(
        'credential-missing: /nowhere/keytab does not exist',
      );
    });

    it('no KDC answers', async () => {
      const config = join(configDir, 'krb5.conf');
      const text = readFileSync(kdc.config, 'utf8').replace(/127\.0\.0\.1:\d+/, '127.0.0.1:9');
      writeFileSync(config, text);
      process.env['KRB5_CONFIG'] = config;
      try {
        expect(await failing({})).to.match(/^credential-tool: kinit ended .*Cannot contact any KDC/);
      } finally {
        process.env['KRB5_CONFIG'] = kdc.config;
      }
    });

    it('the program hangs', async () => {
      const clock = new ManualClock(Date.now());
      const begun = join(temporaryDirectory(), 'begun');
      const call = failing({ renewCommand: program(`echo >${begun}; sleep 1000`) }, clock);
      await until('it has begun', () => existsSync(begun));
      await clock.advance(60_000);
      expect(await call).to.contain('did not end within 60 s and was killed');
    });

    it('the program writes nothing, rubbish, half a cache, or that of somebody else', async () => {
      const half = join(temporaryDirectory(), 'half');
      writeFileSync(half, good.slice(0, good.length / 2), 'latin1');
      expect(await failing({ renewCommand: program('exit 0') })).to.contain('wrote nothing');
      expect(await failing({ renewCommand: program('echo rubbish >"$OUT"') })).to.contain('credential-wrong');
      expect(await failing({ renewCommand: program(`cp ${half} "$OUT"`) })).to.contain('credential-wrong');
      const whole = program(`cp ${cache} "$OUT"`);
      expect(await failing({ renewCommand: whole, principal: 'a@EXAMPLE.ORG' })).to.match(
        /^credential-unfit: .* is of pilot@EXAMPLE.ORG, and not of a@EXAMPLE.ORG$/,
      );
    });

    it('the new one would last too short a time', async () => {
      expect(
        await failing({ lifetime: 3, renewBelow: 1, minNewLifetime: 3 }, new ManualClock(Date.now() + hour)),
      ).to.match(/^credential-unfit: .*it must last 3 h at least$/);
    });
  });

  it('warns of a password that others can read', async () => {
    const passwordFile = join(configDir, 'password');
    writeFileSync(passwordFile, `${user.password}\n`, { mode: 0o644 });
    const own = manager({ keytab: undefined, passwordFile });
    await renewed(own);
    expect(await warnings(own)).to.deep.equal(['credential-exposed']);
    const before = await own.fingerprint?.(new AbortController().signal);
    writeFileSync(passwordFile, 'another');
    expect(await own.fingerprint?.(new AbortController().signal)).to.not.equal(before);
  });

  it('finds mistakes in its options', async () => {
    const from = (options: object) =>
      mistakes(KerberosCredManager, { principal: 'a@B', ccache: '/c', ...options });
    expect(await from({ keytab: '/k' })).to.deep.equal([]);
    expect((await from({}))[0]).to.contain('keytab is missing');
    expect((await from({ keytab: '/k', passwordFile: '/p' }))[0]).to.contain('only one of them');
    expect((await from({ keytab: '/c' }))[0]).to.contain('would be overwritten');
    expect((await from({ keytab: '/k', lifetime: 12 }))[0]).to.contain('must be less than lifetime');
    expect((await from({ keytab: '/k', minNewLifetime: 25 }))[0]).to.contain('no new ticket has more');
    expect(await from({ keytab: '/k', ccache: 'KEYRING:x' })).to.have.length(1);
    expect(await from({ keytab: '/k', principal: '-k' })).to.have.length(1);
  });
});

/** A program in place of kinit: a shell script that finds where to write in $OUT. */
function program(body: string): string {
  const path = join(temporaryDirectory(), 'tool');
  const find = 'OUT=; while [ $# -gt 0 ]; do [ "$1" = -c ] && OUT=${2#FILE:}; shift; done';
  writeFileSync(path, `#!/bin/sh\n${find}\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}
