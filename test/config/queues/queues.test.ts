import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { modulesNamedIn, type QueueFileOptions, readQueueFile } from '../../../src/config/queues/queues.ts';
import { loadPlugins } from '../../../src/daemon/plugins.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

type Json = Record<string, unknown>;

const options: QueueFileOptions = {
  stateDir: '/state',
  files,
  defaultDemand: undefined,
  queueList: undefined,
};

async function read(file: string, changes: Partial<QueueFileOptions> = {}) {
  const catalogue = await loadPlugins(await modulesNamedIn(file, files), resolve(file, '..'), files);
  return readQueueFile(file, catalogue, { ...options, ...changes });
}

describe('the example file of Harvester', () => {
  const file = join(import.meta.dirname, '../../fixtures/harvester/panda_queueconfig_with_tmpl.json');

  it('is accepted but for the one queue with a stager that does not exist here', async () => {
    const { queues, refused, incomplete } = await read(file);
    expect(queues.map(({ name }) => name)).to.deep.equal([
      ...['PULL_MODEL_1', 'PULL_MODEL_2', 'PUSH_MODEL_1', 'PUSH_MODEL_2'],
    ]);
    expect(incomplete).to.deep.equal(['PUSH_MODEL_WITH_TRUE_PILOT_AND_STAGER']);
    expect(refused).to.deep.equal([]);
  });

  it('has the place and the cause of that named', async () => {
    const { problems } = await read(file);
    const line = readFileSync(file, 'utf8')
      .split('\n')
      .findIndex((text) => text.includes('"name":"RucioStagerHPC"'));
    expect(problems.filter(({ severity }) => severity === 'error')).to.deep.equal([
      {
        file,
        pointer: '/PUSH_MODEL_WITH_TRUE_PILOT_AND_STAGER/stager/name',
        line: line + 1,
        severity: 'error',
        code: 'plugin-not-there',
        message: 'RucioStagerHPC is a stager of Harvester that thresher does not have yet',
        queue: 'PUSH_MODEL_WITH_TRUE_PILOT_AND_STAGER',
        subject: 'RucioStagerHPC',
      },
    ]);
  });

  it('check-config shows for each queue which rule holds nothing back, and which options do nothing', async () => {
    const { problems } = await read(file);
    const of = problems.filter(({ queue }) => queue === 'PULL_MODEL_1');
    expect(
      of.map(({ severity, code, pointer, message }) => [severity, code, pointer, message]),
    ).to.deep.equal([
      [
        'warning',
        'throttler-rule-idle',
        '/TEMPLATE_QUEUE/throttler/rulesForMissed/1/level',
        'a rule of level "ce" looks at each of the submitter\'s computingElements, and there are none: it never throttles',
      ],
      [
        ...['notice', 'option-without-effect', '/TEMPLATE_QUEUE/nQueueLimitJob'],
        'nQueueLimitJob has no effect: it limits the jobs of push queues, and thresher takes no jobs yet',
      ],
      [
        ...['notice', 'option-without-effect', '/TEMPLATE_QUEUE/submitter/logBaseURL'],
        'submitter.logBaseURL has no effect: this backend makes no addresses of logs',
      ],
    ]);
  });

  it('gives each queue its own limits over those of the template', async () => {
    const { queues } = await read(file);
    const limits = Object.fromEntries(queues.map((queue) => [queue.name, queue.limits]));
    expect(limits.PULL_MODEL_1).to.deep.equal({
      maxWorkers: 5,
      nQueueLimitWorker: 5,
      maxNewWorkersPerCycle: 0,
    });
    expect(limits.PUSH_MODEL_2).to.deep.equal({
      maxWorkers: 2,
      nQueueLimitWorker: 2,
      maxNewWorkersPerCycle: 1,
    });
  });
});

const section = (name: string): Json => ({ name, module: 'thresher/local' });
const good = (): Json => ({
  maxWorkers: 3,
  submitter: section('LocalSubmitter'),
  monitor: section('LocalMonitor'),
  sweeper: section('LocalSweeper'),
});

let directory: string;
let file: string;

/** A number that JSON can write and JavaScript cannot hold. */
const tooLarge = '1e999 as written';

