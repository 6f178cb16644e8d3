import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import Type from 'typebox';
import { type QueueConfig, readQueueFile } from '../../src/config/queues/queues.ts';
import { PluginFactory } from '../../src/daemon/plugin-factory.ts';
import {
  type BackendDefinition,
  type ConnectionHost,
  type Context,
  defineBackend,
  definePlugin,
  type Monitor,
  type PandaServer,
  type Submitter,
  type Sweeper,
} from '../../src/plugins/contracts/index.ts';
import { builtInPlugins, Registry } from '../../src/plugins/registry.ts';
import { systemClock } from '../../src/util/clock.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { files } from '../support/operator-files.ts';
import { pluginContext } from '../support/plugin-context.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** A backend that keeps what it is told. */
class Recorder {
  readonly contexts: Context[] = [];
  readonly hosts: ConnectionHost[] = [];
  readonly changes: string[] = [];
  connecting: (host: ConnectionHost) => void = () => undefined;
  readonly definitions: readonly BackendDefinition[];

  constructor(name = 'Recorder', given: readonly ('submitter' | 'monitor' | 'sweeper')[] = all) {
    const section = {
      config: Type.Object({
        place: Type.String({ default: 'here' }),
        rate: Type.Optional(Type.Number()),
        reach: Type.Optional(Type.String()),
      }),
      connections: ({ place }: { place: string }) => place.split(','),
    };
    const parts = Object.fromEntries(given.map((kind) => [kind, section]));
    this.definitions = defineBackend({
      name,
      module: name,
      ...parts,
      connect: (_place, host) => {
        this.hosts.push(host);
        this.connecting(host);
        return {
          monitor: {} as Monitor,
          sweeper: {} as Sweeper,
          submitter: (config: unknown, context: Context, at: (name: string) => unknown): Submitter => {
            this.contexts.push(context);
            const { reach } = config as { reach?: string };
            if (reach !== undefined) at(reach);
            return {} as Submitter;
          },
          queuesChanged: () => {
            const queues = host.queues.map(({ queue, configId }) => `${queue}${configId}`);
            this.changes.push(`${host.connection}: ${queues.join(' ')}`);
          },
        };
      },
    });
  }
}
const all = ['submitter', 'monitor', 'sweeper'] as const;
const sectionOf = (kind: 'submitter' | 'monitor' | 'sweeper') => ({
  name: { submitter: 'RecorderSubmitter', monitor: 'RecorderMonitor', sweeper: 'RecorderSweeper' }[kind],
  module: 'Recorder',
});

function factoryOf(...recorders: readonly Recorder[]) {
  const registry = new Registry([...builtInPlugins, ...recorders.flatMap(({ definitions }) => definitions)]);
  const catalogue = {
    find: registry.find.bind(registry),
    names: registry.names.bind(registry),
    choices: registry.choices.bind(registry),
    sources: registry.sources,
    failure: () => undefined,
  };
  const { factoryId, harvesterId, log } = pluginContext();
  const parts = { factoryId, harvesterId, log, files, clock: systemClock, random: Math.random };
  const plugins = new PluginFactory(catalogue, { ...parts, maxStatusAge: 0, stateDir: '/nonexistent' });
  const read = async (name: string, options: Readonly<Record<string, unknown>>): Promise<QueueConfig> => {
    const file = join(temporaryDirectory(), 'queues.json');
    const section = (kind: string) => ({ name: `Recorder${kind}`, module: 'Recorder' });
    const sections = {
      submitter: section('Submitter'),
      monitor: section('Monitor'),
      sweeper: section('Sweeper'),
    };
    writeFileSync(
      file,
      JSON.stringify({ [name]: { queueStatus: 'online', mapType: 'NoJob', ...sections, ...options } }),
    );
    const how = { stateDir: '/nonexistent', files, defaultDemand: undefined, queueList: undefined };
    const { queues, problems } = await readQueueFile(file, catalogue, how);
    const [config] = queues;
    if (config === undefined) throw new Error(JSON.stringify(problems));
    return config;
  };
  return { plugins, read };
}

/** What the submitter of a queue with these options is told. */
async function toldTo(options: Readonly<Record<string, unknown>>): Promise<Context> {
  const recorder = new Recorder();
  const { plugins, read } = factoryOf(recorder);
  plugins.runtime(await read('Q', options), 7, true);
  const [context] = recorder.contexts;
  if (context === undefined) throw new Error('no submitter was made');
  return context;
}

