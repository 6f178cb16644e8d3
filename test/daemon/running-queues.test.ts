import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import Type from 'typebox';
import { ObservationWriter } from '../../src/agents/observation/observation-writer.ts';
import { readQueueFile } from '../../src/config/queues/queues.ts';
import { Settings } from '../../src/config/settings/settings-schema.ts';
import { RunningQueues } from '../../src/daemon/running-queues.ts';
import { LoopSet } from '../../src/daemon/loop-set.ts';
import { PluginFactory } from '../../src/daemon/plugin-factory.ts';
import {
  type ConnectionHost,
  defineBackend,
  type Monitor,
  type Submitter,
  type Sweeper,
} from '../../src/plugins/contracts/index.ts';
import { builtInPlugins, Registry } from '../../src/plugins/registry.ts';
import type { ConfigPlace } from '../../src/store/config-places.ts';
import { check } from '../../src/util/schema.ts';
import { AgentParts } from '../support/agent-context.ts';
import { files } from '../support/operator-files.ts';
import { temporaryDirectory } from '../support/temporary.ts';

type Queues = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Keeps the passes, so that a test runs them by name. */
class KeptLoops extends LoopSet {
  readonly passes = new Map<string, (signal: AbortSignal) => Promise<void>>();

  override add(options: Parameters<LoopSet['add']>[0]) {
    this.passes.set(options.name, options.pass);
    return super.add(options);
  }

  get names(): string[] {
    return this.health.map(({ name }) => name);
  }

  async prune(): Promise<void> {
    await this.passes.get('prune')?.(new AbortController().signal);
  }
}

