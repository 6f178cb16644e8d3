import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfiguration } from '../../src/daemon/configuration.ts';
import { noRequests, SourceSet } from '../../src/daemon/source-set.ts';
import { inFiles } from '../../src/daemon/source-memory.ts';
import { sourceModulesOf } from '../../src/config/queues/sources.ts';
import {
  parseSnapshot,
  type PluginCatalogue,
  type QueueConfig,
  readQueueFile,
} from '../../src/config/queues/queues.ts';
import type { PandaServer, SourceQueue } from '../../src/plugins/contracts/index.ts';
import { builtInPlugins, Registry } from '../../src/plugins/registry.ts';
import { builtInSources, defineSource, noOptions } from '../../src/plugins/contracts/source.ts';
import { messageOf } from '../../src/worker/errors.ts';
import { pluginContext } from '../support/plugin-context.ts';
import { files } from '../support/operator-files.ts';
import { configOf, requirements } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const contracts = join(import.meta.dirname, '../../src/plugins/contracts/index.ts');
const typebox = join(import.meta.dirname, '../../node_modules/typebox/build/index.mjs');

/** A third party's source that is made of `create`. */
const moduleOf = (
  name: string,
  more: string,
  create = '() => ({ wanted: async () => ({ requests: [], groups: [], reasons: [] }) })',
) => `
import { defineSource } from ${JSON.stringify(contracts)};
import Type from ${JSON.stringify(typebox)};
export const source = defineSource({
  name: '${name}',
  module: 'mine',
  config: Type.Object({ limit: Type.Integer({ default: 5 }), token: Type.Optional(Type.String()) }),
  queueConfig: Type.Object({ share: Type.Number({ default: 1, maximum: 10 }) }),
  ${more}
  create: ${create},
});
`;

const checkOdd = `
  check: ({ limit }) => limit % 2 === 0 ? [] : [{ pointer: '/limit', code: 'wrong-type', message: 'limit is odd; write an even one' }],`;

const local = (name: string) => ({ name, module: 'thresher/local' });
const queue = (changes: object) => ({
  mapType: 'NoJob',
  maxWorkers: 1,
  submitter: local('LocalSubmitter'),
  monitor: local('LocalMonitor'),
  sweeper: local('LocalSweeper'),
  ...changes,
});

let directory: string;

function write(
  settings: object,
  queues: Record<string, object>,
  modules: Record<string, string> = {},
): string {
  mkdirSync(join(directory, 'queues'), { recursive: true });
  const file = join(directory, 'thresher.yaml');
  const whole = { qconf: { configFile: 'queues/q.json' }, master: { stateDir: 'state' }, ...settings };
  writeFileSync(file, JSON.stringify(whole, null, 1));
  writeFileSync(join(directory, 'queues/q.json'), JSON.stringify(queues, null, 1));
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(directory, name), text);
  return file;
}

async function readAll(...args: Parameters<typeof write>) {
  const { settings, queueFile } = await readConfiguration(write(...args), undefined, files);
  if (settings === undefined || queueFile === undefined) throw new Error('settings');
  const { catalogue, options, file, sources: ofSettings } = queueFile;
  const result = await readQueueFile(file, catalogue, options);
  const modules = sourceModulesOf(settings);
  const host = pluginContext();
  const set = new SourceSet(
    catalogue,
    { ...ofSettings, modules },
    { host, requests: noRequests, memoryOf: inFiles(directory), configDir: join(directory, 'queues') },
  );
  return { ...result, ofSettings, modules, set, catalogue };
}

const short = (problems: readonly { pointer: string; code: string; message: string; line: number }[]) =>
  problems.map(({ pointer, code, line, message }) => [
    pointer,
    line,
    code,
    message.replaceAll(`${directory}/`, ''),
  ]);

const asked: SourceQueue = {
  name: 'Q',
  requirements,
  own: true,
  options: {},
  mapType: 'NoJob',
  runMode: 'self',
};
const { signal } = new AbortController();

