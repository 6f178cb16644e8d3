import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readSidecarConfig } from '../../src/daemon/interlink/sidecar-config.ts';
import { Settings } from '../../src/config/settings/settings-schema.ts';
import { check } from '../../src/util/schema.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { root } from './copied-tree.ts';

const read = (path: string) => readFileSync(join(root, 'etc', path), 'utf8');
const unit = read('thresher.service');
const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];

/** What `systemd-analyze verify` says of the unit as it is installed, with the program of this checkout. */
function verify(text: string, dropIns: Readonly<Record<string, string>> = {}, name = 'thresher.service') {
  const directory = temporaryDirectory();
  const file = join(directory, name);
  writeFileSync(file, text.replaceAll('/usr/local/bin/thresher', join(root, 'bin/thresher')));
  mkdirSync(`${file}.d`);
  for (const [name, content] of Object.entries(dropIns)) writeFileSync(join(`${file}.d`, name), content);
  // The manual page is not installed here.
  const result = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
  return { status: result.status, says: result.stdout + result.stderr };
}

describe('etc/thresher.service', () => {
  it('is accepted by systemd without a word', () => {
    expect(verify(unit)).to.deep.equal({ status: 0, says: '' });
  });

  it('is accepted with what a site without local workers adds', () => {
    const name = 'no-local-workers.conf';
    expect(verify(unit, { [name]: read(`thresher.service.d/${name}`) })).to.deep.equal({
      status: 0,
      says: '',
    });
  });

  it('has the daemon started again after a SIGHUP that came before its first instruction', () => {
    expect(value('RestartForceExitStatus')).to.equal('SIGHUP');
    expect(verify(unit.replace('=SIGHUP', '=SIGHUB')).says).to.contain('SIGHUB');
  });

  it('would not be accepted with a spelling mistake', () => {
    expect(verify(unit.replace('WatchdogSec', 'WatchDogSec')).says).to.contain('WatchDogSec');
  });

  it('lets local workers live through a restart and through each other', () => {
    expect(value('KillMode')).to.equal('process');
    expect(value('OOMPolicy')).to.equal('continue');
    expect(value('PrivateTmp')).to.equal(undefined);
  });

  it('listens to systemd-notify, which is not the main process', () => {
    expect([value('Type'), value('NotifyAccess')]).to.deep.equal(['notify', 'all']);
    expect(Number(value('WatchdogSec'))).to.be.greaterThan(0);
  });

  it('leaves a stop more time than the daemon takes by its default settings', () => {
    const defaults = check(Settings, {});
    if (!defaults.ok) throw new Error('the defaults are refused');
    expect(Number(value('TimeoutStopSec'))).to.be.greaterThan(defaults.value.master.shutdownTimeout + 10);
  });
});

describe('etc/thresher-interlink.service', () => {
  const name = 'thresher-interlink.service';

  it('is accepted by systemd without a word', () => {
    expect(verify(read(name), {}, name)).to.deep.equal({ status: 0, says: '' });
  });

  it('meets the schedd of this machine in the common /tmp, and finds proxies there', () => {
    expect(read(name)).not.to.match(/^PrivateTmp/m);
  });

  it('may write what its example of a SidecarConfig.yaml names, and reads it without a warning', () => {
    const { dataRoot, warnings } = readSidecarConfig(read('SidecarConfig.yaml'), 'SidecarConfig.yaml');
    expect(warnings).to.deep.equal([]);
    expect(read(name)).to.include(`StateDirectory=${dataRoot.replace('/var/lib/', '')}`);
  });
});

describe('etc/sysusers.d/thresher.conf', () => {
  it('makes the user that the unit runs as', () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'etc'));
    execFileSync('systemd-sysusers', [`--root=${directory}`, join(root, 'etc/sysusers.d/thresher.conf')], {
      stdio: 'pipe',
    });
    const accounts = readFileSync(join(directory, 'etc/passwd'), 'utf8');
    expect(accounts).to.match(
      new RegExp(`^${String(value('User'))}:x:\\d+:\\d+:[^:]*:/var/lib/thresher:`, 'm'),
    );
  });
});
