import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readX509 } from '../../../src/clients/credentials/x509.ts';
import { ArcproxyCredManager, NoVomsCredManager } from '../../../src/plugins/credentials/grid-proxy/index.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { facts, makeManager, mistakes, renewed, warnings } from '../../support/credential-manager.ts';
import {
  type Authority,
  issue,
  type Issued,
  makeAuthority,
  makeVomsProxy,
  proxyText,
  rfcProxy,
} from '../../support/credentials.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const hour = 3_600_000;
const jane = '/DC=org/DC=test/CN=Jane Doe';

let ca: Authority;
let user: Issued;
/** Certificate and key of the user in one file. */
let plain: string;
let configDir: string;
let out: string;

before(() => {
  ca = makeAuthority();
  user = issue(ca.directory, ca, { name: jane });
  plain = join(ca.directory, 'plain.pem');
  writeFileSync(plain, proxyText(user), { mode: 0o600 });
});

beforeEach(() => {
  configDir = temporaryDirectory();
  out = join(configDir, 'proxy');
  process.env['X509_CERT_DIR'] = ca.trusted;
});

afterEach(() => {
  delete process.env['X509_CERT_DIR'];
});

const hoursLeft = (at: number | undefined) => Math.round(((at ?? 0) - Date.now()) / hour);

const noVoms = (options: object = {}, clock?: Clock) =>
  makeManager(
    NoVomsCredManager,
    { inCertFile: plain, outCertFile: 'proxy', ...options },
    { configDir, ...(clock && { clock }) },
  );