describe('sources of third parties', () => {
  beforeEach(() => {
    directory = temporaryDirectory();
  });

  it('come from the settings with options, and queues name them by name or as a section', async () => {
    const { queues, problems, ofSettings, set } = await readAll(
      { sources: { toy: { module: './toy.mjs', limit: 7 } } },
      { A: queue({ demand: 'toy' }), B: queue({ demand: { name: 'toy', share: 3 } }), C: queue({}) },
      { 'toy.mjs': moduleOf('toy', '') },
    );
    expect(short([...problems, ...ofSettings.problems])).to.deep.equal([]);
    expect(ofSettings.sources.map(({ config, configDir }) => [config, configDir])).to.deep.equal([
      [{ limit: 7 }, directory],
    ]);
    set.run(queues);
    const kinds = (config: QueueConfig | undefined) =>
      config &&
      set
        .of(config)
        .filter(({ own }) => own)
        .map(({ kind, options }) => [kind, options]);
    expect(queues.map(kinds)).to.deep.equal([
      [['toy', { share: 1 }]],
      [['toy', { share: 3 }]],
      [['fill', {}]],
    ]);
  });

  it('come from a queue file alone, from the directory of that file', async () => {
    const { queues, problems, set } = await readAll(
      {},
      { A: queue({ demand: { name: 'toy', module: '../toy.mjs', share: 2 } }) },
      { 'toy.mjs': moduleOf('toy', '') },
    );
    expect(short(problems)).to.deep.equal([]);
    expect(queues[0]?.source).to.deep.equal({ module: join(directory, 'toy.mjs'), config: { share: 2 } });
    set.run(queues);
    expect(set.all.map(({ kind }) => kind)).to.include('toy');
  });

  it('are asked about every queue where they say so, before the own source of the queue', async () => {
    const { queues, set } = await readAll(
      { sources: { toy: { module: './toy.mjs' } } },
      { A: queue({}) },
      { 'toy.mjs': moduleOf('toy', 'everyQueue: true,') },
    );
    set.run(queues);
    const [config] = queues;
    if (config === undefined) throw new Error('no queue');
    const mine = set.of(config).filter(({ kind }) => ['toy', 'fill'].includes(kind));
    expect(mine.map(({ kind, own, options }) => [kind, own, options])).to.deep.equal([
      ['toy', false, { share: 1 }],
      ['fill', true, {}],
    ]);
  });

  const toy = { 'toy.mjs': moduleOf('toy', '') };
  for (const [what, settings, demand, expected] of [
    [
      'a misspelt name',
      { sources: { toys: { module: './toy.mjs' } } },
      'toy',
      [
        [
          '/Q/demand',
          17,
          'unknown-source',
          'demand is "toy", which is no source; there are fill, none, toys',
        ],
      ],
    ],
    [
      'a module that is not there',
      {},
      { name: 'toy', module: './toy.mjs' },
      [
        [
          '/Q/demand',
          17,
          'plugin-not-loaded',
          "demand.name: the module queues/toy.mjs could not be used: Cannot find module 'queues/toy.mjs'",
        ],
      ],
    ],
    [
      'a name that the module does not define',
      {},
      { name: 'tow', module: '../toy.mjs' },
      [
        [
          '/Q/demand',
          17,
          'unknown-source',
          'demand.name is "tow", which toy.mjs does not define; there are toy',
        ],
      ],
    ],
    [
      'an option out of bounds',
      { sources: { toy: { module: './toy.mjs' } } },
      { name: 'toy', share: 11 },
      [['/Q/demand/share', 19, 'wrong-type', 'share is 11; it must be <= 10']],
    ],
    [
      'a misspelt option',
      { sources: { toy: { module: './toy.mjs' } } },
      { name: 'toy', shares: 1 },
      [['/Q/demand/shares', 19, 'unread-option', 'toy does not read "shares"; did you mean "share"?']],
    ],
    [
      'a name of thresher',
      {},
      { name: 'fill', module: '../toy.mjs' },
      [
        [
          '/Q/demand',
          17,
          'source-name-taken',
          'demand.name takes "fill" from toy.mjs, and thresher has a source of that name: give yours another name',
        ],
      ],
    ],
    [
      'another module than that of the settings',
      { sources: { toy: { module: './toy.mjs' } } },
      { name: 'toy', module: './other.mjs' },
      [
        [
          '/Q/demand',
          17,
          'source-name-taken',
          'demand.name takes "toy" from queues/other.mjs, and sources.toy of the settings from toy.mjs: a daemon has one source of a name',
        ],
      ],
    ],
    [
      'a default of the settings that is no source',
      { submitter: { defaultDemand: 'fil' } },
      null,
      [
        [
          '/submitter/defaultDemand',
          9,
          'unknown-source',
          'submitter.defaultDemand is "fil", which is no source; there are fill, none',
        ],
      ],
    ],
  ] as const) {
    it(`a queue with ${what} says so`, async () => {
      const { problems } = await readAll(settings, { Q: queue({ demand }) }, toy);
      // Node adds the place of thresher's own module.
      const told = short(problems).map((one) =>
        one.map((part) => String(part).replace(/ imported from .*/, '')),
      );
      // The registry may have more sources.
      const plain = told.map((one) =>
        one.map((part) =>
          part.replace('fill, htcjob, htcondor-idle, interlink, none, panda, request', 'fill, none'),
        ),
      );
      expect(plain).to.deep.equal(expected.map((one) => one.map(String)));
    });
  }

  it('that give a payload are refused on a backend that cannot pass it on', async () => {
    const { queues, problems } = await readAll(
      { sources: { toy: { module: './toy.mjs' } } },
      { Q: queue({ demand: 'toy', ...scripted }), N: queue({ demand: 'fill' }) },
      { 'toy.mjs': moduleOf('toy', "payload: ['files'],"), 'backend.mjs': backend },
    );
    expect(queues.map(({ name }) => name)).to.deep.equal(['N']);
    const [problem] = problems;
    expect(problem?.code).to.equal('payload-unsupported');
    expect(problem?.message).to.equal(
      'toy may give its workers files, which PlainSubmitter cannot pass on to them',
    );
  });

  it('in the settings name each mistake with its line, and stop nothing else', async () => {
    const { ofSettings } = await readAll(
      {
        sources: {
          gone: { module: './gone.mjs' },
          toy: { module: './toy.mjs', limit: 'many', tokn: 'x' },
          wrong: {},
          fill: { module: './toy.mjs' },
          good: { module: './good.mjs' },
        },
      },
      { Q: queue({}) },
      { ...toy, 'good.mjs': moduleOf('good', '') },
    );
    const told = short(ofSettings.problems).map(([pointer, line, code]) => [pointer, line, code]);
    expect(told).to.deep.equal([
      ['/sources/gone', 9, 'plugin-not-loaded'],
      ['/sources/toy/tokn', 15, 'unknown-setting'],
      ['/sources/toy/limit', 14, 'wrong-type'],
      ['/sources/wrong', 17, 'unknown-source'],
      ['/sources/fill', 18, 'source-name-taken'],
    ]);
    expect(ofSettings.sources.map(({ definition }) => definition.name)).to.deep.equal(['good']);
  });

  for (const [what, settings, demand, module, expected] of [
    [
      'with a wrong option in the settings',
      { sources: { toy: { module: './toy.mjs', limit: 'many' } } },
      'toy',
      '',
      [
        'thresher.yaml',
        11,
        'wrong-type',
        'demand is toy, which does not run: limit is "many"; it must be an integer',
      ],
    ],
    [
      'with a misspelt option in the settings',
      { sources: { toy: { module: './toy.mjs', limits: 3 } } },
      'toy',
      '',
      [
        'thresher.yaml',
        11,
        'unknown-setting',
        'demand is toy, which does not run: sources.toy does not read "limits"; did you mean "limit"?',
      ],
    ],
    [
      'whose own check finds a mistake in the settings',
      { sources: { toy: { module: './toy.mjs', limit: 3 } } },
      'toy',
      checkOdd,
      [
        'thresher.yaml',
        11,
        'wrong-type',
        'demand is toy, which does not run: limit is odd; write an even one',
      ],
    ],
    [
      'that the settings do not name, and that needs options from them',
      {},
      { name: 'toy', module: '../toy.mjs' },
      'config: Type.Object({ directory: Type.String() }),',
      [
        'queues/q.json',
        17,
        'wrong-type',
        'demand is toy: write its options into sources.toy of the settings: "directory" is missing here',
      ],
    ],
    [
      'that the settings do not name, and whose own check finds a mistake in the defaults',
      {},
      { name: 'toy', module: '../toy.mjs' },
      checkOdd,
      [
        'queues/q.json',
        17,
        'wrong-type',
        'demand is toy: write its options into sources.toy of the settings: limit is odd; write an even one',
      ],
    ],
  ] as const) {
    it(`${what} are not run with defaults: their queue is refused with the place`, async () => {
      const { verdicts } = await readAll(
        settings,
        { Q: queue({ demand }), N: queue({}) },
        { 'toy.mjs': moduleOf('toy', module) },
      );
      const states = Object.fromEntries(verdicts.map(({ name, state }) => [name, state]));
      expect(states).to.deep.equal({ Q: 'refused', N: 'ready' });
      const told = verdicts.flatMap(({ problems }) => problems);
      expect(told.map(({ file, line, code, message }) => [file, line, code, message])).to.deep.equal([
        [join(directory, expected[0]), ...expected.slice(1)],
      ]);
    });
  }

  for (const [what, options] of [
    ['with a wrong option in the settings', { limit: 'many' }],
    ['with a misspelt option in the settings', { limits: 3 }],
  ] as const) {
    it(`${what} are not made for workers of an earlier configuration either`, async () => {
      const { set } = await readAll(
        { sources: { toy: { module: './toy.mjs', ...options } } },
        { Q: queue({ demand: 'toy' }) },
        { 'toy.mjs': moduleOf('toy', '') },
      );
      set.run([
        configOf('Q', {}, { demand: 'toy', source: { module: join(directory, 'toy.mjs'), config: {} } }),
      ]);
      expect(set.all.find(({ kind }) => kind === 'toy')?.problem?.code).to.equal('source-not-made');
    });
  }

  it('that could not be made keep their news waiting', async () => {
    const { set } = await readAll(
      { sources: { toy: { module: './toy.mjs', limit: 'many' } } },
      { Q: queue({}) },
      { 'toy.mjs': moduleOf('toy', '') },
    );
    set.run([]);
    const toy = set.all.find(({ kind }) => kind === 'toy')?.source;
    const error = await toy?.told?.([], signal).catch((thrown: unknown) => thrown);
    expect(error).to.include({ code: 'source-not-made' });
  });

  it('get no requests of operators, which may hold secret files', async () => {
    const { set } = await readAll(
      { sources: { toy: { module: './toy.mjs' } } },
      { Q: queue({}) },
      {
        'toy.mjs': moduleOf(
          'toy',
          '',
          "(_, host) => { throw new Error(Object.keys(host).includes('requests') ? 'requests' : 'none'); }",
        ),
      },
    );
    set.run([]);
    const problemOf = (wanted: string) => set.all.find(({ kind }) => kind === wanted)?.problem?.message;
    expect(problemOf('toy')).to.equal('the source toy could not be made: none');
    expect(problemOf('request')).to.equal(undefined);
  });

  it('that cannot be made stand with their problem, and the queue is served by the others', async () => {
    const { queues, set } = await readAll(
      { sources: { toy: { module: './toy.mjs' } } },
      { Q: queue({ demand: 'toy' }) },
      { 'toy.mjs': moduleOf('toy', '', "() => { throw new Error('no token'); }") },
    );
    set.run(queues);
    const [config] = queues;
    const own = config && set.of(config).find((one) => one.own);
    const message = 'the source toy could not be made: no token';
    expect(await own?.source.wanted(asked, signal)).to.deep.equal({
      requests: [],
      groups: [],
      reasons: [{ code: 'source-not-made', message }],
    });
    const toy_ = set.all.find(({ kind }) => kind === 'toy');
    expect(toy_?.problem?.message).to.equal(message);
    expect(await toy_?.source.told?.([], signal).catch(messageOf)).to.equal(message);
  });

  for (const [what, more, code, message] of [
    [
      'check throws',
      `check: () => { throw new Error('boom'); },`,
      'plugin-failed',
      'the check of toy failed: boom',
    ],
    [
      'schema cannot be used',
      `config: { type: 'nonsense' },`,
      'wrong-type',
      'the schema of these options cannot be used',
    ],
  ] as const)
    it(`stop nothing else where their ${what}`, async () => {
      const { queues, ofSettings } = await readAll(
        { sources: { toy: { module: './toy.mjs' }, good: { module: './good.mjs' } } },
        { Q: queue({}) },
        { 'toy.mjs': moduleOf('toy', more), 'good.mjs': moduleOf('good', '') },
      );
      expect(queues).to.have.length(1);
      expect(ofSettings.problems.map((problem) => [problem.pointer, problem.code])).to.deep.equal([
        ['/sources/toy', code],
      ]);
      expect(ofSettings.problems[0]?.message).to.contain(message);
      expect(ofSettings.sources.map(({ definition }) => definition.name)).to.deep.equal(['good']);
    });

  it('leave the other queues alone where their stands or their schema for queues fails', async () => {
    const { queues, problems, verdicts } = await readAll(
      { sources: { toy: { module: './toy.mjs' }, odd: { module: './odd.mjs' } } },
      { A: queue({ demand: 'toy' }), B: queue({ demand: 'odd' }), C: queue({}) },
      {
        'toy.mjs': moduleOf('toy', `stands: () => { throw new Error('boom'); },`),
        'odd.mjs': moduleOf('odd', `queueConfig: { type: 'nonsense' },`),
      },
    );
    expect(queues.map(({ name }) => name)).to.deep.equal(['A', 'C']);
    expect(verdicts.find(({ name }) => name === 'A')?.standing).to.deep.equal([
      'the source toy cannot say whether it asks for workers: boom',
    ]);
    expect(problems.map(({ queue: name, code }) => [name, code])).to.deep.equal([['B', 'wrong-type']]);
  });

  for (const made of ['undefined', 'null', '({})', '({ wanted: 1 })'])
    it(`stand with their problem where create returns ${made}`, async () => {
      const { queues, set } = await readAll(
        { sources: { toy: { module: './toy.mjs' } } },
        { Q: queue({ demand: 'toy' }) },
        { 'toy.mjs': moduleOf('toy', '', `() => ${made}`) },
      );
      set.run(queues);
      const problem = set.all.find(({ kind }) => kind === 'toy')?.problem;
      expect(problem?.code).to.equal('source-not-made');
      expect(problem?.message).to.contain('must return an object with a function wanted()');
    });

  it('that cannot be imported any more refuse the news of their workers, which wait', async () => {
    const config = configOf('Q', {}, { demand: 'own', source: { module: '/gone.mjs', config: {} } });
    const { set } = await readAll({ sources: { toy: { module: './toy.mjs' } } }, {}, {});
    set.run([config]);
    const absent = set.all.filter(({ kind }) => ['own', 'toy'].includes(kind));
    expect(absent.map(({ kind, problem }) => [kind, problem?.code])).to.deep.equal([
      ['own', 'source-not-made'],
      ['toy', 'source-not-made'],
    ]);
    for (const { source } of absent)
      expect(await source.told?.([], signal).catch(messageOf)).to.contain('could not be made');
    const { catalogue, ofSettings, modules } = await withSource('toy');
    set.use(catalogue, { ...ofSettings, modules });
    set.run([config]);
    expect(set.all.find(({ kind }) => kind === 'toy')?.problem).to.equal(undefined);
  });
});

