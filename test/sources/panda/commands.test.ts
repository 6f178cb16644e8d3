import { expect } from 'chai';
import type { WorkerNews } from '../../../src/plugins/contracts/index.ts';
import { isMeant, readCommand, type ServerCommand } from '../../../src/sources/panda/commands.ts';
import { shapeOf } from '../../../src/sources/panda/shape.ts';
import { isDeeper } from '../../../src/util/json.ts';
import { statisticsOf } from '../../../src/sources/panda/statistician.ts';

const read = (command: string, params: unknown, created?: unknown) =>
  readCommand({ command_id: 1, command, params, creation_date: created });
const all = { status: 'ALL', computingSite: 'ALL', computingElement: 'ALL', submissionHost: 'ALL' };
const none: ReadonlySet<string> = new Set();

/** Some are too deep to be written. */
function titleOf(params: unknown): string {
  return isDeeper(params, 9) ? 'ten thousand lists' : JSON.stringify(params).slice(0, 80);
}

describe('commands of the PanDA server', () => {
  it('SET_N_WORKERS_JOBTYPE gives the numbers of all job types together, and when the server counted', () => {
    const params = { managed: { SCORE: 3, MCORE: 0 }, other: { SCORE: 2, Undefined: -4 } };
    expect(read('SET_N_WORKERS_JOBTYPE:A/B:C', params, '2026-11-21T08:43:18.466885')).to.deep.equal({
      kind: 'set-workers',
      site: 'A/B:C',
      wanted: new Map([
        ['SCORE', 5],
        ['MCORE', 0],
        ['Undefined', 0],
      ]),
      createdAt: Date.UTC(2026, 10, 21, 8, 43, 18, 466),
    });
  });

  it('gives no worker of a type whose name no type can have', () => {
    const params = `{"managed": {"__proto__": 1, "": 2, "${'A'.repeat(57)}": 3, "SCORE": 4}}`;
    expect(read('SET_N_WORKERS_JOBTYPE:A', params)).to.deep.include({ wanted: new Map([['SCORE', 4]]) });
  });

  it('hole 8: reads no parameters with more values than an answer may have, however their commas are written', () => {
    const list = (count: number) => `[${Array.from({ length: count }, () => '1').join(',')}]`;
    expect(read('SYNC_WORKERS_KILL', list(20_000))).to.have.property('kind', 'kill-ids');
    expect(read('SYNC_WORKERS_KILL', list(40_000))).to.have.property('kind', 'unknown');
  });

  it('hole 8: gives numbers that can be stored', () => {
    const wanted = new Map([['SCORE', 1e9]]);
    for (const [one, other] of [
      [1e308, 1e308],
      [6e8, 6e8],
      [1e9, -1],
    ])
      expect(
        read('SET_N_WORKERS_JOBTYPE:A', { managed: { SCORE: one }, user: { SCORE: other } }),
      ).to.deep.include({ wanted });
  });

  it('hole 4: knows no kill of one site, which would end the workers of all', () => {
    for (const name of ['KILL_WORKERS:A', 'KILL_WORKERS:', 'SYNC_WORKERS_KILL:A', 'SYNC_WORKERS_ACTIVATE:A'])
      expect(read(name, name.startsWith('KILL') ? all : [1]).kind, name).to.equal('unknown');
  });

  it('hole 4: KILL_WORKERS means a worker without a computing element by "ALL" alone', () => {
    const worker = { workerId: 1, status: 'running', computingSite: 'A', computingElement: null };
    const news = { worker, queue: 'A' } as unknown as WorkerNews;
    for (const [computingElement, isOne] of [
      ['ALL', true],
      [[''], false],
      [['null'], false],
    ] as const) {
      const command = read('KILL_WORKERS', { ...all, computingElement });
      if (command.kind !== 'kill') throw new Error(command.kind);
      expect(isMeant(news, command.filter, 'here')).to.equal(isOne);
    }
  });

  it('reads parameters that come as a text', () => {
    expect(read('SET_N_WORKERS_JOBTYPE:A', '{"managed": {"SCORE": 1}}')).to.deep.include({
      kind: 'set-workers',
    });
  });

  const wide = { statuses: 'ALL', sites: 'ALL', computingElements: 'ALL', submissionHosts: 'ALL' };
  const narrow = {
    statuses: new Set(['submitted']),
    sites: none,
    computingElements: none,
    submissionHosts: none,
  };
  const filters: readonly (readonly [title: string, params: unknown, filter: object])[] = [
    [
      'lists',
      { status: ['submitted'], computingSite: ['A'], computingElement: ['ce'], submissionHost: ['s', 't'] },
      {
        statuses: new Set(['submitted']),
        sites: new Set(['A']),
        computingElements: new Set(['ce']),
        submissionHosts: new Set(['s', 't']),
      },
    ],
    ['"ALL", which alone means all', all, wide],
    [
      'an empty list, which means no worker',
      { ...all, computingElement: [] },
      { ...wide, computingElements: none },
    ],
    ['null, which means no worker', { ...all, submissionHost: null }, { ...wide, submissionHosts: none }],
    ['null for the status, which means no worker', { ...all, status: null }, { ...wide, statuses: none }],
    ['no key, which means no worker', {}, narrow],
  ];
  for (const [title, params, filter] of filters) {
    it(`hole 4: KILL_WORKERS takes ${title}`, () => {
      expect(read('KILL_WORKERS', params)).to.deep.equal({ kind: 'kill', filter });
      expect(read('KILL_WORKERS', JSON.stringify(params))).to.deep.equal({ kind: 'kill', filter });
    });
  }

  it('hole 4: KILL_WORKERS without a status means submitted ones', () => {
    const { computingSite, computingElement, submissionHost } = all;
    const others = { computingSite, computingElement, submissionHost };
    const filter = { ...wide, statuses: new Set(['submitted']) };
    expect(read('KILL_WORKERS', others)).to.deep.equal({ kind: 'kill', filter });
  });

  it('hole 4: KILL_WORKERS ends a worker only where each of its keys means it', () => {
    const values = { status: 'running', computingSite: 'A', computingElement: 'ce', submissionHost: 'here' };
    const worker = { ...values, workerId: 1 } as unknown as WorkerNews['worker'];
    const news = { worker, queue: 'A' } as WorkerNews;
    const means = (params: object) => {
      const command = read('KILL_WORKERS', params);
      if (command.kind !== 'kill') throw new Error(command.kind);
      return isMeant(news, command.filter, 'here');
    };
    const keys = Object.keys(all) as (keyof typeof all)[];
    const choices = (key: keyof typeof all) => ['ALL', [values[key]], ['x', values[key]], ['x'], [], null];
    const forms = keys.reduce<readonly object[]>(
      (found, key) => found.flatMap((one) => choices(key).map((choice) => ({ ...one, [key]: choice }))),
      [{}],
    );
    expect(forms).to.have.length(6 ** 4);
    for (const form of forms) {
      const isRight = keys.every((key) => {
        const meant = (form as Readonly<Record<string, unknown>>)[key];
        return meant === 'ALL' || (Array.isArray(meant) && meant.includes(values[key]));
      });
      expect(means(form), JSON.stringify(form)).to.equal(isRight);
    }
  });

  it('SYNC_WORKERS_KILL and SYNC_WORKERS_ACTIVATE name workers', () => {
    expect(read('SYNC_WORKERS_KILL', [1, '2'])).to.deep.equal({ kind: 'kill-ids', workerIds: [1, 2] });
    expect(read('SYNC_WORKERS_KILL', '[1, "2"]')).to.deep.equal({ kind: 'kill-ids', workerIds: [1, 2] });
    expect(read('SYNC_WORKERS_ACTIVATE', [3])).to.deep.equal({ kind: 'activate', workerIds: [3] });
  });

  it('REPORT_WORKER_STATS names a site', () => {
    expect(read('REPORT_WORKER_STATS:A', null)).to.deep.equal({ kind: 'report-statistics', site: 'A' });
  });

  const wrong: readonly (readonly [command: string, params: unknown])[] = [
    ['SET_N_WORKERS_JOBTYPE', { managed: { SCORE: 1 } }],
    ['SET_N_WORKERS_JOBTYPE:A', null],
    ['SET_N_WORKERS_JOBTYPE:A', { managed: 3 }],
    ['SET_N_WORKERS_JOBTYPE:A', { managed: { SCORE: 'three' } }],
    ['KILL_WORKERS', null],
    // Taken for "all" it would end every worker.
    ['KILL_WORKERS', { status: 'running' }],
    ['KILL_WORKERS', { ...all, computingSite: [1] }],
    ['KILL_WORKERS', { ...all, computingSite: 'A' }],
    ['KILL_WORKERS', { ...all, computingSite: 'all' }],
    ['KILL_WORKERS', { ...all, status: true }],
    ['KILL_WORKERS', { ...all, harvesterHost: ['x'] }],
    ['KILL_WORKERS', [all]],
    ['KILL_WORKERS', 'ALL'],
    ['SYNC_WORKERS_KILL', { 1: 2 }],
    ...[['x'], ['0x10'], [true], [[7]], [' 7'], ['7.0'], ['1e1'], [''], [null], [0], [-1], [1.5], ['٣']].map(
      (ids) => ['SYNC_WORKERS_KILL', ids] as const,
    ),
    ['SYNC_WORKERS_KILL', ['99999999999999999999']],
    // Ids are written in digits alone, and JavaScript rounds the first two of these to 1.
    ...['[1.00000000000000001]', '[0.99999999999999999]', '[1e0]'].map(
      (text) => ['SYNC_WORKERS_KILL', text] as const,
    ),
    ['SYNC_WORKERS_ACTIVATE', ['0x10']],
    ['DANCE', JSON.parse(`${'['.repeat(10_000)}${']'.repeat(10_000)}`)],
    ['KILL_WORKERS', `${'['.repeat(10_000)}${']'.repeat(10_000)}`],
    ['REPORT_WORKER_STATS', null],
    ['DANCE', {}],
    ['', {}],
  ];
  for (const [command, params] of wrong) {
    it(`does nothing for "${command}" with ${titleOf(params)}, and says why`, () => {
      const answer: ServerCommand = read(command, params);
      expect(answer.kind).to.equal('unknown');
      expect(answer).to.have.property('why').that.is.a('string').and.not.equal('');
    });
  }
});

