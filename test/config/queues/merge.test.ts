import { expect } from 'chai';
import { type JsonObject } from '../../../src/util/json.ts';
import { parseJson } from '../../../src/util/located.ts';
import { mergedAtOnce } from '../../support/cric-site.ts';

type Json = Record<string, unknown>;

const merge = (queues: unknown) =>
  mergedAtOnce(parseJson(JSON.stringify(queues, null, 1), 'panda_queueconfig.json'));
const valuesOf = (queues: Record<string, unknown>, name = 'Q'): JsonObject | undefined =>
  merge(queues).queues.find((queue) => queue.name === name)?.values;
const brief = (queues: unknown) =>
  merge(queues).problems.map(({ pointer, severity, code, message, queue }) => ({
    pointer,
    severity,
    code,
    message,
    ...(queue !== undefined && { queue }),
  }));

describe('a queue and its template', () => {
  it('overwrites plain values and lists, and takes over the others', () => {
    const T = { isTemplateQueue: true, maxWorkers: 1, mapType: 'NoJob', list: [1, 2] };
    expect(valuesOf({ T, Q: { templateQueueName: 'T', maxWorkers: 2, list: [3] } })).to.deep.equal({
      maxWorkers: 2,
      mapType: 'NoJob',
      list: [3],
    });
  });

  it('merges plugin sections key by key', () => {
    const T = { isTemplateQueue: true, submitter: { name: 'A', module: 'm', x: 1, deep: { a: 1, b: 1 } } };
    const Q = { templateQueueName: 'T', submitter: { name: 'B', y: 2, deep: { a: 2 } } };
    expect(valuesOf({ T, Q })).to.deep.equal({
      submitter: { name: 'B', module: 'm', x: 1, y: 2, deep: { a: 2 } },
    });
  });

  it('overwrites an object that is no plugin section as a whole', () => {
    const T = { isTemplateQueue: true, nCoreFactor: { Any: 1 } };
    expect(valuesOf({ T, Q: { templateQueueName: 'T', nCoreFactor: { managed: 2 } } })).to.deep.equal({
      nCoreFactor: { managed: 2 },
    });
  });

  it('leaves the template as it was for the next queue', () => {
    const T = { isTemplateQueue: true, submitter: { x: 1 } };
    const A = { templateQueueName: 'T', submitter: { x: 2 } };
    expect(valuesOf({ T, A, Q: { templateQueueName: 'T' } })).to.deep.equal({ submitter: { x: 1 } });
  });

  it('is no queue of its own: by isTemplateQueue or by its name', () => {
    const { queues, problems } = merge({ T: { isTemplateQueue: true }, X_TEMPLATE: {}, Q: {} });
    expect(queues.map(({ name }) => name)).to.deep.equal(['Q']);
    expect(problems).to.deep.equal([]);
  });

  it('counts as a template without saying so, with one notice on its own line', () => {
    const queues = {
      BASE: { maxWorkers: 1 },
      A: { templateQueueName: 'BASE' },
      B: { templateQueueName: 'BASE' },
    };
    expect(merge(queues).queues.map(({ name }) => name)).to.deep.equal(['A', 'B']);
    expect(merge(queues).problems).to.deep.equal([
      {
        file: 'panda_queueconfig.json',
        pointer: '/BASE',
        line: 2,
        severity: 'notice',
        code: 'implicit-template',
        message: 'BASE is used as a template by A and so counts as one: it submits nothing itself',
        queue: 'BASE',
      },
    ]);
  });

  for (const wrong of [1, 'true', {}]) {
    it(`isTemplateQueue must be true and not ${JSON.stringify(wrong)}, or the entry must not submit`, () => {
      expect(brief({ T: { isTemplateQueue: wrong } })).to.deep.equal([
        {
          pointer: '/T/isTemplateQueue',
          severity: 'error',
          code: 'wrong-type',
          message: `isTemplateQueue is ${JSON.stringify(wrong)}; it must be true or false`,
          queue: 'T',
        },
      ]);
    });
  }

  const told = (queues: unknown) =>
    brief(queues).map(({ pointer, severity, code }) => [pointer, severity, code]);
  const plugins = { submitter: {}, monitor: {}, sweeper: {} };
  for (const [what, name, value, severity] of [
    ['has a status of its own', 'CERN', { queueStatus: 'online' }, 'warning'],
    ['has all it needs', 'CERN', plugins, 'warning'],
    ['says that it is none', 'CERN', { isTemplateQueue: false }, 'warning'],
    ['is called one', 'TEMPLATE_QUEUE', plugins, 'notice'],
    ['cannot run', 'CERN', { submitter: {}, isTemplateQueue: null }, 'notice'],
  ] as const) {
    it(`an entry that ${what} and is used as a template gets a ${severity}`, () => {
      expect(told({ [name]: value, Q: { templateQueueName: name } })).to.deep.equal([
        [`/${name}`, severity, 'implicit-template'],
      ]);
    });
  }

  for (const [what, names] of Object.entries({
    'the order of the file': ['A', 'B', 'C', 'D'],
    'the other order': ['D', 'C', 'B', 'A'],
    'no order at all': ['B', 'D', 'A', 'C'],
  })) {
    it(`makes no template of what it names itself: of a chain every second one runs, in ${what}`, () => {
      const chain: Json = {
        A: { templateQueueName: 'B' },
        B: { templateQueueName: 'C' },
        C: { templateQueueName: 'D', c: 1 },
        D: { d: 1 },
      };
      const result = merge(Object.fromEntries(names.map((name) => [name, chain[name]])));
      expect(result.queues.map(({ name }) => name).sort()).to.deep.equal(['A', 'C']);
      expect(result.queues.find(({ name }) => name === 'C')?.values).to.deep.equal({ c: 1, d: 1 });
      expect([...result.templates].sort()).to.deep.equal(['B', 'D']);
      expect(result.problems.map(({ code, pointer }) => [code, pointer])).to.have.deep.members([
        ['implicit-template', '/B'],
        ['implicit-template', '/D'],
        ['nested-template', '/B/templateQueueName'],
      ]);
    });
  }

  it('two queues that name each other as template make a circle, and neither is lost', () => {
    const { queues, templates } = merge({ A: { templateQueueName: 'B' }, B: { templateQueueName: 'A' } });
    expect([queues.map(({ name }) => name), templates]).to.deep.equal([['A', 'B'], []]);
    const circle = {
      severity: 'error',
      code: 'template-circle',
      message:
        'A names B names A as its template, which is a circle; what they share belongs into an entry with "isTemplateQueue": true',
    };
    expect(brief({ A: { templateQueueName: 'B' }, B: { templateQueueName: 'A' } })).to.deep.equal([
      { pointer: '/A/templateQueueName', ...circle, queue: 'A' },
      { pointer: '/B/templateQueueName', ...circle, queue: 'B' },
    ]);
  });

  it('a template is no queue itself', () => {
    expect(told({ S: { templateQueueName: 'S' } })).to.deep.equal([
      ['/S/templateQueueName', 'error', 'template-circle'],
    ]);
  });

  it('is missed where it does not exist, and the queue keeps its own values', () => {
    const queues = { Q: { templateQueueName: 'GONE', maxWorkers: 1 } };
    expect(valuesOf(queues)).to.deep.equal({ maxWorkers: 1 });
    expect(brief(queues)).to.deep.equal([
      {
        pointer: '/Q/templateQueueName',
        severity: 'error',
        code: 'unknown-template-queue',
        message: 'templateQueueName is "GONE", which is not in this file',
        queue: 'Q',
      },
    ]);
  });

  it('must be named by a word', () => {
    expect(brief({ Q: { templateQueueName: 5 } })).to.deep.equal([
      {
        pointer: '/Q/templateQueueName',
        severity: 'error',
        code: 'wrong-type',
        message: 'templateQueueName must be the name of another entry',
        queue: 'Q',
      },
    ]);
  });

  it('may name a template itself, which is not followed', () => {
    const queues = {
      A_TEMPLATE: { a: 1 },
      B_TEMPLATE: { b: 1, templateQueueName: 'A_TEMPLATE' },
      Q: { templateQueueName: 'B_TEMPLATE' },
    };
    expect(valuesOf(queues)).to.deep.equal({ b: 1 });
    expect(brief(queues)).to.deep.equal([
      {
        pointer: '/B_TEMPLATE/templateQueueName',
        severity: 'warning',
        code: 'nested-template',
        message: 'the template B_TEMPLATE names a template itself; that one is not followed',
        queue: 'B_TEMPLATE',
      },
    ]);
  });
});