describe('connections of backends', () => {
  it('are made once, whatever the number of queues and configurations that lead there', async () => {
    const recorder = new Recorder();
    const { plugins, read } = factoryOf(recorder);
    const [a, b] = [await read('A', {}), await read('B', {})];
    const runtimes = [plugins.runtime(a, 1, true), plugins.runtime(a, 2, false), plugins.runtime(b, 3, true)];
    expect(recorder.hosts).to.have.length(1);
    const monitors = new Set(runtimes.map(({ connected }) => connected.get('here')?.monitor));
    expect(monitors).to.have.property('size', 1);
  });

  it('know of each queue its current configuration, and every one that runs by its number', async () => {
    const recorder = new Recorder();
    const { plugins, read } = factoryOf(recorder);
    const rate = (rate: number) =>
      read('A', { monitor: { name: 'RecorderMonitor', module: 'Recorder', rate } });
    const [current, older, other] = [await rate(1), await rate(2), await read('B', {})];
    plugins.run([
      plugins.runtime(current, 1, true),
      plugins.runtime(other, 3, true),
      plugins.runtime(older, 2, false),
    ]);
    const [host] = recorder.hosts;
    expect(host?.queues.map(({ queue, configId }) => [queue, configId])).to.deep.equal([
      ['A', 1],
      ['B', 3],
    ]);
    expect(host?.queue('A', 2)?.monitor).to.deep.equal({ place: 'here', rate: 2 });
    expect(host?.queue('A', 99)?.monitor).to.deep.equal({ place: 'here', rate: 1 });
    expect(host?.queue('C', 1)).to.equal(undefined);
    expect(recorder.changes).to.deep.equal(['here: A1 B3']);
  });

  it('are told when a queue leaves, and go with the last one', async () => {
    const recorder = new Recorder();
    const { plugins, read } = factoryOf(recorder);
    const [a, b] = [
      plugins.runtime(await read('A', {}), 1, true),
      plugins.runtime(await read('B', {}), 2, true),
    ];
    const { connection } = a.connected.get('here') ?? {};
    plugins.run([a, b]);
    plugins.run([a, b]);
    plugins.run([b]);
    expect(plugins.runtime(b.config, 3, true).connected.get('here')?.connection).to.equal(connection);
    expect(recorder.hosts).to.have.length(1);
    plugins.run([]);
    expect(recorder.changes).to.deep.equal(['here: A1 B2', 'here: B2', 'here: ']);
    const again = plugins.runtime(b.config, 3, true);
    expect(recorder.hosts).to.have.length(2);
    expect(again.connected.get('here')?.connection).not.to.equal(connection);
  });

  it('share what they have in common until the last of them goes', async () => {
    const recorder = new Recorder();
    const { plugins, read } = factoryOf(recorder);
    const two = { common: { place: 'one,two' } };
    const runtime = plugins.runtime(await read('A', two), 1, true);
    const shared = () => recorder.hosts.map((host) => host.share('cluster', () => ({})));
    plugins.run([runtime]);
    const [one, other] = shared();
    expect(one).to.equal(other);
    plugins.run([]);
    const next = plugins.runtime(await read('A', two), 1, true);
    plugins.run([next]);
    expect(shared().at(-1)).not.to.equal(one);
  });

  it('share nothing with one that could not be made', async () => {
    const recorder = new Recorder();
    const { plugins, read } = factoryOf(recorder);
    const [a, b] = [await read('A', {}), await read('B', { common: { place: 'there' } })];
    const shared: object[] = [];
    recorder.connecting = (host) => {
      shared.push(host.share('cluster', () => ({})));
      if (host.connection === 'here') throw new Error('it cannot be made');
    };
    expect(() => plugins.runtime(a, 1, true)).to.throw('it cannot be made');
    plugins.runtime(b, 2, true);
    expect(shared[1]).not.to.equal(shared[0]);
  });

  it('know the queues that only reach them after those that place workers there', async () => {
    const recorder = new Recorder();
    const { plugins, read } = factoryOf(recorder);
    const submitter = { name: 'RecorderSubmitter', module: 'Recorder', reach: 'there' };
    const runtimes = [
      plugins.runtime(await read('A', { submitter }), 1, true),
      plugins.runtime(await read('B', { common: { place: 'there' } }), 2, true),
    ];
    plugins.run(runtimes);
    expect(recorder.changes.toSorted()).to.deep.equal(['here: A1', 'there: B2 A1']);
  });

  it('say nothing of a worker whose configuration leads to another one, though both may show it', async () => {
    const recorder = new Recorder();
    const { plugins, read } = factoryOf(recorder);
    const at = (place: string, rate: number) =>
      read('A', Object.fromEntries(all.map((kind) => [kind, { ...sectionOf(kind), place, rate }])));
    plugins.run([
      plugins.runtime(await at('old', 1), 1, false),
      plugins.runtime(await at('new', 2), 2, true),
    ]);
    const rates = recorder.hosts.map((host) =>
      [1, 2, 3, undefined].map((id) => (host.queue('A', id)?.monitor as { rate: number } | undefined)?.rate),
    );
    // Of a configuration that leads nowhere, and of none, each says what it can.
    expect(rates).to.deep.equal([
      [1, undefined, 1, 1],
      [undefined, 2, 2, 2],
    ]);
    // The mark of a worker from before a database was lost: its id is that of another queue now.
    const other = plugins.runtime(await read('B', {}), 3, true);
    plugins.run([plugins.runtime(await at('old', 1), 1, true), other]);
    expect(recorder.hosts[0]?.queue('A', 3)?.monitor).to.include({ rate: 1 });
  });

  it('of two backends serve one queue, each with its own sections', async () => {
    const [recorder, watcher] = [new Recorder(), new Recorder('Watcher', ['monitor'])];
    const { plugins, read } = factoryOf(recorder, watcher);
    const config = await read('A', { monitor: { name: 'WatcherMonitor', module: 'Watcher', rate: 5 } });
    plugins.run([plugins.runtime(config, 1, true)]);
    expect(recorder.hosts[0]?.queues[0]).to.have.keys(
      ...['queue', 'configId', 'current', 'configDir', 'submitter', 'sweeper'],
    );
    expect(watcher.hosts[0]?.queues[0]?.monitor).to.deep.equal({ place: 'here', rate: 5 });
  });

  it('need not be there for a configuration that leads nowhere: it is refused', async () => {
    const { plugins, read } = factoryOf(new Recorder());
    const config = await read('A', {});
    const submitter = { module: 'Recorder', name: 'RecorderSubmitter', config: { place: 5 } };
    const broken = { ...config, plugins: { ...config.plugins, submitter } };
    expect(() => plugins.runtime(broken, 1, true)).to.throw();
    const gone = { ...config, plugins: { ...config.plugins, monitor: { ...submitter, name: 'Gone' } } };
    expect(() => plugins.runtime(gone, 1, true))
      .to.throw(ThresherError)
      .with.property('code', 'unknown-plugin');
  });
});