describe('statistics for the PanDA server', () => {
  const zeros = { running: 0, submitted: 0, ready: 0, to_submit: 0 };

  it('are zeros for a site without workers, or the server would never order any', () => {
    expect(statisticsOf([])).to.deep.equal({ managed: { SCORE: zeros } });
  });

  it('count the living, intents and idle ones as submitted', () => {
    const count = (status: 'pending' | 'idle' | 'submitted' | 'running' | 'finished', workers: number) => ({
      jobType: 'managed',
      resourceType: 'MCORE',
      status,
      workers,
    });
    const counts = [
      count('pending', 1),
      count('idle', 2),
      count('submitted', 4),
      count('running', 8),
      count('finished', 16),
    ];
    expect(statisticsOf(counts)).to.deep.equal({
      managed: { SCORE: zeros, MCORE: { ...zeros, submitted: 7, running: 8 } },
    });
  });
});

describe('the shape of a worker of a resource type', () => {
  const types = [
    { resource_name: 'SCORE', mincore: 1, maxcore: 1, minrampercore: 0, maxrampercore: 2000 },
    { resource_name: 'SCORE_HIMEM', mincore: 1, maxcore: 1, minrampercore: 2001, maxrampercore: null },
    { resource_name: 'MCORE', mincore: 2, maxcore: null, minrampercore: 0, maxrampercore: 2000 },
    { resource_name: 'MCORE_HIMEM', mincore: 2, maxcore: null, minrampercore: 2001, maxrampercore: null },
  ];
  const site = { coreCount: 8, maxRss: 32_000 };
  const rows: readonly (readonly [type: string, nCore: number, minRamCount: number])[] = [
    ['SCORE', 1, 2000],
    ['SCORE_HIMEM', 1, 4000],
    ['MCORE', 8, 16_000],
    ['MCORE_HIMEM', 8, 32_000],
    ['UNHEARD_OF', 8, 32_000],
  ];
  for (const [resourceType, nCore, minRamCount] of rows) {
    it(`${resourceType} has ${nCore} cores and ${minRamCount} MB`, () => {
      expect(shapeOf(resourceType, types, site)).to.deep.equal({ resourceType, nCore, minRamCount });
    });
  }

  it('has whole cores and MB, though the server says parts', () => {
    const type = {
      resource_name: 'ODD',
      mincore: 0.5,
      maxcore: 2.5,
      minrampercore: 0,
      maxrampercore: 1000.3,
    };
    expect(shapeOf('ODD', [type], { coreCount: 8, maxRss: 0 })).to.include({ nCore: 2, minRamCount: 2001 });
    const none = { ...type, mincore: 0, maxcore: 0 };
    expect(shapeOf('ODD', [none], site), '0 is no bound, as in Harvester').to.include({ nCore: 8 });
    const less = { ...type, mincore: 0, maxcore: 0.5 };
    expect(shapeOf('ODD', [less], site)).to.include({ nCore: 1 });
  });

  it('has the memory of the type where the site says none', () => {
    expect(shapeOf('SCORE', types, { coreCount: 1, maxRss: 0 })).to.deep.equal({
      resourceType: 'SCORE',
      nCore: 1,
      minRamCount: 2000,
    });
  });
});
