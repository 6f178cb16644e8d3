import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { findTemplates } from '../../../src/config/queues/find-templates.ts';
import { mergeQueues, type MoreFiles } from '../../../src/config/queues/merge.ts';
import { parseJson } from '../../../src/util/located.ts';
import { cricEntries, mergedAtOnce } from '../../support/cric-site.ts';

type Entries = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const url = 'https://cric.test/q';
const fixture = join(import.meta.dirname, '../../fixtures/cric/pandaqueues.json');

interface Files {
  readonly local?: Entries;
  readonly remote?: Entries;
  readonly cric?: Entries;
  readonly more?: Partial<MoreFiles>;
}

function merge({ local = {}, remote, cric, more }: Files) {
  return mergedAtOnce(parseJson(JSON.stringify(local, null, 1), 'local.json'), {
    harvesterId: 'us',
    dynamic: true,
    closesOthers: true,
    ...(remote && { remote: { ...parseJson(JSON.stringify(remote, null, 1), 'remote.json'), url } }),
    ...(cric && { queueData: { file: 'cric.json', entries: cricEntries(cric), url } }),
    ...more,
  });
}

const ours = (params: object = {}, more: object = {}) => ({
  pilot_manager: 'Harvester',
  harvester: 'us',
  type: 'production',
  workflow: 'pull',
  status: 'online',
  params,
  ...more,
});
const submitter = (options: object = {}) => ({
  name: 'LocalSubmitter',
  module: 'thresher/local',
  ...options,
});
const named = (text: string) => ({
  siteFamily: text,
  maxWorkers: text.length,
  submitter: submitter({ x: text }),
});

/** The values of the queue Q. */
function valuesOf(files: Files) {
  return merge(files).queues.find(({ name }) => name === 'Q')?.values;
}

describe('hole 8: a cache of CRIC that another one filled', () => {
  it('is told of by its first mistakes, however many queues or values are wrong', () => {
    const wrong = { Q: ours({}, { queues: Array(200_000).fill(1) }) };
    const local = {
      Q: { ...named('x'), submitter: { ...submitter(), name: 'HTCondorSubmitter', useCRICGridCE: true } },
    };
    expect(merge({ local, cric: wrong }).problems.length).to.be.below(60);
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`Q${at}`, ours()]));
    // Each of them is a queue of ours, which goes on as it was.
    const refused = merge({ cric: many }).problems.filter(({ code }) => code === 'cric-template');
    expect(new Set(refused.map(({ queue }) => queue)).size).to.equal(20_000);
  });
});

describe('hole 8: thousands of queues', () => {
  it('are merged with a step for each, between which others have their turn', () => {
    const local = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`Q${at}`, {}]));
    const steps = [...mergeQueues(parseJson(JSON.stringify(local), 'local.json'))];
    expect(steps).to.have.length(1000);
  });

  it('are looked at for templates a few times each, in whatever order they name each other', () => {
    let looks = 0;
    const of = (at: number) => ({
      templateQueueName: `Q${at + 1}`,
      get isTemplateQueue() {
        looks++;
        return undefined;
      },
    });
    const chain = Array.from({ length: 1000 }, (_, at) => [`Q${at}`, of(at)] as const).toReversed();
    expect(findTemplates(new Map(chain)).templates.size).to.equal(500);
    expect(looks).to.be.below(5000);
  });
});

const template = { 'production.pull': { isTemplateQueue: true, ...named('local template') } };
const remoteTemplate = { 'production.pull': { isTemplateQueue: true, ...named('remote template') } };
const uses = { templateQueueName: 'production.pull' };
const is = (text: string) => ({ siteFamily: text, submitter: { ...submitter({ x: text }) } });