/** All that is read where the settings name this source, and its module has it. */
function withSource(name: string) {
  const modules = { [`${name}.mjs`]: moduleOf(name, '') };
  return readAll({ sources: { [name]: { module: `./${name}.mjs` } } }, {}, modules);
}

const section = (kind: string) => ({ name: `Plain${kind}`, module: '../backend.mjs' });
const scripted = {
  submitter: section('Submitter'),
  monitor: section('Monitor'),
  sweeper: section('Sweeper'),
};
/** A backend that says nothing of payloads. */
const backend = `
import { defineBackend } from ${JSON.stringify(contracts)};
const section = { config: { type: 'object', properties: {} }, connections: () => ['plain'] };
export const plain = defineBackend({
  name: 'Plain', module: 'plain', submitter: section, monitor: section, sweeper: section, connect: () => ({}),
});
`;

describe('the sources of a daemon', () => {
  beforeEach(() => {
    directory = temporaryDirectory();
  });

  it('are made once, made anew when their options change, and go when none names them', async () => {
    const { queues, set, catalogue, ofSettings } = await readAll(
      { sources: { toy: { module: './toy.mjs' } } },
      { A: queue({ demand: 'toy' }), B: queue({ demand: 'toy' }) },
      { 'toy.mjs': moduleOf('toy', '') },
    );
    const changes: string[][] = [];
    set.onChange((now) => changes.push(now.map(({ kind }) => kind).filter((kind) => kind === 'toy')));
    const toys = () => set.all.filter(({ kind }) => kind === 'toy').map(({ source }) => source);
    set.run(queues);
    const [first] = toys();
    set.run(queues.slice(1));
    expect(toys()).to.deep.equal([first]);
    expect(changes).to.deep.equal([['toy']]);
    const modules = new Map([['toy', join(directory, 'toy.mjs')]]);
    const changed = ofSettings.sources.map((one) => ({ ...one, config: { limit: 9 } }));
    set.use(catalogue, { ...ofSettings, sources: changed, modules });
    set.run(queues);
    expect(toys()).to.have.length(1);
    expect(toys()[0]).to.not.equal(first);
    set.use(catalogue, { sources: [], modules: new Map(), refused: new Map() });
    set.run([]);
    expect(toys()).to.deep.equal([]);
    expect(changes).to.deep.equal([['toy'], ['toy'], []]);
  });

  it('read the snapshots of earlier versions, which knew fill and none alone', async () => {
    const { set } = await readAll({}, {});
    const written = JSON.stringify(configOf('Q', { demand: 'fill' }));
    const config = parseSnapshot(written);
    set.run([config]);
    expect(set.of(config).map(({ kind, own }) => [kind, own])).to.deep.include(['fill', true]);
  });

  describe('of a PanDA server', () => {
    const server: PandaServer = {
      url: 'https://panda.example.org:25443/api/v1',
      login: { kind: 'x509', certFile: '/proxy', keyFile: '/proxy' },
      timeout: 1000,
    };
    const servers: unknown[] = [];
    const named = (name: string, module: string, needsServer: boolean) =>
      defineSource({
        name,
        module,
        config: noOptions,
        needsServer,
        create: (_, host) => {
          servers.push([name, host.pandaServer]);
          return { wanted: async () => ({ requests: [], groups: [], reasons: [] }) };
        },
      });
    const setOf = (...sources: readonly ReturnType<typeof named>[]) => {
      const registry = new Registry([...builtInPlugins, ...sources]);
      const wide: PluginCatalogue = {
        find: (kind, module, name) => registry.find(kind, module, name),
        names: (kind) => registry.names(kind),
        choices: (kind) => registry.choices(kind),
        sources: registry.sources,
        failure: () => undefined,
      };
      const set = new SourceSet(
        wide,
        { sources: [], modules: new Map(), refused: new Map(), pandaServer: server },
        { host: pluginContext(), requests: noRequests, memoryOf: inFiles(directory), configDir: directory },
      );
      return { set, wide };
    };
    const about = (demand: string, module: string) =>
      configOf('Q', {}, { demand, source: { module, config: {} } });

    beforeEach(() => {
      servers.length = 0;
    });

    const pandacon = { server_api_url_ssl: server.url, cert_file: '/proxy' };
    const demands = ({ verdicts }: Awaited<ReturnType<typeof readAll>>) =>
      verdicts.map(({ name, state, demand, standing }) => [name, state, demand?.demand, standing?.length]);

    it('serve the pull queues that no file and no backend gives another source', async () => {
      const slave = queue({ runMode: 'slave' });
      const queues = {
        SLAVE: slave,
        SELF: queue({}),
        PUSH: queue({ runMode: 'slave', mapType: 'OneToOne' }),
        NAMED: { ...slave, demand: 'none' },
      };
      expect(demands(await readAll({ pandacon }, queues))).to.deep.equal([
        ['SLAVE', 'ready', 'panda', 0],
        ['SELF', 'ready', 'panda', 0],
        ['PUSH', 'ready', 'fill', 2],
        ['NAMED', 'ready', 'none', 1],
      ]);
      const { server_api_url_ssl: url, ...withoutServer } = pandacon;
      const both = { SLAVE: slave, SELF: queue({}) };
      // A login without a link: the queues of the server stand still.
      expect(demands(await readAll({ pandacon: withoutServer }, both))).to.deep.equal([
        ['SLAVE', 'ready', 'none', 1],
        ['SELF', 'ready', 'none', 1],
      ]);
      expect(demands(await readAll({ pandacon: { pandaURLSSL: url } }, both))).to.deep.equal([
        ['SLAVE', 'ready', 'fill', 1],
        ['SELF', 'ready', 'fill', 0],
      ]);
    });

    it('leave a queue incomplete that names one while the settings name no server', async () => {
      const { problems, verdicts } = await readAll({}, { Q: queue({ demand: 'panda' }) });
      expect(verdicts.map(({ state }) => state)).to.deep.equal(['incomplete']);
      expect(short(problems).map(([at, , code, message]) => [at, code, message])).to.deep.equal([
        [
          '/Q/demand',
          'panda-server-off',
          'demand is panda, and the settings name no PanDA server with a login: see pandacon there',
        ],
      ]);
    });

    it('get it where thresher brings them and they need one, and are made anew when it changes', () => {
      const { set, wide } = setOf(named('linked', builtInSources, true));
      const configs = [about('linked', builtInSources)];
      const none = { sources: [], modules: new Map(), refused: new Map() };
      set.run(configs);
      set.use(wide, { ...none, pandaServer: { ...server } });
      set.run(configs);
      expect(servers).to.deep.equal([['linked', server]]);
      const other = { ...server, timeout: 2000 };
      set.use(wide, { ...none, pandaServer: other });
      set.run(configs);
      set.use(wide, none);
      set.run(configs);
      expect(servers.slice(1)).to.deep.equal([
        ['linked', other],
        ['linked', undefined],
      ]);
    });

    for (const [who, module, needs] of [
      ['of a third party', '/theirs.mjs', true],
      ['that do not need one', builtInSources, false],
    ] as const) {
      it(`do not get it ${who}, as it has a login`, () => {
        const { set } = setOf(named('linked', module, needs));
        set.run([about('linked', module)]);
        expect(servers).to.deep.equal([['linked', undefined]]);
      });
    }
  });
});
