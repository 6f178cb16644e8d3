import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { loadPlugins } from '../../src/daemon/plugins.ts';
import { OperatorFiles } from '../../src/util/operator-files.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { files } from '../support/operator-files.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const contracts = resolve(import.meta.dirname, '../../src/plugins/contracts/index.ts');
const good = `export const Own = {
  kind: 'messenger', name: 'Own', module: '', aliases: [], config: {},
  connections: () => [], check: async () => [], withFiles: async (config) => config, create: () => null,
};\n`;

describe('modules of plugins', () => {
  let directory: string;

  beforeEach(() => {
    directory = temporaryDirectory();
    writeFileSync(join(directory, 'good.mjs'), good);
  });

  it('are not imported where no file stands in their place', async () => {
    execFileSync('mkfifo', [join(directory, 'pipe.mjs')]);
    const catalogue = await loadPlugins(['./pipe.mjs', '/dev/zero', './good.mjs'], directory, files);
    expect(catalogue.failure('./pipe.mjs')?.message).to.equal(
      `${join(directory, 'pipe.mjs')}: it is a pipe, not a regular file: name the file of the plugin module`,
    );
    expect(catalogue.failure('/dev/zero')?.message).to.contain('it is a device');
    expect(catalogue.find('messenger', './good.mjs', 'Own')).to.have.property('name', 'Own');
  });

  it('are not looked for as packages where the directory of packages does not answer', async () => {
    const own = join(directory, 'node_modules', 'own');
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, 'package.json'), '{ "name": "own", "type": "module", "exports": "./index.js" }');
    writeFileSync(join(own, 'index.js'), good);
    const looked: string[] = [];
    class DeadFiles extends OperatorFiles {
      override async stat(path: string): Promise<never> {
        looked.push(path);
        throw new ThresherError('file-timeout', `a look at ${path} did not come back within 10 s`);
      }
    }
    const dead = await loadPlugins(['own'], directory, new DeadFiles({ clock: new ManualClock() }));
    expect(looked).to.deep.equal([own]);
    expect(dead.failure('own')?.message).to.equal(`a look at ${own} did not come back within 10 s`);
    expect(dead.find('messenger', 'own', 'Own')).to.equal(undefined);
    const answering = await loadPlugins(['own'], directory, files);
    expect(answering.find('messenger', 'own', 'Own')).to.have.property('name', 'Own');
  });

  it('that define a backend as earlier versions wanted it are refused, and say what changed', async () => {
    writeFileSync(
      join(directory, 'old.mjs'),
      `import { definePlugin } from ${JSON.stringify(contracts)};
      const shared = { module: 'old', config: {}, connections: () => ['old:'], create: () => ({}) };
      export const all = ['submitter', 'monitor', 'sweeper'].map((kind) =>
        definePlugin({ ...shared, kind, name: 'Old' + kind }));\n`,
    );
    const catalogue = await loadPlugins(['./old.mjs'], directory, files);
    expect(catalogue.failure('./old.mjs')).to.include({ code: 'plugin-outdated' });
    expect(catalogue.failure('./old.mjs')?.message).to.contain('defineBackend()');
    for (const kind of ['submitter', 'monitor', 'sweeper'] as const)
      expect(catalogue.find(kind, './old.mjs', `Old${kind}`), kind).to.equal(undefined);
  });

  it('have a deadline for what they wait for, side by side with the others', async () => {
    const waits = 'await new Promise(() => {});\n';
    for (const name of ['a.mjs', 'b.mjs']) writeFileSync(join(directory, name), waits + good);
    const clock = new ManualClock();
    const operators = new OperatorFiles({ clock, timeoutMs: 60_000 });
    const loading = loadPlugins(['./a.mjs', './b.mjs', './good.mjs'], directory, operators);
    await until('both imports wait', () => clock.sleeping.filter((ms) => ms === 10_000).length >= 2);
    let loaded = false as boolean;
    const catalogue = loading.finally(() => (loaded = true));
    await until('the modules are given up', async () => {
      await clock.advance(10_000);
      return loaded;
    });
    expect((await catalogue).failure('./a.mjs')?.message).to.equal(
      'its top level did not come to its end within 10 s: leave what waits to connect() or create()',
    );
    expect((await catalogue).failure('./b.mjs')?.message).to.contain('did not come to its end');
    expect((await catalogue).find('messenger', './good.mjs', 'Own')).to.have.property('name', 'Own');
  });
});
