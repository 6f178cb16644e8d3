import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { PluginCatalogue } from '../../src/config/queues/queues.ts';
import { readQueueFile } from '../../src/config/queues/queues.ts';
import { loadPlugins } from '../../src/daemon/plugins.ts';
import { Wiring } from '../../src/daemon/wiring.ts';
import type { Context } from '../../src/plugins/contracts/index.ts';
import { systemClock } from '../../src/util/clock.ts';
import { files } from '../support/operator-files.ts';
import { pluginContext } from '../support/plugin-context.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** What the submitter of a queue with these options is told. */
async function toldTo(options: Readonly<Record<string, unknown>>): Promise<Context> {
  const directory = temporaryDirectory();
  const file = join(directory, 'queues.json');
  const local = (kind: string) => ({ name: `Local${kind}`, module: 'thresher/local' });
  writeFileSync(join(directory, 'pilot.yaml'), 'command: /bin/true\n');
  const sections = {
    submitter: { ...local('Submitter'), templateFile: 'pilot.yaml' },
    monitor: local('Monitor'),
    sweeper: local('Sweeper'),
  };
  const queue = { queueStatus: 'online', mapType: 'NoJob', ...sections, ...options };
  writeFileSync(file, JSON.stringify({ Q: queue }));
  const catalogue = await loadPlugins([], directory, files);
  const read = { stateDir: directory, files, defaultDemand: undefined, queueList: undefined };
  const [config] = (await readQueueFile(file, catalogue, read)).queues;
  if (config === undefined) throw new Error('the queue is not sound');
  const contexts: Context[] = [];
  const listening: PluginCatalogue = {
    names: (kind) => catalogue.names(kind),
    choices: (kind) => catalogue.choices(kind),
    failure: (module) => catalogue.failure(module),
    find: (kind, module, name) => {
      const found = catalogue.find(kind, module, name);
      if (found === undefined || kind !== 'submitter') return found;
      return {
        ...found,
        create: (section, context) => {
          contexts.push(context);
          return found.create(section, context);
        },
      };
    },
  };
  const { factoryId, harvesterId, log } = pluginContext();
  const more = {
    factoryId,
    harvesterId,
    log,
    files,
    clock: systemClock,
    random: Math.random,
    maxStatusAge: 0,
  };
  new Wiring(listening, { ...more, stateDir: directory }).runtime(config, 7, true);
  const [context] = contexts;
  if (context === undefined) throw new Error('no submitter was made');
  return context;
}

describe('a plugin is told of its queue', () => {
  it('how many may be queued: nQueueLimitWorker, or what its ratio makes of those that run', async () => {
    const plain = await toldTo({ maxWorkers: 100, nQueueLimitWorker: 40 });
    expect([0, 50].map(plain.queueLimit)).to.deep.equal([40, 40]);
    const ratio = { nQueueLimitWorkerRatio: 20, nQueueLimitWorkerMin: 5 };
    const shared = await toldTo({ maxWorkers: 100, nQueueLimitWorker: 40, ...ratio });
    expect([0, 50, 1000].map(shared.queueLimit)).to.deep.equal([5, 10, 40]);
  });

  it('whether a server says how many there are to be', async () => {
    expect(await toldTo({ runMode: 'slave' })).to.include({ slave: true, queue: 'Q', configId: 7 });
    expect(await toldTo({})).to.include({ slave: false });
  });
});