describe('a queue from several files', () => {
  describe('takes of each pair of origins the value of the higher one', () => {
    it('local template before remote template', () => {
      const both = { local: { ...template, Q: uses }, remote: remoteTemplate };
      expect(valuesOf(both)).to.deep.include(is('local template'));
      expect(valuesOf({ local: { Q: uses }, remote: remoteTemplate })).to.deep.include(is('remote template'));
    });

    it('remote queue before either template', () => {
      const remote = { Q: { ...uses, ...named('remote queue') } };
      expect(valuesOf({ local: template, remote })).to.deep.include(is('remote queue'));
      expect(valuesOf({ remote: { ...remoteTemplate, ...remote } })).to.deep.include(is('remote queue'));
    });

    it('local queue before remote queue and both templates, key by key in sections', () => {
      const files = {
        local: { ...template, Q: { submitter: { y: 'local queue' } } },
        remote: { ...remoteTemplate, Q: { ...uses, submitter: { x: 'remote queue', z: 1 } } },
      };
      expect(valuesOf(files)).to.deep.include({
        siteFamily: 'local template',
        submitter: { ...submitter({ x: 'remote queue' }), z: 1, y: 'local queue' },
      });
    });

    it('limits of CRIC before templates and the remote queue, and not before the local queue', () => {
      const cric = { Q: ours({ maxWorkers: 7, nQueueLimitWorker: 3 }) };
      expect(valuesOf({ local: template, cric })).to.include({ maxWorkers: 7, nQueueLimitWorker: 3 });
      const remote = { Q: { ...uses, maxWorkers: 8 } };
      expect(valuesOf({ local: template, remote, cric })).to.include({ maxWorkers: 7 });
      const local = { ...template, Q: { maxWorkers: 9 } };
      expect(valuesOf({ local, remote, cric })).to.include({ maxWorkers: 9, nQueueLimitWorker: 3 });
      // The operator takes it back.
      expect(valuesOf({ local: { ...template, Q: { maxWorkers: null } }, cric })).to.include({
        maxWorkers: null,
      });
    });

    it('limits of CRIC below every file where DYNAMIC is not asked for', () => {
      const cric = { Q: ours({ maxWorkers: 7, nQueueLimitWorker: 3 }) };
      const more = { dynamic: false };
      expect(valuesOf({ local: { ...template, Q: uses }, cric, more })).to.include({
        maxWorkers: 'local template'.length,
        nQueueLimitWorker: 3,
      });
      expect(valuesOf({ local: template, cric, more })).to.equal(undefined);
    });

    it('any other field of CRIC below every file, common options among them', () => {
      const cric = { Q: ours({}, { corecount: 8, maxtime: 60 }) };
      const base = { ...uses, submitter: submitter() };
      expect(valuesOf({ local: { ...template, Q: base }, cric })?.submitter).to.include({
        nCore: 8,
        maxWalltime: 60,
      });
      const inCommon = { ...base, common: { maxWalltime: 2 } };
      expect(valuesOf({ local: { ...template, Q: inCommon }, cric })?.submitter).to.include({
        nCore: 8,
        maxWalltime: 2,
      });
      const inTemplate = {
        'production.pull': { isTemplateQueue: true, submitter: submitter({ maxWalltime: 5 }) },
      };
      expect(valuesOf({ local: inTemplate, cric })?.submitter).to.include({ nCore: 8, maxWalltime: 5 });
    });

    it('the cores of CRIC before every file, common options among them', () => {
      const cric = { Q: ours({}, { corecount: 8 }) };
      const base = { ...uses, submitter: submitter({ nCore: -1, nCorePerNode: 1 }) };
      for (const Q of [
        base,
        { ...base, common: { nCore: 2 } },
        { ...base, submitter: submitter({ nCore: 4 }) },
      ])
        expect(valuesOf({ local: { ...template, Q }, cric })?.submitter).to.include({ nCore: 8 });
      expect(valuesOf({ local: { ...template, Q: base } })?.submitter).to.include({ nCore: -1 });
    });

    it('demand by the server of a UPS queue before everything, where DYNAMIC is asked for', () => {
      const cric = { Q: ours({}, { capability: 'ucore', workflow: 'pull_ups' }) };
      const local = { Q: { runMode: 'self', mapType: 'OneToOne' } };
      expect(valuesOf({ local, cric })).to.include({ runMode: 'slave', mapType: 'NoJob' });
      expect(valuesOf({ local, cric, more: { dynamic: false } })).to.include({ runMode: 'self' });
    });
  });

  it('takes the template of the local queue, else that of CRIC, else that of the remote queue', () => {
    const local = {
      ...template,
      A: { isTemplateQueue: true, siteFamily: 'a' },
      B: { isTemplateQueue: true, siteFamily: 'b' },
    };
    const remote = { Q: { templateQueueName: 'B' } };
    const cric = { Q: ours() };
    const templateOf = (files: Files) => merge(files).queues.find(({ name }) => name === 'Q')?.template;
    expect(templateOf({ local, remote })).to.equal('B');
    expect(templateOf({ local, remote, cric })).to.equal('production.pull');
    expect(templateOf({ local: { ...local, Q: { templateQueueName: 'A' } }, remote, cric })).to.equal('A');
    expect(templateOf({ local, cric: { Q: ours({}, { harvester_template: 'B' }) } })).to.equal('B');
    expect(templateOf({ local, cric: { Q: ours({}, { type: 'unified' }) } })).to.equal('production.pull');
    const untyped = { Q: ours({}, { type: null }) };
    expect(templateOf({ local, cric: untyped, more: { defaultTemplate: 'A' } })).to.equal('A');
  });

  it('of CRIC without a template is no queue, and the place and the URL say why', () => {
    const { queues, problems } = merge({ cric: { Q: ours(), R: ours({}, { workflow: '' }) } });
    expect(queues).to.deep.equal([]);
    expect(problems.map(({ file, pointer, code, message }) => [file, pointer, code, message])).to.deep.equal([
      [
        ...['cric.json', '/Q', 'cric-template'],
        `CRIC gives Q to this instance, and there is no template "production.pull" (type "production" and workflow "pull" of CRIC): write one, with "isTemplateQueue": true (fetched from ${url})`,
      ],
      [
        ...['cric.json', '/R', 'cric-template'],
        `CRIC gives R to this instance without harvester_template, type or workflow, and qconf.defaultTemplateQueueName is not set (fetched from ${url})`,
      ],
    ]);
  });

  it('of CRIC that a queue file has too needs no template of CRIC', () => {
    const { queues, problems } = merge({
      local: { Q: { maxWorkers: 1 } },
      cric: { Q: ours({ maxWorkers: 2 }) },
    });
    expect(queues.map(({ name, values }) => [name, values.maxWorkers])).to.deep.equal([['Q', 1]]);
    expect(problems).to.deep.equal([]);
  });

  it('is found in CRIC by its site where its name has a resource type', () => {
    const local = { 'SITE/SCORE': { submitter: submitter() } };
    const { queues } = merge({ local, cric: { SITE: ours({}, { harvester: 'other', maxtime: 60 }) } });
    expect(queues[0]?.values).to.deep.include({ cricStatus: 'elsewhere' });
    expect(queues[0]?.values.submitter).to.include({ maxWalltime: 60 });
  });

  it('is closed by CRIC for another instance, unless autoBlacklist is off', () => {
    const files = { local: { Q: { queueStatus: 'online' } }, cric: { Q: ours({}, { harvester: 'other' }) } };
    expect(valuesOf(files)).to.include({ cricStatus: 'elsewhere' });
    expect(valuesOf({ ...files, more: { closesOthers: false } })).to.include({ cricStatus: 'online' });
  });

  it('gets no section from CRIC, which would choose a plugin', () => {
    expect(valuesOf({ local: { Q: {} }, cric: { Q: ours({}, { corecount: 8 }) } })).not.to.have.property(
      'submitter',
    );
  });

  it('that names a template of neither file is said at its own place', () => {
    const { problems } = merge({
      remote: { Q: { templateQueueName: 'X' } },
      local: { R: { templateQueueName: 'Q' } },
    });
    expect(problems.map(({ file, pointer, code }) => [file, pointer, code])).to.deep.equal([
      ['local.json', '/R/templateQueueName', 'unknown-template-queue'],
      ['remote.json', '/Q/templateQueueName', 'unknown-template-queue'],
    ]);
  });

  it('names the place of each value', () => {
    const { queues } = merge({
      local: { ...template, Q: { ...uses, siteFamily: 'x' } },
      remote: { Q: { prodSourceLabel: 'y' } },
      cric: { Q: ours({ maxNewWorkersPerCycle: 4 }) },
    });
    const placeOf = (pointer: string) => {
      const { file, pointer: at, entry, label } = queues[0]?.placeOf(pointer) ?? {};
      return [file, at, entry, label];
    };
    expect(placeOf('/siteFamily')).to.deep.equal(['local.json', '/Q/siteFamily', 'Q', undefined]);
    expect(placeOf('/submitter/x')).to.deep.equal([
      'local.json',
      '/production.pull/submitter/x',
      'production.pull',
      undefined,
    ]);
    expect(placeOf('/prodSourceLabel')).to.deep.equal([
      'remote.json',
      '/Q/prodSourceLabel',
      'Q',
      'queues_config_file',
    ]);
    expect(placeOf('/maxNewWorkersPerCycle')).to.deep.equal(['cric.json', '/Q', 'Q', 'CRIC']);
    expect(placeOf('')).to.deep.equal(['local.json', '/Q', 'Q', undefined]);
  });

  it('is each of the fixtures that is ours, and none of the others', () => {
    const cric = JSON.parse(readFileSync(fixture, 'utf8')) as Entries;
    const pull = { isTemplateQueue: true, submitter: submitter() };
    const local = { 'production.pull': pull, 'production.pull_ups': pull };
    const { queues, problems } = merge({ local, cric, more: { harvesterId: 'thresher-test' } });
    expect(queues.map(({ name, template }) => [name, template])).to.deep.equal([
      ['TEST_K8S', 'production.pull_ups'],
      ['TEST_ARC', 'production.pull'],
      ['TEST_TEMPLATE', 'production.pull'],
      ['TEST_OFFLINE', 'production.pull_ups'],
    ]);
    expect(problems.filter(({ severity }) => severity === 'error')).to.deep.equal([]);
    const ups = queues.filter(({ values }) => values.runMode === 'slave').map(({ name }) => name);
    expect(ups).to.deep.equal(['TEST_K8S', 'TEST_OFFLINE']);
    expect(queues.find(({ name }) => name === 'TEST_OFFLINE')?.values.cricStatus).to.equal('offline');
  });
});