function write(queues: Json): void {
  writeFileSync(file, JSON.stringify(queues, null, 1).replaceAll(`"${tooLarge}"`, '1e999'));
}

/** From 1, of the only line with this text. */
function lineWith(text: string): number {
  const lines = readFileSync(file, 'utf8').split('\n');
  const found = lines.flatMap((line, index) => (line.includes(text) ? [index + 1] : []));
  if (found.length !== 1) throw new Error(`${found.length} lines have ${text}`);
  return found[0]!;
}

interface Mistake {
  readonly what: string;
  /** What the queue BAD has otherwise than a good one. */
  readonly has: Json;
  readonly pointer: string;
  /** Text of the line that is to be named. */
  readonly at: string;
  readonly code: string;
  readonly message: string;
}

const localSubmitter =
  'LocalSubmitter of thresher/local, K8sSubmitter of thresher/kubernetes, HTCondorSubmitter of thresher/htcondor';

const mistakes: readonly Mistake[] = [
  {
    what: 'a limit in quotes',
    has: { maxWorkers: '1000' },
    pointer: '/BAD/maxWorkers',
    at: '"1000"',
    code: 'wrong-type',
    message: 'maxWorkers is "1000"; it must be an integer: write 1000 without quotes',
  },
  {
    what: 'a limit that is a fraction',
    has: { nQueueLimitWorker: 2.5 },
    pointer: '/BAD/nQueueLimitWorker',
    at: '2.5',
    code: 'wrong-type',
    message: 'nQueueLimitWorker is 2.5; it must be an integer',
  },
  {
    what: 'a limit that no computer can count to',
    has: { maxWorkers: tooLarge },
    pointer: '/BAD/maxWorkers',
    at: '1e999',
    code: 'wrong-type',
    message: 'maxWorkers is Infinity; it must be an integer that a computer can count to',
  },
  {
    what: 'a limit that would be rounded',
    has: { nQueueLimitWorker: 1e300 },
    pointer: '/BAD/nQueueLimitWorker',
    at: '1e+300',
    code: 'wrong-type',
    message: 'nQueueLimitWorker is 1e+300; it must be <= 9007199254740991',
  },
  {
    what: 'a rate without end',
    has: { submissionRate: tooLarge },
    pointer: '/BAD/submissionRate',
    at: '1e999',
    code: 'wrong-type',
    message: 'submissionRate is Infinity; it must be a number that a computer can count to',
  },
  {
    what: 'a mapType that does not exist',
    has: { mapType: 'Nojob' },
    pointer: '/BAD/mapType',
    at: '"Nojob"',
    code: 'wrong-type',
    message: 'mapType is "Nojob"; it must be one of "NoJob", "OneToOne", "ManyToOne", "OneToMany"',
  },
  {
    what: 'a demand that does not exist',
    has: { demand: 'all' },
    pointer: '/BAD/demand',
    at: '"all"',
    code: 'unknown-source',
    message:
      'demand is "all", which is no source; there are fill, htcjob, htcondor-idle, interlink, none, panda, request',
  },
  {
    what: 'a misspelt demand',
    has: { demand: 'fil' },
    pointer: '/BAD/demand',
    at: '"fil"',
    code: 'unknown-source',
    message:
      'demand is "fil", which is no source; there are fill, htcjob, htcondor-idle, interlink, none, panda, request',
  },
  {
    what: 'a demand that is neither a name nor a section',
    has: { demand: 37 },
    pointer: '/BAD/demand',
    at: '37',
    code: 'wrong-type',
    message: 'demand is 37; it must be one of a string, { "name", "module" }',
  },
  {
    what: 'a section of a demand without a name',
    has: { demand: { module: './toy.ts' } },
    pointer: '/BAD/demand',
    at: '"demand"',
    code: 'wrong-type',
    message: 'demand is {"module":"./toy.ts"}; it must be one of a string, { "name", "module" }',
  },
  {
    what: 'no attempts at all',
    has: { maxSubmissionAttempts: 0 },
    pointer: '/BAD/maxSubmissionAttempts',
    at: '"maxSubmissionAttempts"',
    code: 'wrong-type',
    message: 'maxSubmissionAttempts is 0; it must be >= 1',
  },
  ...[5, 'x', [1]].map((common) => ({
    what: `a common part that is ${JSON.stringify(common)}`,
    has: { common },
    pointer: '/BAD/common',
    at: '"common"',
    code: 'wrong-type',
    message: `common is ${JSON.stringify(common)}; it must be an object { ... } with options for all plugin sections`,
  })),
  {
    what: 'a missing section',
    has: { monitor: undefined },
    pointer: '/BAD',
    at: '"BAD"',
    code: 'missing-section',
    message: 'the section "monitor" is missing, with "name" and "module"',
  },
  {
    what: 'a section without a module',
    has: { sweeper: { name: 'LocalSweeper', mark: 1 } },
    pointer: '/BAD/sweeper',
    at: '"sweeper": { "BAD" }',
    code: 'wrong-type',
    message: '"module" is missing here',
  },
  {
    what: 'a plugin that does not exist',
    has: { submitter: { name: 'SlurmSubmitter', module: 'thresher/slurm' } },
    pointer: '/BAD/submitter/name',
    at: '"SlurmSubmitter"',
    code: 'unknown-plugin',
    message: `no submitter is called SlurmSubmitter of thresher/slurm; there are ${localSubmitter}`,
  },
  {
    what: 'a plugin of another kind',
    has: { submitter: { name: 'LocalMonitor', module: 'thresher/local', mark: 1 } },
    pointer: '/BAD/submitter/name',
    at: '"name": { "BAD" }',
    code: 'unknown-plugin',
    message: 'LocalMonitor of thresher/local is a monitor, not a submitter',
  },
  {
    what: 'a module without a plugin',
    has: { submitter: { name: 'Own', module: './empty.mjs' } },
    pointer: '/BAD/submitter/module',
    at: './empty.mjs',
    code: 'plugin-not-loaded',
    message:
      'the module ./empty.mjs could not be used: it exports nothing that definePlugin(), defineBackend() or defineSource() returned',
  },
  {
    what: 'a module that fails',
    has: { submitter: { name: 'Own', module: './broken.mjs' } },
    pointer: '/BAD/submitter/module',
    at: './broken.mjs',
    code: 'plugin-not-loaded',
    message: 'the module ./broken.mjs could not be used: it is broken',
  },
  {
    what: 'an option of the wrong type',
    has: { submitter: { ...section('LocalSubmitter'), nCore: '8' } },
    pointer: '/BAD/submitter/nCore',
    at: '"nCore"',
    code: 'wrong-type',
    message: 'nCore is "8"; it must be an integer: write 8 without quotes',
  },
  {
    what: 'an option out of bounds',
    has: { monitor: { ...section('LocalMonitor'), pollInterval: 0 } },
    pointer: '/BAD/monitor/pollInterval',
    at: '"pollInterval"',
    code: 'wrong-type',
    message: 'pollInterval is 0; it must be >= 0.05',
  },
  {
    what: 'a monitor that looks elsewhere',
    has: { monitor: { ...section('LocalMonitor'), workDir: '/elsewhere' } },
    pointer: '/BAD/monitor',
    at: '"monitor": { "BAD" }',
    code: 'connection-not-shared',
    message: 'the submitter works on local:/state/local, the monitor looks at local:/elsewhere',
  },
  {
    what: 'a sweeper that looks elsewhere',
    has: { sweeper: { ...section('LocalSweeper'), workDir: '/elsewhere' } },
    pointer: '/BAD/sweeper',
    at: '"sweeper": { "BAD" }',
    code: 'connection-not-shared',
    message: 'the submitter works on local:/state/local, the sweeper looks at local:/elsewhere',
  },
  {
    what: 'a throttler that does not exist',
    has: { throttler: { name: 'OwnThrottler', module: 'thresher/throttlers' } },
    pointer: '/BAD/throttler/name',
    at: '"OwnThrottler"',
    code: 'unknown-plugin',
    message:
      'no throttler is called OwnThrottler of thresher/throttlers; there are SimpleThrottler of thresher/throttlers, TinyThrottler of thresher/throttlers',
  },
  {
    what: 'a template queue that does not exist',
    has: { templateQueueName: 'GONE' },
    pointer: '/BAD/templateQueueName',
    at: '"GONE"',
    code: 'unknown-template-queue',
    message: 'templateQueueName is "GONE", which is not in this file',
  },
];