/** A program in place of voms-proxy-init: a shell script that finds where to write in $OUT. */
function program(body: string): string {
  const path = join(temporaryDirectory(), 'tool');
  const find = 'OUT=; while [ $# -gt 0 ]; do [ "$1" = -out ] && OUT=$2; shift; done';
  writeFileSync(path, `#!/bin/sh\nprintf "%s\\n" "$0" "$@" >"$0.args"\n${find}\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe('NoVomsCredManager', () => {
  it('makes a proxy by the real voms-proxy-init, leaves it as long as it lasts, and makes it anew when it is due', async () => {
    const clock = new ManualClock(Date.now());
    const manager = noVoms({}, clock);
    expect(await renewed(manager)).to.deep.equal(['renewed']);
    const first = await facts(manager);
    expect(first).to.include({ name: out, kind: 'x509', issuer: jane });
    expect(hoursLeft(first.expiresAt)).to.equal(96);
    expect(await warnings(manager)).to.deep.equal([]);
    expect(await renewed(manager)).to.deep.equal(['unchanged']);
    // Less than 96 - 1 h left.
    await clock.advance(0.9 * hour);
    expect(await renewed(manager)).to.deep.equal(['unchanged']);
    await clock.advance(0.2 * hour);
    expect(await renewed(manager)).to.deep.equal(['renewed']);
    expect((await facts(manager)).digest).to.not.equal(first.digest);
    expect(readdirSync(configDir)).to.deep.equal(['proxy']);
  });

  it('makes one at once when it is forced, missing, rubbish, or when its source was replaced', async () => {
    const manager = noVoms();
    await renewed(manager);
    expect(await renewed(manager, true)).to.deep.equal(['renewed']);
    writeFileSync(out, 'rubbish');
    expect(await renewed(manager)).to.deep.equal(['renewed']);
    const before = await manager.fingerprint?.(new AbortController().signal);
    const source = join(configDir, 'source');
    copyFileSync(plain, source);
    const other = noVoms({ inCertFile: 'source' });
    const set = (path: string, ago: number) => {
      const at = new Date(Date.now() - ago);
      utimesSync(path, at, at);
    };
    set(out, 2 * hour);
    // One of the future would be newer than whatever is made of it, for ever.
    set(source, -hour);
    expect(await renewed(other)).to.deep.equal(['unchanged']);
    set(source, hour);
    expect(await other.fingerprint?.(new AbortController().signal)).to.not.equal(before);
    expect(await renewed(other)).to.deep.equal(['renewed']);
  });

  it('hole 7: makes one anew that is not valid yet, though it would end later', async () => {
    const dates = { from: Date.now() + 240 * hour, until: Date.now() + 480 * hour };
    const early = issue(ca.directory, user, { name: `${jane}/CN=1`, extensions: rfcProxy, ...dates });
    writeFileSync(out, proxyText(early, user), { mode: 0o600 });
    const manager = noVoms();
    expect(await renewed(manager)).to.deep.equal(['renewed']);
    expect(hoursLeft((await facts(manager)).expiresAt)).to.equal(96);
    const source = join(configDir, 'source');
    writeFileSync(source, proxyText(early, user), { mode: 0o600 });
    expect((await renewed(noVoms({ inCertFile: source }), true))[0]).to.match(
      /source is not valid before 2.*no proxy can be made of it$/,
    );
  });

  it('makes a proxy of a certificate and a key, as limited as its further options say', async () => {
    const options = { genFromKeyCert: true, cert: user.certificate, key: user.key };
    const manager = noVoms({ ...options, lifetime: 5, extraRenewOpts: '-limited -bits 2048' });
    expect(await renewed(manager)).to.deep.equal(['renewed']);
    expect(hoursLeft((await facts(manager)).expiresAt)).to.equal(5);
    expect(readX509(readFileSync(out, 'utf8'), out).limited).to.be.true;
  });

  it('calls the program as Harvester does, under its own names of options', async () => {
    const tool = program('exit 1');
    const voms = ['atlas:/atlas/Role=production', 'cms'];
    const options = { voms, lifetimeOptFormat: '-hours {lifetime} -vomslife {lifetime}:00', lifetime: 12 };
    await renewed(noVoms({ ...options, renewCommand: `${tool} -quiet`, extraRenewOpts: '-x  $(id) *' }));
    const args = readFileSync(`${tool}.args`, 'utf8').split('\n').slice(1, -1);
    const temporary = args[args.indexOf('-out') + 1] ?? '';
    expect(temporary.startsWith(join(configDir, '.proxy.'))).to.be.true;
    expect(args).to.deep.equal([
      ...['-quiet', '-rfc', '-noregen', '-voms', 'atlas:/atlas/Role=production', '-voms', 'cms'],
      ...['-out', temporary, '-hours', '12', '-vomslife', '12:00', '-cert', plain, '-key', plain],
      ...['-x', '$(id)', '*'],
    ]);
  });

  it('tells of the VO, and renews one that got less from it at the same part of its life', async () => {
    const made = makeVomsProxy(
      ca,
      user,
      'atlas',
      '-fqan',
      '/atlas/Role=production/Capability=NULL',
      '-hours',
      '96',
      '-vomslife',
      '24',
    );
    const clock = new ManualClock(Date.now());
    const options = { voms: 'atlas:/atlas/Role=production', checkPeriod: 48 };
    const manager = noVoms({ ...options, renewCommand: program(`cp ${made} "$OUT"`) }, clock);
    expect(await renewed(manager)).to.deep.equal(['renewed']);
    expect(await facts(manager)).to.include({ vo: 'atlas' });
    expect(hoursLeft((await facts(manager)).expiresAt)).to.equal(24);
    await clock.advance(11 * hour);
    expect(await renewed(manager)).to.deep.equal(['unchanged']);
    await clock.advance(2 * hour);
    expect(await renewed(manager)).to.deep.equal(['renewed']);
  });

  describe('keeps the last good proxy and says why when the program', () => {
    let good: string;

    beforeEach(async () => {
      await renewed(noVoms());
      good = readFileSync(out, 'utf8');
    });

    afterEach(() => {
      expect(readFileSync(out, 'utf8') === good, 'it stays').to.be.true;
      expect(readdirSync(configDir)).to.deep.equal(['proxy']);
    });

    const failing = async (tool: string, options: object = {}, clock?: Clock) =>
      (await renewed(noVoms({ renewCommand: tool, ...options }, clock), true))[0] ?? '';
    const writing = (text: string) => {
      const path = join(temporaryDirectory(), 'content');
      writeFileSync(path, text);
      return program(`cp ${path} "$OUT"`);
    };

    it('is missing', async () => {
      expect(await failing('/nowhere/voms-proxy-init')).to.match(/^credential-tool: .*was not found/);
    });

    it('fails', async () => {
      expect(await failing(program('echo "VOMS server not known!" >&2; exit 1'))).to.match(
        /^credential-tool: .* ended with exit status 1: VOMS server not known!$/,
      );
    });

    it('cannot find the VO, being the real one', async () => {
      const said = await failing('voms-proxy-init', {
        voms: 'no-such-vo',
        extraRenewOpts: '-vomses /dev/null',
      });
      expect(said).to.match(/^credential-tool: voms-proxy-init ended with exit status 1: .*no-such-vo/);
    });

    it('hangs, and ends it with its children', async () => {
      const clock = new ManualClock(Date.now());
      const begun = join(temporaryDirectory(), 'begun');
      const call = failing(
        program(`echo half >"$OUT"; echo >${begun}; sleep 1000`),
        { timeLimit: 30 },
        clock,
      );
      await until('it has begun', () => existsSync(begun));
      await clock.advance(30_000);
      expect(await call).to.match(/^credential-tool: .* did not end within 30 s and was killed/);
    });

    it('is given up', async () => {
      const abort = new AbortController();
      const begun = join(temporaryDirectory(), 'begun');
      const manager = noVoms({ renewCommand: program(`echo >${begun}; sleep 1000`) });
      const call = manager.renew({ force: true }, abort.signal);
      await until('it has begun', () => existsSync(begun));
      abort.abort();
      expect((await call)[0]).to.have.nested.property('error.code', 'credential-tool');
    });

    it('writes nothing, though all is well', async () => {
      expect(await failing(program('exit 0'))).to.contain('wrote nothing');
    });

    it('writes rubbish', async () => {
      expect(await failing(program('echo rubbish >"$OUT"'))).to.match(
        /^credential-wrong: what .* wrote has no certificate in PEM/,
      );
    });

    it('writes half a file', async () => {
      for (const part of [0, 0.2, 0.5, 0.8, 0.99]) {
        const said = await failing(writing(good.slice(0, good.length * part)));
        expect(said, `${part}`).to.match(/^credential-wrong: /);
      }
    });

    it('writes one that is expired, or lasts too short a time', async () => {
      const leaf = (end: number) => {
        const name = `${jane}/CN=1`;
        const dates = { from: Date.now() - 2 * hour, until: Date.now() + end };
        return proxyText(issue(ca.directory, user, { name, extensions: rfcProxy, ...dates }), user);
      };
      expect(await failing(writing(leaf(-hour)))).to.match(/^credential-unfit: .* ended at 20.*at least$/);
      const short = writing(leaf(2 * hour));
      expect(await failing(short, { minNewLifetime: 3 })).to.match(/it must last 3 h at least$/);
    });

    it('writes one without the VO or the role that was asked for', async () => {
      const other = makeVomsProxy(ca, user, 'atlas', '-fqan', '/atlas/Role=pilot');
      const tool = program(`cp ${other} "$OUT"`);
      expect(await failing(tool, { voms: 'atlas:/atlas/Role=production' })).to.match(
        /has no attributes of atlas:\/atlas\/Role=production, but of atlas, \/atlas\/Role=pilot$/,
      );
      expect(await failing(tool, { voms: 'cms' })).to.contain('has no attributes of cms');
    });

    it('writes that of somebody else', async () => {
      const other = issue(ca.directory, ca, { name: '/DC=org/DC=test/CN=John Roe' });
      const proxy = issue(ca.directory, other, { name: `${other.name}/CN=1`, extensions: rfcProxy });
      expect(await failing(writing(proxyText(proxy, other)))).to.contain(
        'stands for /DC=org/DC=test/CN=John Roe',
      );
      expect(await failing(writing(proxyText(user)))).to.contain('is no proxy, but a certificate');
    });
  });

  /** Options that make voms-proxy-fake stand in; it knows no -noregen and no -valid. */
  function fake(vo: string, fqan: string): object {
    const host = ['-hostcert', ca.host.certificate, '-hostkey', ca.host.key, '-uri', 'voms.example.org:1'];
    return {
      genFromKeyCert: true,
      cert: user.certificate,
      key: user.key,
      lifetime: 12,
      lifetimeOptFormat: '-hours {lifetime}',
      extraRenewOpts: ['-fqan', fqan, ...host].join(' '),
      voms: vo,
    };
  }

  it('has attributes of a VO put in by the real tool', async () => {
    const options = fake('atlas', '/atlas/Role=production');
    const manager = noVoms({ ...options, renewCommand: 'voms-proxy-fake' });
    expect(await renewed(manager)).to.deep.equal(['renewed']);
    expect(await facts(manager)).to.include({ vo: 'atlas' });
  });

  it('says what is wrong with its source, without calling the program', async () => {
    const tool = program('echo called >"$0.called"');
    const source = join(configDir, 'source');
    const manager = noVoms({ inCertFile: source, renewCommand: tool });
    expect(await renewed(manager)).to.deep.equal([`credential-missing: ${source} does not exist`]);
    writeFileSync(source, 'x', { mode: 0o600 });
    expect((await renewed(manager))[0]).to.contain('credential-wrong');
    const old = issue(ca.directory, ca, {
      name: jane,
      from: Date.now() - 9 * hour,
      until: Date.now() - hour,
    });
    writeFileSync(source, proxyText(old), { mode: 0o600 });
    expect((await renewed(manager))[0]).to.match(
      /^credential-unfit: .*source ended at .*no proxy can be made/,
    );
    expect(existsSync(`${tool}.called`)).to.be.false;
  });

  it('warns before its source ends, and when others can read it', async () => {
    const soon = issue(ca.directory, ca, { name: jane, until: Date.now() + 50 * hour });
    const source = join(configDir, 'source');
    writeFileSync(source, proxyText(soon), { mode: 0o644 });
    const tool = noVoms({ inCertFile: plain });
    await renewed(tool);
    const manager = noVoms({ inCertFile: source });
    expect(await warnings(manager)).to.deep.equal(['credential-exposed', 'credential-source-ending']);
  });

  it('finds mistakes in its options', async () => {
    const from = (options: object) => mistakes(NoVomsCredManager, { outCertFile: '/o', ...options });
    expect(await from({ inCertFile: '/i', voms: null })).to.deep.equal([]);
    expect(await from({ certFile: '/i', voms: 'atlas' })).to.deep.equal([]);
    expect(await from({})).to.deep.equal([
      '/inCertFile: inCertFile is missing; it names the proxy of which others are made',
    ]);
    expect(await from({ genFromKeyCert: true })).to.have.length(2);
    expect((await from({ inCertFile: '/x/../o' }))[0]).to.contain(
      'outCertFile is the file that proxies are made of, /o',
    );
    expect((await from({ inCertFile: '/i', checkPeriod: 96 }))[0]).to.contain(
      'must be less than lifetime, 96',
    );
    expect((await from({ inCertFile: '/i', minNewLifetime: 97 }))[0]).to.contain('no new proxy has more');
    expect((await from({ inCertFile: '/i', lifetime: '96' }))[0]).to.contain('write 96 without quotes');
    expect(await from({ inCertFile: '/i', lifetime: 0 })).to.have.length(1);
    expect(await from({ inCertFile: '/i', renewCommand: ' ' })).to.have.length(1);
    expect((await mistakes(NoVomsCredManager, { inCertFile: '/i' }))[0]).to.contain(
      '"outCertFile" is missing',
    );
  });
});

describe('ArcproxyCredManager', () => {
  const arc = (options: object = {}, clock?: Clock) =>
    makeManager(
      ArcproxyCredManager,
      { inCertFile: plain, outCertFile: 'proxy', ...options },
      { configDir, ...(clock && { clock }) },
    );

  it('makes a proxy by the real arcproxy, and renews it when less than 72 h are left', async () => {
    const clock = new ManualClock(Date.now());
    const manager = arc({}, clock);
    expect(await renewed(manager)).to.deep.equal(['renewed']);
    expect(await facts(manager)).to.include({ name: out, kind: 'x509', issuer: jane });
    expect(hoursLeft((await facts(manager)).expiresAt)).to.equal(96);
    await clock.advance(23 * hour);
    expect(await renewed(manager)).to.deep.equal(['unchanged']);
    await clock.advance(2 * hour);
    expect(await renewed(manager)).to.deep.equal(['renewed']);
  });

  it('makes a proxy of a proxy', async () => {
    const source = join(configDir, 'source');
    const proxy = issue(ca.directory, user, { name: `${jane}/CN=5`, extensions: rfcProxy });
    writeFileSync(source, proxyText(proxy, user), { mode: 0o600 });
    const manager = arc({ inCertFile: 'source', lifetime: 12, renewBelow: 6 });
    expect(await renewed(manager)).to.deep.equal(['renewed']);
    const made = readX509(readFileSync(out, 'utf8'), out);
    expect(made.subject.startsWith(`${jane}/CN=5/CN=`)).to.be.true;
    expect(made.identity).to.equal(jane);
  });

  it('keeps the last good one when the VO cannot be reached', async () => {
    await renewed(arc());
    const good = readFileSync(out, 'utf8');
    const said = (await renewed(arc({ voms: 'no-such-vo', extraRenewOpts: '-V /dev/null' }), true))[0];
    expect(said).to.match(/^credential-(tool|unfit): /);
    expect(readFileSync(out, 'utf8') === good, 'it stays').to.be.true;
    expect(readdirSync(configDir)).to.deep.equal(['proxy']);
  });

  it('calls the program as Harvester does', async () => {
    const tool = program('exit 1');
    await renewed(arc({ renewCommand: tool, voms: 'atlas:/atlas/Role=pilot' }));
    const args = readFileSync(`${tool}.args`, 'utf8').split('\n').slice(1, -1);
    const temporary = args[args.indexOf('-P') + 1] ?? '';
    expect(args).to.deep.equal([
      ...['-S', 'atlas:/atlas/Role=pilot', '-P', temporary],
      ...['-c', 'validityPeriod=96h', '-c', 'vomsACvalidityPeriod=96h', '-C', plain, '-K', plain],
    ]);
  });

  it('finds mistakes in its options', async () => {
    const from = (options: object) => mistakes(ArcproxyCredManager, { outCertFile: '/o', ...options });
    expect(await from({ inCertFile: '/i' })).to.deep.equal([]);
    expect((await from({}))[0]).to.contain('inCertFile is missing');
    expect((await from({ inCertFile: '/o' }))[0]).to.contain('it must be another');
    expect((await from({ inCertFile: '/i', lifetime: 24 }))[0]).to.contain(
      'renewBelow is 72; it must be less than',
    );
    expect((await from({ inCertFile: '/i', minNewLifetime: 100 }))[0]).to.contain('no new proxy has more');
  });
});
