import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { loadPlugins } from '../../src/daemon/plugins.ts';
import { partOf } from '../support/backend-parts.ts';
import { files } from '../support/operator-files.ts';
import { pluginContext } from '../support/plugin-context.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const root = resolve(import.meta.dirname, '../..');

/** A client as the reader of the page would write it, that only says what it was made with. */
const client = `export class MyBatch {
  constructor(endpoint, host) {
    this.monitor = { endpoint, factory: host.factoryId };
    this.sweeper = { queues: () => host.queues.map(({ queue }) => queue) };
  }
  submitter(config, context) {
    return { endpoint: config.endpoint, queue: context.queue };
  }
}
`;

describe('the backend that docs/plugins.md shows', () => {
  it('is loaded from its module, connects once and gives its queues all three parts', async () => {
    const page = readFileSync(join(root, 'docs/plugins.md'), 'utf8');
    const [, example = ''] = /```ts\n([^]*?)```/.exec(page) ?? [];
    const directory = temporaryDirectory();
    const contracts = pathToFileURL(join(root, 'src/plugins/contracts/index.ts')).href;
    const source = example
      .replace("'thresher/plugin'", JSON.stringify(contracts))
      .replace("'typebox'", JSON.stringify(import.meta.resolve('typebox')));
    writeFileSync(join(directory, 'my-batch.ts'), source);
    writeFileSync(join(directory, 'my-client.ts'), client);
    const catalogue = await loadPlugins(['./my-batch.ts'], directory, files);
    expect(catalogue.failure('./my-batch.ts')).to.equal(undefined);
    const context = pluginContext({ queue: 'Q' });
    const section = { endpoint: 'batch.example.org' };
    const part = (kind: 'submitter' | 'monitor' | 'sweeper', name: string): unknown =>
      partOf(catalogue.find(kind, './my-batch.ts', name), kind, section, context);
    expect(part('submitter', 'MySubmitter')).to.deep.equal({ ...section, queue: 'Q' });
    const monitor = part('monitor', 'MyMonitor');
    expect(monitor).to.deep.equal({ ...section, factory: 'thresher-test' });
    const sweeper = part('sweeper', 'MySweeper') as { queues(): string[] };
    expect(sweeper.queues()).to.deep.equal(['Q']);
    expect(part('monitor', 'MyMonitor')).to.equal(monitor);
  });
});