describe('options in common of a queue', () => {
  it('is copied into each section there is, where the section does not say otherwise', () => {
    const Q = { common: { x: 1, y: 1 }, submitter: { name: 'S', y: 2 }, monitor: {}, extractor: { z: 3 } };
    expect(valuesOf({ Q })).to.deep.equal({
      common: { x: 1, y: 1 },
      submitter: { name: 'S', x: 1, y: 2 },
      monitor: { x: 1, y: 1 },
      extractor: { x: 1, y: 1, z: 3 },
    });
  });

  it('common of a queue is merged with that of its template first', () => {
    const T = { isTemplateQueue: true, common: { x: 1, y: 1 }, submitter: {} };
    expect(valuesOf({ T, Q: { templateQueueName: 'T', common: { y: 2 } } })?.submitter).to.deep.equal({
      x: 1,
      y: 2,
    });
  });

  it('makes no sections', () => {
    expect(valuesOf({ Q: { common: { x: 1 } } })).to.deep.equal({ common: { x: 1 } });
  });
});

describe('the place a merged value came from', () => {
  const T = {
    isTemplateQueue: true,
    common: { dir: 'a' },
    submitter: { name: 'S', x: { deep: 1 } },
    maxWorkers: 1,
  };
  const Q = { templateQueueName: 'T', common: { own: 1 }, submitter: { y: 1 }, mapType: 'NoJob' };
  const sourceOf = (pointer: string) => merge({ T, Q }).queues[0]!.sourceOf(pointer);

  for (const [pointer, source] of [
    ['/maxWorkers', '/T/maxWorkers'],
    ['/mapType', '/Q/mapType'],
    ['/submitter', '/T/submitter'],
    ['/submitter/name', '/T/submitter/name'],
    ['/submitter/x/deep', '/T/submitter/x/deep'],
    ['/submitter/y', '/Q/submitter/y'],
    ['/submitter/dir', '/T/common/dir'],
    ['/submitter/own', '/Q/common/own'],
    ['/nothing', '/Q/nothing'],
    ['', '/Q'],
  ] as const) {
    it(`the value at "${pointer}" comes from ${source}`, () => {
      expect(sourceOf(pointer)).to.equal(source);
    });
  }
});

