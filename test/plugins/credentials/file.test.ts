import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { FileCredManager } from '../../../src/plugins/credentials/file/index.ts';
import { inspected, makeManager, mistakes, renewed, warnings } from '../../support/credential-manager.ts';
import { issue, makeAuthority, makeJwt, proxyText, rfcProxy } from '../../support/credentials.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const signal = new AbortController().signal;

describe('FileCredManager', () => {
  it('finds out what each file is, and says what is wrong with one without hiding the others', async () => {
    const configDir = temporaryDirectory();
    const ca = makeAuthority();
    const user = issue(ca.directory, ca, { name: '/CN=Jane' });
    const proxy = issue(ca.directory, user, { name: '/CN=Jane/CN=1', extensions: rfcProxy });
    writeFileSync(join(configDir, 'proxy'), proxyText(proxy, user), { mode: 0o600 });
    writeFileSync(join(configDir, 'token'), makeJwt({ sub: 'robot', iss: 'i', exp: 4e9 }), { mode: 0o600 });
    writeFileSync(join(configDir, 'rubbish'), 'rubbish', { mode: 0o600 });
    // Twice the same is one.
    const files = ['proxy', './token', 'token', 'rubbish', '/nonexistent/x'];
    const manager = makeManager(FileCredManager, { files }, { configDir });
    const states = await inspected(manager);
    expect(
      states.map((state) => (state.kind === 'there' ? state.facts.kind : state.error.code)),
    ).to.deep.equal([...['x509', 'token', 'credential-wrong', 'credential-missing']]);
    const [first, second] = states;
    expect(first).to.have.nested.property('facts.name', join(configDir, 'proxy'));
    expect(second).to.have.deep.property('facts', {
      name: join(configDir, 'token'),
      kind: 'token',
      subject: 'robot',
      issuer: 'i',
      expiresAt: 4e12,
      digest: second?.kind === 'there' ? second.facts.digest : '',
    });
    expect(JSON.stringify(states)).to.not.contain('PRIVATE');
  });

  it('warns of a secret that others can read, and not of a certificate alone', async () => {
    const configDir = temporaryDirectory();
    const ca = makeAuthority();
    const token = join(configDir, 'token');
    writeFileSync(token, makeJwt({ sub: 'robot' }));
    chmodSync(token, 0o640);
    const manager = makeManager(FileCredManager, { files: [token, ca.certificate] });
    expect(await warnings(manager)).to.deep.equal(['credential-exposed']);
  });

  it('renews nothing, and says so when that is asked for or needed', async () => {
    const clock = new ManualClock();
    const token = join(temporaryDirectory(), 'token');
    const manager = makeManager(FileCredManager, { files: [token] }, { clock });
    expect(await renewed(manager)).to.deep.equal([`credential-missing: ${token} does not exist`]);
    writeFileSync(token, makeJwt({ sub: 'robot', exp: clock.now() / 1000 + 60 }), { mode: 0o600 });
    expect(await renewed(manager)).to.deep.equal(['unchanged']);
    expect((await renewed(manager, true))[0]).to.match(/^credential-only-watched: .*token is only watched/);
    await clock.advance(60_000);
    expect((await renewed(manager))[0]).to.match(
      /^credential-only-watched: .*token ended at 2026.*and is only/,
    );
    const ahead = clock.now() / 1000 + 600;
    writeFileSync(token, makeJwt({ sub: 'robot', nbf: ahead, exp: ahead + 60 }));
    expect((await renewed(manager))[0]).to.match(/token is not valid before 2026.*, and is only watched/);
  });

  it('has another fingerprint when a file changes', async () => {
    const path = join(temporaryDirectory(), 'token');
    const manager = makeManager(FileCredManager, { files: [path] });
    const seen = new Set([await manager.fingerprint?.(signal)]);
    writeFileSync(path, 'one');
    seen.add(await manager.fingerprint?.(signal));
    writeFileSync(path, 'other');
    seen.add(await manager.fingerprint?.(signal));
    rmSync(path);
    seen.add(await manager.fingerprint?.(signal));
    expect(seen.size).to.equal(3);
  });

  it('finds mistakes in its options', async () => {
    expect((await mistakes(FileCredManager, {}))[0]).to.contain('"files" is missing');
    expect(await mistakes(FileCredManager, { files: [] })).to.have.length(1);
    expect((await mistakes(FileCredManager, { files: '/x' }))[0]).to.contain('it must be a list');
    expect(await mistakes(FileCredManager, { files: [''] })).to.have.length(1);
  });
});