describe('the queues that run', () => {
  let parts: AgentParts;
  let loops: KeptLoops;
  let runningQueues: RunningQueues;
  /** By connection, the last one that was made. */
  let hosts: Map<string, ConnectionHost>;
  /** The places of workers in the database. */
  let places: ConfigPlace[];
  let read: (queues: Queues) => Promise<Parameters<RunningQueues['reload']>[0]>;

  beforeEach(async () => {
    parts = await AgentParts.open();
    hosts = new Map();
    places = [];
    const { clock, log, events, context, ledger } = parts;
    const random = () => 0.5;
    loops = new KeptLoops({ clock, random, log, events });
    const section = {
      config: Type.Object({ place: Type.String({ default: 'here' }) }),
      connections: ({ place }: { place: string }) => [place],
    };
    const definitions = defineBackend({
      name: 'Own',
      module: 'own',
      submitter: section,
      monitor: section,
      sweeper: section,
      connect: ({ name }, host) => {
        hosts.set(name, host);
        return { monitor: {} as Monitor, sweeper: {} as Sweeper, submitter: () => ({}) as Submitter };
      },
    });
    const registry = new Registry([...builtInPlugins, ...definitions]);
    const catalogue = {
      find: registry.find.bind(registry),
      names: registry.names.bind(registry),
      choices: registry.choices.bind(registry),
      sources: registry.sources,
      failure: () => undefined,
    };
    const { factoryId, harvesterId } = context;
    const plugins = new PluginFactory(catalogue, {
      factoryId,
      harvesterId,
      log,
      files,
      clock,
      random,
      maxStatusAge: 0,
      stateDir: '/nonexistent',
    });
    const settings = check(Settings, {});
    if (!settings.ok) throw new Error(JSON.stringify(settings.problems));
    runningQueues = new RunningQueues({
      settings: settings.value,
      context,
      loops,
      plugins,
      writer: new ObservationWriter(ledger, clock, log, events),
      places: async () => places,
      betweenReloads: (work) => work(),
      dropOldNews: async () => undefined,
    });
    const name = (kind: string) => ({ name: `Own${kind}`, module: 'own' });
    const sections = { submitter: name('Submitter'), monitor: name('Monitor'), sweeper: name('Sweeper') };
    const file = join(temporaryDirectory(), 'queues.json');
    read = async (queues) => {
      const whole = Object.entries(queues).map(([queue, options]) => [
        queue,
        { queueStatus: 'online', mapType: 'NoJob', ...sections, ...options },
      ]);
      writeFileSync(file, JSON.stringify(Object.fromEntries(whole)));
      const how = { stateDir: '/nonexistent', files, defaultDemand: undefined, queueList: undefined };
      const queueFile = await readQueueFile(file, catalogue, how);
      return { queueFile, inUse: [], places: [] };
    };
  });

  afterEach(async () => {
    await loops.stop();
    await parts[Symbol.asyncDispose]();
  });

  /** The queues that a connection knows, in their order. */
  const known = (connection: string) => hosts.get(connection)?.queues.map(({ queue }) => queue);
  const idOf = (queue: string) =>
    runningQueues.runtimes.find(({ config }) => config.name === queue)?.configId ?? 0;
  const listed = async () => (await parts.store.queues.all()).map(({ queue }) => queue);

  /** Has a pass of an earlier configuration of the queue under way, until the function that it returns is called. */
  async function passUnderWay(queue: string): Promise<() => void> {
    let release: () => void = () => undefined;
    const pass = () =>
      new Promise<void>((resolve) => {
        release = resolve;
      });
    const submitting = loops.add({ name: 'the former submission', interval: 3_600_000, pass });
    submitting.start();
    await parts.clock.settle();
    loops.replace(`queue ${queue}`, [submitting], []);
    return () => {
      release();
    };
  }

  it('follows a configuration that was replaced twice as long as a pass of it may still submit', async () => {
    const at = (place: string) => ({ A: {}, B: { common: { place } } });
    await runningQueues.begin(await read(at('there')));
    const first = idOf('B');
    const release = await passUnderWay('B');
    await runningQueues.reload(await read(at('elsewhere')));
    // No row carries the first configuration yet, and the file names another one for the second time.
    await runningQueues.reload(await read(at('here')));
    expect(runningQueues.runtimes.map(({ configId }) => configId)).to.include(first);
    expect(known('there')).to.deep.equal(['B']);
    release();
    while (loops.isEnding('queue B')) await parts.clock.settle();
    await runningQueues.reload(await read(at('here')));
    expect(runningQueues.runtimes.map(({ configId }) => configId)).not.to.include(first);
    expect(known('there')).to.deep.equal([]);
  });

  it('tells a pass under way that its configuration is replaced, and none of a queue that is as it was', async () => {
    await runningQueues.begin(await read({ A: { maxWorkers: 5 }, B: {}, C: {} }));
    const before = runningQueues.runtimes;
    await runningQueues.reload(await read({ A: { maxWorkers: 2 }, B: {} }));
    expect(before.map(({ config, replaced }) => [config.name, replaced === true])).to.deep.equal([
      ['A', true],
      ['B', false],
      ['C', true],
    ]);
    expect(runningQueues.runtimes.filter(({ replaced }) => replaced === true)).to.deep.equal([]);
  });

  it('says of which queue workers may live that have no row: until its backend was listed, and while a mistake keeps it from running', async () => {
    await runningQueues.begin(
      await read({ A: {}, B: { common: { place: 'there' } }, C: { maxWorkers: 'x' } }),
    );
    const codes = () => ['A', 'B', 'C', 'D'].map((queue) => runningQueues.unlistedOf(queue)?.code);
    expect(codes()).to.deep.equal(['not-listed', 'not-listed', 'queue-refused', undefined]);
    for (const { connected } of runningQueues.runtimes) connected.get('here')?.connection.listed();
    expect(codes()).to.deep.equal([undefined, 'not-listed', 'queue-refused', undefined]);
  });

  it('keeps its place in the file where the change of a queue is refused', async () => {
    await runningQueues.begin(await read({ A: {}, B: {}, C: {} }));
    await runningQueues.reload(await read({ A: { maxWorkers: '10' }, B: { maxWorkers: 5 }, C: {} }));
    expect(known('here')).to.deep.equal(['A', 'B', 'C']);
  });

  describe('that follows a removed queue', () => {
    beforeEach(async () => {
      await runningQueues.begin(await read({ A: {}, B: { common: { place: 'there' } } }));
      places = [{ queue: 'B', configId: idOf('B'), placement: 'there' }];
      await runningQueues.reload(await read({ A: {} }));
    });

    it('follows its workers', async () => {
      await loops.prune();
      expect(loops.names)
        .to.include(`sweep B (configuration ${idOf('B')})`)
        .and.to.include('list there');
      expect(known('there')).to.deep.equal(['B']);
      expect(await listed()).to.deep.equal(['A', 'B']);
    });

    it('is gone after its last worker, without another reload', async () => {
      places = [];
      await loops.prune();
      expect(loops.names.toSorted()).to.deep.equal(
        ['commands', 'list here', 'monitor here', 'prune', 'submit A', 'sweep A'].toSorted(),
      );
      expect(runningQueues.runtimes.map(({ config }) => config.name)).to.deep.equal(['A']);
      expect(known('there')).to.deep.equal([]);
      expect(await listed()).to.deep.equal(['A']);
    });

    it('waits for a pass under way, which may still submit', async () => {
      places = [];
      const release = await passUnderWay('B');
      await loops.prune();
      expect(known('there')).to.deep.equal(['B']);
      release();
      while (loops.isEnding('queue B')) await parts.clock.settle();
      await loops.prune();
      expect(known('there')).to.deep.equal([]);
    });
  });
});
