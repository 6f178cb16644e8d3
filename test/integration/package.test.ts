import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { copiedTree } from '../checks/copied-tree.ts';
import { Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const checkout = resolve(import.meta.dirname, '../..');

describe('the published package', () => {
  let installed: string;

  before(function () {
    this.timeout(240_000);
    const directory = temporaryDirectory();
    // Packing builds `dist/`: in a copy, since other tests run the program from the one of the checkout meanwhile.
    const { files } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { files: string[] };
    const tree = copiedTree(['src', ...files.filter((path) => path !== 'dist')]);
    execFileSync('npm', ['pack', '--pack-destination', directory, '--loglevel=error'], { cwd: tree });
    mkdirSync(join(directory, 'node_modules'));
    execFileSync('sh', ['-c', 'tar xzf *.tgz && mv package node_modules/thresher'], { cwd: directory });
    installed = join(directory, 'node_modules/thresher');
    // Its dependencies, as npm would have put them there.
    symlinkSync(join(checkout, 'node_modules'), join(installed, 'node_modules'));
  });

  it('has dist/ and no sources, which Node refuses below node_modules', () => {
    expect(existsSync(join(installed, 'dist/cli/main.js'))).to.equal(true);
    expect(existsSync(join(installed, 'src'))).to.equal(false);
  });

  it('runs the daemon and the command line from there', () => {
    const site = new Site({ queues: { Q: { maxWorkers: 0 } } });
    const thresher = (...args: string[]) =>
      execFileSync(join(installed, 'bin/thresher'), ['--config', site.config, ...args], {
        encoding: 'utf8',
        stdio: 'pipe',
      });
    thresher('run', '--for', '0.5s');
    expect(thresher('queues')).to.match(/^Q +stopped/m);
    expect(thresher('version')).to.match(/^thresher \d+\.\d+\.\d+ \(Node 24\./);
  });

  it('gives third-party plugins what they need, under its own name', () => {
    const plugin = join(installed, '../../plugin.mjs');
    writeFileSync(
      plugin,
      "import { definePlugin } from 'thresher/plugin';\nconsole.log(typeof definePlugin);\n",
    );
    expect(execFileSync(process.execPath, [plugin], { encoding: 'utf8' })).to.equal('function\n');
  });
});
