import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { HangUps } from '../../src/cli/hang-ups.ts';
import { plant, root } from '../checks/copied-tree.ts';
import { Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const early = { NODE_OPTIONS: `--import=${join(root, 'test/support/hang-up-early.ts')}` };

describe('SIGHUP during a start', () => {
  it('is held back while the daemon is loaded, and carried out once it can reload', async () => {
    const site = new Site({ queues: {} });
    const daemon = site.start([], early);
    await until('the queue file was read again', () =>
      daemon.output().includes('the queue file was read again cause=SIGHUP'),
    );
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
    await site.clean();
  });

  for (const args of [['queues'], ['workers', '--queue', 'run']]) {
    it(`ends "thresher ${args.join(' ')}", as a closed terminal does`, async () => {
      const site = new Site({ queues: {} });
      const command = site.startWith(['--config', site.config, ...args], early);
      expect(await command.ended, command.output()).to.equal('SIGHUP');
      await site.clean();
    });
  }

  const start = (...args: string[]) => {
    const tree = temporaryDirectory();
    cpSync(join(root, 'bin'), join(tree, 'bin'), { recursive: true });
    plant(tree, { 'node_modules/node/bin/node': '#!/bin/sh\nkill -HUP $$\necho lives\n' });
    spawnSync('chmod', ['+x', join(tree, 'node_modules/node/bin/node')]);
    const { stdout, signal } = spawnSync(join(tree, 'bin/thresher'), args, { encoding: 'utf8' });
    return { stdout, signal };
  };

  it('does not end the script that starts a daemon, and what it starts ignores it', () => {
    expect(start('--config', 'x', 'run')).to.deep.equal({ stdout: 'lives\n', signal: null });
    expect(start('queues')).to.deep.equal({ stdout: '', signal: 'SIGHUP' });
  });

  it('several SIGHUPs during a start count once', () => {
    const hangUps = new HangUps();
    hangUps.hold();
    hangUps.hold();
    let acted = 0;
    process.emit('SIGHUP');
    process.emit('SIGHUP');
    hangUps.deliverTo(() => acted++);
    expect(acted).to.equal(1);
    process.emit('SIGHUP');
    expect(acted).to.equal(2);
  });
});