/** The line of BAD's own `key`, which other queues have, too. */
function placeOf({ at }: Mistake): number {
  const inBad = /^"(\w+)": \{ "BAD" \}$/.exec(at)?.[1];
  if (inBad === undefined) return lineWith(at);
  const lines = readFileSync(file, 'utf8').split('\n');
  const start = lines.findIndex((line) => line.includes('"BAD"'));
  return lines.findIndex((line, index) => index > start && line.includes(`"${inBad}":`)) + 1;
}

describe('a queue file', () => {
  beforeEach(() => {
    directory = temporaryDirectory();
    file = join(directory, 'panda_queueconfig.json');
    writeFileSync(join(directory, 'empty.mjs'), 'export const nothing = 1;');
    writeFileSync(join(directory, 'broken.mjs'), 'throw new Error("it is broken");');
  });

  for (const mistake of mistakes) {
    it(`names ${mistake.what}, and the other queue goes on`, async () => {
      write({ GOOD: good(), BAD: { ...good(), ...mistake.has } });
      const { queues, refused, problems } = await read(file);
      const { pointer, code, message } = mistake;
      expect(problems.filter(({ severity }) => severity === 'error')).to.deep.equal([
        { file, pointer, line: placeOf(mistake), severity: 'error', code, message, queue: 'BAD' },
      ]);
      expect(refused).to.deep.equal(['BAD']);
      expect(queues.map(({ name }) => name)).to.deep.equal(['GOOD']);
    });
  }

  it('names the line in the template where a value from there is wrong', async () => {
    write({
      X_TEMPLATE: { ...good(), maxWorkers: 'many' },
      BAD: { templateQueueName: 'X_TEMPLATE' },
      GOOD: { templateQueueName: 'X_TEMPLATE', maxWorkers: 1 },
    });
    const { queues, problems } = await read(file);
    expect(queues.map(({ name }) => name)).to.deep.equal(['GOOD']);
    expect(problems).to.deep.equal([
      {
        file,
        pointer: '/X_TEMPLATE/maxWorkers',
        line: lineWith('"many"'),
        severity: 'error',
        code: 'wrong-type',
        message: 'maxWorkers is "many"; it must be an integer',
        queue: 'BAD',
      },
    ]);
  });

  it('names a mistake in a worker template with the template’s file and line', async () => {
    const template = join(directory, 'pilot.yaml');
    writeFileSync(template, 'command: /bin/true\nenv:\n  A: ${nothing}\n');
    write({
      GOOD: good(),
      BAD: { ...good(), submitter: { ...section('LocalSubmitter'), templateFile: 'pilot.yaml' } },
    });
    const { queues, problems } = await read(file);
    expect(queues.map(({ name }) => name)).to.deep.equal(['GOOD']);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.include({
      file: template,
      pointer: '/env/A',
      line: 3,
      severity: 'error',
      queue: 'BAD',
      code: 'unknown-placeholder',
    });
  });

  it('names a worker template that is not there', async () => {
    write({ BAD: { ...good(), submitter: { ...section('LocalSubmitter'), templateFile: 'gone.yaml' } } });
    const { problems } = await read(file);
    const path = join(directory, 'gone.yaml');
    expect(problems).to.deep.equal([
      {
        file,
        pointer: '/BAD/submitter/templateFile',
        line: lineWith('gone.yaml'),
        severity: 'error',
        code: 'file-unreadable',
        message: `${path}: cannot read the file: ENOENT: no such file or directory`,
        queue: 'BAD',
      },
    ]);
  });

  it('keeps a queue with an access point that workers share, with a warning', async () => {
    const messenger = {
      name: 'SharedFileMessenger',
      module: 'thresher/shared-file',
      accessPoint: '/data/all',
    };
    write({ Q: { ...good(), messenger } });
    const { queues, problems } = await read(file);
    expect(queues).to.have.length(1);
    expect(problems).to.deep.equal([
      {
        file,
        pointer: '/Q/messenger/accessPoint',
        line: lineWith('accessPoint'),
        severity: 'warning',
        code: 'access-point-shared',
        message:
          'the last component of /data/all has no ${workerID}: workers share it and it is never removed',
        queue: 'Q',
      },
    ]);
  });

  it('reports options that a plugin does not read; of those in common, the ones that no plugin reads', async () => {
    const submitter = { ...section('LocalSubmitter'), nCores: 8 };
    write({ Q: { ...good(), submitter, common: { nCore: 4, forOthers: 1 } } });
    const { queues, problems } = await read(file);
    expect(queues[0]?.worker).to.include({ nCore: 4 });
    expect(problems.map(({ severity, pointer, message }) => [severity, pointer, message])).to.deep.equal([
      ['notice', '/Q/submitter/nCores', 'LocalSubmitter does not read "nCores"'],
      ['notice', '/Q/common/forOthers', 'no plugin of this queue reads "forOthers"'],
    ]);
  });

  const preparators = {
    Dummy: { preparator: ['preparator', 'Dummy'], stager: ['stager', 'Dummy'] },
    Pilotmover: { preparator: ['preparator', 'Pilotmover'] },
  };
  for (const [what, idle] of Object.entries(preparators))
    it(`warns of a slip in common beside a ${what} section, which could hide it`, async () => {
      const beside = Object.fromEntries(
        Object.entries(idle).map(([kind, [part = '', prefix = '']]) => {
          const name = `${prefix}${part.charAt(0).toUpperCase()}${part.slice(1)}`;
          return [kind, { name, module: `pandaharvester.harvester${part}.${prefix.toLowerCase()}_${part}` }];
        }),
      );
      write({ Q: { ...good(), ...beside, common: { minRamCuont: 2000 } } });
      const { problems } = await read(file);
      expect(problems.map(({ severity, pointer, message }) => [severity, pointer, message])).to.deep.equal([
        [
          'warning',
          '/Q/common/minRamCuont',
          'no plugin of this queue reads "minRamCuont"; did you mean "minRamCount"?',
        ],
      ]);
    });

  it('loses the queue that is no object, and says that it is refused', async () => {
    write({ BAD: 5, GOOD: good() });
    const { queues, refused } = await read(file);
    expect(queues.map(({ name }) => name)).to.deep.equal(['GOOD']);
    expect(refused).to.deep.equal(['BAD']);
  });

  it('a queue file that is no JSON has no queues and one problem', async () => {
    writeFileSync(file, '{ "Q": {} ');
    const { queues, refused, problems } = await read(file);
    expect([queues, refused]).to.deep.equal([[], []]);
    expect(problems.map(({ code, line }) => [code, line])).to.deep.equal([['syntax', 1]]);
  });

  const rules = [
    { level: 'site', timeWindow: 1, maxMissed: 1 },
    { level: 'ce', timeWindow: 1, maxMissed: 1 },
  ];
  const weights = 'prodSourceLabelRandomWeightsPermille';
  const idle =
    'a rule of level "ce" looks at each of the submitter\'s computingElements, and there are none: it never throttles';
  for (const [has, pointer, code, message] of [
    [
      { queueStatus: 'ofline' },
      '/queueStatus',
      'doubtful-value',
      'queueStatus is "ofline", which neither PanDA nor Harvester knows, so nothing is submitted; did you mean "online" or "offline"?',
    ],
    [
      { [weights]: { rc_tset: 10, rc_test: 10 } },
      `/${weights}`,
      'doubtful-value',
      `${weights} has a weight for the label "rc_tset", which has no pilot type of its own; did you mean "rc_test" or "rc_test2"?`,
    ],
    [
      { [weights]: { rc_test: 600, ptest: 401 } },
      `/${weights}`,
      'doubtful-value',
      `the weights of ${weights} are 1001 together; they are parts of 1000`,
    ],
    ...['SimpleThrottler', 'TinyThrottler'].map(
      (name) =>
        [
          { throttler: { name, module: 'thresher/throttlers', rulesForMissed: rules } },
          '/throttler/rulesForMissed/1/level',
          'throttler-rule-idle',
          idle,
        ] as const,
    ),
  ] as const) {
    it(`warns of ${JSON.stringify(has)}`, async () => {
      write({ Q: { ...good(), ...has } });
      const { queues, problems } = await read(file);
      expect(queues).to.have.length(1);
      expect(
        problems.map((problem) => [problem.severity, problem.pointer, problem.code, problem.message]),
      ).to.deep.equal([['warning', `/Q${pointer}`, code, message]]);
    });
  }

  it('says nothing of a rule on computing elements where the submitter names them', async () => {
    const throttler = { name: 'SimpleThrottler', module: 'thresher/throttlers', rulesForMissed: rules };
    const queue = good();
    const submitter = { ...(queue.submitter as Json), computingElements: ['ce.site.test:9619'] };
    write({ Q: { ...queue, submitter, throttler } });
    expect((await read(file)).problems).to.deep.equal([]);
  });

  it('a queue file with valid weights and states gets no remark', async () => {
    const states = ['online', 'offline', 'test', 'brokeroff'].map((queueStatus) => [
      queueStatus,
      { ...good(), queueStatus, [weights]: { rc_test: 500, rc_alrb: 500 } },
    ]);
    write(Object.fromEntries(states) as Json);
    expect((await read(file)).problems).to.deep.equal([]);
  });

  for (const queueStatus of ['Online', 'ONLINE', 'onLine'])
    it(`takes queueStatus ${queueStatus} for online, as Harvester does`, async () => {
      write({ Q: { ...good(), queueStatus, mapType: 'NoJob', maxWorkers: 1 } });
      const { queues, problems, verdicts } = await read(file, { defaultDemand: 'fill' });
      expect(problems).to.deep.equal([]);
      expect(queues[0]?.options.queueStatus).to.equal('online');
      expect(verdicts[0]?.standing).to.deep.equal([]);
    });

  it('weights of test labels get the remark that the pilots are usual ones, without another label to write', async () => {
    write({ Q: { ...good(), [weights]: { test: 10, managed: 5 } } });
    const { problems } = await read(file);
    expect(problems.map(({ severity, code, message }) => [severity, code, message])).to.deep.equal(
      ['test', 'managed'].map((label) => [
        ...['notice', 'doubtful-value'],
        `pilots for the label "${label}" of ${weights} are of the usual type PR, as in Harvester`,
      ]),
    );
  });

  it('weights by pilot type get the remark that they have no effect, as in Harvester since 2019', async () => {
    const workerMaker = {
      name: 'SimpleWorkerMaker',
      module: 'pandaharvester.harvesterworkermaker.simple_worker_maker',
      pilotTypeRandomWeightsPermille: { RC: 1000 },
    };
    write({ Q: { ...good(), workerMaker } });
    const { problems } = await read(file);
    expect(problems.map(({ pointer, code }) => [pointer, code])).to.deep.equal([
      ['/Q/workerMaker/pilotTypeRandomWeightsPermille', 'option-without-effect'],
    ]);
  });

  it('names no queue as unknown where the queue file cannot be read', async () => {
    const gone = join(file, '..', 'gone.json');
    const { problems } = await read(gone, { queueList: ['A', 'B'] });
    expect(problems.map(({ code }) => code)).to.deep.equal(['file-unreadable']);
  });

  it('takes back with null what its template says', async () => {
    const T_TEMPLATE = {
      ...good(),
      nQueueLimitWorkerMax: 1,
      submissionRate: 1,
      demand: 'none',
      submitter: { ...section('LocalSubmitter'), nCore: 8 },
      throttler: { name: 'SimpleThrottler', module: 'thresher/throttlers' },
    };
    const Q = {
      templateQueueName: 'T_TEMPLATE',
      nQueueLimitWorkerMax: null,
      submissionRate: null,
      demand: null,
      credmanagers: null,
      submitter: { nCore: null },
      throttler: null,
      extractor: null,
      isTemplateQueue: null,
    };
    write({ T_TEMPLATE, Q, R: { ...good(), templateQueueName: null } });
    const { queues, problems } = await read(file);
    expect(problems).to.deep.equal([]);
    expect(queues.map(({ name }) => name)).to.deep.equal(['Q', 'R']);
    expect(queues[0]).to.deep.include({ demand: 'fill', worker: {} });
    expect(queues[0]?.limits.nQueueLimitWorker).to.equal(3);
    expect(queues[0]?.options).to.not.have.any.keys('submissionRate', 'nQueueLimitWorkerMax');
    expect(queues[0]?.plugins).to.not.have.any.keys('throttler');
  });

  it('cannot do with null for what it needs', async () => {
    write({ BAD: { ...good(), monitor: null } });
    expect((await read(file)).problems.map(({ code }) => code)).to.deep.equal(['missing-section']);
  });

  it('refuses an entry that says neither that it is a template nor that it is none', async () => {
    write({
      LONELY: { ...good(), isTemplateQueue: 'true' },
      USED: { ...good(), isTemplateQueue: 1 },
      Q: { templateQueueName: 'USED' },
    });
    const { queues, refused, templates, problems } = await read(file);
    expect([queues.map(({ name }) => name), refused, templates]).to.deep.equal([['Q'], ['LONELY'], ['USED']]);
    expect(problems.map(({ pointer, severity, queue }) => [pointer, severity, queue])).to.deep.equal([
      ['/USED/isTemplateQueue', 'error', undefined],
      ['/USED', 'warning', undefined],
      ['/LONELY/isTemplateQueue', 'error', 'LONELY'],
    ]);
  });

  it('is read in part where only some queues are wanted', async () => {
    write({ A: good(), B: { ...good(), maxWorkers: 'x' }, C: good() });
    const names = async (queueList: string[]) =>
      (await read(file, { queueList })).queues.map(({ name }) => name);
    expect(await names(['A'])).to.deep.equal(['A']);
    expect((await read(file, { queueList: ['A'] })).problems).to.deep.equal([]);
    expect(await names(['ALL'])).to.deep.equal(['A', 'C']);
    expect(await names([])).to.deep.equal([]);
  });

  it('lets only local queues fill themselves unless it is said', async () => {
    write({ Q: good(), OFF: { ...good(), demand: 'none' } });
    const demands = async (defaultDemand: 'fill' | 'none' | undefined) =>
      (await read(file, { defaultDemand })).queues.map(({ demand }) => demand);
    expect(await demands(undefined)).to.deep.equal(['fill', 'none']);
    expect(await demands('none')).to.deep.equal(['none', 'none']);
    expect(await demands('fill')).to.deep.equal(['fill', 'none']);
  });

  it('hole 8: of a value that is no name is said the beginning alone, wherever the value stands', async () => {
    const long = 'x'.repeat(100_000);
    const plugin = (head: object) => ({ ...good(), submitter: { ...section('LocalSubmitter'), ...head } });
    write({
      Common: { ...good(), common: long },
      Module: plugin({ module: long }),
      Name: plugin({ name: long }),
      File: plugin({ templateFile: long }),
      Template: { ...good(), templateQueueName: long },
      Demand: { ...good(), demand: long },
      Source: { ...good(), demand: { name: 'fill', module: long } },
      Status: { ...good(), queueStatus: long },
      Manager: { ...good(), credmanagers: [{ name: long, module: long }] },
    });
    const { verdicts } = await read(file);
    for (const { name, problems } of verdicts) {
      expect(problems, name).to.not.have.length(0);
      for (const { message, subject = '' } of problems) {
        expect(message, name).to.have.length.below(2100);
        expect(subject, name).to.have.length.below(500);
      }
    }
  });

  it('makes a snapshot that is JSON all through, with every default in it', async () => {
    write({ Q: good() });
    const [queue] = (await read(file)).queues;
    expect(JSON.parse(JSON.stringify(queue))).to.deep.equal(queue);
    expect(queue?.configDir).to.equal(directory);
    expect(queue?.options).to.include({
      queueStatus: 'online',
      mapType: 'OneToOne',
      maxSubmissionAttempts: 3,
    });
    expect(queue?.plugins.submitter).to.deep.equal({
      ...section('LocalSubmitter'),
      config: { pidNamespace: 'auto' },
    });
  });
});