describe('the pause of a connection', () => {
  it('asks again how long it is when its queues change', async () => {
    const recorder = new Recorder();
    const { plugins, read } = factoryOf(recorder);
    const wait = (rate: number) =>
      read('A', { monitor: { name: 'RecorderMonitor', module: 'Recorder', rate } });
    plugins.run([plugins.runtime(await wait(3600), 1, true)]);
    const [host] = recorder.hosts;
    const ms = () => (host?.queues[0]?.monitor as { rate: number }).rate * 1000;
    const pause = host?.pause(ms, new AbortController().signal);
    plugins.run([plugins.runtime(await wait(0), 2, true)]);
    await pause;
    expect(recorder.hosts).to.have.length(1);
  });

  it('ends with its signal', async () => {
    const recorder = new Recorder();
    const { plugins, read } = factoryOf(recorder);
    plugins.runtime(await read('A', {}), 1, true);
    const stop = new AbortController();
    const pause = recorder.hosts[0]?.pause(() => 3_600_000, stop.signal);
    stop.abort();
    await pause;
    expect(stop.signal.aborted).to.equal(true);
  });
});

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

describe('the PanDA server of the settings', () => {
  const server = (url: string): PandaServer => ({
    url,
    login: { kind: 'x509', certFile: '/proxy', keyFile: '/proxy' },
    timeout: 1000,
  });
  const settings = (pandaServer?: PandaServer) => ({
    sources: [],
    modules: new Map(),
    refused: new Map(),
    ...(pandaServer && { pandaServer }),
  });

  it("is for thresher's own credential managers that need it, as the last reload left it", () => {
    const contexts = new Map<string, Context>();
    const manager = (name: string, module: string, needsServer: boolean) =>
      definePlugin({
        kind: 'credmanager',
        name,
        module,
        config: Type.Object({}),
        needsServer,
        create: (_, context) => {
          contexts.set(name, context);
          return { inspect: async () => [], renew: async () => [] };
        },
      });
    const registry = new Registry([
      manager('Ours', 'thresher/credentials', true),
      manager('Other', 'thresher/credentials', false),
      manager('Theirs', '/usr/share/plugin.ts', true),
    ]);
    const catalogue = {
      find: registry.find.bind(registry),
      names: registry.names.bind(registry),
      choices: registry.choices.bind(registry),
      sources: registry.sources,
      failure: () => undefined,
    };
    const { factoryId, harvesterId, log } = pluginContext();
    const parts = { factoryId, harvesterId, log, files, clock: systemClock, random: Math.random };
    const plugins = new PluginFactory(catalogue, {
      ...parts,
      maxStatusAge: 0,
      stateDir: '/nonexistent',
      sources: settings(server('https://first')),
    });
    for (const [name, module] of [
      ['Ours', 'thresher/credentials'],
      ['Other', 'thresher/credentials'],
      ['Theirs', '/usr/share/plugin.ts'],
    ] as const)
      plugins.credentialManager({ name, module, config: {}, configDir: '/' });
    const urlOf = (name: string) => contexts.get(name)?.pandaServer?.()?.url;
    expect(['Ours', 'Other', 'Theirs'].map(urlOf)).to.deep.equal(['https://first', undefined, undefined]);
    plugins.use(catalogue, settings(server('https://second')));
    expect(urlOf('Ours')).to.equal('https://second');
    plugins.use(catalogue, settings());
    expect(urlOf('Ours')).to.equal(undefined);
  });
});