describe('a queue file', () => {
  it('a queue file that is no object has no queues', () => {
    expect(merge([]).queues).to.deep.equal([]);
    expect(brief([])).to.deep.equal([
      {
        pointer: '',
        severity: 'error',
        code: 'wrong-type',
        message: 'the queue file must be an object { "QUEUE": { ... }, ... }',
      },
    ]);
  });

  it('loses only the entry that is no object', () => {
    expect(merge({ BAD: 5, Q: {} }).queues.map(({ name }) => name)).to.deep.equal(['Q']);
    expect(brief({ BAD: 5, Q: {} })).to.deep.equal([
      {
        pointer: '/BAD',
        severity: 'error',
        code: 'wrong-type',
        message: 'the queue BAD must be an object { ... }',
        queue: 'BAD',
      },
    ]);
  });

  it('lets the last of two equal queues count, with none of the first in it', () => {
    const located = parseJson('{\n"Q": { "maxWorkers": 1, "a": 1 },\n"Q": { "maxWorkers": 2 }\n}', 'f');
    expect(mergedAtOnce(located).queues[0]?.values).to.deep.equal({ maxWorkers: 2 });
    expect(located.problems.map(({ code, line }) => [code, line])).to.deep.equal([['duplicate-key', 3]]);
  });
});
